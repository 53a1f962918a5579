"""Decompress content as it arrives."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

ENCODINGS = ("", "identity", "gzip", "x-gzip", "deflate")
_PIECE = 1 << 20  # bytes


class Decompressor:
    """Decompress content as it arrives, at most 1 MiB at a time.

    It takes gzip with several members and deflate without a header, and knows whether the end arrived. The
    decoders of httpx2 return half a page if only half arrived, and read only the first member.
    """

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self._stream: zlib._Decompress | None = None

    @property
    def is_whole(self) -> bool:
        """Whether nothing is missing at the end."""
        return self._stream is None or self._stream.eof

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The next bytes, decompressed. Raises zlib.error if they are not in this format."""
        if self._encoding in ("", "identity"):
            yield data
            return
        while data:
            if self._stream is None or self._stream.eof:
                if self._stream and data[0] != 0x1F:  # after the end only another member counts
                    return
                self._stream = zlib.decompressobj(self._window(data[0]))
            while piece := self._stream.decompress(data, _PIECE):
                yield piece
                data = self._stream.unconsumed_tail
            data = self._stream.unused_data

    def _window(self, first: int) -> int:
        """The `wbits` of the format for zlib: the first byte tells whether deflate has its header."""
        if self._encoding != "deflate":
            return zlib.MAX_WBITS + 16
        return zlib.MAX_WBITS if first & 0x0F == zlib.DEFLATED else -zlib.MAX_WBITS
