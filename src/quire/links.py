"""A document to its links, tags, other names and front-matter fields. And the keys that links are found by.

Input: a Document and its Tree. Output: links in order, each with the section it stands in. Always: nothing
inside code, comments or raw HTML is a link or a tag; time is linear; the number and the length of what is
returned have limits. A link is not resolved here: what it leads to may be added later.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import lru_cache
from itertools import accumulate, pairwise
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple
from unicodedata import normalize
from urllib.parse import unquote, urljoin, urlsplit

from quire import analyze, front_matter, inlines, later
from quire.document import as_title
from quire.inlines import Piece

if TYPE_CHECKING:
    from quire.tree import Tree

MAX_LINKS = 20_000  # of a document
_MAX_TARGET = 1000  # characters: a longer one is pasted text
_MAX_NAME, _MAX_VALUE = 100, 200  # characters
_MAX_TAGS = 1000
SELF = "#"  # the key of links within a document: no other name has this character
ALIASES = "aliases"  # the field of other names
_TAGS, _OTHERS = "tags", "others"
_FIELD_LIMITS = {_OTHERS: 500, ALIASES: 500, _TAGS: _MAX_TAGS}  # values of a document
_SEPARATE = {ALIASES: ALIASES, "tags": _TAGS, "tag": _TAGS}  # the fields that do not count among others
MAX_ANCHOR = 12  # terms
_MAX_DEPTH = 4  # of maps in front matter
_ENDINGS = later.pattern(r"\.(?:md|markdown|mdx|html?|rst|txt)$")
_INDEXES = ("index", "_index", "readme")
_SCHEME = later.pattern(r"[a-zA-Z][a-zA-Z0-9+.-]*:")
_CANDIDATE = later.pattern(r"\[|<[hH][tT][tT][pP]|#[^\s#]")
# As Obsidian reads it: any sign but ASCII punctuation, `_`, `-` and `/` aside; and not only digits.
_TAG = later.pattern(
    r"(?<![^\s])#((?=[\d/]*[^\d/\s])[^\u2000-\u206f\u2e00-\u2e7f'!\"#$%&()*+,.:;<=>?@^`{|}~\[\]\\\s]{1,100})"
)
_COMMENT = b"%%"
_LARGE = 1 << 20  # characters of a document that is read in parts: the parser takes six times as much memory
# Perhaps the definition of a link: it may be in a quote or a list, and have several lines.
_REACHES_FAR = later.pattern(r"(?m:^)(?:[ \t>*+\d.)-]*\[(?:[^\]\n\\]|\\.)*|[^\[\n]*)\]:")
_Found = tuple[Piece, tuple[str, str], int]  # a link, the path and the fragment that it names, its place
_SIZE = later.pattern(r"\s*\d+(?:x\d+)?\s*")  # of an embedded picture
_NUMBER = later.pattern(r"[+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:e[+-]?\d{1,3})?")
_DATE = later.pattern(r"\d{4}-\d\d-\d\d(?:[t ]\d\d:\d\d(?::\d\d)?.{0,10})?")


class WrittenLink(NamedTuple):
    """A link as it is stored. Offsets are characters; lines count from 1."""

    number: int  # in its document, from 0
    section: int  # the position of the section that it stands in
    start: int
    line: int
    form: str  # wikilink, embed or markdown
    target: str  # without the fragment; "" is the document itself
    fragment: str  # what follows the #
    text: str  # what it says; "" if that is only its target
    anchor: str  # the terms of its text
    key: str  # the last name in its target, by which documents are found that it may lead to


class Field(NamedTuple):
    """A value of a front-matter field."""

    name: str
    value: str  # folded
    number: float | None  # of a number
    date: str | None  # of a date, as ISO writes it


class Extracted(NamedTuple):
    """What a document says besides its text."""

    links: tuple[WrittenLink, ...]
    tags: tuple[str, ...]
    fields: tuple[Field, ...]
    problems: tuple[str, ...] = ()  # what is left out, and why


def of_tree(tree: Tree, url: str | None = None) -> Extracted:
    """The links, tags and fields of a document. The links of a page begin from its URL; it has no #tags."""
    document = tree.document
    tags, fields = list(_own_tags(document.metadata, document.tags)), _fields(document.metadata)
    found, count = list[_Found](), 0
    if document.format == "markdown" and _CANDIDATE.search(document.markup, document.content_start):
        parts = _parts(tree)
        for (start, end), marks in zip(parts, _comments(document.markup, parts), strict=True):
            there, own = _links_and_tags(start, document.markup[start:end], marks)
            tags += [] if url else own
            count += len(there)
            found += there[: MAX_LINKS - len(found)]
    links = tuple(_links(tree, found, url))
    kept_tags, kept_fields = tuple(dict.fromkeys(tags)), tuple(_within_limits(fields))
    problems = (
        _cut(MAX_LINKS, count, "links"),
        _cut(_MAX_TAGS, len(kept_tags), "tags"),
        *_left_out(fields),
    )
    return Extracted(links, kept_tags[:_MAX_TAGS], kept_fields, tuple(filter(None, problems)))


