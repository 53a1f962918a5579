"""Token counters. Each counts the tokens of a span, and finds how far a budget reaches.

Always: `count(text, start, reach(text, start, end, budget)) <= budget`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Protocol

from quire.config import TokenSettings
from quire.errors import MissingExtra


class Counter(Protocol):
    """Counts the tokens of a text."""

    def count(self, text: str, start: int, end: int) -> int:
        """The number of tokens in `text[start:end]`."""
        ...

    def reach(self, text: str, start: int, end: int, budget: int) -> int:
        """How far from `start`, at most to `end`, a budget of tokens goes."""
        ...


class Chars:
    """Four characters per token: fast, and on average a fifth too high for English."""

    def count(self, text: str, start: int, end: int) -> int:
        return (end - start + 3) // 4

    def reach(self, text: str, start: int, end: int, budget: int) -> int:
        return min(end, start + 4 * budget)


class Words:
    """A word, a punctuation mark, or a character of a script without spaces is a token."""

    def __init__(self) -> None:
        spaceless = r"\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
        self._token = re.compile(rf"[{spaceless}]|[^\W{spaceless}]+|[^\w\s]")

    def count(self, text: str, start: int, end: int) -> int:
        return sum(1 for _ in self._token.finditer(text, start, end))

    def reach(self, text: str, start: int, end: int, budget: int) -> int:
        for number, token in enumerate(self._token.finditer(text, start, end)):
            if number == budget:
                return token.start()
        return end


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

    def reach(self, text: str, start: int, end: int, budget: int) -> int:
        fits, over = start, min(end, start + 16 * budget) + 1
        while over - fits > 1:
            middle = (fits + over) // 2
            if self.count(text, start, middle) <= budget:
                fits = middle
            else:
                over = middle
        return fits


def counter(settings: TokenSettings) -> Counter:
    """The counter that the settings name."""
    return _named(settings.counter)


@lru_cache(maxsize=8)
def _named(name: str) -> Counter:
    kinds: dict[str, Callable[[], Counter]] = {"chars": Chars, "words": Words, "bpe": Bpe}
    return kinds[name]()
