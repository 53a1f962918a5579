"""The keyword index of a PostgreSQL library: the terms of chunks in tsvectors, ranked by BM25.

Input: the terms of chunks. Output: chunks with the scores that SQLite's bm25() gives them. The server
scores every chunk that matches, and keeps the best; Quire rescores these, with phrases. Always: filters and
scope apply before the limit; writing is part of the store's transaction.

How a tsvector holds them is in terms.py.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from quire import analyze
from quire.address import ALL_BRANCHES
from quire.query import Query
from quire.result import Hit
from quire.stores import matching
from quire.stores.filters import Filters
from quire.stores.matching import PAIRS, WEIGHTS, Phrase, WordQuery
from quire.stores.postgres.database import (
    CHUNK_ID,
    CHUNKS_BY_ID,
    Connection,
    PostgresDatabase,
    PostgresPart,
    split_ids,
)
from quire.stores.postgres.filters import conditions
from quire.stores.postgres.terms import sign
from quire.stores.rows import MAX_CHUNKS

CANDIDATES = 20_000  # chunks to score; in a larger library, words that would match more only rank
RESCORED_CHUNKS = 1000  # the best by their words, where phrases must be scored here
SAMPLE = 20_000  # chunks in which terms are counted that are too many to count
SAMPLE_OF_PAIRS = 5000  # chunks in which pairs are counted whose words are in more; in a larger library

_K1, _B = 1.2, 0.75
_NO_WEIGHT = 1e-6  # of a term in more than half of the chunks
_COUNTING = 0x51756973  # the holder of this lock counts common terms
_LABELS = "ABC"


# ------------------------------------------------------------------------------------------ searching


@dataclass(slots=True)
class _Known:
    """The counts of one version of a library."""

    version: str
    chunks: int
    average: float  # terms of a chunk
    common: dict[str, float]  # terms, and in what share of the chunks they are
    found: dict[Phrase, float]  # in how many chunks

    def idf(self, phrase: Phrase) -> float:
        """The inverse document frequency of a phrase."""
        count = self.found[phrase]
        return max(math.log((self.chunks - count + 0.5) / (count + 0.5)), _NO_WEIGHT)


@dataclass(frozen=True, slots=True, order=True)
class Candidate:
    """A chunk that matches."""

    document: int
    index: int
    section: int
    size: int  # terms
    terms: str  # a tsvector; "" where none of it is needed
    counts: tuple[float, ...]  # of each word, the lightest last; () where the terms tell it


class Bm25:
    """The keyword index of one open library."""

    def __init__(self, db: PostgresDatabase) -> None:
        self.db = db
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
        match = matching.word_query(query, self._common(query), loose=loose)
        if not match:
            return []
        pairs = matching.pairs(query)
        self._count([*match.ranking, *(Phrase((term,)) for pair in pairs for term in pair.terms)])
        self._count(pairs)
        found = self._best(match, pairs, filters, limit)
        if not found and match.others:  # the rare words are nowhere: then common ones match
            match = matching.word_query(query, analyze.STOP, loose=loose)
            found = self._best(match, pairs, filters, limit)
        words, together = self._weights(match.ranking), self._weights(pairs)
        scored = [(row, match.times * self._score(words, together, row)) for row in found]
        scored.sort(key=lambda item: (-item[1], item[0]))
        return scored[:limit]

    def _best(
        self, match: WordQuery, pairs: Sequence[Phrase], filters: Filters, limit: int
    ) -> list[Candidate]:
        """The best chunks, found by the fewest words that find enough."""
        found = list[Candidate]()
        for some in self._narrowed(match):
            found = self._ranked(some, match, pairs, filters, limit)
            if len(found) >= limit:
                break
        return found

    def allowed(self, query: Query, chunks: Iterable[int]) -> set[int]:
        """Those of the chunks that have everything a query requires, and nothing that it excludes."""
        groups = [matching.whole(terms) for terms in query.demanded]
        without, ids = matching.whole(query.left_out), list(chunks)
        if not all(groups):  # a phrase without terms matches nothing
            return set()
        wanted = [*map(_any, groups), *([f"!{_any(without)}"] if without else [])]
        if not wanted:
            return set(ids)
        rows = self.db.rows(
            f"SELECT {CHUNK_ID} FROM {CHUNKS_BY_ID}"
            " JOIN quire.words AS w USING (document, index) WHERE w.terms @@ %s::tsquery",
            [*split_ids(ids), " & ".join(wanted)],
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
        has = ", ".join(["w.terms @@ %s::tsquery"] * len(terms))
        rows = self.db.rows(
            f"SELECT {CHUNK_ID}, {has} FROM {CHUNKS_BY_ID} JOIN quire.words AS w USING (document, index)",
            [*(_written(Phrase((term,))) for term in terms), *split_ids(chunks)],
        )
        return {term: {row[0] for row in rows if row[at]} for at, term in enumerate(terms, 1)}

    def documents_with(self, terms: Sequence[str], filters: Filters) -> dict[str, set[int]]:
        """The documents that have each term."""
        where, args = conditions(_besides_signs(filters))
        among = f" AND w.document IN (SELECT d.seq FROM quire.documents AS d WHERE {where})" if where else ""
        found: dict[str, set[int]] = {}
        for term in terms:
            wanted = _query_of(WordQuery((), (Phrase((term,)),), (), ()), filters)
            rows = self.db.rows(f"SELECT DISTINCT w.document FROM {self._matching}{among}", [wanted, *args])
            found[term] = {row[0] for row in rows}
        return found

    def _renew(self) -> None:
        """Drop the counts of an older version of the library."""
        version = self.db.version()
        if self._known.version == version:
            return
        chunks, terms = self.db.rows("SELECT sum(chunk_count), sum(term_count) FROM quire.documents")[0]
        kept = [] if self.db.is_scoped else self.db.rows("SELECT term, share FROM quire.common_terms")
        average = float(terms or 0) / (chunks or 1) or 1.0
        common = {term: float(share) for term, share in kept}
        self._known = _Known(version, int(chunks or 0), average, common, {})

    def _common(self, query: Query) -> frozenset[str]:
        """Terms that only rank. In a scope they are counted: the stored ones are of all collections."""
        if not self.db.is_scoped:
            return analyze.STOP.union(self._known.common)
        terms = {t for group in query.groups for term in group for t in analyze.terms(term.text)}
        words = [Phrase((term,)) for term in terms]
        self._count(words)
        enough = self._known.chunks * matching.common_share(self._known.chunks)
        return analyze.STOP.union(word.terms[0] for word in words if self._known.found[word] > enough)

    def _count(self, phrases: Iterable[Phrase]) -> None:
        """Count the chunks that phrases are in."""
        known = self._known
        new = [phrase for phrase in dict.fromkeys(phrases) if phrase not in known.found]
        kept = {p: known.common[p.terms[0]] for p in new if self._is_kept(p)}
        many = [phrase for phrase in new if self._is_in_many(phrase)]
        few = [phrase for phrase in new if phrase not in kept and phrase not in many]
        known.found |= {phrase: share * known.chunks for phrase, share in kept.items()}
        if few:
            counts = [f"(SELECT count(*) FROM {self._matching})"] * len(few)
            row = self.db.rows(f"SELECT {', '.join(counts)}", [_written(phrase) for phrase in few])[0]
            known.found |= zip(few, map(float, row), strict=True)
        if many:
            counts = ["count(*) FILTER (WHERE w.terms @@ %s::tsquery)"] * len(many)
            share = min(100.0, 100 * SAMPLE_OF_PAIRS / known.chunks)
            sample = f"quire.words AS w TABLESAMPLE SYSTEM ({share}) REPEATABLE (1)"
            sql = f"SELECT count(*), {', '.join(counts)} FROM {sample}"
            size, *counted = self.db.rows(sql, [_written(phrase) for phrase in many])[0]
            # What is not in the sample may still be there.
            each = known.chunks / max(size, 1)
            known.found |= {p: (n + 0.5) * each for p, n in zip(many, counted, strict=True)}

    def counts(self, terms: Collection[str]) -> dict[str, int]:
        """In how many chunks terms are, up to CANDIDATES. Terms in none are left out."""
        if len(terms) <= 64:  # as a query has them: the search will need their counts
            self._renew()
            self._count(words := [Phrase((term,)) for term in terms])
            return {word.terms[0]: int(n) for word in words if (n := self._known.found[word])}
        terms = () if self.db.is_scoped and len(terms) > 1000 else terms  # in a scope each takes long
        hits = f"(SELECT FROM {self._matching.replace('%s::tsquery', 'q')} LIMIT {CANDIDATES}) AS hits"
        each = f"SELECT t, (SELECT count(*) FROM {hits}) FROM unnest(%s::text[], %s::tsquery[]) AS a (t, q)"
        return {t: n for t, n in self.db.rows(each, [list(terms), [f"'{t}'" for t in terms]]) if n}

    def _is_kept(self, phrase: Phrase) -> bool:
        """Whether the count of a term is stored, because counting it again would take long."""
        is_common = phrase.is_word and phrase.terms[0] in self._known.common
        return is_common and self._known.chunks > CANDIDATES

    def _is_in_many(self, phrase: Phrase) -> bool:
        """Whether so many chunks may have a phrase that it is counted in a sample."""
        words = [self._known.found.get(Phrase((term,)), 0) for term in phrase.terms]
        is_large = self._known.chunks > CANDIDATES and not self.db.is_scoped
        return is_large and len(words) > 1 and min(words) > SAMPLE_OF_PAIRS

    @property
    def _matching(self) -> str:
        """Words `w` that match a tsquery."""
        if self.db.is_scoped:
            return "quire.matches(%s::tsquery) AS w WHERE true"
        return "quire.words AS w WHERE w.terms @@ %s::tsquery"

    def _narrowed(self, match: WordQuery) -> Iterator[WordQuery]:
        """What to search for, the cheapest first. The next is used if that does not find enough."""
        if self._known.chunks > CANDIDATES and match.rare:
            words = sorted(match.rare, key=lambda word: self._known.found[word])
            counts, total = [self._known.found[word] for word in words], 0.0
            most = 0
            while most < len(words) and total + counts[most] <= CANDIDATES:
                total += counts[most]
                most += 1
            if most < len(words):
                heads = [Phrase((f"={word.terms[0]}",)) for word in words[most:] if word.is_word]
                yield WordQuery((), (*words[:most], *heads), (), match.without)
        yield match

    def _weights(self, phrases: Iterable[Phrase]) -> list[tuple[Phrase, float]]:
        """Phrases and their weights, the lightest last."""
        return sorted(((p, self._known.idf(p)) for p in phrases), key=lambda item: -item[1])

    def _ranked(
        self, wanted: WordQuery, match: WordQuery, pairs: Sequence[Phrase], filters: Filters, limit: int
    ) -> list[Candidate]:
        """The best of the chunks that match `wanted`, scored by the words of `match`."""
        weights = self._weights(match.ranking)
        ranking = [(phrase, idf) for phrase, idf in weights if idf > _NO_WEIGHT]
        counts = [f"{_frequency(phrase)} AS f{n}" for n, (phrase, _) in enumerate(ranking)]
        score = "".join(f" + {idf!r}::float8 * f{n} / (f{n} + k)" for n, (_, idf) in enumerate(ranking))
        # Without the types these would be numerics, which are slow.
        k = f"{_K1 * (1 - _B)!r}::float8 + {_K1 * _B / self._known.average!r}::float8 * w.size AS k"
        where, args = conditions(_besides_signs(filters))
        among = f" AND w.document IN (SELECT d.seq FROM quire.documents AS d WHERE {where})" if where else ""
        exact = all(phrase.is_word for phrase in match.ranking)
        terms, together = ("best.terms::text", []) if not exact else _terms_of(pairs)
        light = [phrase for phrase, _ in weights[len(ranking) :]] if exact else []
        told = [f"f{n}" for n in range(len(ranking))] if exact else []
        shown = [terms, *told, *(_frequency(phrase, "best") for phrase in light)]
        sql = (
            f"SELECT best.document, best.index, c.section, best.size, {', '.join(shown)} FROM ("
            f"SELECT *, 0{score} AS score FROM ("
            f"SELECT {', '.join([*counts, k])}, w.* FROM {self._matching}{among} OFFSET 0"
            f") AS found ORDER BY score DESC, document, index LIMIT %s"
            f") AS best JOIN quire.chunks AS c USING (document, index)"
        )
        # The queries of frequencies stand before the one that matches.
        asked = [*map(_written, light), *(_written(phrase) for phrase, _ in ranking)]
        asked = [*together, *asked, _query_of(wanted, filters)]
        rows = self.db.rows(sql, [*asked, *args, limit if exact else max(limit, RESCORED_CHUNKS)])
        return [
            Candidate(document, index, section, size, terms, tuple(counts))
            for document, index, section, size, terms, *counts in rows
        ]

    def _score(
        self, words: list[tuple[Phrase, float]], pairs: list[tuple[Phrase, float]], row: Candidate
    ) -> float:
        """BM25 as SQLite computes it, and a bonus for words that are next to each other."""
        k = _K1 * (1 - _B + _B * row.size / self._known.average)

        def sum_of(weights: list[tuple[Phrase, float]], counts: tuple[float, ...] = ()) -> float:
            counted = counts or [_count_in(row.terms, phrase) for phrase, _ in weights]
            due = (idf * n / (n + k) for (_, idf), n in zip(weights, counted, strict=True))
            return (_K1 + 1) * sum(due)

        return sum_of(words, row.counts) + (PAIRS * sum_of(pairs) if row.terms else 0.0)

    # ------------------------------------------------------------------------------ common terms

    def grown(self, db: Connection) -> None:
        """Count again which terms are common, whenever the number of written chunks has grown by half."""
        row = db.execute(
            "SELECT (SELECT sum(chunks) FROM quire.writes),"
            " (SELECT value::bigint FROM quire.facts WHERE name = 'common_at'),"
            " (SELECT sum(chunk_count) FROM quire.documents)"
        ).fetchone()
        written, counted, chunks = row or (0, 0, 0)
        if self.db.is_scoped or written < matching.COMMON_SHARES[-1][0] or written < 1.5 * float(counted):
            return
        if db.execute("SELECT pg_try_advisory_xact_lock(%s)", (_COUNTING,)).fetchone() == (True,):
            _count_common(db, int(chunks))
            db.execute("UPDATE quire.facts SET value = %s WHERE name = 'common_at'", (str(written),))


def _count_common(db: Connection, chunks: int) -> None:
    """Store the terms of many chunks, and all stop words, with their shares."""
    sample = f"TABLESAMPLE SYSTEM ({100 * SAMPLE / chunks}) REPEATABLE (1)" if chunks > SAMPLE else ""
    db.execute("DELETE FROM quire.common_terms")
    # Every chunk has one sign of its kind.
    db.execute(
        "WITH counted AS MATERIALIZED (SELECT word, ndoc FROM ts_stat(%s)),"
        " total AS (SELECT sum(ndoc) AS chunks FROM counted WHERE word LIKE '!%%')"
        " INSERT INTO quire.common_terms SELECT word, ndoc / total.chunks::float8 FROM counted, total"
        " WHERE word !~ '^[=@!]' AND (ndoc > %s * total.chunks::float8 OR word = ANY (%s))",
        (
            f"SELECT terms FROM quire.words {sample}",
            matching.common_share(chunks),
            list(analyze.STOP),
        ),
    )


# ------------------------------------------------------------------------------- phrases and queries


def _besides_signs(filters: Filters) -> Filters:
    """The filters that no term tells. One collection and the kinds are among the terms."""
    collection = filters.collection
    is_one = collection is None or not collection.endswith(ALL_BRANCHES)
    return replace(filters, collection=None if is_one else collection, kinds=())


def _query_of(match: WordQuery, filters: Filters) -> str:
    """A query within a collection and kinds as a tsquery."""
    must = [_any(group) for group in (*match.needed, match.rare) if group]
    if filters.collection is not None and not filters.collection.endswith(ALL_BRANCHES):
        must.append(_any([Phrase((sign("@", filters.collection),))]))
    if filters.kinds:
        must.append(_any([Phrase((sign("!", kind),)) for kind in filters.kinds]))
    if match.without:
        must.append(f"!{_any(match.without)}")
    return " & ".join(must)


def _any(phrases: Collection[Phrase]) -> str:
    return f"({' | '.join(map(_written, phrases))})"


def _terms_of(pairs: Collection[Phrase]) -> tuple[str, list[str]]:
    """SQL for the terms of the best chunks that have one of some pairs, and its values."""
    if not pairs:
        return "''", []
    return "CASE WHEN best.terms @@ %s::tsquery THEN best.terms::text ELSE '' END", [_any(pairs)]


def _written(phrase: Phrase) -> str:
    """A phrase as a tsquery; a term needs no escaping within its quotes."""
    labels = "" if len(phrase.columns) == len(WEIGHTS) else "".join(_LABELS[c] for c in phrase.columns)
    suffix = f":{'*' if phrase.prefix else ''}{labels}".rstrip(":")
    written = " <-> ".join(f"'{term}'{suffix}" for term in phrase.terms)
    if phrase.columns == (0,):  # the index knows no labels, but it knows the signs of headings
        star = ":*" if phrase.prefix else ""
        written = " & ".join([f"({written})", *(f"'={term}'{star}" for term in phrase.terms)])
    return f"({written})"


def _frequency(phrase: Phrase, of: str = "w") -> str:
    """SQL for the weighted frequency of a word; for all else, whether it is there.

    Of a term with n places of weight 1, ts_rank() gives the sum of 1/i² for i up to n, divided by what that
    sum tends to: π²/6 - 1/(n + 1/2), nearly.
    """
    if not phrase.is_word:
        return f"({of}.terms @@ %s::tsquery)::int"
    limit = math.pi**2 / 6
    return f"round(1 / ({limit} * (1.0000001 - ts_rank('{{1,1,1,1}}', {of}.terms, %s::tsquery))) - 0.5)"


def _count_in(terms: str, phrase: Phrase) -> float:
    """The weighted frequency of a phrase in a tsvector's text."""
    if phrase.prefix:
        places = ",".join(re.findall(rf"'{phrase.terms[0]}[^']*':(\S+)", terms))
    else:
        first, *rest = (_places(terms, term) for term in phrase.terms)
        places = _followed(first, rest) if rest else first
    return sum(WEIGHTS[column] * places.count(_LABELS[column]) for column in phrase.columns)


def _places(terms: str, term: str) -> str:
    """The places of a term, as in `3A,17C`; those for its weight have no label."""
    start = terms.find(f"'{term}':")
    if start < 0:
        return ""
    end = terms.find(" ", start)
    return terms[start + len(term) + 3 : end if end > 0 else len(terms)]


def _followed(first: str, rest: list[str]) -> str:
    """The places that the others follow, each in turn."""
    sets = [{place.rstrip(_LABELS) for place in places.split(",")} for places in rest]
    return ",".join(
        place
        for place in first.split(",")
        if place and all(str(int(place.rstrip(_LABELS)) + n) in of for n, of in enumerate(sets, 1))
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
