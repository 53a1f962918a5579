"""Blocks of code: their text and language."""

from __future__ import annotations

import re
from collections.abc import Iterator

from quire.html.elements import BLOCKS, Element, words

_LANGUAGE = re.compile(
    r"(?:language|lang|highlight-source)-([\w+#.-]{1,30})|(?:highlight|src)-([\w+#]{1,30})"
)
_LANGUAGE_AFTER = frozenset({"hljs", "sourcecode", "rust-example-rendered", "item-decl"})
_NO_LANGUAGE = words("default none text plaintext plain txt code lines numberlines notranslate")
_NEARLY_NOTHING = 80  # other characters that a box around code may hold: a file name, a caption
_LEVELS = 7


def code_of(element: Element) -> str:
    """The code in an element. Each block element becomes a line."""
    parts: list[str] = []
    _collect(element, parts)
    return "".join(parts)


def _collect(element: Element, parts: list[str]) -> None:
    for child in element.children:
        if isinstance(child, str):
            parts.append(child)
        elif child.tag == "br":
            parts.append("\n")
        elif child.tag in BLOCKS or child.tag == "tr":
            if parts and not parts[-1].endswith("\n"):
                parts.append("\n")
            before = len(parts)
            _collect(child, parts)
            if before == len(parts) or not parts[-1].endswith("\n"):
                parts.append("\n")
        else:
            _collect(child, parts)


def language_of(pre: Element) -> str:
    """The language of a block of code, as it or a box around it declares."""
    above = pre.path[-2 : -2 - _LEVELS : -1]
    around = [element for element in above if element.size - pre.size <= _NEARLY_NOTHING]
    for element in (*(inner for inner in pre.elements() if inner.tag == "code"), pre, *around):
        for language in _languages(element):
            if language not in _NO_LANGUAGE:
                return language
    return ""


def _languages(element: Element) -> Iterator[str]:
    for attribute in ("data-lang", "data-language", "language"):
        if found := _LANGUAGE.fullmatch(f"lang-{element.get(attribute).lower()}"):
            yield found[1]
    yield from (found[1] or found[2] for name in element.names if (found := _LANGUAGE.fullmatch(name)))
    if element.tag in ("pre", "code") and not _LANGUAGE_AFTER.isdisjoint(element.names):
        yield from (name for name in element.names if name not in _LANGUAGE_AFTER)
