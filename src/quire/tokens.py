"""Token counters. Each counts the tokens of a span, and finds how far a budget reaches.

Always: `count(text, start, reach(text, start, end, budget)) <= budget`. `fits` and `reach` read no more of a
span than the budget needs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import islice
from typing import Any, Protocol

from quire.config import TokenSettings
from quire.errors import MissingExtra


class Counter(Protocol):
    """Counts the tokens of a text."""

    def count(self, text: str, start: int, end: int) -> int:
        """The number of tokens in `text[start:end]`."""
        ...

    def fits(self, text: str, start: int, end: int, budget: int) -> bool:
        """Whether `text[start:end]` has at most a budget of tokens."""
        ...

    def reach(self, text: str, start: int, end: int, budget: int) -> int:
        """How far from `start`, at most to `end`, a budget of tokens goes."""
        ...


class Chars:
    """Four characters per token: fast, and on average a fifth too high for English."""

    def count(self, text: str, start: int, end: int) -> int:
        return (end - start + 3) // 4

    def fits(self, text: str, start: int, end: int, budget: int) -> bool:
        return end - start <= 4 * budget

    def reach(self, text: str, start: int, end: int, budget: int) -> int:
        return min(end, start + 4 * budget)


class Words:
    """A word, a punctuation mark, or a character of a script without spaces is a token."""

    def __init__(self) -> None:
        spaceless = r"\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
        self._token = re.compile(rf"[{spaceless}]|[^\W{spaceless}]+|[^\w\s]")

    def count(self, text: str, start: int, end: int) -> int:
        return sum(1 for _ in self._token.finditer(text, start, end))

    def fits(self, text: str, start: int, end: int, budget: int) -> bool:
        return self.reach(text, start, end, budget) == end

    def reach(self, text: str, start: int, end: int, budget: int) -> int:
        over = next(islice(self._token.finditer(text, start, end), max(budget, 0), None), None)
        return over.start() if over else end


_LONGEST_TOKEN = 128  # characters: no token of cl100k is longer


class Bpe:
    """Exact counts for models that use cl100k, by rs-bpe, which includes the vocabulary."""

    def __init__(self) -> None:
        try:
            from rs_bpe.bpe import openai
        except ImportError:
            raise MissingExtra("Exact token counting", "tokens") from None
        self._encoder: Any = openai.cl100k_base()

    def count(self, text: str, start: int, end: int) -> int:
        return int(self._encoder.count(text[start:end]))

    def fits(self, text: str, start: int, end: int, budget: int) -> bool:
        if end - start > _LONGEST_TOKEN * budget:
            return False
        return self._encoder.count_till_limit(text[start:end], budget) is not None

    def reach(self, text: str, start: int, end: int, budget: int) -> int:
        if self.fits(text, start, end, budget):
            return end
        place = start + len(self._beginning(text, start, end, max(budget, 0)))
        while not self.fits(text, start, place, budget) and place > start:
            place -= 1  # text may have other tokens where it is cut off
        return place

    def _beginning(self, text: str, start: int, end: int, budget: int) -> str:
        """The first tokens of a text, without half a character at the end."""
        stop = start + 8 * (budget + 1)
        while len(found := self._encoder.encode(text[start : min(end, stop)])) <= budget and stop < end:
            stop += stop - start
        del found[budget:]
        while (beginning := self._encoder.decode(found)) is None:
            found.pop()
        return str(beginning)


def counter(settings: TokenSettings) -> Counter:
    """The counter that the settings name."""
    return _named(settings.counter)


@lru_cache(maxsize=8)
def _named(name: str) -> Counter:
    kinds: dict[str, Callable[[], Counter]] = {"chars": Chars, "words": Words, "bpe": Bpe}
    return kinds[name]()
