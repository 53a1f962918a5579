"""Stored links to what they lead to: documents, and sections of them.

A wikilink is resolved as Obsidian resolves it: by the exact path, else by the end of a path. Of several
documents, those under the folder of the linking note come first, and short paths before long ones. The case
of letters does not matter, nor does `.md`. A Markdown link is relative to its document first. A name that no
path has may be an alias, if only one document has it. Always: a link leads to a document of its own
collection, unless it is a URL; one that leads out of the collection leads nowhere.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from quire.address import of_section
from quire.document import text_of
from quire.links import SELF, folded, folder_of, is_absolute, path_from, stem_of
from quire.sources.entries import KINDS
from quire.stores import DocumentRow, LinkRow, NamedDocument, SectionRow, Store
from quire.tree import slugify

_APART = re.compile(r"[\W_]+")
_ROOT = 0  # the position of the section that is the whole document
_RELATIVE = ("./", "../")


@dataclass(frozen=True, slots=True)
class LinkOut:
    """A link in a document."""

    address: str  # of the section that it stands in
    line: int
    text: str
    form: str  # wikilink, embed or markdown
    written: str  # its target, as it is written
    target: str | None  # the address that it leads to; None if that is nothing in the library
    same_alias: int = 0  # notes that have its target as an alias, if several do: then it leads nowhere


@dataclass(frozen=True, slots=True)
class LinkBack:
    """A link to a document or a section."""

    address: str  # of the section that it stands in
    line: int
    text: str
    form: str  # wikilink, embed or markdown
    target: str  # the address that it leads to


@dataclass(frozen=True, slots=True)
class Links:
    """The links in a document or a section, in order, and those that lead to it."""

    address: str
    out: tuple[LinkOut, ...]
    back: tuple[LinkBack, ...]


class Destination(NamedTuple):
    """The document that a link leads to, and the position of the section."""

    document: int
    section: int


def links(store: Store, row: DocumentRow, address: str, start: int, end: int) -> Links:
    """The links in a span of a document, and those that lead to a section in it."""
    own = [link for link in store.links(row.seq) if start <= link.start < end]
    finder = Finder(store, (link.key for link in own))
    places = [finder.place(link, row) for link in own]
    finder.load_documents({place.document for place in places if place})
    finder.load_sections(own)
    out = tuple(_out(finder, row, *pair) for pair in zip(own, places, strict=True))
    return Links(address, out, tuple(_back(store, row, start, end)))


def _out(finder: Finder, row: DocumentRow, link: LinkRow, place: Destination | None) -> LinkOut:
    standing = of_section(row.address, finder.slug_at(link))
    leads = finder.address(place) if place else None
    same = 0 if place else finder.count_aliased(link, row)
    return LinkOut(standing, link.line, _said(link), link.form, _written(link), leads, same)


def _back(store: Store, row: DocumentRow, start: int, end: int) -> Iterator[LinkBack]:
    """The links that lead to a section that begins in a span of a document."""
    keys = store.names(row.seq)
    finder = Finder(store, keys)
    inner = [link for link in store.links(row.seq) if link.key == SELF]
    found = [*inner, *store.links_to(keys)] if keys else inner
    finder.load_documents({row.seq, *(link.document for link in found)})
    finder.load_sections(found)
    placed = [(finder.documents[link.document], link) for link in found]
    for source, link in sorted(placed, key=lambda one: (one[0].address, one[0].kind, one[1].number)):
        place = finder.place(link, source)
        if place and place.document == row.seq and start <= finder.section(place).start < end:
            standing = of_section(source.address, finder.slug_at(link))
            yield LinkBack(standing, link.line, _said(link), link.form, finder.address(place))


def _written(link: LinkRow) -> str:
    return f"{link.target}#{link.fragment}" if link.fragment else link.target


def _said(link: LinkRow) -> str:
    return link.text or _written(link)


class _Candidate(NamedTuple):
    """A document that has a name, and its path as it is compared."""

    named: NamedDocument
    stem: str
    folder: str | None  # whose first page it is


class Finder:
    """What links lead to, among the documents that have one of their keys as a name."""

    def __init__(self, store: Store, keys: Iterable[str]) -> None:
        self.store = store
        self.documents: dict[int, DocumentRow] = {}
        self._named: dict[str, list[_Candidate]] = defaultdict(list)
        self._aliases: dict[str, list[NamedDocument]] = defaultdict(list)
        self._known: dict[tuple[str, str, str, str, bool], int | None] = {}
        self._sections: dict[int, list[SectionRow]] = {}
        self._slugs: dict[tuple[int, int], str] = {}
        for one in store.named(set(keys) - {SELF}):
            if one.is_alias:
                self._aliases[one.name].append(one)
            else:
                stem = stem_of(one.path)
                self._named[one.name].append(_Candidate(one, stem, folder_of(stem)))

    def load_documents(self, rows: Iterable[int]) -> None:
        """Read the rows of documents."""
        self.documents |= self.store.documents_by_row(set(rows) - self.documents.keys())

    def place(self, link: LinkRow, source: DocumentRow) -> Destination | None:
        """What a link in a document leads to; None if it is not in the library."""
        document = self._document(link, source)
        return (
            Destination(document, self._position(document, link.fragment)) if document is not None else None
        )

    def _document(self, link: LinkRow, source: DocumentRow) -> int | None:
        if not link.target:
            return source.seq
        folder = source.path.rpartition("/")[0]
        is_entry, form = source.kind in KINDS, "wikilink" if link.form == "embed" else link.form
        asked = link.target, form, source.collection, folder, is_entry
        if asked not in self._known:
            self._known[asked] = self._find(link, source, is_entry)
        return self._known[asked]

    def _find(self, link: LinkRow, source: DocumentRow, is_entry: bool) -> int | None:
        named = self._named.get(link.key, [])
        if is_absolute(link.target):
            return _first(one for one in named if one.named.url and _same_url(one.named.url, link.target))
        own = [
            one
            for one in named
            if one.named.collection == source.collection and (one.named.kind in KINDS) == is_entry
        ]
        target = link.target.partition("?")[0] if link.form == "markdown" else link.target
        found = _by_path(own, target, source.path, link.form)
        is_name = found is None and link.form != "markdown" and not target.startswith((*_RELATIVE, "/"))
        return self._by_alias(link, source) if is_name else found

    def _by_alias(self, link: LinkRow, source: DocumentRow) -> int | None:
        """The only document that has a name as an alias."""
        found = self._aliased(link, source)
        return found.pop() if len(found) == 1 else None

    def _aliased(self, link: LinkRow, source: DocumentRow) -> set[int]:
        known = self._aliases.get(folded(link.target), ())
        return {one.document for one in known if one.collection == source.collection}

    def count_aliased(self, link: LinkRow, source: DocumentRow) -> int:
        """How many documents have the target of a wikilink as an alias."""
        return 0 if link.form == "markdown" else len(self._aliased(link, source))

    # ------------------------------------------------------------------------------- sections

    def _rows(self, document: int) -> list[SectionRow]:
        if document not in self._sections:
            self._sections[document] = self.store.sections(document)
        return self._sections[document]

    def section(self, place: Destination) -> SectionRow:
        """The section at a place."""
        return self._rows(place.document)[place.section]

    def load_sections(self, links: Iterable[LinkRow]) -> None:
        """Read the sections that links stand in."""
        found = self.store.lineages({(link.document, link.section) for link in links})
        self._slugs |= {key: row.slug for key, row in found.items()}

    def slug_at(self, link: LinkRow) -> str:
        """The slug of the section that a link stands in; "" for the document itself."""
        return self._slugs.get((link.document, link.section), "")

    def address(self, place: Destination) -> str:
        """The address of a place."""
        row = self.documents[place.document]
        return of_section(row.address, self.section(place).slug)

    def _position(self, document: int, fragment: str) -> int:
        """The section that a fragment names; the whole document if none is named, or none has the name."""
        if not fragment:
            return _ROOT
        if fragment.startswith("^"):
            return self._block(document, fragment)
        found, rows = _ROOT, self._rows(document)
        for part in filter(None, fragment.split("#")):
            below = rows[found + 1 :] if found == _ROOT else _under(rows, found)
            at = _named_heading(below, part)
            if at is None:
                return _ROOT
            found = at
        return found

    def _block(self, document: int, fragment: str) -> int:
        """The section with the block that has an id."""
        text = text_of(self.store.source(document))
        block = re.search(rf"(?<!\S){re.escape(fragment)}[ \t\r]*$", text, re.MULTILINE)
        before = [row for row in self._rows(document) if block and row.start <= block.start()]
        return before[-1].position if before else _ROOT


def _first(found: Iterable[_Candidate]) -> int | None:
    best = min(found, key=lambda one: (one.named.collection, len(one.stem), one.named.path), default=None)
    return best.named.document if best else None


def _by_path(own: Sequence[_Candidate], target: str, source: str, form: str) -> int | None:
    """The document of a collection that a target means from a document."""
    is_relative = target.startswith(_RELATIVE) or target in (".", "..")
    if is_relative or form == "markdown":
        path = path_from(target, source)
        found = None if path is None else _exactly(own, path)
        if found is not None or is_relative:
            return found
    path = target.strip("/")
    exact = _exactly(own, path)
    return _nearest(own, stem_of(path), source) if exact is None else exact


def _exactly(own: Sequence[_Candidate], path: str) -> int | None:
    """The document at a path: the very path, else one with another case or ending, else a folder's page."""
    stem = stem_of(path)
    found = [one for one in own if stem in (one.stem, one.folder)]

    def order(one: _Candidate) -> tuple[bool, bool, bool, bool, int, str]:
        name = one.named.path
        is_same, is_alike = name == path, name.lower() == path.lower()
        is_note = name.startswith(path) and name.endswith(".md")
        return not is_same, not is_alike, one.stem != stem, not is_note, len(name), name

    return min(found, key=order).named.document if found else None


