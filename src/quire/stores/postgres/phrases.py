"""Phrases as SQL on the rows `w` of quire.words, and how often they are in such a row.

How a row holds terms is in terms.py. Statements contain numbers and never a term.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from quire.stores.matching import COLUMN_WEIGHTS, Phrase
from quire.stores.postgres.database import PostgresDatabase
from quire.stores.postgres.terms import BREAK, REPEATED, letter, number

_SIGNS = {(0,): "=", (0, 1): "=<"}  # of terms that are in these columns
_FEW = 8  # numbers that are looked for in a row one by one
_GROUPS = 24  # of numbers that are looked for in the index


class Phrases:
    """The phrases of queries to one open library."""

    def __init__(self, db: PostgresDatabase) -> None:
        self.db = db

    def numbers(self, phrase: Phrase, place: int = 0) -> list[int]:
        """The numbers that a term of a phrase may have in a row."""
        term, signs = phrase.terms[place], _SIGNS.get(phrase.columns, "")
        named = [f"{sign}{term}" for sign in signs] or [term]
        found = [one for name in named for one in self._meant(name, phrase.prefix)]
        return found if signs else [*found, *(one - REPEATED for one in found)]

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

    def rows_with(self, phrases: Sequence[Phrase]) -> str:
        """The rows `w` that have one of the phrases, and WHERE."""
        if not self.db.is_scoped:
            return f"quire.words AS w WHERE {self.any_of(phrases)}"
        numbers = [one for phrase in phrases for one in self.numbers(phrase)]
        are_words = all(len(phrase.terms) == 1 for phrase in phrases)
        return f"quire.matches({_array(numbers)}) AS w WHERE {'true' if are_words else self.has(*phrases)}"

    def any_of(self, phrases: Sequence[Phrase]) -> str:
        """A condition for the index, where there is one to use: one of the phrases is there."""
        if self.db.is_scoped:
            return self.has(*phrases)
        words = [one for phrase in phrases if len(phrase.terms) == 1 for one in self.numbers(phrase)]
        found = [_overlaps(words)] if words else []
        for phrase in phrases:
            if len(phrase.terms) > 1:
                each = [self.numbers(phrase, place) for place in range(len(phrase.terms))]
                found += [" AND ".join([*map(_overlaps, each), _follow(phrase)])]
        return f"({' OR '.join(found) or 'false'})"

    def has(self, *phrases: Phrase) -> str:
        """A condition for a row that is read anyway: one of the phrases is there."""
        return f"({' OR '.join(map(self._has, phrases)) or 'false'})"

    def _has(self, phrase: Phrase) -> str:
        return _follow(phrase) if len(phrase.terms) > 1 else self._has_one(self.numbers(phrase))

    def _has_one(self, numbers: Sequence[int]) -> str:
        """A condition: a row has one of the numbers."""
        if len(numbers) > _FEW:
            some = f"quire.words AS h WHERE {_overlaps(numbers, 'h')}"
            rows = f"quire.matches({_array(numbers)}) AS h" if self.db.is_scoped else some
            return f"(w.document, w.index) IN (SELECT h.document, h.index FROM {rows})"
        each = " OR ".join(f"w.terms[{_bucket(one)}] = {one}" for one in numbers)
        return f"coalesce({each or 'false'}, false)"

    def frequency(self, phrase: Phrase, is_there: bool = False) -> str:
        """The weighted frequency of a word; for all else 1 if it is there, which may be known, or 0."""
        if not phrase.is_word:
            return "1" if is_there else f"{self.has(phrase)}::integer"
        once = number(phrase.terms[0])
        often = once - REPEATED
        return (
            f"CASE WHEN w.terms[{_bucket(often)}] = {often} THEN get_byte(w.counts, {_bucket(often)} - 1)"
            f" WHEN w.terms[{_bucket(once)}] = {once} THEN 1 ELSE 0 END"
        )

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
            return [letter(place) for place, one in enumerate(terms) if one % REPEATED in meant]
        pattern = ""
        for term in phrase.terms:
            one = number(term)
            place = bisect_left(terms, one - REPEATED)
            if place == len(terms) or terms[place] != one - REPEATED:
                place = bisect_left(terms, one)
            if place == len(terms) or terms[place] % REPEATED != one:
                return []
            pattern += letter(place)
        return [pattern]


def _follow(phrase: Phrase) -> str:
    """A condition: the terms of a phrase are there, and next to each other."""
    letters = " || ".join(f"chr({_place(number(term))} + 1)" for term in phrase.terms)
    columns = [f"split_part(w.places, chr(1), {column + 1})" for column in phrase.columns]
    among = columns if len(columns) < len(COLUMN_WEIGHTS) else ["w.places"]
    return f"coalesce({' OR '.join(f'strpos({places}, {letters}) > 0' for places in among)}, false)"


def _overlaps(numbers: Sequence[int], row: str = "w") -> str:
    """A condition for the index: a row has one of the numbers.

    The server does not know them when it plans: if it thought that most rows match, it would read all and
    compare each number with each of a row's. Of many it is asked for some at a time, which is the fastest.
    """
    size = max(_FEW, -(-len(numbers) // _GROUPS))
    groups = [numbers[start : start + size] for start in range(0, len(numbers), size)]
    each = " OR ".join(f"{row}.terms && (SELECT {_array(group)})" for group in groups)
    return f"({each or 'false'})"


def _array(numbers: Sequence[int]) -> str:
    return f"'{{{','.join(map(str, numbers))}}}'::integer[]"


def _bucket(one: int) -> str:
    """The place of a number among a row's terms, from 1, if it is there."""
    return f"width_bucket({one}, w.terms)"


def _place(one: int) -> str:
    """The place of a term among a row's terms, from 1; NULL if it is not there."""
    each = [f"WHEN w.terms[{_bucket(n)}] = {n} THEN {_bucket(n)}" for n in (one - REPEATED, one)]
    return f"CASE {' '.join(each)} END"


def _times(text: str, pattern: str) -> int:
    """How often a pattern is in a text. One may begin within another."""
    count, at = 0, text.find(pattern)
    while at >= 0:
        count, at = count + 1, text.find(pattern, at + 1)
    return count
