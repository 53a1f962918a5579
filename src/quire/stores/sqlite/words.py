"""The keyword index of a SQLite library.

Input: the terms of chunks. Output: chunks with scores. Writing is part of the store's transaction.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from quire import analyze
from quire.query import Query
from quire.result import Hit
from quire.stores import matching
from quire.stores.filters import Filters
from quire.stores.matching import COLUMN_WEIGHTS, COMMON_SHARES, PAIRS, Phrase, WordQuery
from quire.stores.rows import CHUNK_BITS
from quire.stores.sqlite.database import SqliteDatabase
from quire.stores.sqlite.filters import conditions

_Terms = tuple[int, str, str, str]  # a chunk's row, and the terms of its heading, trail and text
_COUNTED = 50_000  # terms whose counts are kept
_MANY_REMOVED = 1000  # chunks: what remains of fewer costs nothing
_NOTE_REMOVED = (
    "INSERT INTO facts VALUES ('removed', ?) ON CONFLICT (name) DO UPDATE SET value ="
    " CAST(CAST(value AS INTEGER) + CAST(excluded.value AS INTEGER) AS TEXT)"
)
_FEW = 32  # terms to look up one by one; for more, it is faster to walk along the index


class Fts5:
    """A contentless FTS5 table over the terms."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self._common: tuple[int, frozenset[str]] = (-1, frozenset())
        self._counted: tuple[int, dict[str, int]] = (-1, {})

    def _value(self, sql: str) -> Any:
        return self.db.execute(sql).fetchone()[0]

    def add(self, rows: Iterable[_Terms]) -> None:
        """Add the terms of chunks."""
        self.db.executemany("INSERT INTO words (rowid, title, trail, body) VALUES (?, ?, ?, ?)", rows)

    def remove(self, rows: Sequence[_Terms]) -> None:
        """Remove chunks. Their terms must be those that were added."""
        self.db.executemany(
            "INSERT INTO words (words, rowid, title, trail, body) VALUES ('delete', ?, ?, ?, ?)", rows
        )
        self.db.execute(_NOTE_REMOVED, (str(len(rows)),))

    def grown(self, more: int) -> None:
        """Keep the index fast: tidy it, and count common terms, whenever enough chunks have changed."""
        self.db.execute("UPDATE facts SET value = value + ? WHERE name = 'written'", (more,))
        written = int(self._value("SELECT value FROM facts WHERE name = 'written'"))
        self._tidy(written)
        counted = int(self._value("SELECT value FROM facts WHERE name = 'common_at'"))
        if written < COMMON_SHARES[-1][0] or written < 1.5 * counted:
            return
        chunks = self._value("SELECT count(*) FROM chunks")
        self.db.execute("DELETE FROM common_terms")
        self.db.execute(
            "INSERT INTO common_terms SELECT term, doc FROM vocabulary WHERE doc > ?",
            (chunks * matching.common_share(chunks),),
        )
        self.db.execute("UPDATE facts SET value = ? WHERE name = 'common_at'", (str(written),))

    def _tidy(self, written: int) -> None:
        """Merge the index if more chunks were removed than are left: searches read what remains of them."""
        facts = "SELECT name, CAST(value AS INTEGER) FROM facts WHERE name IN ('removed', 'tidied')"
        counts = dict(self.db.execute(facts).fetchall())
        removed = counts.get("removed", 0)
        if removed - counts.get("tidied", 0) > max(_MANY_REMOVED, written - removed):
            self.compact()
            self.db.execute("INSERT OR REPLACE INTO facts VALUES ('tidied', ?)", (str(removed),))

    def finds(self, term: str, document: int) -> bool:
        """Whether a term finds a document."""
        found = "SELECT 1 FROM words WHERE words MATCH ? AND rowid >= ? AND rowid < ? LIMIT 1"
        low, high = document << CHUNK_BITS, (document + 1) << CHUNK_BITS
        return self.db.execute(found, (f'"{term}"', low, high)).fetchone() is not None

    def compact(self) -> None:
        """Write the index anew, without the terms that are only marked as deleted."""
        self.db.execute("INSERT INTO words (words) VALUES ('optimize')")

    def size(self) -> int:
        """How many chunks are in the index."""
        return int(self._value("SELECT count(*) FROM words_docsize"))

    def check(self) -> list[str]:
        """Problems with the index; empty if there are none."""
        try:
            self.db.execute("INSERT INTO words (words) VALUES ('integrity-check')")
        except sqlite3.DatabaseError as problem:
            return [f"full text: {problem}"]
        return []

    def made_by(self) -> str:
        """The fingerprint of the analyzer that made the terms."""
        return str(self._value("SELECT value FROM facts WHERE name = 'terms'"))

    def search(self, query: Query, where: list[str], args: list[Any], limit: int) -> dict[int, float]:
        """The best chunks and their scores, among documents `d` that meet the conditions."""
        loose = self.made_by() != analyze.fingerprint()
        match = matching.word_query(query, self._common_terms(), loose=loose)
        if not match:
            return {}
        scores = self._ranked(_match_expression(match), where, args, limit)
        if not scores and match.others:  # the rare words are nowhere: then common ones match
            match = matching.word_query(query, analyze.STOP, loose=loose)
            scores = self._ranked(_match_expression(match), where, args, limit)
        if pairs := matching.pairs(query):
            raised, weight = self._ranked(_any(pairs), where, args, limit), PAIRS * match.times
            scores = {chunk: score + weight * raised.get(chunk, 0.0) for chunk, score in scores.items()}
        return scores

    def allowed(self, query: Query, chunks: Sequence[int]) -> set[int]:
        """Those of the chunks that have everything a query requires, and nothing that it excludes."""
        left = set(chunks)
        for group in query.demanded:
            left &= self._matching(_any(matching.whole(group)), left)
        return left - self._matching(_any(matching.whole(query.left_out)), left)

    def counts(self, terms: Iterable[str]) -> dict[str, int]:
        """In how many chunks terms are. Terms in none are left out. What was counted is kept for a while."""
        generation, wanted = self._generation(), set(terms)
        if self._counted[0] != generation or len(self._counted[1]) > _COUNTED:
            self._counted = generation, {}
        known = self._counted[1]
        for _, same in groupby(sorted(wanted - known.keys()), key=itemgetter(0)):
            new = list(same)
            known |= dict.fromkeys(new, 0) | self._counts(new)
        return {term: known[term] for term in wanted if known[term]}

    def _counts(self, terms: list[str]) -> dict[str, int]:
        """The counts of terms, in order, that begin with the same letter."""
        if len(terms) > _FEW:
            wanted, among = set(terms), "SELECT term, doc FROM vocabulary WHERE term BETWEEN ? AND ?"
            rows = self.db.execute(among, (terms[0], terms[-1]))
            return {term: count for term, count in rows if term in wanted}
        # The vocabulary reads all places of a term; the counts of common terms are stored.
        rows = self.db.execute(
            "SELECT value, coalesce((SELECT chunks FROM common_terms WHERE term = value),"
            " (SELECT doc FROM vocabulary WHERE term = value)) FROM json_each(?)",
            (json.dumps(terms),),
        )
        return {term: count for term, count in rows if count}

    def chunks_with(self, terms: Sequence[str], chunks: Sequence[int]) -> dict[str, set[int]]:
        """Those of the chunks that have each term."""
        wanted, common = set(chunks), self._common_terms()
        return {term: self._matching(f'"{term}"', wanted, walks=term not in common) for term in terms}

    def documents_with(self, terms: Iterable[str], where: list[str], args: list[Any]) -> dict[str, set[int]]:
        """The documents `d` that have each term and meet the conditions."""
        source = f"words JOIN documents AS d ON d.seq = words.rowid >> {CHUNK_BITS}" if where else "words"
        sql = (
            f"SELECT DISTINCT words.rowid >> {CHUNK_BITS} FROM {source}"
            f" WHERE words MATCH ?{''.join(f' AND {condition}' for condition in where)}"
        )
        return {term: {row[0] for row in self.db.execute(sql, (f'"{term}"', *args))} for term in terms}

    def _matching(self, expression: str, chunks: set[int], *, walks: bool = False) -> set[int]:
        """Those of the chunks that match; none if the expression is empty.

        What few chunks match is found fastest by a walk through all of these, which the plus sign asks for.
        """
        if not expression or not chunks:
            return set()
        row = "+rowid" if walks else "rowid"
        rows = self.db.execute(
            f"SELECT rowid FROM words WHERE words MATCH ? AND {row} IN (SELECT value FROM json_each(?))",
            (expression, json.dumps(sorted(chunks))),
        )
        return {row[0] for row in rows}

    def _ranked(self, expression: str, where: list[str], args: list[Any], limit: int) -> dict[int, float]:
        source = f"words JOIN documents AS d ON d.seq = words.rowid >> {CHUNK_BITS}" if where else "words"
        # bm25() is smaller the better in SQLite: flipped here, once.
        rows = self.db.execute(
            f"SELECT words.rowid, -bm25(words, {', '.join(map(str, COLUMN_WEIGHTS))}) AS score FROM {source}"
            f" WHERE words MATCH ?{''.join(f' AND {condition}' for condition in where)}"
            " ORDER BY score DESC, words.rowid LIMIT ?",
            (expression, *args, limit),
        )
        return dict(rows.fetchall())

    def _generation(self) -> int:
        return int(self._value("SELECT value FROM facts WHERE name = 'generation'"))

    def _common_terms(self) -> frozenset[str]:
        generation = self._generation()
        if self._common[0] != generation:
            terms = self.db.execute("SELECT term FROM common_terms")
            self._common = generation, analyze.STOP.union(row[0] for row in terms)
        return self._common[1]


