"""Addresses: `collection:path`, `collection:path#slug`, and `#slug~2` or `#slug~2-4` for parts of a section.

`#slug~0` is a section's own text, before its subsections.

A path may itself hold `:` and `#`, so an address can be read in several ways; a collection holds no colon.
An id is a UUID derived from an address. Its key is its beginning, by which a database finds it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from quire import later
from quire.errors import SettingError

ALL_BRANCHES = "@*"  # at the end of a collection's name; one branch is project@branch
_PART = later.pattern(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
_NAMESPACE = bytes.fromhex("6f1a7c3e2f0b5d7e9a540c9f8b1d2e63")
_ID = later.pattern(r"[0-9a-f]{8}(-?)[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{12}", re.IGNORECASE)
_CODE = later.pattern(r"\\u\{([0-9a-f]{1,6})\}")
_KEY_BITS = 47  # SQLite stores a number of so many bits in six bytes


def of_document(collection: str, path: str) -> str:
    """The address of a document."""
    return f"{collection}:{path}"


def of_section(document: str, slug: str) -> str:
    """The address of a section; the root has no slug, and its document's address."""
    return f"{document}#{slug}" if slug else document


def of_part(section: str, part: int, last: int = 0, *, is_root: bool) -> str:
    """The address of a part of a section, counted from 1, or of several; part 0 is the whole section."""
    if not part:
        return section
    parts = f"{part}-{last}" if last > part else str(part)
    return f"{section}#~{parts}" if is_root else f"{section}~{parts}"


def of_opening(section: str, *, is_root: bool) -> str:
    """The address of a section's own text, without its subsections."""
    return f"{section}#~0" if is_root else f"{section}~0"


def without_part(address: str) -> str:
    """The address of the section that a part belongs to."""
    before, mark, name = address.rpartition("#")
    slug = split_part(name) if mark else None
    return address if slug is None else f"{before}#{slug[0]}" if slug[0] else before


def readings(address: str) -> Iterator[tuple[str | None, str, str]]:
    """Every way to read an address, as collection, path and what follows the #; the likeliest first."""
    for place in (len(address), *(i for i, char in enumerate(address) if char == "#")):
        before, rest = address[:place], address[place + 1 :]
        collection, colon, path = before.partition(":")
        if colon:
            yield collection, path, rest
        yield None, before, rest


def meant(name: str) -> str:
    r"""The stored name of one that is shown safely, with codes like `\\u{a}`."""
    return _CODE.sub(_meant, name)


def _meant(found: re.Match[str]) -> str:
    """The character of a code. A code for no character, or for half of one, stays unchanged."""
    code = int(found[1], 16)
    return chr(code) if code < 0xD800 or 0xDFFF < code <= 0x10FFFF else found[0]


def names_of(document: str) -> tuple[str, str]:
    """What people type for a document: its address, and its path alone."""
    return document, document.partition(":")[2]


def without_section(address: str) -> str:
    """An address without what follows its first #."""
    return address.partition("#")[0]


def split_part(name: str) -> tuple[str, int, int] | None:
    """The slug, and the first and the last part of `slug~2` or `slug~2-4`; None if a name does not end so.

    Part 0 is the section's own text, without its subsections.
    """
    slug, mark, part = name.rpartition("~")
    found = _PART.fullmatch(part)
    return (slug, int(found[1]), int(found[2] or found[1])) if mark and found else None


def is_in_collection(name: str, wanted: str) -> bool:
    """Whether a collection is the wanted one, or one of the branches that `project@*` stands for."""
    return name.startswith(wanted[:-1]) if wanted.endswith(ALL_BRANCHES) else name == wanted


def check_collection_name(name: str) -> None:
    """Raise SettingError for a name that would make addresses ambiguous."""
    if name.endswith(ALL_BRANCHES):
        raise SettingError("collection", f"{name!r} stands for all branches. Name one, as in project@main")
    if ":" in name:
        raise SettingError("collection", f"{name!r} has a colon, where an address ends it. Name another")


def id_of(kind: str, address: str) -> str:
    """The id of what has an address, a UUID of version 5, the same in every library. Kinds share none."""
    made = _digests(kind, [address])[0].hex()  # uuid.uuid5 makes the same, and takes longer
    variant = "89ab"[int(made[16], 16) & 3]
    return f"{made[:8]}-{made[8:12]}-5{made[13:16]}-{variant}{made[17:20]}-{made[20:32]}"


def keys_of(kind: str, addresses: Iterable[str]) -> list[int]:
    """The keys of the ids of what has these addresses, without making the ids."""
    return [int.from_bytes(digest[:6]) >> 48 - _KEY_BITS for digest in _digests(kind, addresses)]


def key_of_id(id: str) -> int:
    """The key of an id: its first bits. Two ids may share one."""
    return int(id.replace("-", ""), 16) >> 128 - _KEY_BITS


def parse_id(text: str) -> str | None:
    """The id that a text is, in any case, with or without hyphens; None if it is none."""
    from uuid import UUID  # takes time, which a search does not need

    return str(UUID(text)) if _ID.fullmatch(text) else None


def _digests(kind: str, addresses: Iterable[str]) -> list[bytes]:
    """What ids begin with, before they say which version of UUID they are."""
    from hashlib import sha1  # takes 4 ms, which `quire --help` does not need

    prefix = _NAMESPACE + (b"" if kind == "document" else f"{kind} ".encode())
    return [sha1(prefix + address.encode(), usedforsecurity=False).digest() for address in addresses]
