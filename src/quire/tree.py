"""A document to its tree of sections.

A section is a heading and the content under it; the root is the document itself. Sections are in
document order, and each knows its parent. Always: the sections' own ranges, `text[start:own_end]`,
joined in order are the text; bodies never overlap and hold no heading line; the same document
gives the same slugs and addresses.

    # Guide          start ─┐
    Welcome.         body_start … body_end
    ## Install       own_end of Guide, start of Install
    Use pip.
                     end of Guide and of Install
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from pathlib import PurePosixPath

from quire import later, markdown
from quire.address import of_section
from quire.config import DEFAULT, TreeSettings
from quire.document import BOM, Document, Ruler, as_title
from quire.errors import NoResults, nearest
from quire.markdown import Heading, Outline

_TEXT = later.pattern(rf"[^\s{BOM}]")
_ASCII_DROP = later.pattern(r"[^a-z0-9_\s-]")
_GITHUB_DROP = later.pattern(r"[^\w\s-]")
_HYPHENS = later.pattern(r"[\s-]+")
_MAX_LINE_TITLE = 100
# What reads the formats that are not markdown.
_READERS = {"rst": "rst", "asciidoc": "asciidoc", "org": "org", "csv": "table", "text": "plain"}
_MAX_SLUG = 200  # characters, before repeats are numbered


class Names(Ruler):
    """The headings of a document and their names, computed on first use."""

    def __init__(self, document: Document, settings: TreeSettings, headings: list[Heading]) -> None:
        self.document, self.settings, self.headings = document, settings, headings

    @cached_property
    def _titles(self) -> list[tuple[str, str | None]]:
        """The text of every heading, and its explicit anchor."""
        text = self.document.markup
        if self.document.format != "markdown":
            _, title = _other_format(self.document.format)
            return [(as_title(title(text, heading)), None) for heading in self.headings]
        known = markdown.references(text[self.document.content_start :])
        found = (markdown.split_anchor(markdown.title(text, h, known)) for h in self.headings)
        return [(as_title(title), anchor) for title, anchor in found]

    @cached_property
    def titles(self) -> list[str]:
        """The text of every heading; a long one is cut."""
        return [title for title, _ in self._titles]

    @cached_property
    def slugs(self) -> list[str]:
        """The slug of every heading: unique, and the same whichever headings are discarded."""
        taken: set[str] = set()
        repeats: dict[str, int] = {}
        slugs = []
        for title, anchor in self._titles:
            slug = base = slugify(anchor or title, self.settings.slug_style)
            while slug in taken:
                repeats[base] = repeats.get(base, 0) + 1
                slug = f"{base}-{repeats[base]}"
            taken.add(slug)
            slugs.append(slug)
        return slugs

    @cached_property
    def title(self) -> str:
        """The title: given, from front matter, the first heading, the file's name, or the first line."""
        name = PurePosixPath(self.document.path).stem
        return self.document.title or self._first_heading() or as_title(name) or self._first_line()

    def _first_heading(self) -> str | None:
        """The first H1, else the first heading. In plain text, others only number the sections."""
        named = [found for found in zip(self.titles, self.headings, strict=True) if found[0]]
        first = next((title for title, heading in named if heading.level == 1), None)
        if self.document.format == "text":
            return first
        return first or next((title for title, _ in named), None)

    def _first_line(self) -> str:
        found = _TEXT.search(self.document.text, self.document.content_start)
        if found is None:
            return ""
        end = self.document.markup.find("\n", found.start())
        line = self.document.text[found.start() : end if end >= 0 else None]
        return line[:_MAX_LINE_TITLE].strip()

    def places(self) -> Iterator[int]:
        """The edges of every section."""
        yield from (0, len(self.document.text))
        for heading in self.headings:
            yield from (heading.start, heading.end)


