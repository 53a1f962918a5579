"""The text of a page: normalised for a document, and escaped so that none of it becomes markup."""

from __future__ import annotations

import re
from html import escape

# Characters that no text uses temporarily replace a `<` and a `&` that are not markup.
LESS, AND = "\ufdd0", "\ufdd1"
# The next two mark places: anchors.py writes them.
_OURS = "\ufdd0\ufdd1\ufdd2\ufdd3"
_UNFIT = re.compile(f"[\ud800-\udfff{_OURS}]")


def normalise(html: str) -> str:
    """The page with line feeds for line ends, and without characters that no document can hold."""
    html = html.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    return html if _is_fit(html) else _UNFIT.sub("\ufffd", html)


def _is_fit(html: str) -> bool:
    """Whether a page needs no changes. This is much faster than searching for unfit characters."""
    try:
        html.encode()
    except UnicodeEncodeError:
        return False
    return not any(ours in html for ours in _OURS)


_SPACE = re.compile(r"[ \t\n\f\xa0]{2,}|[\t\n\f\xa0]")  # all but single spaces, the common case
_TAG_LIKE = re.compile(r"<(?=[a-zA-Z/!?])")
_ENTITY_LIKE = re.compile(r"&(?=#?\w{1,31};)")


def as_plain(text: str) -> str:
    """Text whose `<` and `&` will not become markup in markdown either."""
    return _ENTITY_LIKE.sub(AND, _TAG_LIKE.sub(LESS, text))


def escaped_text(text: str) -> str:
    """Text as HTML, white space folded."""
    text = _SPACE.sub(" ", text)
    return escape(as_plain(text), quote=False) if "<" in text or "&" in text or ">" in text else text


def as_code(text: str) -> str:
    """Text as inline code in HTML; "" if there is none."""
    return f"<code>{escape(text, quote=False)}</code>" if text else ""