def _match_expression(match: WordQuery) -> str:
    """The query in the syntax of FTS5. bm25() counts a phrase as many times as it is written."""
    must = [f"({_any(group)})" for group in (*match.needed, match.rare) if group]
    expression = " AND ".join(must)
    if match.others:
        # What must match is in the expression twice, so what only ranks must be too.
        ranked = [*must, _any(match.others), _any(match.others)]
        expression = f"({expression}) AND ({' OR '.join(ranked)})"
    return f"({expression}) NOT ({_any(match.without)})" if match.without else expression


def _any(phrases: Iterable[Phrase]) -> str:
    return " OR ".join(map(_written, phrases))


def _written(phrase: Phrase) -> str:
    column = {(0,): "title : ", (0, 1): "{title trail} : "}.get(phrase.columns, "")
    return f'{column}"{" ".join(phrase.terms)}"{" *" if phrase.prefix else ""}'


class SqliteWords(SqliteDatabase):
    """Search by words in a SQLite library."""

    def _forget(self) -> None:
        super()._forget()
        self._keywords = Fts5(self._db)
        self._size = -1, 0  # a generation, and how many chunks it has

    @property
    def keywords(self) -> Fts5:
        """The keyword index of the file that is at the path now."""
        self._look()
        return self._keywords

    def word_makers(self) -> frozenset[str]:
        """The fingerprints of the analyzers that made the terms."""
        return frozenset({self.keywords.made_by()})

    def search_words(self, query: Query, filters: Filters, limit: int) -> list[Hit]:
        """The chunks that match a query's words, best first."""
        where, args = conditions(filters)
        scores = self.keywords.search(query, where, args, limit)
        sections = {
            row[0]: row[1:] for row in self._in("SELECT id, document, section FROM chunks WHERE id", scores)
        }
        best = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
        return [Hit(chunk, sections[chunk][0], sections[chunk][1], score) for chunk, score in best]

    def size(self) -> int:
        """How many chunks there are, counted once in each generation."""
        key = self.generation()
        if self._size[0] != key:
            self._size = key, self.keywords.size()
        return self._size[1]

    def term_counts(self, terms: Collection[str]) -> dict[str, int]:
        """In how many chunks of the library terms are. Terms in none are left out."""
        return self.keywords.counts(terms)

    def chunks_with(self, terms: Sequence[str], chunks: Sequence[int]) -> dict[str, set[int]]:
        """Those of the chunks that have each term."""
        return self.keywords.chunks_with(terms, chunks)

    def documents_with(self, terms: Sequence[str], filters: Filters) -> dict[str, set[int]]:
        """The documents that have each term."""
        return self.keywords.documents_with(terms, *conditions(filters))

    def allowed(self, query: Query, chunks: Iterable[int]) -> set[int]:
        """Those of the chunks that have everything a query requires, and nothing that it excludes."""
        return self.keywords.allowed(query, list(chunks))
