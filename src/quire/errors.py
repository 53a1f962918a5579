"""Every error Quire raises on purpose. The message says what, where, and what to do next; no secrets.

QuireError
├── SettingError       a setting or argument has no such name, or a value outside its range
├── MissingExtra       an optional part is asked for that is not installed
├── SourceError        one source cannot be taken in; the rest of a batch goes on
│   ├── NotText        it holds binary data
│   ├── TooLarge       it is over a cap, which is named
│   ├── Unreadable     it is absent, forbidden, or not a regular file
│   ├── Refused        its URL is one that Quire does not ask for
│   ├── NotFound       its server says that it is not there, or not for everyone
│   ├── SourceMoved    its documents are known from another place, which is gone
│   └── TransientError the network or its server failed; it may work later
├── EmbeddingError     a model cannot be reached or used; searching by words goes on
├── LibraryError       a library cannot be opened, read or written; it was left as it was
│   ├── Unstorable     the database does not take what one document holds
│   └── LibraryHeld    this process must first close it elsewhere
├── NoResults          what was asked for is not there; the nearest things are named
└── BrokenInvariant    a strategy's rule cannot be kept on this document
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from quire import redact

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    Vectors = NDArray[float32]


class QuireError(Exception):
    """The root of the tree: catch it to catch all of them. Its message shows no secret of a URL."""

    def __init__(self, *parts: str) -> None:
        # One by one: in a whole message, an @ of the second part could end a password of the first.
        super().__init__(": ".join(map(redact.text, parts)))

    def __reduce__(self) -> tuple[object, ...]:
        """Let errors pass from process to process, whatever they are made of."""
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[QuireError], args: tuple[object, ...], state: dict[str, object]) -> QuireError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class SettingError(QuireError):
    """A setting is unknown or out of range."""

    def __init__(self, name: str, problem: str) -> None:
        self.name = redact.text(name)
        super().__init__(name, problem)


class MissingExtra(QuireError):
    """An optional dependency is absent."""

    def __init__(self, feature: str, extra: str) -> None:
        self.extra = extra
        super().__init__(f"{feature} is an optional part. Install it with: pip install 'quire-docs[{extra}]'")


class SourceError(QuireError):
    """One source cannot be taken in."""

    def __init__(self, source: str, reason: str) -> None:
        self.source, self.reason = redact.text(source), redact.text(reason)
        super().__init__(source, reason)


class NotText(SourceError):
    """The source holds binary data."""


class TooLarge(SourceError):
    """The source is over a cap."""


class Unreadable(SourceError):
    """The source is absent, forbidden, or not a regular file."""


class Refused(SourceError):
    """The URL is one that Quire does not ask for: its scheme, host, address or port, or where it leads."""


class NotFound(SourceError):
    """The server says that there is no such page, or that it is not for everyone."""

    def __init__(self, source: str, reason: str, status: int) -> None:
        self.status = status
        super().__init__(source, reason)


class TransientError(SourceError):
    """The network or a server failed; the same request may work later."""


class SourceMoved(SourceError):
    """The documents of a place are known from another place, which is gone."""

    def __init__(self, old: str, new: str) -> None:
        self.old, self.new = old, new
        super().__init__(
            new,
            f"its documents are known from {old}, which is gone. If it was moved, type:"
            f" quire sources move {shlex.quote(old)} {shlex.quote(new)}. To keep both, name another"
            " collection: -c NAME",
        )


class EmbeddingError(QuireError):
    """A model cannot be reached or used, or refuses some texts."""

    def __init__(
        self, model: str, problem: str, refused: Sequence[int] = (), vectors: Vectors | None = None
    ) -> None:
        self.model = model
        self.refused = tuple(refused)  # places of the texts that it does not take
        self.vectors = vectors  # of the others, if that is all that is wrong
        super().__init__(model, problem)


class LibraryError(QuireError):
    """A library cannot be opened, read or written."""

    def __init__(self, library: str, problem: str) -> None:
        self.library = redact.url(library)
        super().__init__(self.library, problem)


class Unstorable(LibraryError):
    """The database does not take what one document holds; others may be written."""


class LibraryHeld(LibraryError):
    """A library was restored, and another part of this process still has the old one open."""


class NoResults(QuireError):
    """What was asked for is not there."""


class BrokenInvariant(QuireError):
    """A strategy's rule cannot be kept on this document."""


_LISTED = 20  # names in a message


def nearest(name: str, known: Iterable[str]) -> str:
    """Name the known word closest to a wrong one, as the end of a sentence; else list them."""
    from difflib import get_close_matches

    known = list(known)
    close = get_close_matches(name, known, n=1, cutoff=0.5)
    if close:
        return f"Did you mean {close[0]!r}?"
    more = f" and {len(known) - _LISTED:,} more" if len(known) > _LISTED else ""
    return f"Known: {', '.join(known[:_LISTED])}{more}." if known else "There are none."
