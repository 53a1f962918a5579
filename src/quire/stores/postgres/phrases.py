"""Phrases as SQL on the rows `w` of quire.words, and how often they are in such a row.

How a row holds terms is in terms.py. Statements contain numbers and never a term.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence

from quire.stores.matching import COLUMN_WEIGHTS, Phrase
from quire.stores.postgres.database import PostgresDatabase
from quire.stores.postgres.terms import BREAK, LEAST_KEY, LEVEL_COUNT, NUMBERS, SIGNS, key, letter, number

_Span = tuple[int, int]  # the first and the last of keys that follow each other

_SIGNS = {(0,): "=", (0, 1): "=<"}  # of terms that are in these columns
_FEW = 8  # numbers that are looked for in a row one by one
_GROUPS = 24  # of numbers that are looked for in the index


_ALL: Mapping[Phrase, int] = {}  # all levels of all words


class Phrases:
    """The phrases of queries to one open library."""

    def __init__(self, db: PostgresDatabase) -> None:
        self.db = db

    def spans(self, phrase: Phrase, place: int = 0, least: int = 0) -> list[_Span]:
        """The keys that a term of a phrase may have in a row, from a level on."""
        term, signs = phrase.terms[place], _SIGNS.get(phrase.columns, "")
        if signs:
            named = [f"{sign}{term}" for sign in signs]
            return [(key(one),) * 2 for name in named for one in self._meant(name, phrase.prefix)]
        return [(key(one, least), key(one, LEVEL_COUNT - 1)) for one in self._meant(term, phrase.prefix)]

    def _meant(self, term: str, is_prefix: bool) -> Iterable[int]:
        return self._beginning(term) if is_prefix else [number(term)]

    def _beginning(self, prefix: str) -> frozenset[int]:
        """The numbers of the terms that begin in a certain way."""
        statement = "SELECT number FROM quire.vocabulary WHERE term >= %s AND term < %s"
        args = [prefix, f"{prefix}\U0010ffff"]
        return self.db.once(
            ("beginning", prefix), lambda: frozenset(row[0] for row in self.db.rows(statement, args))
        )

    # ------------------------------------------------------------------------------- conditions

    def rows_with(self, phrases: Sequence[Phrase], least: Mapping[Phrase, int] = _ALL) -> str:
        """The rows `w` that have one of the phrases, words from the least levels on, and WHERE."""
        if not self.db.is_scoped:
            return f"quire.words AS w WHERE {self.any_of(phrases, least)}"
        spans = [span for phrase in phrases for span in self.spans(phrase, 0, least.get(phrase, 0))]
        are_words = all(len(phrase.terms) == 1 for phrase in phrases)
        return (
            f"quire.matches({_array(_keys(spans))}) AS w WHERE {'true' if are_words else self.has(*phrases)}"
        )

    def any_of(self, phrases: Sequence[Phrase], least: Mapping[Phrase, int] = _ALL) -> str:
        """A condition for the index, where there is one to use: one of the phrases is there."""
        if self.db.is_scoped:
            return self.has(*phrases)
        words = [phrase for phrase in phrases if len(phrase.terms) == 1]
        spans = [span for phrase in words for span in self.spans(phrase, 0, least.get(phrase, 0))]
        found = [_overlaps(spans)] if spans else []
        for phrase in phrases:
            if len(phrase.terms) > 1:
                each = [self.spans(phrase, place) for place in range(len(phrase.terms))]
                found += [" AND ".join([*map(_overlaps, each), _follow(phrase)])]
        return f"({' OR '.join(found) or 'false'})"

    def has(self, *phrases: Phrase) -> str:
        """A condition for a row that is read anyway: one of the phrases is there."""
        return f"({' OR '.join(map(self._has, phrases)) or 'false'})"

    def _has(self, phrase: Phrase) -> str:
        return _follow(phrase) if len(phrase.terms) > 1 else self._has_one(self.spans(phrase))

    def _has_one(self, spans: Sequence[_Span]) -> str:
        """A condition: a row has a key in one of the spans."""
        if len(spans) > _FEW:
            some = f"quire.words AS h WHERE {_overlaps(spans, 'h')}"
            rows = f"quire.matches({_array(_keys(spans))}) AS h" if self.db.is_scoped else some
            return f"(w.document, w.index) IN (SELECT h.document, h.index FROM {rows})"
        each = " OR ".join(f"w.terms[{_bucket(last)}] >= {first}" for first, last in spans)
        return f"coalesce({each or 'false'}, false)"

    def bucket(self, phrase: Phrase) -> str:
        """The place of a word among a row's terms, from 1, if it is there."""
        return _bucket(key(number(phrase.terms[0]), LEVEL_COUNT - 1))

    def frequency(self, phrase: Phrase, bucket: str = "") -> str:
        """The weighted frequency of a word, whose bucket may be known; for all else 1 if there, or 0."""
        if not phrase.is_word:
            return f"{self.has(phrase)}::integer"
        place = bucket or self.bucket(phrase)
        is_there = f"w.terms[{place}] >= {key(number(phrase.terms[0]))}"
        return f"CASE WHEN {is_there} THEN get_byte(w.counts, {place} - 1) ELSE 0 END"

    # --------------------------------------------------------------------------------- counting

    def count(self, phrase: Phrase, terms: Sequence[int], places: str) -> float:
        """The weighted frequency of a phrase in a row with these terms and places."""
        patterns = [one for one in self._patterns(phrase, terms) if one in places]
        columns = places.split(BREAK) if patterns else []
        return sum(
            COLUMN_WEIGHTS[column] * _times(columns[column], pattern)
            for pattern in patterns
            for column in phrase.columns
        )

    def _patterns(self, phrase: Phrase, terms: Sequence[int]) -> list[str]:
        """What stands for a phrase in the places of a row with these terms."""
        if phrase.prefix:
            meant = self._beginning(phrase.terms[0])
            bases = {one % NUMBERS for one in meant}
            own = (place for place, one in enumerate(terms) if one < SIGNS)
            return [letter(at) for at in own if (terms[at] - LEAST_KEY) // LEVEL_COUNT in bases]
        pattern = ""
        for term in phrase.terms:
            place = bisect(terms, key(number(term), LEVEL_COUNT - 1)) - 1
            if place < 0 or terms[place] < key(number(term)):
                return []
            pattern += letter(place)
        return [pattern]


def _follow(phrase: Phrase) -> str:
    """A condition: the terms of a phrase are there, and next to each other."""
    letters = " || ".join(f"chr({_place(number(term))} + 1)" for term in phrase.terms)
    columns = [f"split_part(w.places, chr(1), {column + 1})" for column in phrase.columns]
    among = columns if len(columns) < len(COLUMN_WEIGHTS) else ["w.places"]
    return f"coalesce({' OR '.join(f'strpos({places}, {letters}) > 0' for places in among)}, false)"


def _overlaps(spans: Sequence[_Span], row: str = "w") -> str:
    """A condition for the index: a row has a key in one of the spans.

    The server does not know them when it plans: if it thought that most rows match, it would read all and
    compare each key with each of a row's. Of many it is asked for some at a time, which is the fastest.
    """
    keys = _keys(spans)
    size = max(_FEW * LEVEL_COUNT, -(-len(keys) // _GROUPS))
    groups = [keys[start : start + size] for start in range(0, len(keys), size)]
    each = " OR ".join(f"{row}.terms && (SELECT {_array(group)})" for group in groups)
    return f"({each or 'false'})"


def _keys(spans: Iterable[_Span]) -> list[int]:
    return [one for first, last in spans for one in range(first, last + 1)]


def _array(numbers: Sequence[int]) -> str:
    return f"'{{{','.join(map(str, numbers))}}}'::integer[]"


def _bucket(one: int) -> str:
    """The place of a number among a row's terms, from 1, if it is there."""
    return f"width_bucket({one}, w.terms)"


def _place(one: int) -> str:
    """The place of a number's key among a row's terms, from 1; NULL if it is not there."""
    bucket = _bucket(key(one, LEVEL_COUNT - 1))
    return f"CASE WHEN w.terms[{bucket}] >= {key(one)} THEN {bucket} END"


def _times(text: str, pattern: str) -> int:
    """How often a pattern is in a text. One may begin within another."""
    count, at = 0, text.find(pattern)
    while at >= 0:
        count, at = count + 1, text.find(pattern, at + 1)
    return count
