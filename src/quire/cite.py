"""Places to results: each with its address, its exact span, a snippet and whether it is stale."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quire import analyze
from quire.address import id_of, of_part, of_section
from quire.freshness import is_stale
from quire.query import Query
from quire.result import Hit, Merged, Result
from quire.snippet import snippet
from quire.stores import ChunkRow, DocumentRow, SectionRow, Store


class Citations:
    """Turns merged hits into results."""

    def __init__(self, store: Store, asked: Query, explain: bool) -> None:
        self.store, self.asked, self.explain = store, asked, explain
        self.terms = _terms_of(asked)
        self.stale: dict[int, bool] = {}
        self.sections: dict[tuple[int, int], SectionRow] = {}

    def all(self, merged: Sequence[Merged], hits: Sequence[Hit]) -> list[Result]:
        """A result for each place; `hits` are all that were ranked, best first."""
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
        part = own[0].part if len(own) == 1 and not found.merged_from else 0
        titles = section.titles
        return Result(
            address=_address(document, section, part),
            collection=document.collection,
            kind=document.kind,
            path=document.path,
            url=document.url,
            title=document.title,
            heading=section.title if section.position else None,
            trail=titles,
            breadcrumb=breadcrumb(titles),
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
        return id_of(document.kind, _address(document, section, chunk.part))

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


def _address(document: DocumentRow, section: SectionRow, part: int = 0) -> str:
    return of_part(of_section(document.address, section.slug), part, is_root=not section.slug)


def breadcrumb(titles: Iterable[str]) -> str:
    """The titles from the document down to a section, as people read them."""
    return f"> {' › '.join(titles)}"


def _terms_of(asked: Query) -> frozenset[str]:
    """The terms worth showing: those that say something, or all if none does."""
    every = frozenset(t for group in asked.groups for term in group for t in analyze.terms(term.text))
    return every - analyze.STOP or every
