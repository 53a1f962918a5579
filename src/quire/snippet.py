"""A text and the terms of a query to a snippet: the words around the best matches."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from itertools import accumulate, pairwise

from quire import analyze

_LEAD = 5  # words before the first match
_FENCE_LINE = re.compile(r"^[ \t]*(?:`{3,}|~{3,}).*$", re.MULTILINE)


def snippet(text: str, terms: Iterable[str], max_words: int = 50) -> str:
    """A limited number of words around the best matches, matches in `**`, white space folded."""
    marks = _marks(text, frozenset(terms))
    start = _best_window(text, marks, max_words) if len(text) > 2 * max_words else 0
    shown = _words(max_words).search(text, start)
    if not shown:
        return ""
    start, end = shown.span()
    places = [start, *(p for a, b, _ in marks if start <= a and b <= end for p in (a, b)), end]
    pieces = [text[a:b] for a, b in pairwise(places)]
    marked = "".join(f"**{piece}**" if index % 2 else piece for index, piece in enumerate(pieces))
    before, after = "… " if text[:start].strip() else "", " …" if text[end:].strip() else ""
    return f"{before}{' '.join(marked.split())}{after}"


@cache
def _words(most: int) -> re.Pattern[str]:
    return re.compile(rf"\S+(?:\s+\S+){{0,{max(most, 1) - 1}}}")


def densest(text: str, terms: Iterable[str], size: int) -> tuple[int, int]:
    """The start and end of the piece of a text, at most `size` characters, with the most matches.

    It begins and ends at a line or a word. Without matches, it is the beginning of the text.
    """
    marks = sorted(analyze.matches(text, frozenset(terms)))
    best, first, start, counts = (0, 0), 0, 0, Counter[str]()
    for last, (_, end, term) in enumerate(marks):
        counts[term] += 1
        while end - marks[first][0] > size // 2 and first < last:
            counts[marks[first][2]] -= 1
            first += 1
        score = sum(count > 0 for count in counts.values()), last - first
        if score > best:
            best, start = score, max(0, marks[first][0] - size // 4)
    start = _edge(text, start)
    if start + size >= len(text):
        return start, len(text)
    return start, max(start + 1, _edge(text, start + size))


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
        if not overlaps and not (fences and any(a <= start < b for a, b in fences)):
            marks.append((start, end, term))
    return marks


def _best_window(text: str, marks: list[tuple[int, int, str]], max_words: int) -> int:
    """Where to begin: the window with the most different matches, then the most matches."""
    starts = [_word_start(text, mark[0]) for mark in marks]
    # The number of words before each match: only what is between two is counted.
    number = list(accumulate(len(text[a:b].split()) for a, b in pairwise([0, *starts])))
    best, begin, last, counts = (0, 0), 0, 0, Counter[str]()
    for first, start in enumerate(starts):
        while last < len(marks) and number[last] < number[first] + max_words - _LEAD:
            counts[marks[last][2]] += 1
            last += 1
        if (score := (len(counts), last - first)) > best:
            best, begin = score, start
        counts[marks[first][2]] -= 1
        if not counts[marks[first][2]]:
            del counts[marks[first][2]]
    return _back(text, begin, _LEAD) if _has_more(text, max_words) else 0


def _has_more(text: str, words: int) -> bool:
    shown = _words(words).search(text)
    return bool(shown and text[shown.end() :].strip())


def _word_start(text: str, place: int) -> int:
    """The start of the word that a place is in."""
    while place and not text[place - 1].isspace():
        place -= 1
    return place


def _back(text: str, place: int, words: int) -> int:
    """A place some words earlier."""
    for _ in range(words):
        place = _word_start(text, len(text[:place].rstrip()))
    return place
