"""A question to results: parse, find chunks, weigh documents, merge up the tree, cite."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from quire import analyze, fusion, merge, query
from quire.config import SearchSettings
from quire.embed.base import Embedder
from quire.errors import EmbeddingError, NoResults, SettingError, nearest
from quire.query import Query
from quire.result import Hit, Merged, Node, Result
from quire.stores import ChunkRow, DocumentRow, Filters, Model, SectionRow, Store, row_id

if TYPE_CHECKING:
    from quire.embed.base import Vectors

_FENCE_LINE = re.compile(r"^[ \t]*(?:`{3,}|~{3,}).*$", re.MULTILINE)
_SHARP = 8  # scores are raised to it before siblings are added up: two that match well hardly beat the best
_MANY = 500  # chunks by meaning, of which some will be left out
_PROMOTED = {"important": 1.5}


@dataclass(frozen=True, slots=True)
class Found:
    """The answer to a search."""

    query: str
    mode: str
    results: tuple[Result, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Meaning:
    """What searching by meaning needs: a model whose vectors are stored, and something that runs it."""

    model: Model
    embedder: Embedder | None
    problem: str  # why there is nothing that runs it


def search(
    store: Store,
    text: str,
    filters: Filters,
    settings: SearchSettings,
    meaning: Meaning | None = None,
    *,
    explain: bool = False,
) -> Found:
    """The best sections for a query. Raises NoResults where what is to be searched was never indexed."""
    asked = query.parse(text)
    _check_indexed(store, filters)
    filters = replace(
        filters,
        query_paths=tuple(term.text for term in asked.filters),
        not_paths=tuple(term.text for term in asked.negated if term.field == "path"),
    )
    notes = list(asked.notes)
    hits, mode = ranked(store, asked, filters, settings, meaning, notes)
    hits = fusion.with_document_evidence(hits, settings.document_evidence)
    merged = _merge(store, _promote(store, hits), settings)
    results = _Citations(store, asked, explain).all(merged, hits)
    if not results:
        notes.append(_no_match(store, asked, filters))
    if any(result.stale for result in results):
        notes.append("Some files have changed since they were indexed. Bring them up to date: quire refresh")
    return Found(asked.text, mode, tuple(results), tuple(notes))


def ranked(
    store: Store,
    asked: Query,
    filters: Filters,
    settings: SearchSettings,
    meaning: Meaning | None,
    notes: list[str],
) -> tuple[list[Hit], str]:
    """Chunks by words, by meaning, or by both, best first; and which of these it was."""
    vector = _vector(asked, settings, meaning, notes) if meaning else None
    by_words = settings.mode != "semantic" or asked.demanded or vector is None
    words = store.search_words(asked, filters, _candidates(settings)) if by_words else []
    if meaning is None or vector is None:
        return fusion.with_neighbours(words, settings.neighbours), "keyword"
    if missing := store.count_unembedded(meaning.model):
        notes.append(f"Chunks that are not embedded yet: {missing:,}. Go on with: quire embed")
    hits = _near(store, asked, filters, settings, meaning.model, vector, words)
    if settings.mode == "hybrid":
        far = {hit.chunk for hit in words} - {hit.chunk for hit in hits}
        hits = fusion.fuse(words, hits, store.cosines(meaning.model, vector, far), settings.meaning)
    return fusion.with_neighbours(hits, settings.neighbours), settings.mode


def _candidates(settings: SearchSettings) -> int:
    return max(settings.candidates, 3 * settings.limit)


def _near(
    store: Store,
    asked: Query,
    filters: Filters,
    settings: SearchSettings,
    model: Model,
    vector: Vectors,
    words: list[Hit],
) -> list[Hit]:
    """Chunks by meaning that keep to what is demanded and left out, as those in `words` do."""
    limit = _candidates(settings)
    if asked.demanded and len(words) < limit:  # no other chunk has what is demanded
        cosines = store.cosines(model, vector, [hit.chunk for hit in words])
        found = [replace(hit, score=cosines.get(hit.chunk, -1.0), match="semantic") for hit in words]
        found.sort(key=lambda hit: (-hit.score, hit.chunk))
    else:
        found = _allowed(store, asked, filters, model, vector, limit)
    return [hit for hit in found[:limit] if hit.score >= settings.min_cosine]


def _allowed(
    store: Store, asked: Query, filters: Filters, model: Model, vector: Vectors, limit: int
) -> list[Hit]:
    """The nearest chunks; where some must be left out, so many are looked at that enough are left."""
    if not (asked.demanded or asked.left_out):
        return store.search_vectors(model, vector, filters, limit)
    for many in (max(_MANY, limit), 10 * max(_MANY, limit)):
        found = store.search_vectors(model, vector, filters, many)
        allowed = store.allowed(asked, [hit.chunk for hit in found])
        kept = [hit for hit in found if hit.chunk in allowed]
        if len(kept) >= limit or len(found) < many:
            break
    return kept


def _vector(asked: Query, settings: SearchSettings, meaning: Meaning, notes: list[str]) -> Vectors | None:
    """The vector of a question; none, and a note, where the model cannot be used."""
    name, size = meaning.model.name, meaning.model.dimension
    try:
        if meaning.embedder is None:
            raise EmbeddingError(name, meaning.problem)
        vector = meaning.embedder.embed_query(asked.words)
        if len(vector) != size:
            problem = f"makes {len(vector)} numbers now, and made {size} of this library."
            raise EmbeddingError(name, f"{problem} Embed it anew: quire embed --model {name}")
    except (EmbeddingError, SettingError) as problem:
        if settings.mode == "semantic":
            raise
        notes.append(f"Searched by words only. {problem}")
        return None
    return vector


def _check_indexed(store: Store, filters: Filters) -> None:
    """T14: not indexed is another thing than no match."""
    known = store.collections()
    if not known:
        raise NoResults("The library is empty. Add documents with: quire add ./docs")
    if filters.collection is not None and filters.collection not in known:
        raise NoResults(f"No collection {filters.collection!r}. {nearest(filters.collection, known)}")


def _promote(store: Store, hits: list[Hit]) -> list[Hit]:
    rows = store.documents_by_row({hit.document for hit in hits})
    times = {seq: _PROMOTED[row.promotion] for seq, row in rows.items() if row.promotion in _PROMOTED}
    raised = [hit.scoring(hit.score * times.get(hit.document, 1.0)) for hit in hits] if times else hits
    return sorted(raised, key=lambda hit: (-hit.score, hit.chunk))


def _merge(store: Store, hits: list[Hit], settings: SearchSettings) -> list[Merged]:
    """Merge as many hits as fill the answer; a weak match further down is no reason to merge."""
    size, merged = 0, list[Merged]()
    while len(merged) < settings.limit and size < len(hits):
        size = max(2 * size, 2 * settings.limit)
        merged = _merge_some(store, hits[:size], settings)
    return merged[: settings.limit]


def _merge_some(store: Store, hits: list[Hit], settings: SearchSettings) -> list[Merged]:
    """Merge sections that match about as well as the best of their document; let the others stand."""
    of_document: dict[int, float] = {}
    of_section: dict[tuple[int, int], float] = {}
    for hit in hits:
        key = hit.document, hit.section
        of_document[hit.document] = max(hit.score, of_document.get(hit.document, hit.score))
        of_section[key] = max(hit.score, of_section.get(key, hit.score))
    strong, weak = list[Hit](), list[Hit]()
    for hit in hits:
        floor = settings.merge_from * of_document[hit.document]
        (strong if of_section[hit.document, hit.section] >= floor else weak).append(hit)
    nodes = store.nodes({(hit.document, hit.section) for hit in hits})
    merged = merge.sections(
        _raised(strong, _SHARP),
        nodes,
        threshold=settings.aggregation_threshold,
        min_matches=settings.min_aggregation_matches,
        score_cap=settings.score_cap_multiplier,
    )
    root = 1 / _SHARP
    merged = [replace(it, score=it.score**root, hits=tuple(_raised(it.hits, root))) for it in merged]
    whole = {(found.document, found.section) for found in merged if found.merged_from}
    alone = merge.apart(hit for hit in weak if not _is_within(nodes, hit, whole))
    return sorted([*merged, *alone], key=lambda found: (-found.score, found.document, found.section))


def _raised(hits: Iterable[Hit], power: float) -> list[Hit]:
    return [hit.scoring(max(hit.score, 0.0) ** power) for hit in hits]


def _is_within(nodes: dict[tuple[int, int], Node], hit: Hit, whole: set[tuple[int, int]]) -> bool:
    """Whether a hit is in a section that is returned with all that is under it."""
    position = hit.section
    while position >= 0:
        if (hit.document, position) in whole:
            return True
        position = nodes[hit.document, position].parent
    return False


def _no_match(store: Store, asked: Query, filters: Filters) -> str:
    chunks = store.counts().chunks
    documents = store.documents(filters)
    if not documents:
        return "No document is within these filters."
    close = nearest(asked.text, [row.title for row in documents[:5000]])
    said = f" {close}" if close.startswith("Did") else ""
    return f"No match in {len(documents):,} documents ({chunks:,} chunks in the library).{said}"


class _Citations:
    """Turns merged hits into results."""

    def __init__(self, store: Store, asked: Query, explain: bool) -> None:
        self.store, self.asked, self.explain = store, asked, explain
        self.terms = _terms_of(asked)
        self.stale: dict[int, bool] = {}
        self.sections: dict[tuple[int, int], SectionRow] = {}

    def all(self, merged: Sequence[Merged], hits: Sequence[Hit]) -> list[Result]:
        rows = self.store.documents_by_row({found.document for found in merged})
        chunks = self.store.chunks([hit.chunk for found in merged for hit in found.hits])
        ranks = {hit.chunk: rank for rank, hit in enumerate(hits, 1)}
        return [self._one(found, rows[found.document], chunks, ranks) for found in merged]

    def _one(
        self, found: Merged, document: DocumentRow, chunks: dict[int, ChunkRow], ranks: dict[int, int]
    ) -> Result:
        section = self._section(found.document, found.section)
        own = [chunks[hit.chunk] for hit in found.hits]
        span = _span(found, section, own)
        address = _address(document, section)
        part = own[0].part if len(own) == 1 and not found.merged_from else 0
        titles = section.titles
        return Result(
            address=_with_part(address, section, part),
            collection=document.collection,
            kind=document.kind,
            path=document.path,
            url=document.url,
            title=document.title,
            heading=section.title if section.position else None,
            trail=titles,
            breadcrumb=f"> {' › '.join(titles)}",
            header_path=section.header_path,
            snippet=self._snippet(document, own[0]),
            score=round(found.score, 6),
            match=found.hits[0].match,
            **span,
            depth=section.level,
            document_id=document.id,
            chunk_ids=tuple(self._chunk_id(document, chunk) for chunk in own),
            merged_from=tuple(
                _address(document, self._section(found.document, position)) for position in found.merged_from
            ),
            promotion=document.promotion,
            stale=self._is_stale(document),
            explain=self._explanation(found, ranks) if self.explain else {},
        )

    def _chunk_id(self, document: DocumentRow, chunk: ChunkRow) -> str:
        section = self._section(chunk.document, chunk.section)
        return row_id(document.kind, _with_part(_address(document, section), section, chunk.part))

    def _section(self, document: int, position: int) -> SectionRow:
        key = document, position
        if key not in self.sections:
            self.sections[key] = self.store.section(document, position)
        return self.sections[key]

    def _snippet(self, document: DocumentRow, chunk: ChunkRow) -> str:
        text = self.store.passage(document.seq, chunk.byte_start, chunk.byte_end)
        return snippet(text, self.terms)

    def _is_stale(self, document: DocumentRow) -> bool:
        if document.seq not in self.stale:
            self.stale[document.seq] = is_stale(document)
        return self.stale[document.seq]

    def _explanation(self, found: Merged, ranks: dict[int, int]) -> dict[str, object]:
        return {
            "terms": sorted(self.terms),
            "hits": [
                {
                    "chunk": hit.chunk,
                    "rank": ranks.get(hit.chunk),
                    "score": round(hit.score, 4),
                    "match": hit.match,
                    "words": round(hit.words, 4),
                    "meaning": round(hit.meaning, 4),
                }
                for hit in found.hits
            ],
            "merged_sections": list(found.merged_from),
            "score": round(found.score, 4),
        }


def _span(found: Merged, section: SectionRow, own: list[ChunkRow]) -> dict[str, int]:
    """The whole section where sections were merged, its own text where parts were, else the chunk."""
    if found.merged_from:
        end, byte_end, end_line = section.end, section.byte_end, section.end_line
    elif len(own) > 1:
        end, byte_end, end_line = section.own_end, section.byte_own_end, section.own_end_line
    else:
        chunk = own[0]
        return {
            name: getattr(chunk, name)
            for name in ("start", "end", "byte_start", "byte_end", "start_line", "end_line")
        }
    return {
        "start": section.start,
        "end": end,
        "byte_start": section.byte_start,
        "byte_end": byte_end,
        "start_line": section.start_line,
        "end_line": end_line,
    }


def _address(document: DocumentRow, section: SectionRow) -> str:
    return f"{document.address}#{section.slug}" if section.slug else document.address


def _with_part(address: str, section: SectionRow, part: int) -> str:
    if not part:
        return address
    return f"{address}~{part}" if section.slug else f"{address}#~{part}"


def is_stale(document: DocumentRow) -> bool:
    """Whether the file of a document has changed or gone since it was read."""
    if document.file is None:
        return False
    try:
        status = os.stat(document.file)  # noqa: PTH116
    except OSError:
        return True
    return (status.st_size, status.st_mtime_ns) != (document.size, document.mtime_ns)


def _terms_of(asked: Query) -> frozenset[str]:
    """The terms worth showing: those that say something, or all if none does."""
    every = frozenset(t for group in asked.groups for term in group for t in analyze.terms(term.text))
    return every - analyze.STOP or every


def snippet(text: str, terms: Iterable[str], max_words: int = 50) -> str:
    """At most so many words around the best matches, matches in `**`, white space folded."""
    wanted = frozenset(terms)
    words = [(m.start(), m.end()) for m in re.finditer(r"\S+", text)]
    marks = _marks(text, wanted)
    first = _best_window(words, marks, max_words)
    shown = words[first : first + max_words]
    if not shown:
        return ""
    start, end = shown[0][0], shown[-1][1]
    places = [start, *(p for a, b, _ in marks if start <= a and b <= end for p in (a, b)), end]
    pieces = [text[a:b] for a, b in pairwise(places)]
    marked = "".join(f"**{piece}**" if index % 2 else piece for index, piece in enumerate(pieces))
    before, after = "… " if first else "", " …" if first + max_words < len(words) else ""
    return f"{before}{' '.join(marked.split())}{after}"


def _marks(text: str, wanted: frozenset[str]) -> list[tuple[int, int, str]]:
    """Whole words that match, none overlapping, none in the lines that open or close code."""
    fences = [m.span() for m in _FENCE_LINE.finditer(text)]
    marks: list[tuple[int, int, str]] = []
    for start, end, term in analyze.matches(text, wanted):
        overlaps = marks and start < marks[-1][1]
        if not overlaps and not any(a <= start < b for a, b in fences):
            marks.append((start, end, term))
    return marks


def _best_window(words: list[tuple[int, int]], marks: list[tuple[int, int, str]], max_words: int) -> int:
    """The word to begin at: the window with the most different matches, then the most matches."""
    if len(words) <= max_words or not marks:
        return 0
    places = sorted(range(len(marks)), key=lambda i: marks[i][0])
    word_of, at = [], 0
    for i in places:
        while at + 1 < len(words) and words[at + 1][0] <= marks[i][0]:
            at += 1
        word_of.append(at)
    best, best_start = (0, 0), 0
    for i, first in enumerate(word_of):
        inside = [marks[j][2] for j in range(i, len(marks)) if word_of[j] < first + max_words - 5]
        score = len(set(inside)), len(inside)
        if score > best:
            best, best_start = score, max(0, first - 5)
    return best_start