def _cut(limit: int, count: int, things: str) -> str:
    """What to say of things that are too many; "" if they are not."""
    return f"only the first {limit:,} of its {count:,} {things} are kept" if count > limit else ""


# ------------------------------------------------------------------------------------ links and tags


def _parts(tree: Tree) -> list[tuple[int, int]]:
    """The span of a document's text: of a large one, the spans of parts that can be read alone.

    A heading ends what is before it. Only definitions of links, and comments, reach further.
    """
    text, first = tree.document.markup, tree.document.content_start
    starts = [heading.start for heading in tree.headings]
    if len(text) < _LARGE or _REACHES_FAR.search(text):
        starts = []
    ends = list[int]()
    for start in starts:
        if start - (ends[-1] if ends else first) >= _LARGE // 4:
            ends.append(start)
    return list(pairwise([first, *ends, len(text)]))


def _comments(text: str, parts: Sequence[tuple[int, int]]) -> list[list[int]]:
    """For each part, where comments begin and end in it: the bytes of every `%%`, and -1 if it begins in one.

    A comment that is never closed is text.
    """
    if _COMMENT.decode() not in text:
        return [[] for _ in parts]
    found = [_marks_in(text[start:end]) for start, end in parts]
    if sum(map(len, found)) % 2:
        next(marks for marks in reversed(found) if marks).pop()
    counts = accumulate(map(len, found[:-1]), initial=0)
    return [[-1] * (before % 2) + marks for before, marks in zip(counts, found, strict=True)]


def _marks_in(markup: str) -> list[int]:
    body = markup.encode()
    texts = (piece for piece in inlines.pieces_in(markup) if piece.target is None)
    return [at for piece in texts for at in _marks(body, piece.start, piece.end)]


def _links_and_tags(start: int, markup: str, marks: Sequence[int]) -> tuple[list[_Found], list[str]]:
    """The links in part of a document, with where they stand, and its tags."""
    body, links, tags = markup.encode(), list[tuple[Piece, tuple[str, str]]](), list[str]()
    pieces = inlines.pieces_in(markup)  # none of text is kept: a large document has millions
    for piece in (part for one in pieces for part in _shown(one, marks)) if marks else pieces:
        if piece.target is None:
            tags += _tags_in(body, piece)
        elif where := _target(piece):
            links.append((piece, where))
    places = _chars(body, [piece.start for piece, _ in links])
    return [(piece, where, start + at) for (piece, where), at in zip(links, places, strict=True)], tags


def _marks(body: bytes, at: int, end: int) -> Iterator[int]:
    while (at := body.find(_COMMENT, at, end)) >= 0:
        yield at
        at += len(_COMMENT)


def _shown(piece: Piece, marks: Sequence[int]) -> Iterator[Piece]:
    """The parts of a piece that are outside comments: all or nothing of a link."""
    after = bisect_right(marks, piece.start)
    if piece.target is not None:
        if after % 2 == 0:
            yield piece
        return
    at, shown = piece.start, after % 2 == 0
    while after < len(marks) and marks[after] < piece.end:
        if shown:
            yield piece._replace(start=at, end=marks[after])
        at, shown, after = marks[after] + len(_COMMENT), not shown, after + 1
    if shown:
        yield piece._replace(start=at)


