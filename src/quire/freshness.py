"""Whether what is stored is still what is at its source."""

from __future__ import annotations

import os

from quire.stores import DocumentRow


def is_stale(document: DocumentRow) -> bool:
    """Whether the file of a document has changed or gone since it was read."""
    if document.file is None:
        return False
    try:
        status = os.stat(document.file)  # noqa: PTH116
    except OSError:
        return True
    return (status.st_size, status.st_mtime_ns) != (document.size, document.mtime_ns)
