"""Elements to markdown: written as plain, well-formed HTML, which html-to-markdown converts.

Always: code in a fence is exactly as on the page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html import escape
from itertools import islice

from quire.html.anchors import Anchor, Marks, located
from quire.html.clean import is_admonition
from quire.html.code import code_of, language_of
from quire.html.elements import BLOCKS, HEADINGS, TABLE_PARTS, Element
from quire.html.links import Addresses
from quire.html.tables import GROUPS, SPANS, cell_of, grid_rows, is_layout, shows, span_of
from quire.html.text import AND, LESS, as_code, as_plain, escaped_text

_MAX_NESTING = 10  # nested lists and quotes: each adds a marker to every line
_NUMBER = re.compile(r"[0-9]{1,9}")
_INLINE = {
    **dict.fromkeys(("b", "strong"), "strong"),
    **dict.fromkeys(("i", "em", "cite", "var"), "em"),
    **dict.fromkeys(("s", "strike", "del"), "del"),
    "q": "q",
}
_NOT_BOLD = HEADINGS | {"pre", "xmp", "table"}
_TITLE_WITHIN = 5  # elements from the start of a note, among which its title is
_ADMONITION_TITLE = re.compile(r".*(?:title|heading)(?:[-_].*)?")
_SCRIPT_AT_MOST = 20  # characters; a longer text is no exponent
_PLAIN_SCRIPT = {"sup": re.compile(r"st|nd|rd|th|tm|\W*", re.IGNORECASE), "sub": re.compile(r"[\d\W]*")}
_SAYS_NOTHING = re.compile(
    r"[\W_]*|image|img|icon|logo|picture|photo|\S*\.(?:png|jpe?g|gif|svg|webp)", re.IGNORECASE
)


def write_markdown(
    element: Element, addresses: Addresses, *, with_furniture: bool = False
) -> tuple[str, tuple[Anchor, ...]]:
    """An element and its content as markdown, and its anchors."""
    from html_to_markdown import ConversionOptions, PreprocessingOptions, convert

    writer = _Writer(addresses, with_furniture)
    writer.write(element)
    options = ConversionOptions(
        compact_tables=True,
        extract_metadata=False,
        preprocessing=PreprocessingOptions(enabled=False),
    )

    def converted(html: str) -> str:
        text = convert(html, options).content or ""
        return text.replace(LESS, "\\<").replace(AND, "\\&")

    return located("".join(writer.parts), writer.marks.ids, converted)


class _Writer:
    """Write elements as plain HTML: no useless attribute, every tag closed."""

    def __init__(self, addresses: Addresses, with_furniture: bool) -> None:
        self.addresses, self.with_furniture = addresses, with_furniture
        self.parts: list[str] = []
        self.marks = Marks()
        self.nesting = 0
        self.in_heading = False

    def write(self, element: Element) -> None:
        """Write the content of an element."""
        for child in self.shown(element):
            self.child(child)

    def shown(self, element: Element) -> Iterator[Element | str]:
        for child in element.children:
            if isinstance(child, str) or self.with_furniture or not child.is_furniture:
                yield child

    def child(self, child: Element | str) -> None:
        if isinstance(child, str):
            self.parts.append(escaped_text(child))
        else:
            self.element(child)

    def element(self, element: Element) -> None:
        tag = element.tag
        if element.attributes:
            self.marks.meet(element, len(self.parts))
        if writes := _WRITES.get(tag):
            writes(self, element)
        elif "math" in element.names or "arithmatex" in element.names:
            self.formula(element)
        elif is_admonition(element):
            self.admonition(element)
        elif is_signature(element):
            self.signature(element)
        elif element.means("grid") and (rows := grid_rows(element)):
            self.cells(rows)
        elif tag in _INLINE:
            self.wrapped(element, _INLINE[tag])
        elif tag in BLOCKS or tag in TABLE_PARTS:
            self.wrapped(element, "p" if tag in ("p", "figcaption") else "div")
        else:
            self.write(element)

    def wrapped(self, element: Element, tag: str, attributes: str = "") -> None:
        """Write the content of an element inside another tag."""
        self.parts.append(f"<{tag}{attributes}>")
        self.write(element)
        self.parts.append(f"</{tag}>")

    def nested(self, element: Element, tag: str = "", attributes: str = "") -> None:
        """Write a list or a quote, unless it is nested too deep."""
        deep = self.nesting >= _MAX_NESTING
        self.nesting += 1
        self.wrapped(element, "div" if deep else tag or element.tag, "" if deep else attributes)
        self.nesting -= 1

    def unordered(self, element: Element) -> None:
        if element.means("layout"):
            self.wrapped(element, "div")
        else:
            self.nested(element, "ul")

    def ordered(self, element: Element) -> None:
        start = element.get("start")
        self.nested(element, attributes=f' start="{start}"' if _NUMBER.fullmatch(start) else "")

    def item(self, element: Element) -> None:
        laid_out = element.parent is not None and element.parent.means("layout")
        self.wrapped(element, "li" if 0 < self.nesting <= _MAX_NESTING and not laid_out else "div")

    def heading(self, element: Element) -> None:
        outer, self.in_heading = self.in_heading, True
        if is_signature(element):
            self.signature(element, element.tag)
        else:
            self.parts.append(f"<{element.tag}>{self.marks.before(element, self.parts)}")
            self.write(element)
            self.parts.append(f"</{element.tag}>")
        self.in_heading = outer

    def bold(self, element: Element, mark: str = "") -> None:
        """Write a separate line, in bold unless it is bold or code already. A line holds no other blocks."""
        if not element.holds.isdisjoint(_NOT_BOLD):
            self.wrapped(element, "div")
            return
        marked = not element.holds.isdisjoint(("b", "strong", "code"))
        self.parts.append(f"<p>{mark}" if marked else f"<p>{mark}<strong>")
        self.write(element)
        self.parts.append("</p>" if marked else "</strong></p>")

    def term(self, element: Element) -> None:
        """Write a term of a definition list; the signature of a function is code."""
        if is_signature(element):
            self.signature(element)
        else:
            self.bold(element, self.marks.before(element, self.parts))

    def signature(self, element: Element, tag: str = "p") -> None:
        """Write the signature of a function or a type as code, without the links in it."""
        if code := as_code(element.text()):
            self.parts.append(f"<{tag}>{self.marks.before(element, self.parts)}{code}</{tag}>")

    def admonition(self, element: Element) -> None:
        """Write a note as a quote whose title is bold."""
        for inner in islice(element.elements(), _TITLE_WITHIN):
            if any(_ADMONITION_TITLE.fullmatch(name) for name in inner.names):
                inner.tag = "summary"
                break
        if any(isinstance(child, Element) and child.tag in BLOCKS for child in element.children):
            element.children = [child for child in element.children if shows(child)]
        self.quote(element)

    def quote(self, element: Element) -> None:
        """Write a quote. After another one, a line break keeps the two apart."""
        last = next((part for part in reversed(self.parts) if part.strip()), "")
        if last == "</blockquote>":
            self.parts.append("<br>")
        self.nested(element, "blockquote")

    def anchor(self, element: Element) -> None:
        """Write a link; only its text if its address is not allowed; nothing if it is empty."""
        href = element.get("href").strip()
        address = self.addresses.resolve(href) if href else ""
        if not address or element.holds & {"pre", "table"} or (self.in_heading and href.startswith("#")):
            self.write(element)
        elif element.holds & HEADINGS:
            _move_into_headings(element)
            self.wrapped(element, "div")
        else:
            before = len(self.parts)
            self.wrapped(element, "a", f' href="{escape(address)}"')
            if not "".join(self.parts[before + 1 : -1]).strip():
                del self.parts[before:]

    def image(self, element: Element) -> None:
        """Write an image that has a useful description."""
        sources = (element.get("src"), element.get("data-src"))
        address = next(filter(None, map(self.addresses.resolve, filter(str.strip, sources))), "")
        alt = " ".join(element.get("alt").split())
        if address and not _SAYS_NOTHING.fullmatch(alt):
            self.parts.append(f'<img src="{escape(address)}" alt="{escape(as_plain(alt))}">')

    def code(self, element: Element) -> None:
        if "pre" in element.holds:
            self.write(element)
        else:
            self.parts.append(as_code(element.text()))

    def block(self, element: Element) -> None:
        code = code_of(element).strip("\n")
        if code.strip():
            known = language_of(element)
            language = f' class="language-{escape(known)}"' if known else ""
            self.parts.append(f"<pre><code{language}>{escape(code, quote=False)}</code></pre>")

    def formula(self, element: Element) -> None:
        """Write a formula as its TeX source if the page has it, else as its text."""
        source = next((e.text() for e in element.elements() if e.get("encoding") == "application/x-tex"), "")
        if element.tag == "math":
            source = source or element.get("alttext")
            self.parts.append(as_code(source) if source else escaped_text(element.text()))
        else:
            formula = as_code(source or element.text())
            self.parts.append(f"<p>{formula}</p>" if element.tag in BLOCKS else formula)

    def table(self, element: Element) -> None:
        """Write a table; as blocks if it is only layout or its cells hold blocks of code."""
        rows = list(self.rows(element))
        if is_layout(element, rows):
            for cell in (cell for row in rows for cell in row):
                self.wrapped(cell, "div")
        else:
            self.cells(rows)

    def cells(self, rows: list[list[Element]]) -> None:
        self.parts.append("<table>")
        for row in rows:
            self.parts.append("<tr>")
            for cell in row:
                spans = "".join(f' {name}="{cell.get(name)}"' for name in SPANS if span_of(cell, name) > 1)
                self.wrapped(cell, "th" if cell.tag == "th" else "td", spans)
            self.parts.append("</tr>")
        self.parts.append("</table>")

    def rows(self, table: Element) -> Iterator[list[Element]]:
        """The cells of a table, by row. Stray content is written before the table."""
        for part in self.shown(table):
            if isinstance(part, str) or part.tag not in GROUPS | {"tr"}:
                self.child(part)
            elif part.tag in GROUPS:
                yield from self.rows(part)
            elif cells := [cell_of(child) for child in self.shown(part) if shows(child)]:
                yield cells


def _write_break(writer: _Writer, element: Element) -> None:
    writer.parts.append(f"<{element.tag}>")


def _write_script(writer: _Writer, element: Element) -> None:
    """Write superscripts and subscripts so that 10⁶ does not become 106."""
    short = element.plain <= _SCRIPT_AT_MOST and not element.linked
    if short and not _PLAIN_SCRIPT[element.tag].fullmatch(element.text()):
        writer.parts.append("^" if element.tag == "sup" else "_")
    writer.write(element)


_WRITES: dict[str, Callable[[_Writer, Element], None]] = {
    **dict.fromkeys(HEADINGS, _Writer.heading),
    **dict.fromkeys(("ul", "menu", "dir"), _Writer.unordered),
    **dict.fromkeys(("code", "kbd", "samp", "tt"), _Writer.code),
    **dict.fromkeys(("pre", "xmp"), _Writer.block),
    **dict.fromkeys(("br", "hr"), _write_break),
    **dict.fromkeys(("sup", "sub"), _write_script),
    "ol": _Writer.ordered,
    "li": _Writer.item,
    "blockquote": _Writer.quote,
    "summary": _Writer.bold,
    "dt": _Writer.term,
    "a": _Writer.anchor,
    "img": _Writer.image,
    "math": _Writer.formula,
    "table": _Writer.table,
}


def is_signature(element: Element) -> bool:
    """Whether an element is the signature of a function or a type, and nothing more."""
    return element.means("signature") and element.holds.isdisjoint(_NOT_BOLD)


def _move_into_headings(link: Element) -> None:
    """Move a link into the headings it contains, because markdown has no heading in a link."""
    for heading in [inner for inner in link.elements() if inner.tag in HEADINGS]:
        inner = Element("a", link.attributes, heading)
        inner.children = heading.children
        heading.children = [inner]
