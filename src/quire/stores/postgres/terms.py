"""The terms of chunks as tsvectors, in the form in which COPY sends them.

A tsvector holds a term's places, labelled A in the heading, B in the headings above it and C in the text.
A term in a heading gets more places, adjacent to no other, by its weight: so the number of its places is
its weighted frequency, and ts_rank() gives that number (see words.py). Besides terms it holds signs:
`=term` of the heading, `@` and `!` of the collection and the kind.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from quire.stores.matching import WEIGHTS
from quire.stores.postgres.database import TermVector

TYPES = ("int8", "int4", "text", "int4", "tsvector")
_BITS = (3 << 14, 2 << 14, 1 << 14)
_LAST = 12_000  # place of a term; those behind it are for weights. A tsvector knows places up to 16,383,
_MAX_PLACES = 255  # and of each term so many
_MAX_HEADING = 1000  # terms of a heading, or of those above it
_MAX_BYTES = 600_000  # of its terms, where it takes 1,048,575
_PLACES = [(place | _BITS[2]).to_bytes(2, "big") for place in range(_LAST + 1)]
_COUNTS = [count.to_bytes(2, "big") for count in range(_MAX_PLACES + 1)]


def rows_of(
    document: int, collection: str, kind: str, words: Iterable[tuple[str, str, str]]
) -> Iterator[tuple[int, int, str, int, TermVector]]:
    """The rows of a document's chunks, by the terms of their headings, trails and texts."""
    signs = [sign("@", collection), sign("!", kind)]
    for index, columns in enumerate(words):
        title, trail, body = (column.split() for column in columns)
        yield document, index, collection, size_of([columns]), _vector(title, trail, body, signs)


def size_of(words: Iterable[tuple[str, str, str]]) -> int:
    """The number of terms in chunks."""
    return sum(column.count(" ") + 1 for columns in words for column in columns if column)


def _vector(title: list[str], trail: list[str], body: list[str], signs: list[str]) -> TermVector:
    """Terms as a tsvector: each with a count and its places, two bytes each."""
    if sum(map(len, body)) > 100_000:
        body = list(_that_fit(body))
    title, trail = title[:_MAX_HEADING], trail[:_MAX_HEADING]
    places: dict[str, bytes] = {}
    raised: dict[str, int] = {}
    at = 1
    for column, terms in enumerate((title, trail)):
        for term in terms:
            places[term] = places.get(term, b"") + (at | _BITS[column]).to_bytes(2, "big")
            raised[term] = raised.get(term, 0) + int(WEIGHTS[column]) - 1
            at += 1
        at += 1  # a phrase does not go from one column into the next
    get, none = places.get, b""
    for place_of, term in zip(islice(_PLACES, at, None), body, strict=False):
        places[term] = get(term, none) + place_of
    for term in body[max(0, _LAST + 1 - at) :]:
        places.setdefault(term, _PLACES[_LAST])
    _raise(places, raised)
    signs = [*signs, *(f"={term}" for term in dict.fromkeys(title))]
    parts = [
        (len(places) + len(signs)).to_bytes(4, "big"),
        *[b"%b\0%b%b" % (term.encode(), _COUNTS[len(of) >> 1], of) for term, of in places.items()],
        *[b"%b\0\0\0" % sign.encode() for sign in signs],
    ]
    return TermVector(b"".join(parts))


def _raise(places: dict[str, bytes], raised: Mapping[str, int]) -> None:
    """Give terms more places after the last, with a gap between each two."""
    at = _LAST + 2
    for term, more in raised.items():
        more = min(more, (16_382 - at) // 2)
        places[term] += b"".join(place.to_bytes(2, "big") for place in range(at, at + 2 * more, 2))
        at += 2 * more
    for term, of in places.items():
        if len(of) > 2 * _MAX_PLACES:
            places[term] = of[: 2 * _MAX_PLACES]


def _that_fit(terms: list[str]) -> Iterator[str]:
    """The first terms of a huge chunk, as many as a tsvector can hold."""
    left, seen = _MAX_BYTES, set[str]()
    for term in terms:
        if term not in seen:
            seen.add(term)
            left -= len(term.encode()) + 6
        if left < 0:
            return
        yield term


def sign(kind: str, name: str) -> str:
    """The term that marks a collection or a kind. The SQL function matches() makes it too."""
    return kind + hashlib.sha256(name.encode()).hexdigest()[:16]
