"""Text of a page: made fit for a document, and written so that none of it is taken for markup."""

from __future__ import annotations

import re
from html import escape

# Characters that no text uses stand, for a while, for a `<` and a `&` that are not markup.
LESS, AND = "\ufdd0", "\ufdd1"
_UNFIT = re.compile(f"[\ud800-\udfff{LESS}{AND}]")


def normalise(html: str) -> str:
    """The page with line feeds for line ends, and without what no document can hold."""
    html = html.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    return html if _is_fit(html) else _UNFIT.sub("\ufffd", html)


def _is_fit(html: str) -> bool:
    """Whether there is nothing unfit in a page, found out much faster than by looking for it."""
    try:
        html.encode()
    except UnicodeEncodeError:
        return False
    return LESS not in html and AND not in html


_SPACE = re.compile(r"[ \t\n\f\xa0]{2,}|[\t\n\f\xa0]")  # all but the single spaces, which most are
_TAG_LIKE = re.compile(r"<(?=[a-zA-Z/!?])")
_ENTITY_LIKE = re.compile(r"&(?=#?\w{1,31};)")


def as_plain(text: str) -> str:
    """Text whose `<` and `&` will not be taken for markup in markdown either."""
    return _ENTITY_LIKE.sub(AND, _TAG_LIKE.sub(LESS, text))


def escaped_text(text: str) -> str:
    """Text as HTML, white space folded."""
    text = _SPACE.sub(" ", text)
    return escape(as_plain(text), quote=False) if "<" in text or "&" in text or ">" in text else text


def as_code(text: str) -> str:
    """Text as inline code in HTML; "" if there is none."""
    return f"<code>{escape(text, quote=False)}</code>" if text else ""