@dataclass(slots=True, eq=False, repr=False)  # a frozen one takes five times as long to make
class Section:
    """A node of the tree. Offsets are characters; level 0 is the root."""

    names: Names
    position: int  # in document order, from 0: its place in `tree.sections`
    heading: int  # its place among all headings; -1 for the root
    level: int
    parent: Section | None
    start: int  # of its heading line
    body_start: int
    body_end: int
    own_end: int  # where the next section starts
    end: int  # of its last descendant
    is_blank: bool  # its body holds only white space

    def __repr__(self) -> str:
        return f"<Section {self.address} {self.start}:{self.end}>"

    @property
    def document(self) -> Document:
        """The document it is part of."""
        return self.names.document

    @property
    def title(self) -> str:
        """The heading's text; the document's title for the root."""
        return self.names.title if self.heading < 0 else self.names.titles[self.heading]

    @property
    def slug(self) -> str:
        """The heading's name in addresses; "" for the root."""
        return "" if self.heading < 0 else self.names.slugs[self.heading]

    @property
    def address(self) -> str:
        """`collection:path#slug`."""
        return of_section(self.document.address, self.slug)

    @property
    def parent_id(self) -> str | None:
        """The parent's address; None for the root."""
        return self.parent.address if self.parent else None

    @property
    def lineage(self) -> list[Section]:
        """From the outermost heading to this one; empty for the root."""
        line, section = [], self
        while section.parent is not None:
            line.append(section)
            section = section.parent
        return line[::-1]

    @property
    def text(self) -> str:
        """The section with its heading and all its descendants."""
        return self.document.text[self.start : self.end]

    @property
    def body(self) -> str:
        """The text between its heading and the next one."""
        return self.document.text[self.body_start : self.body_end]

    @property
    def span_start(self) -> int:
        """Byte offset of its heading line."""
        return self.names.bytes[self.start]

    @property
    def span_end(self) -> int:
        """Byte offset after its last descendant."""
        return self.names.bytes[self.end]

    @property
    def byte_start(self) -> int:
        """Byte offset of its body."""
        return self.names.bytes[self.body_start]

    @property
    def byte_end(self) -> int:
        """Byte offset after its body."""
        return self.names.bytes[self.body_end]

    @property
    def trail(self) -> tuple[str, ...]:
        """Titles from the document's to its own; a first heading that repeats the document's is left out."""
        line = self.lineage
        if line and line[0].heading == 0 and line[0].title == self.names.title:
            line = line[1:]
        return (self.names.title, *(section.title for section in line))

    @property
    def breadcrumb(self) -> str:
        """`> Document › Parent › Title`."""
        return f"> {' › '.join(self.trail)}"

    @property
    def headers(self) -> tuple[str, ...]:
        """`("## A", "### B")`: its headings from level 2 on, or the level 1 heading alone."""
        line = self.lineage
        inner = [section for section in line if section.level > 1] or line
        return tuple(f"{'#' * section.level} {section.title}" for section in inner)

    @property
    def header_path(self) -> str:
        """`## A > ### B`."""
        return " > ".join(self.headers)


