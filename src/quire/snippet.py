"""A text and the terms of a query to a snippet: the words around the best matches, and where they are.

Always: a snippet is plain text, with nothing around a match; highlights are in order and do not overlap.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from functools import cache
from itertools import accumulate, pairwise

from quire import analyze, later

Highlights = tuple[tuple[int, int], ...]  # start and end of each match, in characters
_LEAD = 5  # words before the first match
_LONGEST = 20  # characters of a word: a longer one, or a run of a script without spaces, counts as several
_WORD = later.pattern(r"\S+")
_FENCE_LINE = later.pattern(r"^[ \t]*(?:`{3,}|~{3,}).*$", re.MULTILINE)


def snippet(text: str, terms: Iterable[str], max_words: int = 50) -> tuple[str, Highlights]:
    """A limited number of words around the best matches, white space folded; and the offsets of matches."""
    marks = _marks(text, frozenset(terms))
    start = _best_window(text, marks, max_words) if len(text) > 2 * max_words else 0
    shown = _words(max_words).search(text, start)
    if not shown:
        return "", ()
    start, end = shown.span()
    before, after = "… " if text[:start].strip() else "", " …" if text[end:].strip() else ""
    words = [word.span() for word in _WORD.finditer(text, start, end)]
    within = [(a, b) for a, b, _ in marks if start <= a and b <= end]
    return f"{before}{' '.join(text[a:b] for a, b in words)}{after}", _folded(within, words, len(before))


def _folded(spans: list[tuple[int, int]], words: list[tuple[int, int]], begin: int) -> Highlights:
    """Spans of a text where its words are joined by single spaces, from `begin` on."""
    firsts = [start for start, _ in words]
    places = list(accumulate((end - start + 1 for start, end in words), initial=begin))
    numbers = [bisect_right(firsts, start) - 1 for start, _ in spans]
    moved = [places[number] - firsts[number] for number in numbers]
    return tuple((start + by, end + by) for (start, end), by in zip(spans, moved, strict=True))


@cache
def _words(most: int) -> re.Pattern[str]:
    word = rf"\S{{1,{_LONGEST}}}+"
    return re.compile(rf"{word}(?:\s*+{word}){{0,{max(most, 1) - 1}}}")


def densest(text: str, terms: Iterable[str], size: int) -> tuple[int, int]:
    """The start and end of the piece of a text, at most `size` characters, with the most matches.

    It begins and ends at a line or a word. Without matches, it is the beginning of the text.
    """
    marks = sorted(analyze.matches(text, frozenset(terms)))
    best, first, start, counts = (0, 0), 0, 0, Counter[str]()
    for last, (_, end, term) in enumerate(marks):
        counts[term] += 1
        while end - marks[first][0] > size // 2 and first < last:
            _discount(counts, marks[first][2])
            first += 1
        if (score := (len(counts), last - first)) > best:
            best, start = score, max(0, marks[first][0] - size // 4)
    start = _edge(text, start)
    if start + size >= len(text):
        return start, len(text)
    return start, max(start + 1, _edge(text, start + size))


def _discount(counts: Counter[str], term: str) -> None:
    """Count a term once less, so that the number of counts is that of different terms."""
    counts[term] -= 1
    if not counts[term]:
        del counts[term]


def _edge(text: str, place: int) -> int:
    """The nearest earlier start of a line, else of a word; the place itself if neither is near."""
    near = max(0, place - 200)
    line = text.rfind("\n", near, place)
    return (line if line >= 0 else text.rfind(" ", near, place)) + 1 or place


def _marks(text: str, wanted: frozenset[str]) -> list[tuple[int, int, str]]:
    """Whole words that match, without overlaps, outside the lines that open or close code."""
    fences = [m.span() for m in _FENCE_LINE.finditer(text)] if "```" in text or "~~~" in text else []
    marks: list[tuple[int, int, str]] = []
    for start, end, term in analyze.matches(text, wanted):
        overlaps = marks and start < marks[-1][1]
        if not overlaps and not (fences and _is_within(start, fences)):
            marks.append((start, end, term))
    return marks


def _is_within(place: int, spans: list[tuple[int, int]]) -> bool:
    above = bisect_right(spans, place, key=lambda span: span[0]) - 1
    return above >= 0 and place < spans[above][1]


def _best_window(text: str, marks: list[tuple[int, int, str]], max_words: int) -> int:
    """Where to begin: the window with the most different matches, then the most matches."""
    starts = [_word_start(text, mark[0]) for mark in marks]
    # The number of words before each match: only what is between two is counted.
    number = list(accumulate(_count(text[a:b]) for a, b in pairwise([0, *starts])))
    best, begin, last, counts = (0, 0), 0, 0, Counter[str]()
    for first, start in enumerate(starts):
        while last < len(marks) and number[last] < number[first] + max_words - _LEAD:
            counts[marks[last][2]] += 1
            last += 1
        if (score := (len(counts), last - first)) > best:
            best, begin = score, start
        _discount(counts, marks[first][2])
    return _back(text, begin, _LEAD) if _has_more(text, max_words) else 0


def _count(text: str) -> int:
    """About the number of words."""
    return max(len(text.split()), len(text) // _LONGEST)


def _has_more(text: str, words: int) -> bool:
    shown = _words(words).search(text)
    return bool(shown and text[shown.end() :].strip())


def _word_start(text: str, place: int) -> int:
    """The start of the word that a place is in; the place itself if that is far."""
    for at in range(place, max(-1, place - _LONGEST), -1):
        if not at or text[at - 1].isspace():
            return at
    return place


def _back(text: str, place: int, words: int) -> int:
    """A place some words earlier."""
    for _ in range(words):
        end = len(text[:place].rstrip())
        start = _word_start(text, end)
        place = start if start < end else max(0, end - _LONGEST)
    return place
