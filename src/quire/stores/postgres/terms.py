"""The terms of chunks as numbers, in the form in which COPY sends them.

A term's number comes from its digest. The row of a chunk has its `terms`: their numbers, in ascending order.
The number of a term that counts more than once is 2**31 less, so that these come first; each of them has a
byte in `counts`: how often it is there, weighted by column. `places` has a character for each word of the
heading, the headings above it and the text, which tells the term. Besides terms there are signs, which have
no places: `=term` of the heading, `<term` of those above it, `@` and `!` of the collection and the kind.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator

from quire.stores.matching import COLUMN_WEIGHTS
from quire.stores.postgres.database import Numbers, array_of
from quire.stores.texts import ChunkWords

TYPES = ("int8", "int4", "text", "int4", "int4[]", "bytea", "text")
VOCABULARY_TYPES = ("text", "text", "int4")
REPEATED = 2**31  # less is the number of a term that counts more than once
SIGNS = 3 * 2**29  # and more are the numbers of collections and kinds, as quire.collection_sign() has them
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
            *_packed(split, signs.union(map(number, heads))),
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
        self[term] = one = SIGNS + digest % (REPEATED - SIGNS) if is_sign else digest % (SIGNS - 1) + 1
        return one


_known = _Known()


def number(term: str) -> int:
    """A term or a sign as a number from 1 to 2**31 - 1. No term has the number of a collection or a kind."""
    return _known[term]


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


def _packed(split: list[list[str]], signs: set[int]) -> tuple[Numbers, bytes, str]:
    """The terms, counts and places of a chunk."""
    counted = Counter(split[2])
    for weight, terms in zip(_WEIGHTS, split[:2], strict=False):
        for term in terms:
            counted[term] += weight
    numbers = dict(zip(counted, map(_known.__getitem__, counted), strict=True))
    times = dict(zip(numbers.values(), counted.values(), strict=True))
    often = sorted([one for one, count in times.items() if count > 1])
    once = sorted(signs.union([one for one, count in times.items() if count == 1]))
    letters = dict(zip(often + once, _LETTERS, strict=False))
    of_term = dict(zip(numbers, map(letters.__getitem__, numbers.values()), strict=True))
    places = BREAK.join(["".join(map(of_term.__getitem__, terms)) for terms in split])
    counts = bytes([min(times[one], _MAX_COUNT) for one in often])
    return array_of([one - REPEATED for one in often] + once), counts, places


def _that_fit(terms: list[str]) -> Iterator[str]:
    """The first terms of a huge chunk."""
    seen = set[str]()
    for term in terms:
        seen.add(term)
        if len(seen) > _MAX_TERMS:
            return
        yield term
