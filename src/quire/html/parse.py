"""HTML, however broken, to a tree of elements, closed as a browser would close them.

Always: any text gives a tree, in time linear in its length.
"""

from __future__ import annotations

import re
from html import unescape

from quire.html.elements import BLOCKS, GAPS, HEADINGS, NOTHING, TABLE_PARTS, Element, words

_MAX_DEPTH = 120  # deeper elements become part of the element at that depth

_MARKUP = re.compile(
    r"<(?:"
    r"(?P<tag>/?[a-zA-Z][^\s/>]*+)"
    r"(?P<attributes>(?:[^>=]++|=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s>\"'][^\s>]*+)?+)*+)>"
    r"|!--(?:-?>|.*?(?:--!?>|\Z))"  # a comment; one that is never closed goes on to the end
    r"|(?:[!?]|/(?![a-zA-Z]))[^>]*+>?"  # browsers treat these as comments
    r"|/?[a-zA-Z].*+"  # a tag that is never closed hides what follows
    r")",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(r"([^\s=/>]++)(?:\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s>]++)))?+")

_VOID = words("area base br col embed hr img input link meta param source track wbr")
RAW = words("script style title textarea noscript iframe noembed noframes xmp")
_RAW_END = {tag: re.compile(f"</{tag}(?=[\\s/>])", re.IGNORECASE) for tag in RAW}
_UNNESTED = words("html head body")  # there is one of each, whatever the page says
_SEEN = words("a base link meta title")
_CELLS = words("table caption td th")
# The open elements that a start tag closes, and the elements it does not look beyond.
_CLOSES: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    **dict.fromkeys(BLOCKS, (words("p"), _CELLS)),
    **dict.fromkeys(HEADINGS, (HEADINGS | {"p"}, BLOCKS - HEADINGS - {"p"} | _CELLS)),
    "li": (words("li"), _CELLS | {"ul", "ol", "menu", "dir"}),
    **dict.fromkeys(("dt", "dd"), (words("dt dd"), _CELLS | {"dl"})),
    "a": (words("a"), _CELLS),
    **dict.fromkeys(("td", "th"), (words("td th"), words("tr table"))),
    **dict.fromkeys(("tr", "thead", "tbody", "tfoot"), (words("tr caption"), words("table"))),
}
_END_IS_OPTIONAL = (TABLE_PARTS - {"caption"}) | words("p li dt dd")


class Builder:
    """A page to its tree. Every step examines at most the open elements, whose number is bounded."""

    def __init__(self) -> None:
        self.root = Element("body", {}, None)
        self.stack = [self.root]
        self.open: dict[str, int] = {}  # how many elements of each tag are on the stack
        self.beyond = 0  # open elements that were too deep for the stack
        self._seen: dict[str, list[Element]] = {tag: [] for tag in _SEEN}

    def seen(self, tag: str) -> list[Element]:
        """The elements of a recorded kind, in the order of the page."""
        return self._seen[tag]

    def feed(self, html: str) -> None:
        """Parse the whole page."""
        at, search = 0, _MARKUP.search
        while found := search(html, at):
            start, after = found.span()
            if at < start:
                self._text(html[at:start])
            at = after
            tag, attributes = found.groups()
            if tag is None:
                continue
            tag = tag.lower()
            if tag[0] == "/":
                self._end(tag[1:])
            elif tag in RAW:
                closing = _RAW_END[tag].search(html, at)
                end = closing.start() if closing else len(html)
                self._add(tag, attributes).children.append(unescape(html[at:end]))
                at = end
            elif tag not in _UNNESTED:
                self._start(tag, attributes)
        self._text(html[at:])

    def _text(self, text: str) -> None:
        if text:
            self.stack[-1].children.append(unescape(text) if "&" in text else text)

    def _start(self, tag: str, attributes: str) -> None:
        if rule := _CLOSES.get(tag):
            self._close(*rule)
        if tag in _VOID:
            self._add(tag, attributes)
        elif len(self.stack) < _MAX_DEPTH:
            self.stack.append(self._add(tag, attributes))
            self.open[tag] = self.open.get(tag, 0) + 1
        else:
            self.beyond += tag not in _END_IS_OPTIONAL
            self._text(GAPS.get(tag, ""))
            if tag in _SEEN:
                self._add(tag, attributes)

    def _add(self, tag: str, attributes: str) -> Element:
        element = Element(tag, _attributes(attributes), self.stack[-1])
        self.stack[-1].children.append(element)
        if tag in _SEEN and "svg" not in self.open:
            self._seen[tag].append(element)
        return element

    def _end(self, tag: str) -> None:
        """Close the element that an end tag ends. One inside a cell closes nothing around the table."""
        if self.beyond and tag not in _END_IS_OPTIONAL:
            self.beyond -= 1
        elif tag == self.stack[-1].tag and tag in self.open:
            self._pop()
        elif tag in HEADINGS:
            self._close(HEADINGS, _CELLS)
        else:
            self._close(frozenset({tag}), NOTHING if tag in TABLE_PARTS or tag == "table" else _CELLS)

    def _close(self, tags: frozenset[str], barriers: frozenset[str]) -> None:
        """Close the nearest open element with one of the tags, and all in it, unless a barrier is nearer."""
        if self.open.keys().isdisjoint(tags):
            return
        for place in range(len(self.stack) - 1, 0, -1):
            tag = self.stack[place].tag
            if tag in tags:
                while len(self.stack) > place:
                    self._pop()
                return
            if tag in barriers:
                return

    def _pop(self) -> None:
        tag = self.stack.pop().tag
        if self.open[tag] == 1:
            del self.open[tag]
        else:
            self.open[tag] -= 1


def _attributes(text: str) -> dict[str, str]:
    """The attributes of a tag; if two have the same name, the first counts."""
    attributes: dict[str, str] = {}
    if not text:
        return attributes
    for name, double, single, bare in _ATTRIBUTE.findall(text):
        value = double or single or bare
        attributes.setdefault(name.lower(), unescape(value) if "&" in value else value)
    return attributes
