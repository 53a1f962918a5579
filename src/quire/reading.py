"""A stored document to its passages: a section or a part of one, exactly as it stands."""

from __future__ import annotations

from quire import sentences
from quire.address import of_opening, of_part, of_section, split_part
from quire.cite import breadcrumb, whereabouts
from quire.config import Config
from quire.document import Document
from quire.errors import NoResults
from quire.freshness import is_stale
from quire.plural import counted
from quire.result import Reading
from quire.stores import MAX_CHUNKS, DocumentRow, SectionRow, Store
from quire.tokens import Counter, budget_counter
from quire.tree import Tree


def read(store: Store, row: DocumentRow, name: str, config: Config, max_tokens: int | None) -> Reading:
    """A section by its slug, heading, path of headings or part number; without a name, the document.

    Raises NoResults if there is none.
    """
    section, others, parts = _section(store, row, name, config)
    start, end = _span_of(store, row, section, *parts) if parts else (section.start, section.end)
    address, is_root = of_section(row.address, section.slug), not section.slug
    if parts == _OPENING:
        address = of_opening(address, is_root=is_root)
    elif parts:
        address = of_part(address, *parts, is_root=is_root)
    return _cited(store, row, section, address, start, end, others, config, max_tokens)


def tree(store: Store, row: DocumentRow, config: Config) -> Tree:
    """The tree of a document."""
    document = Document.restored(
        store.source(row.seq), row.path, collection=row.collection, format=row.format, title=row.title
    )
    return Tree(document, config.tree)


def span(store: Store, row: DocumentRow, name: str, config: Config) -> tuple[int, int]:
    """Where a section, or some parts of one, begins and ends in the text; without a name, the document."""
    section, _, parts = _section(store, row, name, config)
    return _span_of(store, row, section, *parts) if parts else (section.start, section.end)


Parts = tuple[int, int]  # the first and the last
_OPENING = 0, 0  # a section's own text


def _section(
    store: Store, row: DocumentRow, name: str, config: Config
) -> tuple[SectionRow, int, Parts | None]:
    """The section, how many others have its name, and the requested parts, None for all."""
    sections = store.sections(row.seq)
    exact = next((s for s in sections if name and s.slug == name), None)
    slug, *parts = split_part(name) or (name,)
    if parts and not exact and (not slug or any(s.slug == slug for s in sections)):
        found = next((s for s in sections if s.slug == slug), sections[0])
        return found, 0, (parts[0], parts[1])
    if not name:
        return sections[0], 0, None
    found_section, others = tree(store, row, config).find(name)
    return sections[found_section.position], others, None


def _span_of(store: Store, row: DocumentRow, section: SectionRow, first: int, last: int) -> tuple[int, int]:
    """Where some parts of a section begin and end. Raises NoResults if no part has these numbers."""
    if (first, last) == _OPENING:
        return section.start, section.own_end
    chunks = store.chunks(range(row.seq * MAX_CHUNKS, row.seq * MAX_CHUNKS + row.chunk_count)).values()
    parts = {chunk.part: chunk for chunk in chunks if chunk.section == section.position}
    if first not in parts or last not in parts or last < first:
        numbers = str(first) if first == last else f"{first}-{last}"
        whole = of_section(row.address, section.slug)
        raise NoResults(f"{whole} has no part {numbers}.", missing="part", name=f"{whole}~{numbers}")
    return parts[first].start, parts[last].end


def _cited(
    store: Store,
    row: DocumentRow,
    section: SectionRow,
    address: str,
    start: int,
    end: int,
    others: int,
    config: Config,
    max_tokens: int | None,
) -> Reading:
    """A span with its citation, cut to a number of tokens; a note says what was left out."""
    source = Document.restored(store.source(row.seq), row.path)
    count, notes, whole = budget_counter(config.tokens), list[str](), end
    if others:
        notes.append(f"{others} more of this name; name it by its path, as in 'Parent > {section.title}'.")
    if max_tokens is not None:
        end = _cut(count, source.text, start, end, max_tokens)
    if end < whole:
        left, line = count.count(source.text, end, whole), source.lines_at([end])[0]
        what = counted(left, "token was", "tokens were")
        notes.append(f"{what} left out, from line {line:,} on. Raise max_tokens for {address}")
    places = sorted({start, max(start, end - 1), end})
    byte_of = dict(zip(places, source.bytes_at(places), strict=True))
    line_of = dict(zip(places, source.lines_at(places), strict=True))
    return Reading(
        address,
        breadcrumb(section.titles),
        source.text[start:end],
        start,
        end,
        byte_of[start],
        byte_of[end],
        line_of[start],
        line_of[max(start, end - 1)],
        count.count(source.text, start, end),
        others,
        is_stale(row),
        tuple(notes),
        True,
        *whereabouts(row, store.places([row.seq]).get(row.seq), start, end),
    )


def _cut(counter: Counter, text: str, start: int, end: int, budget: int) -> int:
    """Where a span ends within a budget: at its end, else after a word, else after a character."""
    if counter.fits(text, start, end, budget):
        return end
    end = sentences.word_edge(text, start, counter.reach(text, start, end, budget))
    while not counter.fits(text, start, end, budget):
        end = sentences.word_edge(text, start, end - 1)
    return end