def _tags_in(body: bytes, piece: Piece) -> list[str]:
    """The #tags in a text, without their sign."""
    if body.find(b"#", piece.start, piece.end) < 0:
        return []
    found = _TAG.finditer(body[piece.start : piece.end].decode("utf-8", "replace"))
    return [tag for one in found if (tag := one[1].strip("/"))]


def _target(piece: Piece) -> tuple[str, str] | None:
    """The path and the fragment that a link names; None if it is no link to a text."""
    written = (piece.target or "").strip()
    if piece.form == "image" or not written or len(written) > _MAX_TARGET or "\n" in written:
        return None
    if piece.form == "markdown":
        if _SCHEME.match(written) and not written.lower().startswith(("http://", "https://")):
            return None
        path, _, fragment = written.partition("#")
        return _decoded(path), _decoded(fragment)
    path, _, fragment = written.removesuffix("\\").partition("#")  # in a table, the bar is escaped
    return " ".join(path.split()), fragment.strip()


def _decoded(text: str) -> str:
    """A part of a URL without its escapes, where they are UTF-8."""
    return unquote(text, errors="strict") if "%" in text and _is_utf8(text) else text


def _is_utf8(text: str) -> bool:
    try:
        unquote(text, errors="strict")
    except UnicodeDecodeError:
        return False
    return True


def _links(tree: Tree, found: Sequence[_Found], url: str | None) -> Iterator[WrittenLink]:
    document, sections = tree.document, [section.start for section in tree.sections]
    lines = document.lines_at([start for _, _, start in found])
    for number, ((piece, (path, fragment), start), line) in enumerate(zip(found, lines, strict=True)):
        if url is not None and path and piece.form == "markdown":
            path = urljoin(url, path)
        text = "" if _says_nothing(piece) else as_title(" ".join(piece.text.split()))
        place = bisect_right(sections, start) - 1
        told = (piece.form, _storable(path), _storable(fragment)[:_MAX_TARGET], text)
        yield WrittenLink(number, place, start, line, *told, anchor_of(text), link_key(path, document.path))


def _says_nothing(piece: Piece) -> bool:
    """Whether the text of a link is only its target, or the size of what is shown."""
    return piece.text == piece.target or (piece.form == "embed" and _SIZE.fullmatch(piece.text) is not None)


def _chars(body: bytes, offsets: Sequence[int]) -> list[int]:
    """Character offsets of ascending byte offsets."""
    if body.isascii():
        return list(offsets)
    found, seen, at = list[int](), 0, 0
    for offset in offsets:
        at += len(body[seen:offset].decode())
        seen = offset
        found.append(at)
    return found


def _storable(text: str) -> str:
    return text.replace("\0", "\ufffd") if "\0" in text else text


def anchor_of(text: str) -> str:
    """The terms of a link's text that tell something, by which a query finds it; "" if there are none."""
    if not text:
        return ""
    found = [term for term in analyze.terms(text) if term not in analyze.STOP]
    return " ".join(found) if len(found) <= MAX_ANCHOR else ""


# ------------------------------------------------------------------------------------ names and keys


def folded(text: str) -> str:
    """A name as it is compared."""
    return text.lower() if text.isascii() else normalize("NFC", text).casefold()


def tag_key(tag: str) -> str:
    """A tag as it is compared."""
    return folded(tag.lstrip("#"))


def stem_of(path: str) -> str:
    """A path as it is compared: without its ending, and a folder without its slash."""
    return _ENDINGS.sub("", folded(path).rstrip("/"))


def folder_of(stem: str) -> str | None:
    """The folder whose first page a stem is; None if it is none."""
    above, _, name = stem.rpartition("/")
    return above if name in _INDEXES else None


