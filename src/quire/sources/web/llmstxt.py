"""The files that a site writes for language models: llms.txt to links, llms-full.txt to pages.

`links` takes the text of an llms.txt, however loosely written, and gives the links in it, each once,
absolute and on the web. `pages` takes the text of an llms-full.txt and gives spans of it: always, the
spans are in order and join to the whole text. Nothing is fetched.

No standard says where a page begins in an llms-full.txt. Each tool has its own separator, and one file has
one: the kind that occurs most often. Without any, a page is a heading of level 1 and the text after it.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from urllib.parse import urljoin, urlsplit

from quire import markdown
from quire.document import BOM, as_title
from quire.markdown import Heading
from quire.sources.web.urls import PLAIN_URL


@dataclass(frozen=True, slots=True)
class Link:
    """A document that an llms.txt names."""

    title: str
    url: str  # absolute, without fragment
    notes: str
    section: str  # the heading above; "" if there is none
    optional: bool  # can be left out if space is short


# ---------------------------------------------------------------------------------- llms.txt

_BULLET = re.compile(r"[ \t]*(?:[-*+•]|\d{1,9}[.)])[ \t]+")
_TEXT = r"(?:[^\[\]\n\\]|\\.|!?\[[^\[\]\n]*\](?:\([^()\n]*\))?)*+"  # brackets in brackets, once
_INLINE = re.compile(rf"(?P<image>!)?\[(?P<text>{_TEXT})\]\(")
_BARE = re.compile(r"<?(?P<url>https?://[^\s<>]+)>?", re.IGNORECASE)
_NAMED = re.compile(r"(?P<text>[^:]{1,100}?)[ \t]*(?::|[-–—])[ \t]*")
_LINK_TITLE = re.compile(r"""(?<!\s)\s++(?:"[^"]*"|'[^']*')$""")
_NOTES = re.compile(r"[ \t]*(?::|(?<=[ \t])[-–—])[ \t]*(?P<notes>\S.*)")
_LONGEST_TARGET = 4000
_LINE = re.compile(r"[^\n]+")
_NESTED_FENCE = re.compile(r"^[ \t>*+\-\d.)]++(?:```|~~~)", re.MULTILINE)
_PLAIN_PATH = re.compile(r"/?[\w~-][\w~.-]*+(?:/[\w~-][\w~.-]*+)*+/?", re.ASCII)


def links(text: str, base: str = "") -> Iterator[Link]:
    """The links of an llms.txt; relative ones are resolved against `base`."""
    text = text.removeprefix(BOM).replace("\r\n", "\n").replace("\r", "\n")
    outline = markdown.scan(text)
    shown = _without_code(text, outline)
    resolve, seen = _resolver(base), set[str]()
    for section, optional, start, end in _sections(text, outline.headings):
        for line in _LINE.finditer(shown, start, end):
            for name, target, notes in _links(line[0]):
                if (url := resolve(target)) and url not in seen:
                    seen.add(url)
                    yield Link(name or url, url, notes, section, optional)


def _without_code(text: str, outline: markdown.Outline) -> str:
    """The text, of the same length, with fences and comments blanked out."""
    parts: list[str] = []
    at = 0
    for start, end in sorted([*outline.opaque, *_nested_fences(text, outline.opaque)]):
        if start >= at:
            parts += (text[at:start], "\n" * (end - start))
            at = end
    return "".join((*parts, text[at:]))


