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
    links, found, count = tuple[WrittenLink, ...](), list[tuple[Piece, tuple[str, str]]](), 0
    if document.format == "markdown" and _CANDIDATE.search(document.markup, document.content_start):
        markup = document.markup[document.content_start :]
        body = markup.encode()
        for piece in _outside_comments(markup, body):  # there are many: none is kept that is no link
            if piece.target is None:
                tags += () if url else _tags_in(body, piece)
            elif where := _target(piece):
                count += 1
                found += [(piece, where)] if count <= MAX_LINKS else []
        links = tuple(_links(tree, body, found, url))
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


def _outside_comments(markup: str, body: bytes) -> Iterator[Piece]:
    """The pieces of a text that are not between two `%%`. One that is never closed is text."""
    if _COMMENT not in body:
        return inlines.pieces_in(markup)
    texts = (one for one in inlines.pieces_in(markup) if one.target is None)
    marks = [at for one in texts for at in _marks(body, one.start, one.end)]
    marks = marks[: len(marks) // 2 * 2]
    return (part for piece in inlines.pieces_in(markup) for part in _shown(piece, marks))


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


def _links(
    tree: Tree, body: bytes, found: Sequence[tuple[Piece, tuple[str, str]]], url: str | None
) -> Iterator[WrittenLink]:
    document, sections = tree.document, [section.start for section in tree.sections]
    starts = [document.content_start + char for char in _chars(body, [piece.start for piece, _ in found])]
    lines = document.lines_at(starts)
    for number, ((piece, (path, fragment)), start, line) in enumerate(zip(found, starts, lines, strict=True)):
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
