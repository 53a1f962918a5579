"""The part of Library that makes, lists and withdraws keys: who may use a server of it, and for what.

Always: a key is shown once, when it is made; the library has only its digest.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Iterable
from datetime import UTC, datetime

from quire.address import ALL_BRANCHES
from quire.errors import NoResults, SettingError, nearest
from quire.library.base import OpenLibrary, reads, writes
from quire.sources.entries import moment
from quire.stores import LEVELS, AccessKey, storable

_MARK = "quire"  # what a key begins with: people and scanners recognise a lost one
_SECRET_BYTES = 32
_LONGEST_NAME = 100  # characters


class Keys(OpenLibrary):
    """Keys to a library."""

    @writes
    def make_key(
        self,
        name: str,
        *,
        level: str = "read",
        collections: Iterable[str] | None = None,
        expires: str | datetime | None = None,
    ) -> tuple[AccessKey, str]:
        """Make a key for some collections or all, until a date or for a time (90d); returns what it may do
        and the key itself, which is stored nowhere.

        `level` is read, write (which also adds, removes and remembers) or admin (which also checks the
        library, and is for all collections). Raises SettingError if another key has the name.
        """
        scope = None if collections is None else tuple(dict.fromkeys(collections))
        _check_key(name, level, scope)
        if any(key.name == name for key in self.store.access_keys()):
            raise SettingError("name", f"there is a key {name!r} already. Name another, or withdraw that one")
        import secrets  # takes time, which a search does not need

        id, secret = secrets.token_hex(4), secrets.token_urlsafe(_SECRET_BYTES)
        key, now = f"{_MARK}_{id}_{secret}", time.time_ns() // 1_000_000
        made = AccessKey(id, name, level, scope, now, _expiry(expires, now), digest_of_key(key))
        self.store.put_key(made)
        return made, key

    @reads
    def keys(self) -> list[AccessKey]:
        """All keys, oldest first: what they may do, not the keys themselves."""
        return self.store.access_keys()

    @writes
    def withdraw_key(self, name: str) -> AccessKey:
        """Delete a key by its name or id. Servers refuse it within seconds. Raises NoResults."""
        known = self.store.access_keys()
        found = next((key for key in known if name in (key.name, key.id)), None)
        if found is None or not self.store.drop_key(found.id):
            close = nearest(name, [key.name for key in known])
            raise NoResults(f"No key {name!r}. {close}", missing="key", name=name)
        return found


def digest_of_key(key: str) -> str:
    """What is stored of a key. It is as hard to guess as 256 random bits, so no salt is needed."""
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


def valid_key(given: str, known: Iterable[AccessKey], now_ms: int) -> AccessKey | None:
    """The stored key that a given one is; None if there is none, or it has expired."""
    digest = digest_of_key(given)
    found = [key for key in known if hmac.compare_digest(key.digest, digest)]
    return next((key for key in found if key.expires_at is None or now_ms < key.expires_at), None)


def _check_key(name: str, level: str, scope: tuple[str, ...] | None) -> None:
    if not name.strip() or len(name) > _LONGEST_NAME or storable(name) != name:
        raise SettingError("name", f"must be 1 to {_LONGEST_NAME} characters that say whose key it is")
    if level not in LEVELS:
        raise SettingError("level", f"there is no {level!r}. {nearest(level, LEVELS)}")
    if scope is not None and not (scope and all(scope)):
        raise SettingError("collections", "names none. Name at least one, or leave it out for all")
    if scope is not None and level == "admin":
        raise SettingError("level", "admin is for the whole library. Leave out the collections, or use write")
    for wide in (one for one in scope or () if one.endswith(ALL_BRANCHES) or storable(one) != one):
        raise SettingError("collections", f"{wide!r} is not the name of one collection. Name each of them")


def _expiry(expires: str | datetime | None, now: int) -> int | None:
    """When a key expires, in milliseconds. Raises SettingError for a time that is over."""
    at = moment("expires", expires, end=True, ahead=True)
    if at is not None and at <= now:
        then = datetime.fromtimestamp(at / 1000, UTC).date()
        raise SettingError("expires", f"{then} is in the past. Name a later day, or a time such as 90d")
    return at
