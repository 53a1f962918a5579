"""The keyword index of a SQLite library, behind a protocol of its own.

In go the terms of chunks, out come chunks with scores. Nothing else in a store knows how words are
kept, so that another index can take this one's place in libraries of millions of chunks.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Protocol

from quire import analyze
from quire.query import Query, Term

Words = tuple[int, str, str, str]  # a chunk's row, and the terms of its heading, trail and text

WEIGHTS = (10.0, 2.0, 1.0)  # of a match in the heading, in the headings above it, in the text
PAIRS = 0.3  # of what words score that stand together in a chunk as they do in the query
# A term in more than this share of the chunks ranks, but does not match: in a library of so many chunks
# and more. Measured by bench/search.py: the ten best stay the same in 98 of 100.
COMMON_SHARES = ((50_000, 0.05), (2000, 0.10))


class Keywords(Protocol):
    """What a store asks of its keyword index. Writing is part of the store's transaction."""

    def add(self, rows: Iterable[Words]) -> None:
        """Take in the terms of chunks."""
        ...

    def remove(self, rows: Sequence[Words]) -> None:
        """Take out chunks, whose terms must be those they came in with."""
        ...

    def clear(self) -> None:
        """Forget everything."""
        ...

    def grown(self, more: int) -> None:
        """Note that so many chunks were written."""
        ...

    def search(self, query: Query, where: list[str], args: list[Any], limit: int) -> dict[int, float]:
        """The best chunks and their scores, among documents `d` that meet the conditions."""
        ...

    def allowed(self, query: Query, chunks: Sequence[int]) -> set[int]:
        """Those of some chunks that have all that a query demands, and nothing that it leaves out."""
        ...

    def size(self) -> int:
        """How many chunks it knows."""
        ...

    def check(self) -> list[str]:
        """What is wrong with it."""
        ...


class Fts5:
    """A contentless FTS5 table over the terms."""

    def __init__(self, db: sqlite3.Connection, shift: int) -> None:
        self.db, self.shift = db, shift  # a chunk's row is its document's, shifted, plus its index
        self._common: tuple[int, frozenset[str]] = (-1, frozenset())

    def _value(self, sql: str) -> Any:
        return self.db.execute(sql).fetchone()[0]

    def add(self, rows: Iterable[Words]) -> None:
        """Take in the terms of chunks."""
        self.db.executemany("INSERT INTO words (rowid, title, trail, body) VALUES (?, ?, ?, ?)", rows)

    def remove(self, rows: Sequence[Words]) -> None:
        """Take out chunks, whose terms must be those they came in with."""
        self.db.executemany(
            "INSERT INTO words (words, rowid, title, trail, body) VALUES ('delete', ?, ?, ?, ?)", rows
        )

    def grown(self, more: int) -> None:
        """Count again which terms are common, whenever half as many chunks again have been written."""
        self.db.execute("UPDATE facts SET value = value + ? WHERE name = 'written'", (more,))
        written = int(self._value("SELECT value FROM facts WHERE name = 'written'"))
        counted = int(self._value("SELECT value FROM facts WHERE name = 'common_at'"))
        if written < COMMON_SHARES[-1][0] or written < 1.5 * counted:
            return
        chunks = self._value("SELECT count(*) FROM chunks")
        share = next((share for size, share in COMMON_SHARES if chunks >= size), 1.0)
        self.db.execute("DELETE FROM common_terms")
        self.db.execute(
            "INSERT INTO common_terms SELECT term, doc FROM vocabulary WHERE doc > ?",
            (chunks * share,),
        )
        self.db.execute("UPDATE facts SET value = ? WHERE name = 'common_at'", (str(written),))

    def clear(self) -> None:
        """Forget everything."""
        self.db.execute("INSERT INTO words (words) VALUES ('delete-all')")

    def size(self) -> int:
        """How many chunks it knows."""
        return int(self._value("SELECT count(*) FROM words_docsize"))

    def check(self) -> list[str]:
        """What is wrong with it."""
        try:
            self.db.execute("INSERT INTO words (words) VALUES ('integrity-check')")
        except sqlite3.DatabaseError as problem:
            return [f"full text: {problem}"]
        return []

    def search(self, query: Query, where: list[str], args: list[Any], limit: int) -> dict[int, float]:
        """The best chunks and their scores, among documents `d` that meet the conditions."""
        expression, times = match_expression(query, self._common_terms())
        if not expression:
            return {}
        scores = self._ranked(expression, where, args, limit)
        if together := pair_expression(query):
            raised, weight = self._ranked(together, where, args, limit), PAIRS * times
            scores = {chunk: score + weight * raised.get(chunk, 0.0) for chunk, score in scores.items()}
        return scores

    def allowed(self, query: Query, chunks: Sequence[int]) -> set[int]:
        """Those of some chunks that have all that a query demands, and nothing that it leaves out."""
        left = set(chunks)
        for group in query.demanded:
            left &= self._matching(_one(group), left)
        for term in query.left_out:
            left -= self._matching(_one((term,)), left)
        return left

    def _matching(self, expression: str, chunks: set[int]) -> set[int]:
        """Those of some chunks that match; none if the expression says nothing."""
        if not expression or not chunks:
            return set()
        rows = self.db.execute(
            "SELECT rowid FROM words WHERE words MATCH ? AND rowid IN (SELECT value FROM json_each(?))",
            (expression, json.dumps(sorted(chunks))),
        )
        return {row[0] for row in rows}

    def _ranked(self, expression: str, where: list[str], args: list[Any], limit: int) -> dict[int, float]:
        source = f"words JOIN documents AS d ON d.seq = words.rowid >> {self.shift}" if where else "words"
        # bm25() is smaller the better in SQLite: flipped here, once.
        rows = self.db.execute(
            f"SELECT words.rowid, -bm25(words, {', '.join(map(str, WEIGHTS))}) AS score FROM {source}"
            f" WHERE words MATCH ?{''.join(f' AND {condition}' for condition in where)}"
            " ORDER BY score DESC, words.rowid LIMIT ?",
            (expression, *args, limit),
        )
        return dict(rows.fetchall())

    def _common_terms(self) -> frozenset[str]:
        generation = int(self._value("SELECT value FROM facts WHERE name = 'generation'"))
        if self._common[0] != generation:
            terms = self.db.execute("SELECT term FROM common_terms")
            self._common = generation, analyze.STOP.union(row[0] for row in terms)
        return self._common[1]


