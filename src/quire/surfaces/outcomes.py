"""How a command ends and what a server answers: the exit code and the status of every error."""

from __future__ import annotations

from quire.errors import (
    BrokenInvariant,
    ConnectionLost,
    EmbeddingError,
    Forbidden,
    Interrupted,
    KeyNeeded,
    LibraryError,
    MissingExtra,
    NoResults,
    QuireError,
    RequestRefused,
    SettingError,
    SourceError,
    TooLarge,
    TransientError,
    UsageError,
)

DONE, NOTHING, USAGE, PARTLY, FAILED = range(5)
STOPPED = 130  # as shells have it for Ctrl-C
_OUTCOMES: dict[type[QuireError], tuple[int, int]] = {  # exit code, and status of HTTP
    NoResults: (NOTHING, 404),
    SettingError: (USAGE, 400),
    UsageError: (USAGE, 400),
    MissingExtra: (USAGE, 501),
    RequestRefused: (FAILED, 400),
    KeyNeeded: (FAILED, 401),
    Forbidden: (FAILED, 403),
    TooLarge: (FAILED, 413),
    TransientError: (FAILED, 503),
    SourceError: (FAILED, 422),
    EmbeddingError: (FAILED, 503),
    ConnectionLost: (FAILED, 503),
    LibraryError: (FAILED, 503),
    BrokenInvariant: (FAILED, 422),
    Interrupted: (STOPPED, 503),
    QuireError: (FAILED, 500),
}


def exit_code(error: QuireError) -> int:
    """The exit code of an error, by the nearest class that has one."""
    return _outcome(type(error))[0]


def http_status(error: QuireError) -> int:
    """The status of HTTP of an error, by the nearest class that has one."""
    return error.status if isinstance(error, RequestRefused) else _outcome(type(error))[1]


def _outcome(kind: type[QuireError]) -> tuple[int, int]:
    return next(_OUTCOMES[one] for one in kind.__mro__ if one in _OUTCOMES)
