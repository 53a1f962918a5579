"""The versions of a collection: `django@5.2` and `django@4.2`, of which the newest is searched by default.

Pure. A branch that is no version, such as `django@main`, is a collection like any other. Always: versions are
in one total order; 5.10 is newer than 5.9, a release is newer than its candidates, and a leading `v` says
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from quire import later

_NUMBERS = later.pattern(r"v?(\d{1,18}(?:\.\d{1,18})*)(.*)", re.IGNORECASE)
_SUFFIX = later.pattern(r"[-._]?([a-z]+)[-._]?(\d{0,18})", re.IGNORECASE)
_RELEASED = 0
# What comes before a release, and after it; any other word, which SemVer allows after a hyphen, is before it.
_RANKS = {
    **dict.fromkeys(("dev", "snapshot", "nightly", "canary"), -5),
    **dict.fromkeys(("a", "alpha", "pre", "preview", "m", "milestone"), -3),
    **dict.fromkeys(("b", "beta"), -2),
    **dict.fromkeys(("c", "rc"), -1),
    **dict.fromkeys(("final", "release", "ga", "lts"), _RELEASED),
    **dict.fromkeys(("post", "p", "patch", "r", "rev", "sp"), 1),
}
_OTHER_WORD = -4
_SEMVER_DOTS = 2  # 1.0.0-anything

Order = tuple[tuple[int, ...], tuple[tuple[int, str, int], ...]]


@lru_cache(maxsize=4096)
def version_order(version: str) -> Order | None:
    """What sorts a version among others; None if it is none, such as the name of a branch or a commit."""
    found = _NUMBERS.fullmatch(version)
    if found is None or re.fullmatch("[0-9a-f]{40}|[0-9a-f]{64}", version):
        return None
    numbers = [int(number) for number in found[1].split(".")]
    while len(numbers) > 1 and not numbers[-1]:
        numbers.pop()  # 5.2.0 is 5.2
    is_semver = found[1].count(".") == _SEMVER_DOTS and found[2].startswith("-")
    suffix = _suffix(found[2].partition("+")[0], is_semver)
    return None if suffix is None else (tuple(numbers), (*suffix, (_RELEASED, "", 0)))


def _suffix(text: str, is_semver: bool) -> list[tuple[int, str, int]] | None:
    """The order of what follows the numbers, such as `rc1` or `-beta.2`; None if no version ends so."""
    found, place = list[tuple[int, str, int]](), 0
    while place < len(text):
        part = _SUFFIX.match(text, place)
        if part is None or (part[1].lower() not in _RANKS and not is_semver):
            return None
        word, place = part[1].lower(), part.end()
        rank = _RANKS.get(word, _OTHER_WORD)
        if rank != _RELEASED:
            found.append((rank, word if rank == _OTHER_WORD else "", int(part[2] or 0)))
    return found


def split_version(collection: str) -> tuple[str, str] | None:
    """The name and the version of `name@version`; None for any other collection."""
    name, at, version = collection.partition("@")
    return (name, version) if name and at and version_order(version) else None


def versions_of(collections: Iterable[str]) -> dict[str, list[str]]:
    """The collections that are versions, newest first, by the name that they have in common."""
    found = dict[str, list[tuple[Order, str, str]]]()
    for collection in collections:
        if split := split_version(collection):
            order = version_order(split[1])
            assert order is not None  # noqa: S101
            found.setdefault(split[0], []).append((order, split[1], collection))
    return {name: [one[-1] for one in sorted(some, reverse=True)] for name, some in found.items()}


def newest_of(name: str, collections: Iterable[str]) -> str:
    """The newest version of a collection that exists only in versions; else the name itself.

    A version is found with and without a leading `v`.
    """
    known = list(collections)
    if name in known:
        return name
    same = (other for other in known if _without_v(other) == _without_v(name))
    return next(same, versions_of(known).get(name, [name])[0])


def _without_v(collection: str) -> str:
    """A collection's name, with its version spelled without a leading `v`."""
    split = split_version(collection)
    return f"{split[0]}@{split[1].removeprefix('v').removeprefix('V')}" if split else collection


def older_versions(collections: Iterable[str]) -> tuple[str, ...]:
    """The collections of which there is a newer version."""
    return tuple(older for versions in versions_of(collections).values() for older in versions[1:])


def note_newest(name: str, collections: Iterable[str]) -> str:
    """What to say if the newest version stands for a name; "" if the name is a collection."""
    known = list(collections)
    versions = versions_of(known).get(name)
    if name in known or not versions:
        return ""
    if len(versions) == 1:
        return f"{name} is {versions[0]}, its only version."
    return f"{name} is {versions[0]}, the newest of {len(versions):,} versions. For all of them: {name}@*"


_LISTED = 5  # older versions in a note


def note_older(older: Iterable[str]) -> str:
    """What to say of older versions that were left out; "" if there are none."""
    left = list(older)
    if not left:
        return ""
    more = f" and {len(left) - _LISTED:,} more" if len(left) > _LISTED else ""
    every = f"{left[0].partition('@')[0]}@*"
    return (
        f"Older versions were left out: {', '.join(left[:_LISTED])}{more}."
        f" To search one, name its collection; {every} are all versions."
    )
