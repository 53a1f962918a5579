"""Ranked chunks to a better order: by what their headings, their words and their whole documents tell.

Input: hits by words, or by words and meaning. Output: the same hits, best first, each with what it was
judged by. The weights were chosen on documentation, manuals and source code (bench/README.md).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from quire import analyze, later
from quire.anchors import LinkText, destinations
from quire.config import SearchSettings
from quire.query import Query
from quire.result import Hit, Merged
from quire.stores import MAX_CHUNKS, Filters, Model, Store
from quire.stores.matching import common_share

if TYPE_CHECKING:
    from quire.embed.base import Vectors

HEADING = 0.4  # for a heading whose words are all in the query
COVERED = 0.5  # for a chunk that has all words of a short question
COVERS = 0.2  # for all words of a query, where meaning comes first: chosen by bench/memory.py
WHOLE = 2.0  # for what a document has of the words and of the meaning, beyond what any chunk has
ANCHOR = 0.5  # for a section that links with texts in the query lead to: chosen by bench/links.py
NAMED = 1.1  # times the score of the second best, for a section that a query names as links do
_ENOUGH = 5  # a heading with a fifth of what a query asks for counts in full
_SHORT = 6  # words of a question, without stop words: in a longer one, each tells less
_FIRST = 10  # hits by words: one of them has the most words
_READ = 50  # hits that the words of a question can raise
_FAR_APART = 5  # documents to add because they match better than any chunk
# A question describes what its answer says; other queries name it, as headings do.
_QUESTION = later.pattern(
    r"(?:how|what|why|when|where|which|who|whom|whose|can|could|do|does|did|is|are|was|were|should|would"
    r"|will|may)\b|.*[?？]\s*$",
    re.IGNORECASE | re.DOTALL,
)


def is_question(text: str) -> bool:
    """Whether a query is a question, in English or by its mark."""
    return _QUESTION.match(text) is not None


@dataclass(frozen=True, slots=True)
class QueryTerms:
    """The terms of a query, and how much each tells: a rare one tells more."""

    weights: Mapping[str, float]
    counts: Mapping[str, int]  # chunks that have it
    common: int  # a term in more chunks tells little of a document

    @classmethod
    def of(cls, store: Store, asked: Query) -> QueryTerms:
        """The terms of a query in a library. Stop words count only if there are no others."""
        words = (term.text for group in asked.groups for term in group if not term.prefix)
        every = dict.fromkeys(analyze.terms(" ".join(words)))
        terms = [term for term in every if term not in analyze.STOP] or list(every)
        chunks, found = store.size(), store.term_counts(terms)
        counts = {term: found.get(term, 0) for term in terms}
        weights = {term: math.log(1 + (chunks - n + 0.5) / (n + 0.5)) for term, n in counts.items()}
        return cls(weights, counts, round(chunks * common_share(chunks)))

    @property
    def known(self) -> list[str]:
        """The terms that some chunk has."""
        return [term for term, count in self.counts.items() if count]

    @property
    def telling(self) -> list[str]:
        """The terms that some chunks have, and not very many."""
        return [term for term in self.known if self.counts[term] <= self.common]

    def share(self, terms: Iterable[str]) -> float:
        """The share of what is wanted that some terms are; 1 if nothing can be told from terms."""
        total = sum(self.weights.values())
        return sum(self.weights.get(term, 0.0) for term in terms) / total if total else 1.0

    def share_of(self, terms: Iterable[str], wanted: Sequence[str]) -> float:
        """The share of some of the wanted terms that others are."""
        found, total = set(terms), sum(self.weights[term] for term in wanted)
        return sum(self.weights[term] for term in wanted if term in found) / total if total else 0.0


class Ranking:
    """What the ranking of one query needs to know of the library."""

    def __init__(self, store: Store, asked: Query, filters: Filters) -> None:
        self.store, self.asked, self.filters = store, asked, filters
        self.wanted = QueryTerms.of(store, asked)
        self._terms: dict[int, set[str]] = {}  # of chunks
        self._said: dict[int, frozenset[str]] = {}  # of links to chunks
        self._whole: dict[int, float] = {}  # what documents have beyond what any chunk has

    def with_far_apart(self, words: list[Hit], limit: int) -> list[Hit]:
        """Hits by words, with the best of documents that have more of the words than any chunk has."""
        telling = self.wanted.telling
        if len(telling) < 2 or self.asked.demanded:
            return words
        best = max(self._shares(telling, words), default=1.0)
        if best >= 1:
            return words
        documents = self._documents(telling)
        self._whole = {row: share - best for row, share in documents.items() if share > best}
        there = {hit.document for hit in words}
        more = sorted((-share, row) for row, share in self._whole.items() if row not in there)
        if not more:
            return words
        within = replace(self.filters, documents=tuple(row for _, row in more[:_FAR_APART]))
        return [*words, *self.store.search_words(self.asked, within, limit)]

    def with_near_documents(
        self, model: Model, vector: Vectors, near: list[Hit], settings: SearchSettings
    ) -> list[Hit]:
        """Hits by meaning, with the best of documents that are nearer as a whole than any chunk is."""
        best = near[0].meaning if near else settings.min_cosine
        found = self.store.search_documents(model, vector, self.filters, settings.limit)
        nearer = {row: cosine - best for row, cosine in found if cosine > best}
        self._whole |= {row: self._whole.get(row, 0.0) + more for row, more in nearer.items()}
        there = {hit.document for hit in near}
        rows = [row for row in nearer if row not in there][:_FAR_APART]
        within = replace(self.filters, documents=tuple(rows))
        return [*near, *self.store.search_vectors(model, vector, within, settings.limit)] if rows else near

    def _shares(self, terms: Sequence[str], hits: Sequence[Hit]) -> list[float]:
        """The share of some terms that each of the first hits has. More are read, for what is asked next."""
        return [self.wanted.share_of(found, terms) for found in self._read_terms(hits[:_READ])[:_FIRST]]

    def _documents(self, terms: Sequence[str]) -> dict[int, float]:
        """The share of some terms that each document has."""
        having: dict[int, set[str]] = {}
        for term, documents in self.store.documents_with(terms, self.filters).items():
            for document in documents:
                having.setdefault(document, set()).add(term)
        return {document: self.wanted.share_of(found, terms) for document, found in having.items()}

    def _read_terms(self, hits: Sequence[Hit]) -> list[set[str]]:
        """The wanted terms that hits have."""
        new = [hit.chunk for hit in hits if hit.chunk not in self._terms]
        self._terms |= {chunk: set() for chunk in new}
        for term, chunks in self.store.chunks_with(self.wanted.known, new).items() if new else ():
            for chunk in chunks:
                self._terms[chunk].add(term)
        return [self._terms[hit.chunk] | self._said.get(hit.chunk, frozenset()) for hit in hits]

    def judged(self, hits: Sequence[Hit]) -> list[Hit]:
        """Hits with what their headings or their words, and their documents add, best first."""
        found = self._by_words(hits) if is_question(self.asked.text) else self._by_headings(hits)
        return sorted(found, key=lambda hit: (-hit.score, hit.chunk))

    def by_meaning(self, hits: Sequence[Hit]) -> list[Hit]:
        """Hits that score their cosine, and a little for the query's words that they have, best first.

        The share of the words is squared: a few shared words tell little of a short text, a name tells all.
        """
        found = list[Hit]()
        for hit in self.told(hits):
            whole = self._whole.get(hit.document, 0.0)
            score = max(hit.meaning, 0.0) + COVERS * hit.covers**2 + WHOLE * whole
            found.append(hit.judged(score, hit.covers, 0.0, whole))
        return sorted(found, key=lambda hit: (-hit.score, hit.chunk))

    def with_anchors(self, hits: list[Hit]) -> list[Hit]:
        """Hits with what the texts of links to their sections add, and with such sections, best first."""
        terms = [term for term in analyze.terms(self.asked.words) if term in self.wanted.weights]
        asked = self.store, terms, hits, self.filters, self._heading
        led = destinations(*asked) if terms and ANCHOR else {}
        if not led:
            return hits
        chunks = self.store.first_chunks(led)
        told = {chunks[place]: anchor for place, anchor in led.items() if place in chunks}
        self._said = {chunk: frozenset(anchor.text.split()) for (chunk, _), anchor in told.items()}
        named = {chunk for (chunk, _), anchor in told.items() if anchor.is_name}
        found = [self._anchored(hit, told.pop((hit.chunk, hit.section), None)) for hit in hits]
        found += self._led_to(told)
        found = _with_named(found, named) if named else found
        return sorted(found, key=lambda hit: (-hit.score, hit.chunk))

    def _anchored(self, hit: Hit, anchor: LinkText | None) -> Hit:
        return hit.scoring(hit.score + ANCHOR * anchor.share) if anchor else hit

    def _led_to(self, told: Mapping[tuple[int, int], LinkText]) -> Iterator[Hit]:
        """Hits that only links lead to, within the filters. What must be in a text is not looked for."""
        if self.asked.demanded or self.asked.left_out:
            return
        within = self._within({chunk // MAX_CHUNKS for chunk, _ in told})
        for (chunk, section), anchor in told.items():
            if chunk // MAX_CHUNKS in within:
                yield Hit(chunk, chunk // MAX_CHUNKS, section, ANCHOR * anchor.share)

    def _within(self, rows: set[int]) -> set[int]:
        """Those of the documents that the filters allow."""
        if not rows or self.filters == Filters():
            return rows
        return {row.seq for row in self.store.documents(replace(self.filters, documents=tuple(rows)))}

    def _by_words(self, hits: Sequence[Hit]) -> Iterator[Hit]:
        """Hits with what their words add. Only good ones are looked at: others would not become the best."""
        best = sorted(hits, key=lambda hit: (-hit.score, hit.chunk))
        read = _READ if len(self.wanted.weights) <= _SHORT else 0
        for hit in [*self.told(best[:read]), *best[read:]]:
            whole = self._whole.get(hit.document, 0.0)
            yield hit.judged(hit.score + COVERED * hit.covers + WHOLE * whole, hit.covers, 0.0, whole)

    def _by_headings(self, hits: Sequence[Hit]) -> Iterator[Hit]:
        titles = self.store.titles({(hit.document, hit.section) for hit in hits})
        for hit in hits:
            heading = self._heading(_terms_of(titles[hit.document, hit.section]))
            whole = self._whole.get(hit.document, 0.0)
            yield hit.judged(hit.score + HEADING * heading + WHOLE * whole, hit.covers, heading, whole)

    def titled(self, sections: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
        """Those of the sections whose titles have a word of the query."""
        titles = self.store.titles(sections)
        return {key for key, title in titles.items() if _terms_of(title) & self.wanted.weights.keys()}

    def told(self, hits: Sequence[Hit]) -> list[Hit]:
        """Hits with the share of the query's words that each has, in the same order."""
        shares = map(self.wanted.share, self._read_terms(hits))
        found = zip(hits, shares, strict=True)
        return [hit.judged(hit.score, share, hit.heading, hit.whole) for hit, share in found]

    def told_of(self, results: Sequence[Merged]) -> list[Merged]:
        """Results with the share of the query's words that each of their hits has."""
        self._read_terms([hit for found in results for hit in found.hits])
        return [replace(found, hits=tuple(self.told(found.hits))) for found in results]

    def _heading(self, terms: frozenset[str]) -> float:
        """How much of a heading is asked for, if it is a good part of what is asked."""
        asked_for = terms & self.wanted.weights.keys()
        share = len(asked_for) / len(terms) if terms else 0.0
        return share * min(1.0, _ENOUGH * self.wanted.share(asked_for))


def _with_named(hits: Sequence[Hit], named: set[int]) -> list[Hit]:
    """Hits of which those that a query names score more than the second best of other documents.

    What many documents call so is what is asked for; those that link to it only mention it.
    """
    own, best = {hit.document for hit in hits if hit.chunk in named}, dict[int, float]()
    for hit in hits:
        if hit.document not in own:
            best[hit.document] = max(hit.score, best.get(hit.document, hit.score))
    floor = NAMED * min(sorted(best.values(), reverse=True)[:2], default=0.0)
    return [hit.scoring(max(hit.score, floor)) if hit.chunk in named else hit for hit in hits]


@lru_cache(maxsize=20_000)
def _terms_of(title: str) -> frozenset[str]:
    return frozenset(analyze.terms(title)) - analyze.STOP
