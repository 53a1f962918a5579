"""Overlapping runs of sentences, whatever the headings (brain and documents).

Chunks cover the text and stay within the budget, overlap included; without overlap they join to
the text. A sentence over the budget is cut at a word, or is its own chunk if `oversize` is "keep".
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from quire import sentences
from quire.chunkers.base import Cut
from quire.config import WindowsSettings
from quire.tokens import Counter
from quire.tree import Tree


def split(tree: Tree, settings: WindowsSettings, counter: Counter) -> Iterator[Cut]:
    """Windows in order of their starts, each under the section it starts in."""
    if tree.has_text(0, len(tree.document.text)):
        for start, end in _Windows(tree, settings, counter).spans():
            yield Cut(start, end, tree.at(start))


class _Windows:
    def __init__(self, tree: Tree, settings: WindowsSettings, counter: Counter) -> None:
        self.text, self.size = tree.document.text, len(tree.document.text)
        self.markup = tree.document.markup
        self.budget, self.least = settings.max_tokens, settings.min_chars
        self.overlap = int(settings.overlap * settings.max_tokens)
        self.keep = settings.oversize == "keep"
        self.counter = counter
        self.ends: list[int] = []  # of sentences

    def spans(self) -> Iterator[tuple[int, int]]:
        start = covered = 0
        if (reach := self._reach(0)) < self.size:
            self.ends = sentences.in_paragraphs(self.markup)
        while reach < self.size and covered < self.size:
            start, covered = self._window(start, covered, reach)
            yield start, covered
            start, reach = self._seed(start, covered)
        if covered < self.size:
            yield start, self.size

    def _window(self, start: int, covered: int, reach: int) -> tuple[int, int]:
        """The window that begins with the overlap with the last one, `[start, covered)`."""
        above = max(covered, start + self.least - 1)  # its end is after this
        limit = min(max(above + 1, reach), self.size - self.least)
        if limit <= above:  # too little would be left for another window
            return self._with_less(start, covered, self.size), self.size
        index = bisect_right(self.ends, limit)
        while index and (end := self.ends[index - 1]) > above:
            if self._fits(start, end):
                return start, end
            index -= 1
        return self._long_sentence(start, covered, above, limit)

    def _long_sentence(self, start: int, covered: int, above: int, limit: int) -> tuple[int, int]:
        """The window if not even the next sentence fits."""
        end = self.ends[bisect_right(self.ends, covered)]
        if end > self.size - self.least:  # too little would be left after it
            end = self.size
        if self._fits(covered, end):
            less = self._with_less(start, covered, end)
            shared = self.counter.count(self.text, less, covered)
            if shared >= max(1, self.overlap // 4) and end - less >= self.least:
                return less, end
        elif self.keep:
            return covered, end
        end = sentences.word_edge(self.text, covered, limit)
        while end > covered + 1 and not self._fits(start, end):
            end = sentences.character_edge(self.text, covered, end - 1)
        if end <= above:
            end = sentences.next_character(self.text, covered, limit)
        return start, end if self.size - end >= self.least else self.size

    def _with_less(self, start: int, covered: int, end: int) -> int:
        """The start of a window to `end` with less overlap, so that it stays within the budget."""
        if self._fits(start, end) or not self._fits(covered, end):
            return start
        return self._word_after(start, self._furthest(start, end, self.budget), covered)

    def _seed(self, start: int, covered: int) -> tuple[int, int]:
        """The start of the next window (a sentence if one fits the overlap, else a word), and its reach."""
        if not self.overlap:
            return covered, self._reach(covered)
        first = self._furthest(start + 1, covered, self.overlap)
        index = bisect_left(self.ends, first)
        sentence = self.ends[index] if index < len(self.ends) else covered
        seed = sentence if sentence < covered else self._word_after(start, first, covered)
        reach = self._reach(seed)
        return (seed, reach) if reach > covered else (covered, self._reach(covered))

    def _word_after(self, start: int, first: int, end: int) -> int:
        """The first start of a word in `[first, end)`, else of a character."""
        for at in range(first, end):
            if self.text[at - 1].isspace() and not self.text[at].isspace():
                return at
        return min(end, sentences.next_character(self.text, start, first))

    def _furthest(self, low: int, end: int, budget: int) -> int:
        """The first place from `low` on from which a budget reaches to `end`."""
        places = range(low, end)
        return low + bisect_left(places, True, key=lambda at: self.counter.fits(self.text, at, end, budget))

    def _reach(self, start: int) -> int:
        """How far a window from `start` may go. A minimum beyond the budget wins over it."""
        least = min(self.size, start + self.least)
        return max(least, self.counter.reach(self.text, start, self.size, self.budget))

    def _fits(self, start: int, end: int) -> bool:
        return end - start <= self.least or self.counter.fits(self.text, start, end, self.budget)
