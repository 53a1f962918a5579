"""Whether a stored document still matches its source, and the words that this program would make."""

from __future__ import annotations

import os

from quire import analyze
from quire.fingerprint import difference
from quire.stores import DocumentRow, Store


def is_stale(document: DocumentRow) -> bool:
    """Whether the file of a document has changed or gone since it was read."""
    if document.file is None:
        return False
    try:
        status = os.stat(document.file)  # noqa: PTH116
    except OSError:
        return True
    return (status.st_size, status.st_mtime_ns) != (document.size, document.mtime_ns)


def other_words(store: Store) -> str:
    """How the words of a library differ from those this program makes; "" if they do not."""
    others = store.word_makers() - {analyze.fingerprint()}
    return "; ".join(difference(maker, analyze.fingerprint()) for maker in sorted(others))
