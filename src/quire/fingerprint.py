"""Fingerprints: what made something, as names and versions: `PyStemmer 3.1.0, Unicode 14.0.0`.

Stored beside what was made, a fingerprint tells later whether it would be made in another way now.
"""

from __future__ import annotations

_EARLIER = "an earlier Quire"
_VERSIONS = " | "  # between settings and the versions of what follows them


def joined(settings: str, versions: str) -> str:
    """The fingerprint of what settings and some versions of programs made."""
    return f"{settings}{_VERSIONS}{versions}"


def why_remade(old: str, new: str, *, shared: bool) -> str:
    """Why something is to be made again, if it is: other settings or other versions made it.

    In a library that programs of several versions share, versions are no reason: they would undo each
    other's work.
    """
    if old == new:
        return ""
    (settings, _, old_versions), (now, _, new_versions) = old.partition(_VERSIONS), new.partition(_VERSIONS)
    if settings != now:
        return "the settings that cut documents have changed"
    return "" if shared or old_versions == new_versions else difference(old_versions, new_versions)


def difference(old: str, new: str) -> str:
    """What differs between two lists of versions, for people."""
    then, now = _versions(old), _versions(new)
    changed = [name for name in now if then.get(name) != now[name]]
    before = ", ".join(f"{name} {then[name]}" for name in changed if name in then) or _EARLIER
    return f"{before} was used, and this is {', '.join(f'{name} {now[name]}' for name in changed)}"


def _versions(fingerprint: str) -> dict[str, str]:
    parts = (part.rpartition(" ") for part in fingerprint.split(", "))
    return {name: version for name, _, version in parts if name}
