"""Keys to a library, as both databases store them. Always: the digest of a key is stored, never the key."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

LEVELS = ("read", "write", "admin")  # each may do what those before it may
FACT = "key:"  # what the names of stored keys begin with


@dataclass(frozen=True, slots=True)
class AccessKey:
    """What a key may do, for whom, and until when. Times are in milliseconds."""

    id: str
    name: str
    level: str  # read, write or admin
    collections: tuple[str, ...] | None  # those that it is for; None is all
    created_at: int
    expires_at: int | None  # None is never
    digest: str = field(repr=False)  # SHA-256 of the key

    def allows(self, level: str) -> bool:
        """Whether it may do what needs a level."""
        return LEVELS.index(self.level) >= LEVELS.index(level)

    def to_json(self) -> str:
        """The key as it is stored."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, stored: str) -> AccessKey:
        """The key that `to_json` wrote. Raises ValueError if something else did."""
        try:
            told = json.loads(stored)
            scope = told.pop("collections")
            return cls(collections=None if scope is None else tuple(scope), **told)
        except (TypeError, KeyError, AttributeError) as problem:
            raise ValueError(str(problem)) from None
