"""Markdown to blocks of HTML, each with its lines in the document.

Input: the parts of a document, cut where its tree has headings. Output: one block for each block at the top
level. Always: raw HTML is shown as text; no picture is loaded; a part that is nested too deep to be read
whole is shown as its source; the number of blocks has a limit. The HTML is not clean before
`rendering.rendered` has cleaned it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from html import escape
from typing import Any, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore, inline, text_join
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from quire.markdown import split_anchor
from quire.surfaces.http.destinations import LinkTarget, LinkTargets

# Beyond its limit the parser drops what is nested deeper, without a word: such a part is shown as its source.
# Unclosed brackets take time in proportion to this limit. Hand-written documents stay under 20.
_MAX_NESTING = 50
# A table of 2 KB can stand for 64,000 empty cells: 0.8 s. A document of so many tokens takes 1.5 s.
_MAX_TOKENS = 300_000
_LANGUAGE = re.compile(r"[^a-z0-9-]+")
_MAX_LANGUAGE = 40
_WIKILINK = re.compile(r"!?\[\[([^\[\]|\n]{1,1000})(?:\|([^\[\]\n]{0,1000}))?\]\](?!\()")
_LITERAL, _SOURCE = "literal", "source"  # tokens of our own: text as it is, in a heading or as a block
TOO_DEEP = "This part is nested too deep to be laid out. It is shown as it was written."


class TooMuch(Exception):
    """A document has more blocks than can be laid out in bounded time."""


class Part(NamedTuple):
    """Some lines of a document: one heading, or what is between two headings."""

    text: str  # its lines end in line feeds
    line: int  # the first, from 1
    level: int = 0  # of a heading
    title: str = ""
    anchor: str = ""  # of a heading that opens a section


class Shown(NamedTuple):
    """A block of HTML, and the lines of the document that it shows."""

    first: int
    last: int
    html: str


def blocks_of(parts: Iterable[Part], routes: LinkTargets) -> list[Shown]:
    """The blocks of a document. Raises TooMuch."""
    parser, env, tokens = _parser(), {"routes": routes}, list[Token]()
    try:
        for part in parts:
            _add(parser, env, tokens, part)
        state = StateCore("", parser, env, tokens)
        inline(state)  # after all blocks: a link may be defined below where it is used
        text_join(state)
    except RecursionError:
        raise TooMuch from None
    _lead(tokens, routes)
    return [_block(parser, env, group) for group in _groups(tokens)]


# ----------------------------------------------------------------------------------------- parsing


@cache
def _parser() -> MarkdownIt:
    options = {"html": False, "maxNesting": _MAX_NESTING}
    parser = _Parser("commonmark", options, renderer_cls=_Renderer).enable(["table", "strikethrough"])
    parser.inline.ruler.before("link", "wikilink", _wikilink)
    return parser


class _Parser(MarkdownIt):
    """The parser, which leaves destinations as they were written: LinkTargets judges them."""

    def validateLink(self, url: str) -> bool:  # noqa: N802
        """Take every link, also one that leads nowhere."""
        return True

    def normalizeLink(self, url: str) -> str:  # noqa: N802
        """The destination of a link as it is."""
        return url

    def normalizeLinkText(self, link: str) -> str:  # noqa: N802
        """The text of a link as it is."""
        return link


class _Blocks(StateBlock):
    """The state of the block parser, with a limit on tokens."""

    def push(self, ttype: str, tag: str, nesting: Any) -> Token:
        """Add a token. Raises TooMuch."""
        if len(self.tokens) >= _MAX_TOKENS:
            raise TooMuch
        return super().push(ttype, tag, nesting)


def _add(parser: MarkdownIt, env: dict[str, Any], tokens: list[Token], part: Part) -> None:
    """Add the tokens of a part, with the lines that they have in the document."""
    first = len(tokens)
    if part.text:
        state = _Blocks(part.text, parser, env, tokens)
        parser.block.tokenize(state, state.line, state.lineMax)
    found = tokens[first:]
    if part.level:
        tokens[first:] = _heading(part, found)
    elif any(token.level >= _MAX_NESTING - 1 for token in found):
        tokens[first:] = [_source(part.text.split("\n"))]
    _number(tokens[first:], part)


def _source(lines: Sequence[str]) -> Token:
    """The token of a part as it was written."""
    start = next(number for number, line in enumerate(lines) if line.strip())
    return Token(_SOURCE, "pre", 0, content="\n".join(lines[start:]).rstrip(), map=[start, len(lines)])


def _heading(part: Part, found: list[Token]) -> list[Token]:
    """The tokens of a heading. The tree decides what is one: the parsers seldom differ."""
    if [token.type for token in found] == ["heading_open", "inline", "heading_close"]:
        found[1].content = split_anchor(found[1].content)[0]
    else:
        lines = [0, part.text.count("\n") + 1]
        text = Token(_LITERAL, "", 0, content=part.title)
        opening = Token("heading_open", "", 1, map=lines)
        found = [opening, text, Token("heading_close", "", -1, block=True)]
    found[0].tag = found[2].tag = f"h{part.level}"
    if part.anchor:
        found[0].attrSet("id", part.anchor)
    return found


def _number(tokens: Sequence[Token], part: Part) -> None:
    """Write the lines of blocks into their attributes, without blank lines at their ends."""
    solid = list(_solid(part.text.split("\n")))
    for token in tokens:
        if token.map and token.type != "inline":
            first, after = token.map
            last = max(first, solid[min(after, len(solid)) - 1])
            token.attrSet("data-line", str(part.line + first))
            token.attrSet("data-end", str(part.line + last))
        if style := token.attrs.pop("style", ""):  # of a cell: the page allows no styles in HTML
            token.attrSet("class", str(style).removeprefix("text-align:"))


def _solid(lines: Sequence[str]) -> Iterator[int]:
    """For each line, the last one up to it that is not blank."""
    last = 0
    for number, line in enumerate(lines):
        last = number if line.strip() else last
        yield last


def _wikilink(state: StateInline, silent: bool) -> bool:
    """Read `[[Note]]`, `[[Note|text]]` and `![[Note]]`, if the library has the note."""
    found = _WIKILINK.match(state.src, state.pos, state.posMax)
    route = state.env["routes"].wikilink(found[1]) if found and not state.linkLevel else None
    if not found or not route:
        return False
    if not silent:
        state.push("link_open", "a", 1).meta["route"] = route
        state.push("text", "", 0).content = found[2] or found[1].strip()
        state.push("link_close", "a", -1)
    state.pos = found.end()
    return True


# ----------------------------------------------------------------------------------------- links


def _lead(tokens: Iterable[Token], routes: LinkTargets) -> None:
    """Give every link its route."""
    for token in tokens:
        tag = ""
        for child in token.children or ():
            if child.type == "link_open":
                written = str(child.attrs.get("href", ""))
                tag = _led(child, child.meta.get("route") or routes.markdown(written))
            elif child.type == "link_close":
                child.tag = tag


def _led(link: Token, route: LinkTarget) -> str:
    """Make a token a link, or dead text with the reason; its tag."""
    link.tag = "a" if route.href else "span"
    link.attrs = {"href": route.href} if route.href else {"class": "dead", "title": route.reason}
    if route.is_outside:
        link.attrs |= {"target": "_blank", "rel": "noopener noreferrer nofollow"}
    return link.tag


# ----------------------------------------------------------------------------------------- writing


def attributes(**given: object) -> str:
    """Attributes as HTML; `class_` is the class, and `_` in a name is a hyphen."""
    names = ((name.rstrip("_").replace("_", "-"), value) for name, value in given.items())
    return "".join(f' {name}="{escape(str(value))}"' for name, value in names if value != "")


def source_block(first: int, last: int, text: str, kind: str = "source") -> Shown:
    """Text as it was written."""
    shown = attributes(class_=kind, data_line=first, data_end=last)
    return Shown(first, last, f"<pre{shown}>{escape(text)}</pre>\n")


def remark(text: str) -> str:
    """A remark about how a document is shown."""
    return f'<p class="note">{escape(text)}</p>\n'


def _groups(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """The tokens of each block at the top level."""
    depth = start = 0
    for at, token in enumerate(tokens, 1):
        depth += token.nesting
        if depth == 0:
            yield tokens[start:at]
            start = at


def _block(parser: MarkdownIt, env: dict[str, Any], group: Sequence[Token]) -> Shown:
    first, last = (int(group[0].attrs[name]) for name in ("data-line", "data-end"))
    return Shown(first, last, parser.renderer.render(group, parser.options, env))


class _Renderer(RendererHTML):
    """Write the tokens whose HTML is not the usual one. Its methods are named after tokens."""

    def fence(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        """Code with its language, of which only plain letters stay."""
        token = tokens[idx]
        words = token.info.split(maxsplit=1)
        name = _LANGUAGE.sub("", words[0].lower())[:_MAX_LANGUAGE] if words else ""
        kind = attributes(class_=f"language-{name}") if name else ""
        return f"<pre{self.renderAttrs(token)}><code{kind}>{escape(token.content)}</code></pre>\n"

    def code_block(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        """Code that is indented."""
        token = tokens[idx]
        return f"<pre{self.renderAttrs(token)}><code>{escape(token.content)}</code></pre>\n"

    def image(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        """The text of a picture."""
        said = self.renderInlineAsText(tokens[idx].children or [], options, env).strip()
        return f'<span class="picture">{escape(said or "picture")}</span>'

    def literal(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        """Text as it is."""
        return escape(tokens[idx].content)

    def source(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        """A part as it was written."""
        token = tokens[idx]
        shown = f'<pre class="source"{self.renderAttrs(token)}>{escape(token.content)}</pre>\n'
        return remark(TOO_DEEP) + shown