def match_expression(query: Query, common: frozenset[str]) -> tuple[str, int]:
    """A query as FTS5 reads it, and how many times bm25() counts each word in it.

    Rare words match and all words rank; phrases and fields must be there.
    """
    needed = [part for group in query.demanded if (part := _one(group))]
    words = [word for group in query.groups if group not in query.demanded for word in _words(group)]
    words = list(dict.fromkeys(words))
    rare = [word for word in words if word.strip('"*') not in common] or words
    must = needed or ([f"({' OR '.join(rare)})"] if words else [])
    if not must:
        return "", 1
    expression, times = " AND ".join(must), 1
    only_rank = words if needed else [word for word in words if word not in rare]
    if only_rank:
        # What must match is in the expression twice, so what only ranks must be too.
        ranked = [*(needed or rare), *only_rank, *only_rank]
        expression, times = f"({expression}) AND ({' OR '.join(ranked)})", 2
    without = [part for term in query.left_out if (part := _one((term,)))]
    return (f"({expression}) NOT ({' OR '.join(without)})" if without else expression), times


def pair_expression(query: Query) -> str:
    """Each two plain words that stand together in a query, unless they say nothing."""
    runs: list[list[str]] = [[]]
    for group in query.groups:
        plain = len(group) == 1 and not (group[0].phrase or group[0].field or group[0].prefix)
        if plain:
            runs[-1] += analyze.terms(group[0].text)
        else:
            runs.append([])
    pairs = [pair for run in runs for pair in pairwise(run) if not analyze.STOP.issuperset(pair)]
    return " OR ".join(f'"{first} {second}"' for first, second in dict.fromkeys(pairs))


def _one(group: tuple[Term, ...]) -> str:
    """Any one of the terms of a group, each whole."""
    parts = [part for term in group if (part := _whole(term))]
    return f"({' OR '.join(parts)})" if parts else ""


def _whole(term: Term) -> str:
    column = {"heading": "title : ", "title": "{title trail} : "}.get(term.field, "")
    if term.prefix:
        prefix = re.sub(r"\W|_", "", analyze.fold(term.text))
        return f'{column}"{prefix}" *' if prefix else ""
    terms = analyze.terms(term.text)
    return f'{column}"{" ".join(terms)}"' if terms else ""


def _words(group: tuple[Term, ...]) -> list[str]:
    """Each word of a group by itself."""
    words = []
    for term in group:
        if term.prefix or term.field or term.phrase:
            words += [part] if (part := _whole(term)) else []
        else:
            words += [f'"{word}"' for word in analyze.terms(term.text)]
    return words
