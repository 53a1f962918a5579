"""Places to results: each with its address, its exact span, a snippet and whether it is stale."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil

from quire import analyze
from quire.address import id_of, of_opening, of_part, of_section
from quire.confidence import Judge, confidence, evidence_of
from quire.document import Document, shown_from, without_front_matter
from quire.errors import Damaged
from quire.freshness import is_stale
from quire.location import Places, link_to
from quire.query import Query
from quire.result import Hit, Merged, Result
from quire.snippet import densest, snippet
from quire.stores import ChunkRow, DocumentRow, SectionRow, Store
from quire.tokens import Counter

_SHORT, _USUAL = 100, 0.35  # characters that are few, and tokens of a character of English
_SAMPLE = 400  # characters that the size of a result is estimated by


class Citations:
    """Turns merged hits into results."""

    def __init__(
        self,
        store: Store,
        asked: Query,
        max_tokens: int | None,
        judge: Judge,
        counter: Counter,
        *,
        explain: bool,
    ) -> None:
        self.store, self.asked, self.max_tokens = store, asked, max_tokens
        self.judge, self.counter, self.explain = judge, counter, explain
        self.terms = _terms_of(asked)
        self.stale: dict[int, bool] = {}
        self.tags: dict[int, tuple[str, ...]] = {}
        self.places: dict[int, Places] = {}
        self.damaged: list[str] = []  # addresses of documents that cannot be cited
        self.sections: dict[tuple[int, int], SectionRow] = {}
        self.intact: dict[int, bool] = {}  # documents that were compared with their checksums

    def first(self, limit: int, merged: Sequence[Merged], hits: Sequence[Hit]) -> list[Result]:
        """The results of the first places; how sure they are depends on those after them, too.

        `hits` are all ranked hits, best first.
        """
        rows = self.store.documents_by_row({found.document for found in merged})
        merged = self._intact(merged, rows)
        while True:
            try:
                return self._results(merged, merged[:limit], rows, hits)
            except Damaged as problem:  # what the library holds of a document, besides its text
                sound = [found for found in merged if rows[found.document].address != problem.document]
                if len(sound) == len(merged):
                    raise
                merged = sound
                self.damaged.append(problem.document)

    def _results(
        self,
        merged: Sequence[Merged],
        shown: Sequence[Merged],
        rows: dict[int, DocumentRow],
        hits: Sequence[Hit],
    ) -> list[Result]:
        chunks = self.store.chunks([hit.chunk for found in shown for hit in found.hits])
        self.sections |= self.store.lineages({(found.document, found.section) for found in shown})
        ranks = {hit.chunk: rank for rank, hit in enumerate(hits, 1)}
        self.tags |= self.store.tags({found.document for found in shown})
        self.places |= self.store.places({found.document for found in shown})
        results = [self._one(found, rows[found.document], chunks, ranks) for found in shown]
        sure = [confidence(told, self.judge) for told in evidence_of(merged, len(self.terms))]
        return [
            replace(result, confidence=round(chance, 3), strength=strength)
            for result, (chance, strength) in zip(results, sure, strict=False)
        ]

    def _intact(self, merged: Sequence[Merged], rows: dict[int, DocumentRow]) -> Sequence[Merged]:
        """The places whose documents are not damaged."""
        self.intact = self.store.intact(rows.values())
        if all(self.intact.values()):
            return merged
        self.damaged = sorted(rows[row].address for row, whole in self.intact.items() if not whole)
        return [found for found in merged if self.intact.get(found.document, True)]

    def _one(
        self, found: Merged, document: DocumentRow, chunks: dict[int, ChunkRow], ranks: dict[int, int]
    ) -> Result:
        section = self._section(found.document, found.section)
        own = [chunks[hit.chunk] for hit in found.hits]
        is_part = found.is_run or (len(own) == 1 and not found.merged_from)
        span = self._part(document, own) if is_part else _span_of_section(found, section)
        parts = sorted(chunk.part for chunk in own) if is_part else [0]
        larger, titles = self._larger(section, span), section.titles
        if is_part and not span.start:
            span = self._shown(document, span)
        text, shown = self._best_text(document, own[0], span)
        size, (brief, highlights) = span.end - span.start, snippet(shown, self.terms)
        tokens = self._tokens(size, text)
        address = _address(document, section, parts[0], parts[-1])
        location, link = whereabouts(document, self.places.get(document.seq), span.start, span.end)
        is_own = not parts[0] and not found.merged_from and section.own_end < section.end
        if is_own and self.max_tokens is not None:  # the founding rules name the section
            address = of_opening(address, is_root=not section.slug)
        return Result(
            address=address,
            collection=document.collection,
            kind=document.kind,
            path=document.path,
            url=document.url,
            title=document.title,
            heading=section.title if section.position else None,
            trail=titles,
            breadcrumb=breadcrumb(titles),
            header_path=section.header_path,
            snippet=brief,
            highlights=highlights,
            score=round(found.score, 6),
            match=found.hits[0].match,
            start=span.start,
            end=span.end,
            byte_start=span.byte_start,
            byte_end=span.byte_end,
            start_line=span.start_line,
            end_line=span.end_line,
            tokens=tokens,
            parent=_address(document, larger) if larger else None,
            parent_title=larger.title if larger else None,
            parent_tokens=tokens + self._tokens(larger.end - larger.start - size, text) if larger else 0,
            depth=section.level,
            document_id=document.id,
            chunk_ids=tuple(self._chunk_id(document, chunk) for chunk in own),
            merged_from=tuple(
                _address(document, self._section(found.document, position)) for position in found.merged_from
            ),
            promotion=document.promotion,
            stale=self._is_stale(document),
            verified=self.intact.get(found.document, False),
            location=location,
            link=link,
            tags=self.tags.get(document.seq, ()),
            updated_at=document.updated_at,
            checksum=document.checksum,
            explain=self._explanation(found, ranks) if self.explain else {},
        )

    def _part(self, document: DocumentRow, chunks: Sequence[ChunkRow]) -> Span:
        """The span of neighbouring chunks; for one chunk that is too large, its piece with most matches."""
        span = _span_of_chunks(chunks)
        if self.max_tokens is None or len(chunks) > 1 or span.tokens <= self.max_tokens:
            return span
        text = self.store.passage(document.seq, span.byte_start, span.byte_end)
        size = max(1, len(text) * self.max_tokens // span.tokens)
        start, end = (span.start + place for place in densest(text, self.terms, size))
        source = Document.restored(self.store.source(document.seq), document.path)
        byte_start, byte_end = source.bytes_at([start, end])
        first, last = source.lines_at([start, end - 1])
        return Span(start, end, byte_start, byte_end, first, last, span.tokens * (end - start) // len(text))

    def _shown(self, document: DocumentRow, span: Span) -> Span:
        """The beginning of a document without its front matter."""
        text = self.store.passage(document.seq, 0, span.byte_end)
        if not (start := shown_from(text)):
            return span
        source = Document.restored(self.store.source(document.seq), document.path)
        (byte_start,), (line,) = source.bytes_at([start]), source.lines_at([start])
        tokens = span.tokens * (len(text) - start) // len(text)
        return replace(span, start=start, byte_start=byte_start, start_line=line, tokens=tokens)

    def _larger(self, section: SectionRow, span: Span) -> SectionRow | None:
        """The next larger place: the nearest section around the result that has more text."""
        while section.end <= span.end and section.start >= span.start:
            if section.parent < 0:
                return None
            section = self._section(section.document, section.parent)
        return section

    def _chunk_id(self, document: DocumentRow, chunk: ChunkRow) -> str:
        section = self._section(chunk.document, chunk.section)
        return id_of(document.kind, _address(document, section, chunk.part))

    def _section(self, document: int, position: int) -> SectionRow:
        key = document, position
        if key not in self.sections:
            self.sections[key] = self.store.section(document, position)
        return self.sections[key]

    def _best_text(self, document: DocumentRow, chunk: ChunkRow, span: Span) -> tuple[str, str]:
        """The part of the best chunk that is in the result, and what of it may be shown."""
        start, end = max(chunk.byte_start, span.byte_start), min(chunk.byte_end, span.byte_end)
        text = self.store.passage(document.seq, start, end)
        return text, text if start else without_front_matter(text, document.title)

    def _tokens(self, size: int, text: str) -> int:
        """About how many tokens of a budget so many characters take, by a text among them.

        A few letters tell nothing of what is around them: the tokens that the counter spares count too much.
        """
        sample = min(len(text), _SAMPLE)
        if sample < min(size, _SHORT) and text.isascii():
            return ceil(_USUAL * size)
        return ceil(self.counter.count(text, 0, sample) / max(1, sample) * size)

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
                    "covers": round(hit.covers, 4),
                    "heading": round(hit.heading, 4),
                    "whole": round(hit.whole, 4),
                    "logit": round(hit.logit, 4),
                    "added": round(hit.added, 4),
                }
                for hit in found.hits
            ],
            "merged_sections": list(found.merged_from),
            "score": round(found.score, 4),
        }


@dataclass(frozen=True, slots=True)
class Span:
    """Where a result begins and ends, and how many tokens it has as chunks are measured."""

    start: int
    end: int
    byte_start: int
    byte_end: int
    start_line: int
    end_line: int
    tokens: int


def whereabouts(
    document: DocumentRow, places: Places | None, start: int, end: int
) -> tuple[str | None, str | None]:
    """Where a span is in the original of a document, and a link that opens it there."""
    location = places.location(start, end) if places else ""
    link = link_to(places, start, document.url, document.file if places else None)
    return location or None, link


def _span_of_chunks(chunks: Sequence[ChunkRow]) -> Span:
    """From the first of neighbouring chunks to the last."""
    first, last = min(chunks, key=lambda one: one.start), max(chunks, key=lambda one: one.end)
    return Span(
        first.start,
        last.end,
        first.byte_start,
        last.byte_end,
        first.start_line,
        last.end_line,
        sum(chunk.tokens for chunk in chunks),
    )


def _span_of_section(found: Merged, section: SectionRow) -> Span:
    """The whole section if sections were merged, else its own text."""
    ends = section.end, section.byte_end, section.end_line
    if not found.merged_from:
        ends = section.own_end, section.byte_own_end, section.own_end_line
    end, byte_end, end_line = ends
    tokens = round(section.tokens * (end - section.start) / max(1, section.end - section.start))
    return Span(section.start, end, section.byte_start, byte_end, section.start_line, end_line, tokens)


def _address(document: DocumentRow, section: SectionRow, part: int = 0, last: int = 0) -> str:
    return of_part(of_section(document.address, section.slug), part, last, is_root=not section.slug)


def breadcrumb(titles: Iterable[str]) -> str:
    """The titles from the document down to a section, as people read them."""
    return f"> {' › '.join(titles)}"


def _terms_of(asked: Query) -> frozenset[str]:
    """The terms to highlight: those that are not stop words, or all if only stop words are left."""
    every = frozenset(t for group in asked.groups for term in group for t in analyze.terms(term.text))
    return every - analyze.STOP or every
