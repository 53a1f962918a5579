"""The charset of a text: the declared one, else a guess."""

from __future__ import annotations

import re
from collections.abc import Mapping

from quire import later

_PIECE = 1 << 14  # bytes
_BOMS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_CHARSET = later.pattern(r"charset\s*=\s*[\"']?\s*([^\s\"';,>]+)", re.IGNORECASE)
_META = later.pattern(
    r"<(?:meta\s[^>]*?charset|\?xml\s[^>]*?encoding)\s*=\s*[\"']?\s*([^\s\"';,/>]+)", re.IGNORECASE
)
# The charsets that browsers use for these names (the Encoding standard).
_MEANT = {
    "ascii": "windows-1252",
    "cp1252": "windows-1252",
    "iso8859-1": "windows-1252",
    "gb2312": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
}
_WIDE = ("utf-16", "utf-32")
# Python's own codecs, which no page uses.
_NOT_CHARSETS = ("idna", "punycode", "unicode-escape", "raw-unicode-escape", "utf-7", "mbcs", "oem")


def declared_charset(content: bytes, fields: Mapping[str, str]) -> str | None:
    """The charset declared by a byte order mark or header; None for UTF-16 that it cannot be."""
    for mark, charset in _BOMS:
        if content.startswith(mark):
            return charset
    said = _in_header(fields)
    return None if said and said.startswith(_WIDE) and _is_plain(content) else said


def likely_charset(content: bytes, kind: str, fields: Mapping[str, str]) -> tuple[str, str]:
    """The charset by <meta>, else UTF-8 if it is valid, else a guess; and what to warn of."""
    found = _META.search(content[:1024].decode("latin-1")) if kind == "html" else None
    said = _known(found[1]) if found else None
    if said and not said.startswith(_WIDE):  # a page whose <meta> is readable is not in UTF-16
        return said, ""
    if not _is_utf8(content):
        return "windows-1252", "its encoding was guessed to be windows-1252"
    wrong = said or _in_header(fields)
    return "utf-8", f"it declares {wrong.upper()}, but is UTF-8" if wrong else ""


def _in_header(fields: Mapping[str, str]) -> str | None:
    said = _CHARSET.search(fields.get("content-type", ""))
    return _known(said[1]) if said else None


def _is_plain(content: bytes) -> bool:
    """Whether bytes are UTF-8 without NUL, which every line end and blank of UTF-16 and UTF-32 has."""
    return b"\0" not in content and _is_utf8(content)


def _is_utf8(content: bytes) -> bool:
    """Whether bytes are UTF-8, checked piece by piece: as text they can take four times the memory."""
    import codecs

    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(content), _PIECE):
            decoder.decode(content[start : start + _PIECE])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _known(name: str) -> str | None:
    """The charset that a page means by a name; None if there is none."""
    import codecs

    try:
        found = codecs.lookup(name).name
        b"a".decode(found, "replace")  # fails for base64 and other codecs that give no text
    except (LookupError, ValueError):
        return None
    return None if found in _NOT_CHARSETS else _MEANT.get(found, found)
