"""Queries for a keyword index, the same for every database.

Input: a Query and the common terms. Output: a WordQuery: what is required, what only ranks, what is
excluded. Each store writes it in the language of its database.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from quire import analyze
from quire.query import Query, Term

COLUMN_WEIGHTS = (10.0, 2.0, 1.0)  # of a match in the heading, in the headings above it, in the text
PAIRS = 0.3  # share of the words' score for words that are adjacent in a chunk as in the query
# A term in more than this share of the chunks tells little: in a library of so many chunks and more.
COMMON_SHARES = ((50_000, 0.05), (2000, 0.10))

_EVERYWHERE = (0, 1, 2)
_COLUMNS = {"heading": (0,), "title": (0, 1)}


@dataclass(frozen=True, slots=True)
class Phrase:
    """Terms that follow each other. A word is a phrase of one term."""

    terms: tuple[str, ...]
    prefix: bool = False  # its one term is the beginning of others
    columns: tuple[int, ...] = _EVERYWHERE  # where it may stand, by their places in COLUMN_WEIGHTS

    @property
    def is_word(self) -> bool:
        """Whether it is one whole term, in any column."""
        return len(self.terms) == 1 and not self.prefix and self.columns == _EVERYWHERE


@dataclass(frozen=True, slots=True)
class WordQuery:
    """What a keyword index searches for: one phrase of each needed group, or else one rare phrase."""

    needed: tuple[tuple[Phrase, ...], ...]
    rare: tuple[Phrase, ...]
    others: tuple[Phrase, ...]  # they only rank
    without: tuple[Phrase, ...]

    def __bool__(self) -> bool:
        return bool(self.needed or self.rare)

    @property
    def ranking(self) -> tuple[Phrase, ...]:
        """All phrases that count for the score."""
        return (*(phrase for group in self.needed for phrase in group), *self.rare, *self.others)


def common_share(chunks: int) -> float:
    """The share of chunks above which a term is common, in a library of this many chunks."""
    return next((share for size, share in COMMON_SHARES if chunks >= size), 1.0)


def word_query(query: Query, common: frozenset[str], *, loose: bool = False) -> WordQuery:
    """A query for a keyword index: rare words match, all words rank, phrases and fields are required.

    A `loose` one is for an index whose terms another stemmer may have made.
    """
    needed = tuple(group for terms in query.demanded if (group := whole(terms)))
    asked = (terms for terms in query.groups if terms not in query.demanded)
    families = [family for terms in asked for family in _words(terms, loose)]
    words = tuple(dict.fromkeys(word for family in families for word in family))
    scarce = [family for family in families if not any(w.is_word and w.terms[0] in common for w in family)]
    rare = () if needed else tuple(dict.fromkeys(word for family in scarce for word in family)) or words
    others = tuple(word for word in words if word not in rare)
    return WordQuery(needed, rare, others, whole(query.left_out))


def whole(terms: tuple[Term, ...]) -> tuple[Phrase, ...]:
    """Each term as one phrase, unless it has no letters or digits."""
    return tuple(phrase for term in terms if (phrase := _phrase(term)))


def pairs(query: Query) -> list[Phrase]:
    """Each two plain words that are next to each other in a query, unless both are stop words."""
    runs: list[list[str]] = [[]]
    for group in query.groups:
        plain = len(group) == 1 and not (group[0].phrase or group[0].field or group[0].prefix)
        if plain:
            runs[-1] += analyze.terms(group[0].text)
        else:
            runs.append([])
    found = [pair for run in runs for pair in pairwise(run) if not analyze.STOP.issuperset(pair)]
    return [Phrase(pair) for pair in dict.fromkeys(found)]


def _phrase(term: Term) -> Phrase | None:
    columns = _COLUMNS.get(term.field, _EVERYWHERE)
    if term.prefix:
        prefix = analyze.letters_of(analyze.fold(term.text))
        return Phrase((prefix,), True, columns) if prefix else None
    terms = tuple(analyze.terms(term.text))
    return Phrase(terms, False, columns) if terms else None


def _words(group: tuple[Term, ...], loose: bool) -> Iterator[tuple[Phrase, ...]]:
    """Each word of a group by itself; of a `loose` one all terms that a stemmer may make of it."""
    for term in group:
        if term.prefix or term.field or term.phrase:
            yield from ((phrase,) for phrase in whole((term,)))
        elif loose:
            for word in analyze.words_in(term.text):
                yield tuple(Phrase((one,)) for one in analyze.loose_terms(word))
        else:
            yield from ((Phrase((word,)),) for word in analyze.terms(term.text))
