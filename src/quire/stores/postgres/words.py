"""The keyword index of a PostgreSQL library: the terms of chunks as numbers, ranked by BM25.

Input: the terms of chunks. Output: chunks with the scores that SQLite's bm25() gives them. The server
scores the chunks that may be among the best, and keeps these; Quire rescores them, with phrases. Always: no
chunk that scores more is missed; filters and scope apply before the limit; writing is part of the store's
transaction.

How a row holds them is in terms.py, how it is searched for phrases in phrases.py, and which chunks may be
among the best in layers.py: a first statement scores some that have the rarest words or have words often; a
second one those that may score more than the last of them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from quire import analyze
from quire.address import ALL_BRANCHES
from quire.query import Query
from quire.result import Hit
from quire.stores import matching
from quire.stores.filters import Filters
from quire.stores.matching import PAIRS, Phrase, WordQuery
from quire.stores.postgres import layers
from quire.stores.postgres.database import (
    CHUNK_ID,
    CHUNKS_BY_ID,
    Connection,
    PostgresDatabase,
    PostgresPart,
    numbers_of,
    split_ids,
)
from quire.stores.postgres.filters import conditions
from quire.stores.postgres.phrases import Phrases
from quire.stores.postgres.terms import K1, LEAST_KEY, LEVEL_COUNT, SIGNS, B, key, number
from quire.stores.rows import MAX_CHUNKS

COUNTED = 2000  # chunks of a library up to which each term is counted; then those that few chunks have
AT_ONCE = 1000  # chunks that are scored without choosing among them
RESCORED_CHUNKS = 1000  # the best by their words, where phrases must be scored here
SAMPLE = 50_000  # chunks in which terms are counted that are too many to count
IN_SAMPLE = 100  # of its chunks have a term that is counted there alone
COMMON_FROM = 2000  # chunks of a library in which common terms are counted

_NO_WEIGHT = 1e-6  # of a term in more than half of the chunks
# The row of a table for each of the best chunks, one by one: the server might rather read the whole table.
_BESIDE = (
    "LATERAL (SELECT * FROM quire.{0} AS {1} WHERE ({1}.document, {1}.index) = (best.document, best.index)"
    " AND {2} OFFSET 0) AS {1} ON true"
)
_ALL: Mapping[Phrase, int] = {}  # all levels of all words
_COUNTING = 0x51756973  # the holder of this lock counts common terms


# ------------------------------------------------------------------------------------------ searching


@dataclass(slots=True)
class _Known:
    """The counts of one version of a library."""

    version: str
    chunks: int
    average: float  # terms of a chunk
    shares: dict[str, list[float]]  # of common terms, on each level, in what share of the chunks they are
    found: dict[Phrase, float]  # in how many chunks

    def idf(self, phrase: Phrase) -> float:
        """The inverse document frequency of a phrase."""
        count = self.found[phrase]
        return max(math.log((self.chunks - count + 0.5) / (count + 0.5)), _NO_WEIGHT)

    def layered(self, phrase: Phrase, weight: float) -> layers.Word:
        """A phrase with what it adds and how many chunks have it, on each level."""
        chunks = self.found[phrase]
        if not phrase.is_word:
            return layers.Word((), (chunks,))
        shares = self.shares.get(phrase.terms[0])
        spread = [share / sum(shares) for share in shares] if shares else layers.USUAL_SHARES
        return layers.word(weight, spread, chunks, self.average)


@dataclass(frozen=True, slots=True, order=True)
class Candidate:
    """A chunk that matches."""

    document: int
    index: int
    section: int
    size: int  # terms
    score: float  # by its words, but for a factor
    terms: bytes  # as the server sends them; b"" where they are not needed
    places: str
    counts: tuple[float, ...]  # of each word, the lightest last; () where the places tell it


class Bm25:
    """The keyword index of one open library."""

    def __init__(self, db: PostgresDatabase) -> None:
        self.db = db
        self.phrases = Phrases(db)
        self._known = _Known("", 0, 0.0, {}, {})

    def makers(self) -> frozenset[str]:
        """The fingerprints of the analyzers that made the terms, each found by a step along the index.

        Documents without one are older: Quire assumes that this analyzer made their terms.
        """
        statement = (
            "WITH RECURSIVE makers (name) AS (SELECT min(terms) FROM quire.documents UNION ALL"
            " SELECT (SELECT min(terms) FROM quire.documents WHERE terms > name) FROM makers"
            " WHERE name IS NOT NULL) SELECT name FROM makers WHERE name IS NOT NULL"
        )
        found = self.db.once("makers", lambda: [row[0] for row in self.db.rows(statement)])
        return frozenset(maker or analyze.fingerprint() for maker in found)

    def search(self, query: Query, filters: Filters, limit: int) -> list[tuple[Candidate, float]]:
        """The best chunks and their scores."""
        self._renew()
        loose = bool(self.makers() - {analyze.fingerprint()})
        match = matching.word_query(query, analyze.STOP, loose=loose)
        if not match:
            return []
        pairs = matching.pairs(query)
        self._count([*match.ranking, *(Phrase((term,)) for pair in pairs for term in pair.terms)])
        found = self._best(match, pairs, filters, limit)
        words, together = self._weights(match.ranking), self._pair_weights(pairs)
        scored = [(row, self._score(words, together, row)) for row in found]
        scored.sort(key=lambda item: (-item[1], item[0]))
        return scored[:limit]

    def _best(
        self, match: WordQuery, pairs: Sequence[Phrase], filters: Filters, limit: int
    ) -> list[Candidate]:
        """The best chunks. Those that cannot be among them are not looked up."""
        wanted = limit if all(phrase.is_word for phrase in match.ranking) else max(limit, RESCORED_CHUNKS)
        # A word that no chunk has adds to no score.
        weights = {p: idf if self._known.found[p] else 0.0 for p, idf in self._weights(match.ranking)}
        words = [self._known.layered(phrase, weights[phrase]) for phrase in match.rare]
        others = sum(idf for phrase, idf in weights.items() if phrase not in match.rare)

        def ranked(least: Sequence[int]) -> list[Candidate]:
            levels = dict(zip(match.rare, least, strict=True))
            return self._ranked(match, levels, pairs, filters, wanted)

        enough = max(AT_ONCE, 4 * wanted)
        found = ranked(least := layers.probe(words, enough))
        while len(found) < wanted and any(least):
            enough *= 8
            found = ranked(least := layers.probe(words, enough))
        needed = layers.least_levels(words, found[-1].score - others) if any(least) else least
        return found if layers.suffices(least, needed) else ranked(needed)

    def _ranking(self, match: WordQuery) -> list[tuple[Phrase, float]]:
        """The phrases that tell chunks apart, and their weights. Words in most do if there are no others."""
        weights = self._weights(match.ranking)
        return [(phrase, idf) for phrase, idf in weights if idf > _NO_WEIGHT] or weights

    def allowed(self, query: Query, chunks: Iterable[int]) -> set[int]:
        """Those of the chunks that have everything a query requires, and nothing that it excludes."""
        groups = [matching.whole(terms) for terms in query.demanded]
        without, ids = matching.whole(query.left_out), list(chunks)
        if not all(groups):  # a phrase without terms matches nothing
            return set()
        has = self.phrases.has
        wanted = [has(*group) for group in groups] + [f"NOT {has(*without)}"] * bool(without)
        if not wanted:
            return set(ids)
        rows = self.db.rows(
            f"SELECT {CHUNK_ID} FROM {CHUNKS_BY_ID}"
            f" JOIN quire.words AS w USING (document, index) WHERE {' AND '.join(wanted)}",
            split_ids(ids),
        )
        return {row[0] for row in rows}

    def size(self) -> int:
        """How many chunks there are."""
        self._renew()
        return self._known.chunks

    def chunks_with(self, terms: Sequence[str], chunks: Sequence[int]) -> dict[str, set[int]]:
        """Those of the chunks that have each term."""
        if not terms or not chunks:
            return {}
        has = ", ".join(self.phrases.has(Phrase((term,))) for term in terms)
        rows = self.db.rows(
            f"SELECT {CHUNK_ID}, {has} FROM {CHUNKS_BY_ID} JOIN quire.words AS w USING (document, index)",
            split_ids(chunks),
        )
        return {term: {row[0] for row in rows if row[at]} for at, term in enumerate(terms, 1)}

    def documents_with(self, terms: Sequence[str], filters: Filters) -> dict[str, set[int]]:
        """The documents that have each term."""
        where, args = conditions(_without_signs(filters))
        among = f" AND w.document IN (SELECT d.seq FROM quire.documents AS d WHERE {where})" if where else ""
        found: dict[str, set[int]] = {}
        for term in terms:
            matching_rows = self._matching(WordQuery((), (Phrase((term,)),), (), ()), filters)
            rows = self.db.rows(f"SELECT DISTINCT w.document FROM {matching_rows}{among}", args)
            found[term] = {row[0] for row in rows}
        return found

    def _renew(self) -> None:
        """Drop the counts of an older version of the library."""
        version = self.db.version()
        if self._known.version == version:
            return
        chunks, terms = self.db.rows("SELECT sum(chunk_count), sum(term_count) FROM quire.documents")[0]
        average = float(terms or 0) / (chunks or 1) or 1.0
        self._known = _Known(version, int(chunks or 0), average, {}, {})

    def _load_shares(self, terms: Collection[str]) -> None:
        """Load the stored shares of terms. In a scope there are none: they are of all collections."""
        if self.db.is_scoped or self._known.chunks <= COUNTED or not terms:
            return
        keys = {key(number(term), level): (term, level) for term in terms for level in range(LEVEL_COUNT)}
        statement = "SELECT number, share FROM quire.common_terms WHERE number = ANY (%s)"
        for one, share in self.db.rows(statement, [list(keys)]):
            term, level = keys[one]
            self._known.shares.setdefault(term, [0.0] * LEVEL_COUNT)[level] = float(share)

    def _count(self, phrases: Iterable[Phrase]) -> None:
        """Count the chunks that phrases are in."""
        known = self._known
        new = [phrase for phrase in dict.fromkeys(phrases) if phrase not in known.found]
        self._load_shares({phrase.terms[0] for phrase in new if phrase.is_word})
        shares = {p: known.shares.get(p.terms[0]) for p in new if p.is_word}
        kept = {phrase: sum(share) for phrase, share in shares.items() if share}
        few = [phrase for phrase in new if phrase not in kept]
        known.found |= {phrase: share * known.chunks for phrase, share in kept.items()}
        if few:
            counts = [f"(SELECT count(*) FROM {self.phrases.rows_with([phrase])})" for phrase in few]
            row = self.db.rows(f"SELECT {', '.join(counts)}")[0]
            known.found |= zip(few, map(float, row), strict=True)

    def counts(self, terms: Collection[str]) -> dict[str, int]:
        """In how many chunks terms are, up to COUNTED. Terms in none are left out."""
        if len(terms) <= 64:  # as a query has them: the search will need their counts
            self._renew()
            self._count(words := [Phrase((term,)) for term in terms])
            return {word.terms[0]: int(n) for word in words if (n := self._known.found[word])}
        terms = self._spelled(terms)
        either = f"ARRAY[{', '.join(f'a.key + {level}' for level in range(LEVEL_COUNT))}]"
        found = f"quire.matches({either})" if self.db.is_scoped else f"quire.words WHERE terms && {either}"
        each = (
            f"SELECT a.term, (SELECT count(*) FROM (SELECT FROM {found} LIMIT {COUNTED}) AS hits)"
            " FROM unnest(%s::text[], %s::integer[]) AS a (term, key)"
        )
        rows = self.db.rows(each, [terms, [key(number(term)) for term in terms]]) if terms else []
        return {term: count for term, count in rows if count}

    def _spelled(self, terms: Collection[str]) -> list[str]:
        """Those of many terms that the vocabulary has, which is a step along its index for each."""
        statement = "SELECT DISTINCT term FROM quire.vocabulary WHERE term = ANY (%s)"
        return [row[0] for row in self.db.rows(statement, [list(terms)])]

    def _matching(self, match: WordQuery, filters: Filters, least: Mapping[Phrase, int] = _ALL) -> str:
        """The rows `w` of words that match a query within a collection and kinds, and WHERE."""
        rare = tuple(phrase for phrase in match.rare if least.get(phrase, 0) < LEVEL_COUNT)
        groups = [group for group in (*match.needed, rare) if group]
        if not groups:
            return "quire.words AS w WHERE false"
        signs = [[f"@{filters.collection}"]] if _has_sign(filters.collection) else []
        signs += [[f"!{kind}" for kind in filters.kinds]] if filters.kinds else []
        groups += [tuple(Phrase((sign,)) for sign in some) for some in signs]
        must = [self.phrases.rows_with(groups[0], least), *map(self.phrases.any_of, groups[1:])]
        return " AND ".join(must + [f"NOT {self.phrases.has(*match.without)}"] * bool(match.without))

    def _weights(self, phrases: Iterable[Phrase]) -> list[tuple[Phrase, float]]:
        """Phrases and their weights, the lightest last."""
        return sorted(((p, self._known.idf(p)) for p in phrases), key=lambda item: -item[1])

    def _pair_weights(self, pairs: Iterable[Phrase]) -> list[tuple[Phrase, float]]:
        """Pairs with the weights of their rarer words."""
        return [(pair, max(self._known.idf(Phrase((term,))) for term in pair.terms)) for pair in pairs]

    def _ranked(
        self,
        match: WordQuery,
        least: Mapping[Phrase, int],
        pairs: Sequence[Phrase],
        filters: Filters,
        limit: int,
    ) -> list[Candidate]:
        """The best of the chunks that match a query with rare words from these levels on."""
        ranking, weights = self._ranking(match), self._weights(match.ranking)
        exact = all(phrase.is_word for phrase in match.ranking)
        light = [phrase for phrase, _ in weights[len(ranking) :]] if exact else []
        told = [f"f{n}" for n in range(len(ranking))] if exact else []
        shown = ["array_send(w.terms)", "w.places", *told, *map(self.phrases.frequency, light)]
        needed = self.phrases.has(*pairs) if exact and not light else "true"  # what only the places tell
        scored, args = self._scored(ranking, self._matching(match, filters, least), filters)
        sql = (
            f"SELECT best.document, best.index, c.section, best.size, best.score, {', '.join(shown)}"
            f" FROM ({scored} ORDER BY score DESC, document, index LIMIT %s"
            f") AS best JOIN {_BESIDE.format('chunks', 'c', 'true')}"
            f" LEFT JOIN {_BESIDE.format('words', 'w', needed)} ORDER BY score DESC, document, index"
        )
        return [
            Candidate(document, index, section, size, score, terms or b"", places or "", tuple(counts))
            for document, index, section, size, score, terms, places, *counts in self.db.rows(
                sql, [*args, limit]
            )
        ]

    def _scored(
        self, ranking: Sequence[tuple[Phrase, float]], matching_rows: str, filters: Filters
    ) -> tuple[str, list[Any]]:
        """A statement of rows with their scores. Each of its steps computes once what the next one uses."""
        where, args = conditions(_without_signs(filters))
        among = f" AND w.document IN (SELECT d.seq FROM quire.documents AS d WHERE {where})" if where else ""
        words = {n: phrase for n, (phrase, _) in enumerate(ranking) if phrase.is_word}
        places = "".join(f", {self.phrases.bucket(phrase)} AS b{n}" for n, phrase in words.items())
        counts = (
            f"{self.phrases.frequency(phrase, f'w.b{n}' if n in words else '')} AS f{n}"
            for n, (phrase, _) in enumerate(ranking)
        )
        # Without the types these would be numerics, which are slow.
        k = f"{K1 * (1 - B)!r}::float8 + {K1 * B / self._known.average!r}::float8 * w.size AS k"
        score = " + ".join(f"{idf!r}::float8 * f{n} / (f{n} + k)" for n, (_, idf) in enumerate(ranking))
        found = f"SELECT w.*{places} FROM {matching_rows}{among} OFFSET 0"
        counted = (
            f"SELECT {', '.join([*counts, k])}, w.document, w.index, w.size FROM ({found}) AS w OFFSET 0"
        )
        return f"SELECT *, {score} AS score FROM ({counted}) AS found", args

    def _score(
        self, words: list[tuple[Phrase, float]], pairs: list[tuple[Phrase, float]], row: Candidate
    ) -> float:
        """BM25 as SQLite computes it, and a bonus for words that are next to each other."""
        k = K1 * (1 - B + B * row.size / self._known.average)
        terms = numbers_of(row.terms)

        def sum_of(weights: list[tuple[Phrase, float]], counts: tuple[float, ...] = ()) -> float:
            counted = counts or [self.phrases.count(phrase, terms, row.places) for phrase, _ in weights]
            due = (idf * n / (n + k) for (_, idf), n in zip(weights, counted, strict=True))
            return (K1 + 1) * sum(due)

        return sum_of(words, row.counts) + (PAIRS * sum_of(pairs) if row.places else 0.0)

    # ------------------------------------------------------------------------------ common terms

    def grown(self, db: Connection) -> None:
        """Count again which terms are common, whenever the number of written chunks has grown by half."""
        row = db.execute(
            "SELECT (SELECT sum(chunks) FROM quire.writes),"
            " (SELECT value::bigint FROM quire.facts WHERE name = 'common_at'),"
            " (SELECT sum(chunk_count) FROM quire.documents)"
        ).fetchone()
        written, counted, chunks = row or (0, 0, 0)
        if self.db.is_scoped or written < COMMON_FROM or written < 1.5 * float(counted):
            return
        if db.execute("SELECT pg_try_advisory_xact_lock(%s)", (_COUNTING,)).fetchone() == (True,):
            count_common(db, int(chunks))
            db.execute("UPDATE quire.facts SET value = %s WHERE name = 'common_at'", (str(written),))


def _has_sign(collection: str | None) -> bool:
    """Whether all chunks of what is named as a collection have a sign of it."""
    return collection is not None and not collection.endswith(ALL_BRANCHES)


def _without_signs(filters: Filters) -> Filters:
    """The filters that no sign tells of."""
    collection = None if _has_sign(filters.collection) else filters.collection
    return replace(filters, collection=collection, kinds=())


def count_common(db: Connection, chunks: int) -> None:
    """Store in what share of the chunks terms are that are in many, for each of their keys."""
    sample = f"TABLESAMPLE SYSTEM ({100 * SAMPLE / chunks}) REPEATABLE (1)" if chunks > SAMPLE else ""
    db.execute("DELETE FROM quire.common_terms")
    db.execute(
        f"WITH sampled AS MATERIALIZED (SELECT terms FROM quire.words {sample}),"
        " counted AS (SELECT key, count(*)::float8 AS chunks FROM sampled, unnest(terms) AS key"
        " WHERE key < %s GROUP BY 1),"
        " summed AS (SELECT *, sum(chunks) OVER (PARTITION BY (key - %s::bigint) / %s) AS of_term"
        " FROM counted),"
        " total AS (SELECT count(*) AS chunks FROM sampled)"
        " INSERT INTO quire.common_terms SELECT key, summed.chunks / total.chunks FROM summed, total"
        " WHERE of_term > %s",
        (SIGNS, LEAST_KEY, LEVEL_COUNT, IN_SAMPLE),
    )


# ------------------------------------------------------------------------------------------ the store


class PostgresWords(PostgresPart):
    """Search by words in a PostgreSQL library."""

    def __init__(self, db: PostgresDatabase) -> None:
        super().__init__(db)
        self.words = Bm25(db)

    def word_makers(self) -> frozenset[str]:
        """The fingerprints of the analyzers that made the terms."""
        return self.words.makers()

    def search_words(self, query: Query, filters: Filters, limit: int) -> list[Hit]:
        """The chunks that match a query's words, best first."""
        with self.db.reading():
            found = self.words.search(query, filters, limit)
        return [
            Hit(row.document * MAX_CHUNKS + row.index, row.document, row.section, score)
            for row, score in found
        ]

    def size(self) -> int:
        """How many chunks there are."""
        with self.db.reading():
            return self.words.size()

    def term_counts(self, terms: Collection[str]) -> dict[str, int]:
        """In how many chunks of the library terms are. Terms in none are left out."""
        return self.words.counts(terms)

    def chunks_with(self, terms: Sequence[str], chunks: Sequence[int]) -> dict[str, set[int]]:
        """Those of the chunks that have each term."""
        return self.words.chunks_with(terms, chunks)

    def documents_with(self, terms: Sequence[str], filters: Filters) -> dict[str, set[int]]:
        """The documents that have each term."""
        with self.db.reading():
            return self.words.documents_with(terms, filters)

    def allowed(self, query: Query, chunks: Iterable[int]) -> set[int]:
        """Those of the chunks that have everything a query requires, and nothing that it excludes."""
        return self.words.allowed(query, chunks)
