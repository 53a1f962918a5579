"""A text and the terms of a query to a snippet: the words around the best matches."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

from quire import analyze

_FENCE_LINE = re.compile(r"^[ \t]*(?:`{3,}|~{3,}).*$", re.MULTILINE)


def snippet(text: str, terms: Iterable[str], max_words: int = 50) -> str:
    """A limited number of words around the best matches, matches in `**`, white space folded."""
    wanted = frozenset(terms)
    words = [(m.start(), m.end()) for m in re.finditer(r"\S+", text)]
    marks = _marks(text, wanted)
    first = _best_window(words, marks, max_words)
    shown = words[first : first + max_words]
    if not shown:
        return ""
    start, end = shown[0][0], shown[-1][1]
    places = [start, *(p for a, b, _ in marks if start <= a and b <= end for p in (a, b)), end]
    pieces = [text[a:b] for a, b in pairwise(places)]
    marked = "".join(f"**{piece}**" if index % 2 else piece for index, piece in enumerate(pieces))
    before, after = "… " if first else "", " …" if first + max_words < len(words) else ""
    return f"{before}{' '.join(marked.split())}{after}"


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
    fences = [m.span() for m in _FENCE_LINE.finditer(text)]
    marks: list[tuple[int, int, str]] = []
    for start, end, term in analyze.matches(text, wanted):
        overlaps = marks and start < marks[-1][1]
        if not overlaps and not any(a <= start < b for a, b in fences):
            marks.append((start, end, term))
    return marks


def _best_window(words: list[tuple[int, int]], marks: list[tuple[int, int, str]], max_words: int) -> int:
    """The word to begin at: the window with the most different matches, then the most matches."""
    if len(words) <= max_words or not marks:
        return 0
    places = sorted(range(len(marks)), key=lambda i: marks[i][0])
    word_of, at = [], 0
    for i in places:
        while at + 1 < len(words) and words[at + 1][0] <= marks[i][0]:
            at += 1
        word_of.append(at)
    best, best_start = (0, 0), 0
    for i, first in enumerate(word_of):
        inside = [marks[j][2] for j in range(i, len(marks)) if word_of[j] < first + max_words - 5]
        score = len(set(inside)), len(inside)
        if score > best:
            best, best_start = score, max(0, first - 5)
    return best_start