def link_names(path: str) -> tuple[str, ...]:
    """The keys of links that may lead to a document by its path."""
    stem = stem_of(path.partition("?")[0])
    found, folder = [stem.rpartition("/")[2]], folder_of(stem)
    found += [folder.rpartition("/")[2]] if folder is not None else []
    return tuple(name[:_MAX_NAME] for name in dict.fromkeys(found))


@lru_cache(maxsize=1024)
def link_key(target: str, source: str) -> str:
    """The key of a link in a document: the last name of its target."""
    if not target:
        return SELF
    if is_absolute(target):
        path = urlsplit(target).path
    else:
        path = target.partition("?")[0]
        if path.endswith(("/", ".")) and path.rpartition("/")[2] in ("", ".", ".."):
            path = path_from(path, source) or ""
    return stem_of(path).rpartition("/")[2][:_MAX_NAME]


def moved_link(link: WrittenLink, source: str) -> WrittenLink:
    """The link of a document that has another path."""
    return link._replace(key=link_key(link.target, source))


def is_absolute(target: str) -> bool:
    """Whether a target is a URL with its scheme."""
    return target[:8].lower().startswith(("http://", "https://"))


def path_from(target: str, source: str) -> str | None:
    """The path that a target means from a document; None if that is outside of its collection."""
    parts = list[str]() if target.startswith("/") else source.split("/")[:-1]
    for part in target.split("/"):
        if part == ".." and not parts:
            return None
        if part == "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


# ------------------------------------------------------------------------------------ front matter


def _own_tags(metadata: Mapping[str, Any], tags: Sequence[str]) -> Iterator[str]:
    yield from tags
    value = metadata.get("tag")
    yield from (name.lstrip("#") for name in front_matter.listed(value) if name.lstrip("#"))


def _fields(metadata: Mapping[str, Any]) -> dict[str, list[Field]]:
    """The values of front matter: of tags, of aliases, and of all others, which have limits of their own.

    Those of a map inside have its name before theirs.
    """
    found: dict[str, dict[Field, None]] = {name: {} for name in _FIELD_LIMITS}
    for name, value in _flat(metadata, "", 0):
        if field := _field(name, value):
            found[_SEPARATE.get(field.name, _OTHERS)][field] = None
    return {name: list(fields) for name, fields in found.items()}


def _within_limits(fields: Mapping[str, Sequence[Field]]) -> Iterator[Field]:
    for name, own in fields.items():
        yield from own[: _FIELD_LIMITS[name]]


def _left_out(fields: Mapping[str, Sequence[Field]]) -> Iterator[str]:
    """What to say of values that are too many. Those of tags are told with the #tags."""
    yield _cut(_FIELD_LIMITS[ALIASES], len(fields[ALIASES]), ALIASES)
    limit, count = _FIELD_LIMITS[_OTHERS], len(fields[_OTHERS])
    if count > limit:
        yield f"front matter has {count:,} values; the first {limit:,} can be searched"


def _flat(value: Any, name: str, depth: int) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and depth < _MAX_DEPTH:
        for key, one in value.items():
            yield from _flat(one, f"{name}.{key}" if name else str(key), depth + 1)
    elif isinstance(value, list | tuple) and depth < _MAX_DEPTH:
        for one in value:
            yield from _flat(one, name, depth + 1)
    else:
        yield name, value


def _field(name: str, value: Any) -> Field | None:
    name = "-".join(folded(name).split())
    name = ALIASES if name == "alias" else name
    if value is None or isinstance(value, Mapping | list | tuple) or not 0 < len(name) <= _MAX_NAME:
        return None
    text = value.isoformat() if isinstance(value, date) else str(value)
    return field_of(_storable(name), text)


def field_of(name: str, text: str) -> Field:
    """A value as it is stored and compared."""
    value = " ".join(folded(_storable(text)).split())[:_MAX_VALUE]
    if _DATE.fullmatch(value):
        return Field(name, value, None, value.replace(" ", "t"))
    return Field(name, value, _number(value), None)


def _number(text: str) -> float | None:
    """The number that a text is; None if it is none."""
    if not _NUMBER.fullmatch(text):
        return None
    number = float(text)
    return number if isfinite(number) else None