def _nested_fences(text: str, opaque: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The fences in list items and quotes. Only items that may have one are parsed."""
    fences = [found.start() for found in _NESTED_FENCE.finditer(text)]
    items = markdown.items(text, 0, len(text)) if fences else []
    places = [0, *_outside(items, opaque), len(text)]
    for number in sorted({bisect_right(places, fence) for fence in fences}):
        shift = places[number - 1]
        item = text[shift : places[number]]
        yield from ((shift + a, shift + b) for a, b in _fences(item, markdown.blocks(item)))


def _outside(places: list[int], spans: list[tuple[int, int]]) -> list[int]:
    """The places that are in none of the spans, which are in order."""
    starts = [start for start, _ in spans]
    above = ((place, bisect_right(starts, place) - 1) for place in places)
    return [place for place, number in above if number < 0 or place >= spans[number][1]]


def _fences(text: str, blocks: tuple[markdown.Block, ...]) -> Iterator[tuple[int, int]]:
    for block in blocks:
        if block.kind == "code" and text.startswith(("```", "~~~"), block.start):
            yield block.start, block.end
        yield from _fences(text, block.children)


def _sections(text: str, headings: list[Heading]) -> Iterator[tuple[str, bool, int, int]]:
    """Every heading, whether it or one above it marks its links as optional, and its span."""
    optional = 0  # the level of the heading that marks them
    for heading, after in pairwise([Heading(0, 0, 0), *headings, Heading(0, len(text), len(text))]):
        title = _plain(text, heading)
        if heading.level <= optional:
            optional = 0
        if title.casefold() == "optional":
            optional = optional or heading.level
        yield title, optional > 0, heading.start, after.start


def _plain(text: str, heading: Heading) -> str:
    """The text of a heading, or of any line, without markup."""
    return markdown.title(text, heading, lambda _: False)


def _links(line: str) -> Iterator[tuple[str, str, str]]:
    """Name, target and notes of every link in a line."""
    found: list[tuple[str, str, int, int]] = []
    if "](" in line:
        found += _inline(line)
    elif bullet := _BULLET.match(line):
        found += _bare(line, bullet.end())
    for (name, target, _, end), after in pairwise([*found, ("", "", len(line), 0)]):
        notes = _NOTES.fullmatch(line, end, after[2])
        yield name, target, notes["notes"].strip() if notes else ""


def _inline(line: str) -> Iterator[tuple[str, str, int, int]]:
    """Name, target and span of every link in markdown syntax."""
    at = 0
    while found := _INLINE.search(line, at):
        target, at = _target(line, found.end())
        if not found["image"]:
            title = f"# {found['text']}\n"
            yield _plain(title, Heading(1, 0, len(title))), target, found.start(), at


def _target(line: str, start: int) -> tuple[str, int]:
    """The target of a link, and the place after it. It may hold paired parentheses and spaces."""
    stop = line.find("](", start, start + _LONGEST_TARGET)
    inside = line[start : stop if stop >= 0 else start + _LONGEST_TARGET]
    end, depth = inside.find(")"), 1
    for found in re.finditer(r"[()]", inside) if "(" in inside[: max(end, 0)] else ():
        depth += 1 if found[0] == "(" else -1
        if not depth:
            end = found.start()
            break
    target = inside[: max(end, 0)].strip()
    if target.startswith("<") and ">" in target:
        target = target[1 : target.index(">")]
    return _LINK_TITLE.sub("", target), start + end + 1


def _bare(line: str, start: int) -> Iterator[tuple[str, str, int, int]]:
    """The addresses in an item of a list that has no other links; a name may stand before one."""
    for found in _BARE.finditer(line, start):
        url = found["url"].rstrip(".,;:!?'\"*_")
        if url.endswith(")") and "(" not in url:
            url = url.rstrip(").,")
        named = _NAMED.fullmatch(line, start, found.start())
        yield named["text"].strip("*_` ") if named else "", url, found.start(), found.start("url") + len(url)


def _resolver(base: str) -> Callable[[str], str]:
    """Resolves targets against a base. Plain ones, which are the most, need no parser."""
    folder = urljoin(base, ".")
    root = plain[1] if (plain := PLAIN_URL.fullmatch(folder)) else ""

    def resolve(target: str) -> str:
        if PLAIN_URL.fullmatch(target):
            url = target
        elif root and _PLAIN_PATH.fullmatch(target):
            url = f"{root if target.startswith('/') else folder}{target}"
        else:
            url = _absolute(base, target)
        return url if url != base else ""

    return resolve


def _absolute(base: str, target: str) -> str:
    """The absolute address of a target; "" if it is not on the web."""
    if not target or target.startswith("#"):
        return ""
    try:
        url = urljoin(base, target.replace(" ", "%20")).partition("#")[0]
        parts = urlsplit(url)
    except ValueError:
        return ""
    return url if parts.scheme in ("http", "https") and parts.hostname else ""


# ----------------------------------------------------------------------------- llms-full.txt


@dataclass(frozen=True, slots=True)
class FullPage:
    """A page of an llms-full.txt: text[start:end]."""

    title: str
    url: str | None  # as the file gives it: absolute, or from the root of the site
    start: int
    end: int


# The kinds of lines that can begin a page, the surest first. Searching for a literal line feed first
# makes this fast.
_SEPARATOR = re.compile(
    r"\n(?:"
    r"(?P<tag><(?:page|doc|document|file)(?:[ \t][^>\n]*)?>|<\|[\w-]*page-\d+[\w-]*\|>)"
    r"|(?P<content>[A-Z][\w -]{0,30}:[ \t]*\S+[ \t]*\n-{3,} ?BEGIN CONTENT ?-{3,})"
    r"|(?P<file>#{1,6}[ \t]+(?:FILE|File|file):[ \t]*\S"
    r"|={4,}[ \t]*\n(?!=)[^\n]*\S[^\n]*\n={4,}[ \t]*(?![^\n])"
    r"|={3,} [^\n=]+ ={3,}[ \t]*(?![^\n])|-{3,} \S+\.\w{1,5} -{3,}[ \t]*(?![^\n]))"
    r"|(?P<url>(?:>[ \t]*)?\*{0,2}(?i:source|url|page|link|canonical)(?i:[ _-]?(?:url|link))?\*{0,2}:\*{0,2}"
    r"[ \t]*<?(?:https?://|/)[^\s<>]+>?[ \t]*(?![^\n]))"
    r"|(?P<skip>#{1,6}[ \t][^\n]*\n\[Skip to [^\]\n]*\]\(https?://)"
    r"|(?P<rule>---[ \t]*(?![^\n]))"
    r")"
)
_KINDS = ("tag", "content", "file", "source", "front", "first", "skip")
_TITLE_LINE = re.compile(r"#{1,6}[ \t].*|(?:\[.+\]|\*\*.+\*\*)[ \t]*")
_HEADING_NEXT = re.compile(r"\n(?:[ \t]*\n)?#{1,6}[ \t]")
_FENCE = re.compile(r" {0,3}(?:```|~~~)")
_BLANK = re.compile(r"(?:\n[ \t]*(?=\n))*")
_RULE = re.compile(r"(?:-{3,}|={3,}|\*{3,})[ \t]*")
_FIELD = re.compile(r"[ \t]+\S[^\n]*|[\w\"'$@.-][^\n:]*:(?:[ \t][^\n]*)?|- [^\n]*|#[^\n]*|[ \t]*")
_IDENTITY = re.compile(r"(?:title|url|source|source_url|slug|permalink|path|id):")
_LONGEST_FRONT = 4000  # characters of front matter
_LONGEST_FENCE = 4000  # a longer fence that hides a page was never closed
_LONGEST_TITLE = 200
_MANY_HEADINGS = 10  # for each separator: then the separators are part of the content
_Front = dict[int, tuple[int, bool]]  # where front matter begins: its end, and whether it names a page


def pages(text: str, read: Callable[[int, int], str] | None = None) -> list[FullPage]:
    """The pages of an llms-full.txt; the text before the first is a page, too.

    If `text` is only its `narrow` form, `read` gives the real text between two places; calls are in the
    order of the text.
    """
    read = read or partial(_between, text)
    size, body = len(text), _plain_lines(text)
    headings = [heading.start for heading in markdown.scan(body).headings if heading.level == 1]
    lines = f"\n{body}"  # the line feed before a line is where that line begins in the text
    del text, body
    found, front = _separators(lines)
    kind, marks = _choose(lines, headings, found, front)
    if not marks or lines[: marks[0]].strip():
        marks = [0, *marks]
    edges = pairwise([0, *marks[1:], size])
    return [
        FullPage(
            *_name(_plain_lines(read(mark, min(end, mark + _OWN))), lines, mark, end, kind, front), start, end
        )
        for mark, (start, end) in zip(marks, edges, strict=True)
        if end > start
    ]


def _between(text: str, start: int, end: int) -> str:
    return text[start:end]


def _plain_lines(text: str) -> str:
    """The text, of the same length, with a line feed at the end of every line."""
    body = text.replace("\r\n", " \n").replace("\r", "\n")
    return f"\n{body[1:]}" if body.startswith(BOM) else body


def narrow(text: str) -> bytes:
    """The text, without a byte order mark, in Latin-1, with pages beginning at the same places.

    Letters stay letters, white space stays white space, and neither becomes markup. In memory a text with
    an emoji in it takes four bytes for each of its characters, and so does every copy; this takes one.
    """
    return text.encode("latin-1", "quire.narrow")


def _narrowed(problem: UnicodeError) -> tuple[bytes, int]:
    assert isinstance(problem, UnicodeEncodeError)  # noqa: S101
    wide = problem.object[problem.start : problem.end]
    return b"".join(map(_kind, wide)), problem.end


def _kind(character: str) -> bytes:
    """A letter for a letter, a no-break space for white space, a section sign for the rest."""
    return b"\xe9" if character.isalnum() else b"\xa0" if character.isspace() else b"\xa7"


codecs.register_error("quire.narrow", _narrowed)


def _separators(lines: str) -> tuple[dict[str, list[int]], _Front]:
    """The places where a page may begin, by kind, and the front matter."""
    found: dict[str, list[int]] = {kind: [] for kind in (*_KINDS, "rule")}
    for match in _SEPARATOR.finditer(lines):
        if match.lastgroup == "url":
            for kind, start in _around_url(lines, match.start(), match.end()):
                found[kind].append(start)
        else:
            found[str(match.lastgroup)].append(match.start())
    front = _front_matter(lines, found.pop("rule"))
    found["front"] = [start for start, (_, names_a_page) in front.items() if names_a_page]
    # A line between two headings may belong to either.
    del found["first" if len(found["source"]) >= len(found["first"]) else "source"][:]
    return found, front


def _around_url(lines: str, start: int, end: int) -> Iterator[tuple[str, int]]:
    """Where pages begin that have their address below the title, and those that have it above."""
    above = max(lines.rfind("\n", 0, start), 0)
    title = lines[above + 1 : start]
    if _TITLE_LINE.fullmatch(title):
        yield "source", above
    elif not title.strip():
        heading = lines.rfind("\n", 0, above)
        if heading >= 0 and lines.startswith("# ", heading + 1):
            yield "source", heading
    if _HEADING_NEXT.match(lines, end):
        if _RULE.fullmatch(title):
            yield "first", above
        elif not title.strip():
            yield "first", start


def _front_matter(lines: str, rules: list[int]) -> _Front:
    """The blocks of `key: value` between two rules."""
    front: _Front = {}
    closed = -1
    for opening, closing in pairwise(rules):
        if opening != closed and closing - opening <= _LONGEST_FRONT:
            fields = lines[opening + 4 : closing].lstrip(" \t").removeprefix("\n").split("\n")
            if re.match(r"[\w-]+:", fields[0]) and all(map(_FIELD.fullmatch, fields)):
                end = lines.find("\n", closing + 1)
                front[opening] = (end if end >= 0 else len(lines), any(map(_IDENTITY.match, fields)))
                closed = closing
    return front


def _choose(
    lines: str, headings: list[int], found: dict[str, list[int]], front: _Front
) -> tuple[str, list[int]]:
    """The kind of separator that the file uses, and where its pages begin."""
    found = {kind: _unfenced(lines, starts) for kind, starts in found.items()}
    most = max(map(len, found.values()))
    if len(headings) < 2 or (most > 1 and most * _MANY_HEADINGS >= len(headings)):
        return next(((kind, found[kind]) for kind in _KINDS if 2 * len(found[kind]) > most), ("", []))
    return "heading", _with_front(lines, headings, front)


def _with_front(lines: str, starts: list[int], front: _Front) -> list[int]:
    """Where headings begin, or the front matter right before them."""
    before = {_BLANK.match(lines, end).end(): start for start, (end, _) in front.items()}  # type: ignore[union-attr]
    return [before.get(start, start) for start in starts]


def _unfenced(lines: str, starts: list[int]) -> list[int]:
    """The places outside code fences.

    Each page is read alone, so a fence that is never closed hides only its own page.
    """
    kept, read = [], 0
    for start in starts:
        if start >= read:
            fence = _open_fence(lines[read:start])
            read = start if fence is None else _fence_end(lines, read + fence, start)
            if read == start:
                kept.append(start)
    return kept


def _open_fence(text: str) -> int | None:
    """The start of a fence that is still open at the end of a text."""
    start, end = max(_fences_in(f"{text}\n|"), default=(0, 0))
    return start if end > len(text) + 1 else None


def _fence_end(lines: str, fence: int, start: int) -> int:
    """The end of the fence that hides a place; the place itself if nothing closes the fence."""
    text = lines[fence : fence + _LONGEST_FENCE]
    _, end = min(_fences_in(f"{text}\n|"))
    return fence + end if start < fence + end and end <= len(text) + 1 else start


def _fences_in(text: str) -> Iterator[tuple[int, int]]:
    return (span for span in markdown.scan(text).opaque if _FENCE.match(text, span[0]))


# -------------------------------------------------------------------------------- one page

_HEAD = 3000  # characters in which a page gives its title
_OWN = _LONGEST_FRONT + _HEAD  # characters that may hold its title or address
_FIRST = 3  # lines in which it gives its address
_ATTRIBUTE = r"^\s*<\w+\b[^>\n]*?\s{}=[\"']([^\"'\n]+)[\"']"
_TITLE_ATTRIBUTE = re.compile(_ATTRIBUTE.format("(?:title|name)"))
_PATH = re.compile(
    _ATTRIBUTE.format("(?:path|file|src)") + r"|^[#\s]*(?:=+\s+)?(?:(?:FILE|File|file|Page):[ \t]*)([^\n=]+)"
    r"|^\s*[=-]{3,}\s+([^\n=]+?)\s+[=-]{3,}"
)
_TITLE_FIELD = re.compile(r"^title:[ \t]*(\S[^\n]*)", re.MULTILINE)
_URL = re.compile(
    r"^\s*<\w+\b[^>\n]*?\s(?:url|href|source|link)=[\"']([^\"'\s]+)[\"']"
    r"|^\W{0,4}(?:source|url|page|link|canonical|permalink|doc-content|html|md)(?:[ _-]?(?:url|link))?"
    r"[*_\"']{0,3}:[*_\"'<\s]{0,4}((?:https?://|/)[^\s<>\"']+)"
    r"|^\[Skip to [^\]]*\]\((https?://[^)\s#]+)"
    r"|<(?:source|url)>\s*(https?://[^<\s]+)",
    re.MULTILINE | re.IGNORECASE,
)


def _name(own: str, lines: str, start: int, end: int, kind: str, front: _Front) -> tuple[str, str | None]:
    """The title of a page and its address, from its beginning."""
    first = own[: _first_lines(lines, start, end, front)]
    url = _URL.search(first)
    title = as_title(_title(own[:_HEAD], first, kind).strip())
    return title, next(filter(None, url.groups())) if url else None


def _first_lines(lines: str, start: int, end: int, front: _Front) -> int:
    """The length of a page's first lines, with the front matter that begins in them."""
    stop = start
    for _ in range(_FIRST):
        if stop in front:
            stop = front[stop][0]
        stop = lines.find("\n", stop + 1)
        if not 0 <= stop <= end:
            return end - start
    return stop - start - 1


def _title(head: str, first: str, kind: str) -> str:
    """The title of a page, by the surest sign it has."""
    for pattern in (_TITLE_ATTRIBUTE, _TITLE_FIELD):
        if found := pattern.search(first):
            return found[1].strip().strip("\"'")
    line = head.strip().partition("\n")[0]
    if kind in ("source", "skip"):
        title = f"{line}\n"
        return _plain(title, Heading(1, 0, len(title))).strip("[]")
    headings = [(h.level, _plain(head, h)) for h in markdown.scan(head).headings if h.start or kind != "file"]
    titles = [title for level, title in headings if level == 1]
    path = _PATH.search(head)
    names = [next(filter(None, path.groups())).strip()] if path else []
    return next(filter(None, (*titles, *names, *(title for _, title in headings), line[:_LONGEST_TITLE])), "")
