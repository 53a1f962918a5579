"""Search by words in a SQLite library.

Input: queries. Output: chunks with scores. What is written, is part of the store's transactions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from quire import analyze
from quire.query import Query
from quire.result import Hit
from quire.stores import matching
from quire.stores.filters import Filters
from quire.stores.matching import PAIRS, Phrase, WordQuery
from quire.stores.sqlite import bm25
from quire.stores.sqlite.bm25 import Postings
from quire.stores.sqlite.indexing import IndexWriter
from quire.stores.sqlite.orders import Orders
from quire.stores.sqlite.postings import PostingReader, Snapshot
from quire.stores.sqlite.segments import HEADING, TRAIL
from quire.stores.sqlite.within import SqliteWithin

if TYPE_CHECKING:
    from numpy import int64
    from numpy.typing import NDArray

_FEW = 64  # terms whose chunks are read: those of a query are needed next
_READ = 20_000  # chunks that are read for a phrase at most, those with most of its words first
_PLACES = {(0,): (HEADING,), (0, 1): (HEADING, TRAIL)}  # what is behind a term in these columns alone


class Keywords:
    """Questions to the keyword index at one time."""

    def __init__(self, tables: PostingReader, snapshot: Snapshot) -> None:
        self._tables, self._at = tables, snapshot

    @property
    def size(self) -> int:
        """How many chunks there are."""
        return self._at.count

    def best(self, match: WordQuery, documents: Sequence[int] | None, limit: int) -> dict[int, float]:
        """The best chunks of some documents, or of all, and their scores."""
        required = self._required(match, documents)
        groups = match.needed or (match.rare,)
        deciding = [self._having(phrase) for group in groups for phrase in group]
        others = [self._having(phrase) for phrase in match.others]
        places, scores = bm25.best(deciding, others, self._at.lengths, self._at.count, limit, required)
        order = sorted(zip((-scores).tolist(), self._at.chunks[places].tolist(), strict=True))[:limit]
        return {chunk: -score for score, chunk in order}

    def _required(self, match: WordQuery, documents: Sequence[int] | None) -> NDArray[Any] | None:
        """Which chunks may be found; None for all."""
        allowed = [] if documents is None else [self._of(documents)]
        if len(match.needed) > 1:  # one group decides by itself
            allowed += [self._any(group) for group in match.needed]
        if match.without:
            allowed.append(~self._any(match.without))
        return reduce(lambda a, b: a & b, allowed) if allowed else None

    def _of(self, documents: Sequence[int]) -> NDArray[Any]:
        """Which chunks are of some documents."""
        import numpy as np

        own, wanted = self._at.documents, np.array(documents, np.int64)
        flags = np.zeros(max(int(own.max(initial=0)), int(wanted.max(initial=0))) + 1, bool)
        flags[wanted] = True
        return flags[own]

    def _any(self, phrases: Iterable[Phrase]) -> NDArray[Any]:
        """Which chunks have one of some phrases."""
        import numpy as np

        found = np.zeros(len(self._at.chunks), bool)
        for phrase in phrases:
            found[self._having(phrase).places] = True
        return found

    def _having(self, phrase: Phrase, among: NDArray[int64] | None = None) -> Postings:
        """The chunks that have a phrase, of some places or of all."""
        if len(phrase.terms) > 1:
            return self._in_a_row(phrase, among)
        endings = _PLACES.get(phrase.columns, ("",))
        read = self._tables.beginning if phrase.prefix else _plain(self._tables)
        found = _union([read(phrase.terms[0], ending) for ending in endings])
        return found if among is None else _among(found, among)

    def _in_a_row(self, phrase: Phrase, among: NDArray[int64] | None) -> Postings:
        """The chunks in which terms follow each other: if very many have the terms, of those with most."""
        import numpy as np

        lists = sorted((self._tables.having(term) for term in set(phrase.terms)), key=lambda one: one.chunks)
        places = lists[0].places if among is None else among
        for one in lists:
            places = places[one.at(places) > 0]
        total = len(places)
        if total > _READ:
            weights = np.minimum.reduce([one.at(places) for one in lists])
            places = np.sort(places[np.argsort(-weights, kind="stable")[:_READ]])
        weights = self._orders(places).weights(phrase.terms, phrase.columns)
        has = weights > 0
        return Postings(places[has], weights[has], round(int(has.sum()) * total / max(1, len(places))))

    def _orders(self, places: NDArray[int64]) -> Orders:
        chunks = self._at.chunks[places].tolist()
        codes = self._tables.orders_of(chunks)
        return Orders([codes.get(chunk, b"") for chunk in chunks])

    def with_pairs(self, found: dict[int, float], pairs: Sequence[Phrase]) -> dict[int, float]:
        """Scores with what chunks add in which words are adjacent as they are in the query.

        Such a pair counts as its rarer word would.
        """
        if not (pairs and found):
            return found
        places = self._at.places_of(list(found))
        texts, lengths = self._orders(places), self._at.lengths[places]
        total = 0.0 * lengths
        for pair in pairs:
            weights = texts.weights(pair.terms, pair.columns).astype("float32")
            rarer = min(self._tables.having(term).chunks for term in pair.terms)
            if rarer:
                total += PAIRS * bm25.worth(rarer, self._at.count) * weights / (weights + lengths)
        added = dict(zip(self._at.chunks[places].tolist(), total.tolist(), strict=True))
        return {chunk: score + added[chunk] for chunk, score in found.items()}

    def allowed(self, query: Query, chunks: Sequence[int]) -> set[int]:
        """Those of the chunks that have everything a query requires, and nothing that it excludes."""
        places = self._at.places_of(chunks)
        for group in query.demanded:
            places = self._those(places, matching.whole(group))
        without = set(self._those(places, matching.whole(query.left_out)).tolist())
        return {int(self._at.chunks[place]) for place in places.tolist() if place not in without}

    def _those(self, places: NDArray[int64], phrases: Sequence[Phrase]) -> NDArray[int64]:
        """Those of the places that have one of some phrases."""
        import numpy as np

        found = [self._having(phrase, places).places for phrase in phrases]
        return np.unique(np.concatenate(found)) if found else places[:0]

    def chunks_with(self, terms: Sequence[str], chunks: Sequence[int]) -> dict[str, set[int]]:
        """Those of the chunks that have each term."""
        places = self._at.places_of(chunks)
        own = self._at.chunks[places]
        return {term: set(own[self._tables.having(term).at(places) > 0].tolist()) for term in terms}

    def documents_with(self, terms: Iterable[str], documents: Sequence[int] | None) -> dict[str, set[int]]:
        """The documents, of some or of all, that have each term."""
        import numpy as np

        of, found = self._at.documents, dict[str, set[int]]()
        allowed = None if documents is None else self._of(documents)
        for term in terms:
            found[term] = set(np.unique(of[self._tables.having(term).within(allowed).places]).tolist())
        return found

    def counts(self, terms: Collection[str]) -> dict[str, int]:
        """In how many chunks terms are. Terms in none are left out."""
        if len(terms) > _FEW:
            return self._tables.counts(terms)
        found = {term: self._tables.having(term).chunks for term in terms}
        return {term: chunks for term, chunks in found.items() if chunks}


def _plain(tables: PostingReader) -> Any:
    return lambda term, ending: tables.having(term + ending)


def _union(found: Sequence[Postings]) -> Postings:
    """The chunks that have one of some terms."""
    import numpy as np

    if len(found) == 1:
        return found[0]
    every = np.concatenate([one.places for one in found])
    places, back = np.unique(every, return_inverse=True)
    weights = np.bincount(back, np.concatenate([one.weights for one in found]), minlength=len(places))
    return Postings(places, weights)


def _among(found: Postings, places: NDArray[int64]) -> Postings:
    weights = found.at(places)
    has = weights > 0
    return Postings(places[has], weights[has], found.chunks)


class SqliteWords(SqliteWithin):
    """Search by words in a SQLite library."""

    def _forget(self) -> None:
        super()._forget()
        self._postings, self._index = PostingReader(self._db), IndexWriter(self._db)

    @property
    def index(self) -> IndexWriter:
        """The keyword index of the file that is at the path now, to be written."""
        self._look()
        return self._index

    def _keywords(self) -> Keywords:
        """The index as it is now; inside a transaction that reads."""
        tables = self._postings
        return Keywords(tables, tables.snapshot(self.generation()))

    def _made_by(self) -> str:
        """The fingerprint of the analyzer that made the terms."""
        return str(self._value("SELECT value FROM facts WHERE name = 'terms'"))

    def word_makers(self) -> frozenset[str]:
        """The fingerprints of the analyzers that made the terms."""
        return frozenset({self._made_by()})

    def search_words(self, query: Query, filters: Filters, limit: int) -> list[Hit]:
        """The chunks that match a query's words, best first."""
        match = matching.word_query(query, analyze.STOP, loose=self._made_by() != analyze.fingerprint())
        with self.reading():
            keywords = self._keywords()
            scores = keywords.best(match, self._within(filters), limit) if match else {}
            scores = keywords.with_pairs(scores, matching.pairs(query))
            held = self._in("SELECT id, document, section FROM chunks WHERE id", scores)
            sections = {row[0]: row[1:] for row in held}
        best = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
        return [Hit(chunk, sections[chunk][0], sections[chunk][1], score) for chunk, score in best]

    def size(self) -> int:
        """How many chunks there are."""
        with self.reading():
            return self._keywords().size

    def term_counts(self, terms: Collection[str]) -> dict[str, int]:
        """In how many chunks of the library terms are. Terms in none are left out."""
        with self.reading():
            return self._keywords().counts(terms)

    def chunks_with(self, terms: Sequence[str], chunks: Sequence[int]) -> dict[str, set[int]]:
        """Those of the chunks that have each term."""
        with self.reading():
            return self._keywords().chunks_with(terms, chunks)

    def documents_with(self, terms: Sequence[str], filters: Filters) -> dict[str, set[int]]:
        """The documents that have each term."""
        with self.reading():
            return self._keywords().documents_with(terms, self._within(filters))

    def allowed(self, query: Query, chunks: Iterable[int]) -> set[int]:
        """Those of the chunks that have everything a query requires, and nothing that it excludes."""
        with self.reading():
            return self._keywords().allowed(query, list(chunks))
