"""The terms of chunks as numbers, in the form in which COPY sends them.

A term's number comes from its digest. The row of a chunk has its `terms` as keys, in ascending order, and for
each of them a byte in `counts`: how often it is there, weighted by column. A key is the term's number and the
level of the chunk for it: the higher, the more the term adds to the chunk's score. So the index finds the
chunks that a term ranks highest without reading the others. `places` has a character for each word of the
heading, the headings above it and the text, which tells the term. Besides terms there are signs, which have
no places and one level: `=term` of the heading, `<term` of those above it, `@` and `!` of the collection and
the kind.
"""

from __future__ import annotations

import hashlib
from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Iterator

from quire.stores.matching import COLUMN_WEIGHTS
from quire.stores.postgres.database import Numbers, array_of
from quire.stores.texts import ChunkWords

TYPES = ("int8", "int4", "text", "int4", "int4[]", "bytea", "text")
VOCABULARY_TYPES = ("text", "text", "int4")
SIGNS = 3 * 2**29  # and more are the numbers of collections and kinds, as quire.collection_sign() has them
K1, B = 1.2, 0.75  # of BM25
LEVEL_COUNT = 8
LEAST_KEY = -(2**31)
NUMBERS = (SIGNS - LEAST_KEY) // LEVEL_COUNT  # that keys tell apart
AVERAGE = 120  # terms of a chunk, for levels: they stay as they are when the library's average changes
_EDGES = (0.40, 0.50, 0.58, 0.65, 0.72, 0.80, 0.89)  # between levels: shares of the most that a term can add
BREAK = "\1"  # between the columns in `places`
_MAX_COUNT = 255
_MAX_TERMS = 50_000  # of a chunk, each counted once
_LETTERS = list(map(chr, range(2, 0xD800)))  # then come codes that are no characters
_MAX_KNOWN = 200_000
_WEIGHTS = tuple(map(int, COLUMN_WEIGHTS))
_MAX_HEADING = 1000  # terms of a heading, or of those above it


def rows_of(
    document: int, collection: str, kind: str, words: Iterable[ChunkWords], spelled: set[tuple[str, str]]
) -> Iterator[tuple[int, int, str, int, Numbers, bytes, str]]:
    """The rows of a document's chunks, by the terms of their headings, trails and texts.

    What goes into the vocabulary is added to `spelled`: a collection, and a term or the sign of a heading.
    """
    signs, found = {number(f"@{collection}"), number(f"!{kind}")}, set[str]()
    for index, columns in enumerate(words):
        split = _split(columns)
        heads = _heads(split)
        found.update(heads, *split)
        yield (
            document,
            index,
            collection,
            size_of([columns]),
            *_packed(split, signs.union(map(number, heads)), size_of([columns])),
        )
    spelled.update((collection, term) for term in found)


def size_of(words: Iterable[ChunkWords]) -> int:
    """The number of terms in chunks."""
    return sum(column.count(" ") + 1 for columns in words for column in columns if column)


class _Known(dict[str, int]):
    """The numbers of terms that were seen."""

    def __missing__(self, term: str) -> int:
        if len(self) >= _MAX_KNOWN:
            self.clear()
        digest = int.from_bytes(hashlib.sha256(term.encode()).digest()[:4], "big")
        is_sign = term.startswith(("@", "!"))
        self[term] = one = SIGNS + digest % (2**31 - SIGNS) if is_sign else digest % (SIGNS - 1) + 1
        return one


_known = _Known()


def number(term: str) -> int:
    """A term or a sign as a number from 1 to 2**31 - 1. No term has the number of a collection or a kind."""
    return _known[term]


def key(one: int, level: int = 0) -> int:
    """The key of a number: those of a term's levels follow each other, and a sign is its own."""
    return one if one >= SIGNS else LEAST_KEY + one % NUMBERS * LEVEL_COUNT + level


def level_of(count: int, size: int) -> int:
    """The level of a chunk of so many terms that has a term so often."""
    return bisect(_EDGES, count / (count + K1 * (1 - B + B * size / AVERAGE)))


def most_of(level: int, average: float) -> float:
    """The most that a term adds to the score of a chunk of a level, as a share of its weight.

    The average is the library's: if it is larger than the one that levels are made with, chunks score more.
    """
    edge = (*_EDGES, 1.0)[level]
    return 1 / (1 + min(1.0, AVERAGE / average) * (1 / edge - 1))


def letter(place: int) -> str:
    """The character of a term, by its place among the `terms`, from 0."""
    return _LETTERS[place]


def _split(columns: ChunkWords) -> list[list[str]]:
    title, trail, body = (column.split() for column in columns)
    if len(body) > _MAX_TERMS:
        body = list(_that_fit(body))
    return [title[:_MAX_HEADING], trail[:_MAX_HEADING], body]


def _heads(split: list[list[str]]) -> list[str]:
    """The signs of terms in headings."""
    return [*(f"={term}" for term in set(split[0])), *(f"<{term}" for term in set(split[1]))]


def _packed(split: list[list[str]], signs: set[int], size: int) -> tuple[Numbers, bytes, str]:
    """The terms, counts and places of a chunk."""
    counted = Counter(split[2])
    for weight, terms in zip(_WEIGHTS, split[:2], strict=False):
        for term in terms:
            counted[term] += weight
    levels = {count: level_of(min(count, _MAX_COUNT), size) for count in set(counted.values())}
    keys = {term: key(_known[term], levels[count]) for term, count in counted.items()}
    times = dict.fromkeys(map(key, signs), 1) | dict(zip(keys.values(), counted.values(), strict=True))
    order = sorted(times)
    letters = dict(zip(order, _LETTERS, strict=False))
    of_term = {term: letters[one] for term, one in keys.items()}
    places = BREAK.join(["".join(map(of_term.__getitem__, terms)) for terms in split])
    return array_of(order), bytes([min(times[one], _MAX_COUNT) for one in order]), places


def _that_fit(terms: list[str]) -> Iterator[str]:
    """The first terms of a huge chunk."""
    seen = set[str]()
    for term in terms:
        seen.add(term)
        if len(seen) > _MAX_TERMS:
            return
        yield term