class Tree:
    """The sections of one document, in document order."""

    def __init__(self, document: Document, settings: TreeSettings = DEFAULT.tree) -> None:
        scan = markdown.scan if document.format == "markdown" else _other_format(document.format)[0]
        outline = scan(document.markup, document.content_start)
        self.document = document
        self.headings = outline.headings
        self.opaque = outline.opaque
        self.names = Names(document, settings, self.headings)
        self.sections = self._sections()

    @property
    def root(self) -> Section:
        """The document itself."""
        return self.sections[0]

    @property
    def title(self) -> str:
        """The document's title."""
        return self.names.title

    def _sections(self) -> list[Section]:
        """The root and every heading that has text or headings under it."""
        text, names, headings, ends = self.document.text, self.names, self.headings, self._ends()
        starts = [heading.start for heading in headings]
        starts.append(len(text))
        blank = [not has_text(text, h.end, starts[i]) for i, h in enumerate(headings, 1)]
        kept = [i for i, end in enumerate(ends) if not blank[i] or end > starts[i + 1]]
        own_ends = [starts[index] for index in kept]
        own_ends.append(len(text))
        root_blank = not has_text(text, 0, starts[0])
        line = [Section(names, 0, -1, 0, None, 0, 0, starts[0], own_ends[0], len(text), root_blank)]
        sections = line[:]
        for position, i in enumerate(kept, 1):
            level, start, body = headings[i]
            while line[-1].level >= level:
                line.pop()
            own_end, parent, next_start = own_ends[position], line[-1], starts[i + 1]
            section = Section(
                names, position, i, level, parent, start, body, next_start, own_end, ends[i], blank[i]
            )
            line.append(section)
            sections.append(section)
        return sections

    def _ends(self) -> list[int]:
        """For each heading, the start of the next one of its level or above."""
        ends = [len(self.document.text)] * len(self.headings)
        waiting: list[tuple[int, int]] = []
        for index, (level, start, _) in enumerate(self.headings):
            while waiting and waiting[-1][0] >= level:
                ends[waiting.pop()[1]] = start
            waiting.append((level, index))
        return ends

    def children(self, section: Section) -> list[Section]:
        """The direct subsections of a section, in document order."""
        return [below for below in self.descendants(section) if below.parent is section]

    def descendants(self, section: Section) -> list[Section]:
        """All sections under one, in document order."""
        below = self.sections[section.position + 1 :]
        return list(takewhile(lambda other: other.level > section.level, below))

    def has_text(self, start: int, end: int) -> bool:
        """Whether a span holds more than white space."""
        return has_text(self.document.text, start, end)

    def find(self, name: str) -> tuple[Section, int]:
        """The first section by slug, heading text or path `A > B`, and how many others have that name.

        Raises NoResults, naming the nearest heading.
        """
        name = name.strip()
        for is_named in _ways_to_name(name):
            if found := list(filter(is_named, self.sections[1:])):
                return found[0], len(found) - 1
        known = [section.title for section in self.sections[1:]]
        where, name = self.document.path or "the text", as_title(name)
        raise NoResults(
            f"No heading {name!r} in {where}. {nearest(name, known)}", missing="heading", name=name
        )

    def breaks(self, start: int, end: int) -> list[int]:
        """The places where a span can be cut without splitting a paragraph, list item or code block."""
        if self.document.format == "csv":
            return self.rows[bisect_right(self.rows, start) : bisect_left(self.rows, end)]
        first = bisect_left(self.opaque, (start, 0))
        last = bisect_left(self.opaque, (end, 0), first)
        return markdown.breaks(self.document.markup, start, end, self.opaque[first:last])

    @cached_property
    def rows(self) -> list[int]:
        """Where the rows of a table begin, if the document is one."""
        from quire import table

        return table.rows(self.document.markup) if self.document.format == "csv" else []

    def at(self, char: int) -> Section:
        """The section whose own range holds a character."""
        after = bisect_right(self.sections, char, key=lambda section: section.start)
        return self.sections[after - 1]


def _other_format(format: str) -> tuple[Callable[[str, int], Outline], Callable[[str, Heading], str]]:
    """What reads a format other than markdown: the outline of a text, and the title of a heading."""
    from importlib import import_module  # a search needs none of them

    reader = import_module(f"quire.{_READERS[format]}")
    return reader.scan, reader.title


def has_text(text: str, start: int, end: int) -> bool:
    """Whether a span holds more than white space."""
    return _TEXT.search(text, start, end) is not None


def slugify(title: str, style: str) -> str:
    """A heading's slug, of ASCII letters, digits and underscores; style "github" keeps all scripts."""
    if style == "github":
        return _GITHUB_DROP.sub("", title.lower()).replace(" ", "-")[:_MAX_SLUG] or "heading"
    name = _ASCII_DROP.sub("", title.encode("ascii", "ignore").decode().lower())
    return _HYPHENS.sub("-", name).strip("-")[:_MAX_SLUG].rstrip("-") or "heading"


def _ways_to_name(name: str) -> tuple[Callable[[Section], bool], ...]:
    """Tests whether a name means a section: by slug, title, path `A > B`, or the title before its cut."""
    slug, title = name.removeprefix("#"), name.lstrip("# ")
    path = [as_title(part.lstrip("# ")).casefold() for part in name.split(" > ")]
    whole, cut = title.casefold(), as_title(title).casefold()
    return (
        lambda section: section.slug == slug,
        lambda section: section.title.casefold() == whole,
        lambda section: len(path) > 1 and _ends_with(section, path),
        lambda section: section.title.casefold() == cut,
    )


def _ends_with(section: Section, path: list[str]) -> bool:
    """Whether a path leads to a section through headings above it; it may skip some."""
    titles = [ancestor.title.casefold() for ancestor in section.lineage]
    above = iter(titles)
    return bool(titles) and titles[-1] == path[-1] and all(part in above for part in path)
