"""Every error Quire raises on purpose. The message says what, where, and what to do next; no secrets.

QuireError
├── SettingError       a setting or argument has no such name, or a value outside its range
├── UsageError         a command was typed wrongly
├── MissingExtra       an optional part is asked for that is not installed
├── SourceError        one source cannot be taken in; the rest of a batch goes on
│   ├── NotText        it holds binary data
│   ├── TooLarge       it is over a cap, which is named
│   ├── Unreadable     it is absent, forbidden, or not a regular file
│   ├── NotPrepared    a parser fails on it, or needs too much time or memory
│   ├── Refused        its URL is one that Quire does not ask for, or its path is taken
│   ├── NotFound       its server says that it is not there, or not for everyone
│   ├── SourceMoved    its documents are known from another place, which is gone
│   └── TransientError the network or its server failed; it may work later
├── EmbeddingError     a model cannot be reached or used; searching by words goes on
├── LibraryError       a library cannot be opened, read or written; it was left as it was
│   ├── Damaged        what it holds of a document is not what was written
│   ├── ConnectionLost its server is gone or busy; the same may work later
│   ├── Unstorable     the database does not take what one document holds
│   └── LibraryHeld    this process must first close it elsewhere
├── Forbidden          whoever asks may not do or see this
│   └── KeyNeeded      whoever asks brings no key, or one that is not known or has expired
├── RequestRefused     a request cannot be taken: its form, its size, its pace
├── NoResults          what was asked for is not there; the nearest things are named
├── BrokenInvariant    a strategy's rule cannot be kept on this document
├── WorkerDied         a worker process ended before it answered
├── Interrupted        a person stopped a command
└── InternalError      Quire itself failed: this is a bug

Each class has a stable code; `CODES` lists them all.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from quire import redact

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    Vectors = NDArray[float32]

_MAX_PART, _MAX_DETAIL = 2000, 10_000  # characters of a part of a message, and of a detail
Detail = str | float | Sequence[str] | Sequence[int] | None


class QuireError(Exception):
    """The root of all errors: catch it to catch any of them."""

    code: ClassVar[str] = "error"

    def __init__(self, *parts: str, **details: Detail) -> None:
        # One by one: in a whole message, an @ of the second part could end a password of the first.
        super().__init__(": ".join(_cut(redact.text(part), _MAX_PART) for part in parts))
        self.details = {name: _hidden(value) for name, value in details.items()}

    @property
    def message(self) -> str:
        """What went wrong and what to do next, in words."""
        return str(self)

    def to_json(self) -> dict[str, Any]:
        """The error as every surface shows it to programs. `details` has what the error knows."""
        return {"code": self.code, "message": self.message, "details": self.details}

    def __reduce__(self) -> tuple[object, ...]:
        """Let errors pass from process to process, whatever they are made of."""
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[QuireError], args: tuple[object, ...], state: dict[str, object]) -> QuireError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


def _hidden(value: Detail) -> Any:
    """A value for JSON, without the secrets of URLs, and not too long."""
    if isinstance(value, str):
        return _cut(redact.text(value), _MAX_DETAIL)
    return [_hidden(one) for one in value] if isinstance(value, Sequence) else value


def _cut(text: str, limit: int) -> str:
    """A text without its middle, if it is long: the end of a message says what to do."""
    return text if len(text) <= limit else f"{text[: limit // 2]} … {text[-limit // 2 :]}"


class SettingError(QuireError):
    """A setting or argument is unknown or out of range."""

    code = "setting_error"

    def __init__(self, name: str, problem: str) -> None:
        self.name = redact.text(name)
        super().__init__(name, problem, setting=name, problem=problem)


class UsageError(QuireError):
    """A command was typed wrongly."""

    code = "usage"


class MissingExtra(QuireError):
    """An optional part is not installed."""

    code = "missing_extra"

    def __init__(self, feature: str, extra: str) -> None:
        self.extra = extra
        how = f"Install it with: pip install 'quire-docs[{extra}]'"
        super().__init__(f"{feature} is an optional part. {how}", extra=extra)


class SourceError(QuireError):
    """One source cannot be taken in."""

    code = "source_error"

    def __init__(self, source: str, reason: str, **details: Detail) -> None:
        self.source, self.reason = redact.text(source), redact.text(reason)
        super().__init__(source, reason, source=source, reason=reason, **details)


class NotText(SourceError):
    """The source holds binary data."""

    code = "not_text"


class TooLarge(SourceError):
    """The source is over a size limit."""

    code = "too_large"


class Unreadable(SourceError):
    """The source is absent, forbidden, or not a regular file."""

    code = "unreadable"


class NotPrepared(SourceError):
    """A parser fails on the source, or needs too much time or memory."""

    code = "not_prepared"


class Refused(SourceError):
    """The URL is not allowed, or another document has the path."""

    code = "refused"


class NotFound(SourceError):
    """The server has no such page, or does not show it to everyone."""

    code = "not_found"

    def __init__(self, source: str, reason: str, status: int) -> None:
        self.status = status  # 200: the page itself says so
        super().__init__(source, reason, status=status)

    @property
    def is_gone(self) -> bool:
        """Whether the server says that there is no such page, and not only that it does not show it."""
        return self.status in (404, 410)


class TransientError(SourceError):
    """The network or a server failed; the same request may work later."""

    code = "transient_error"


class SourceMoved(SourceError):
    """The documents of a place are known from another place, which is gone."""

    code = "source_moved"

    def __init__(self, old: str, new: str) -> None:
        self.old, self.new = old, new
        super().__init__(
            new,
            f"its documents are known from {old}, which is gone. If it was moved, type:"
            f" quire sources move {shlex.quote(old)} {shlex.quote(new)}. To keep both, name another"
            " collection: -c NAME",
            old=old,
            new=new,
        )


class EmbeddingError(QuireError):
    """A model cannot be reached or used, or refuses some texts."""

    code = "embedding_error"

    def __init__(
        self, model: str, problem: str, refused: Sequence[int] = (), vectors: Vectors | None = None
    ) -> None:
        self.model = model
        self.refused = tuple(refused)  # places of the texts that it does not take
        self.vectors = vectors  # of the others, if that is all that is wrong
        super().__init__(model, problem, model=model, problem=problem, refused=self.refused)


class LibraryError(QuireError):
    """A library cannot be opened, read or written."""

    code = "library_error"

    def __init__(self, library: str, problem: str) -> None:
        self.library = redact.url(library)
        super().__init__(self.library, problem, library=self.library, problem=problem)


class Damaged(LibraryError):
    """Something other than Quire changed what a library holds of a document."""

    code = "damaged"

    def __init__(self, library: str, document: str) -> None:
        self.document = redact.text(document)
        problem = f"{document} is damaged: it is not what was written. To repair it: quire doctor --repair"
        super().__init__(library, problem)
        self.details["document"] = self.document


class ConnectionLost(LibraryError):
    """The connection to a library was lost, or its server was too busy: the same may work now."""

    code = "connection_lost"


class Unstorable(LibraryError):
    """The database does not take what one document holds; others may be written."""

    code = "unstorable"


class LibraryHeld(LibraryError):
    """A library was restored, and another part of this process still has the old one open."""

    code = "library_held"


class Forbidden(QuireError):
    """Whoever asks may not do or see this."""

    code = "forbidden"


class KeyNeeded(Forbidden):
    """A key is missing, unknown or expired."""

    code = "key_needed"


class RequestRefused(QuireError):
    """A server does not take a request: its form, its size or its pace."""

    code = "request_refused"

    def __init__(self, message: str, status: int = 400, **details: Detail) -> None:
        self.status = status  # of HTTP
        super().__init__(message, status=status, **details)


class NoResults(QuireError):
    """What was asked for is not there."""

    code = "no_results"


def no_collection(name: str, known: Iterable[str]) -> NoResults:
    """The error for a collection that a library does not have."""
    return NoResults(f"No collection {name!r}. {nearest(name, known)}", missing="collection", name=name)


class BrokenInvariant(QuireError):
    """A strategy's rule cannot be kept on this document."""

    code = "broken_invariant"


class WorkerDied(QuireError):
    """A worker process ended before it answered."""

    code = "worker_died"

    def __init__(self, why: str = "the process that was reading it ended, perhaps out of memory") -> None:
        super().__init__(why)


class Interrupted(QuireError):
    """A person stopped the command. What was written before is complete."""

    code = "interrupted"


class InternalError(QuireError):
    """Quire itself failed. This is a bug."""

    code = "internal_error"


def _tree(kind: type[QuireError]) -> Iterator[type[QuireError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _tree(below)


CODES = {kind.code: kind.__doc__ or "" for kind in _tree(QuireError)}  # every code, and what it means

_LISTED = 20  # names in a message
_COMPARED = 500  # characters of a name


def nearest(name: str, known: Iterable[str]) -> str:
    """Name the known word closest to a wrong one, as the end of a sentence; else list them."""
    from difflib import get_close_matches

    known = list(known)
    close = get_close_matches(str(name)[:_COMPARED], known, n=1, cutoff=0.5)
    if close:
        return f"Did you mean {close[0]!r}?"
    more = f" and {len(known) - _LISTED:,} more" if len(known) > _LISTED else ""
    return f"Known: {', '.join(known[:_LISTED])}{more}." if known else "There are none."
