"""What shows that stored rows and texts are those that were written.

Always: a row or text that something other than Quire changed is noticed, and not shown.
"""

from __future__ import annotations

import hashlib
import zlib

VERIFIED_BYTES = 1_000_000  # of text that a search compares with its checksums


def row_check(*values: object) -> int:
    """The checksum of a row."""
    return zlib.crc32(repr(values).encode("utf-8", "surrogatepass"))


def is_intact(source: bytes, checksum: str) -> bool:
    """Whether a text is the one that its checksum is of."""
    return hashlib.sha256(source).hexdigest() == checksum