def _nearest(own: Sequence[_Candidate], stem: str, source: str) -> int | None:
    """The document whose path ends so: one under the folder of the source first, then the shortest."""
    under = folded(source.rpartition("/")[0])
    ends = [one for one in own if one.stem.endswith(f"/{stem}") or (one.folder or "").endswith(f"/{stem}")]

    def order(one: _Candidate) -> tuple[bool, int, str]:
        return bool(under) and not one.stem.startswith(f"{under}/"), len(one.stem), one.named.path

    return min(ends, key=order).named.document if ends else None


def _same_url(one: str, other: str) -> bool:
    return _compared(one) == _compared(other)


def _compared(url: str) -> tuple[str, str, str]:
    """A URL without what makes no difference: its scheme, fragment and ending."""
    parts = urlsplit(url)
    stem = stem_of(unquote(parts.path))
    folder = folder_of(stem)
    return parts.netloc.lower(), stem if folder is None else folder, parts.query


def _under(rows: Sequence[SectionRow], position: int) -> list[SectionRow]:
    return [row for row in rows[position + 1 :] if row.start < rows[position].end]


def _named_heading(rows: Sequence[SectionRow], name: str) -> int | None:
    """The first section that has a slug or, apart from punctuation, a title."""
    slugs, plain = {name, name.lower(), slugify(name, "ascii")}, _plain(name)
    for is_named in (
        lambda row: row.slug in slugs,
        lambda row: _plain(row.title) == plain,
        lambda row: slugify(row.title, "github") == name.lower(),
    ):
        if found := next(filter(is_named, rows), None):
            return found.position
    return None


def _plain(title: str) -> str:
    return _APART.sub(" ", folded(title)).strip()
