"""Token counters. Each counts the tokens of a span, and finds how far a budget reaches.

`counter` counts the sizes of chunks; `budget_counter` counts what is returned, where no common tokenizer may
find more tokens than were asked for. Always: `count(text, start, reach(text, start, end, budget)) <= budget`.
`fits` and `reach` read no more of a span than the budget needs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, Protocol

from quire import later
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


_SPACELESS = r"\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"


class Words:
    """A word, a punctuation mark, or a character of a script without spaces is a token."""

    def __init__(self) -> None:
        self._token = re.compile(rf"[{_SPACELESS}]|[^\W{_SPACELESS}]+|[^\w\s]")

    def count(self, text: str, start: int, end: int) -> int:
        return sum(1 for _ in self._token.finditer(text, start, end))

    def fits(self, text: str, start: int, end: int, budget: int) -> bool:
        return self.reach(text, start, end, budget) == end

    def reach(self, text: str, start: int, end: int, budget: int) -> int:
        over = next(islice(self._token.finditer(text, start, end), max(budget, 0), None), None)
        return over.start() if over else end


_LONGEST_TOKEN = 128  # characters: no token of cl100k or o200k is longer


class Bpe:
    """Exact counts for one vocabulary of OpenAI, by rs-bpe, which includes it."""

    def __init__(self, vocabulary: str = "cl100k_base") -> None:
        try:
            from rs_bpe.bpe import openai
        except ImportError:
            raise MissingExtra("Exact token counting", "tokens") from None
        self._encoder: Any = getattr(openai, vocabulary)()

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


class Largest:
    """The larger of the exact counts for cl100k and o200k."""

    def __init__(self) -> None:
        self._each = Bpe("cl100k_base"), Bpe("o200k_base")

    def count(self, text: str, start: int, end: int) -> int:
        return max(one.count(text, start, end) for one in self._each)

    def fits(self, text: str, start: int, end: int, budget: int) -> bool:
        return all(one.fits(text, start, end, budget) for one in self._each)

    def reach(self, text: str, start: int, end: int, budget: int) -> int:
        while not self.fits(text, start, end, budget) and end > start:
            reached = min(one.reach(text, start, end, budget) for one in self._each)
            end = min(reached, end - 1)
        return end


# A word with the space before it, a character of a script without spaces, a digit, marks, white space.
_RUN = later.pattern(
    rf" ?[{_SPACELESS}]| ?[^\W\d_{_SPACELESS}]{{1,24}}|\d| ?(?:[^\w\s]|_){{1,16}}| {{1,16}}(?= )|.", re.DOTALL
)


class Bound:
    """At least as many tokens as common tokenizers find, on real text of any language.

    A run of text is put together from pieces that every one of the vocabularies in bench/tokens.py has as one
    token, in the order in which one of them does it. A character that is no such piece counts its bytes.

    Sure for any text: a tokenizer of bytes makes at most one token of each, so text of which nothing can be
    put together (digits, line ends, characters that are in no piece) is never over the bound; and each of the
    vocabularies can write any text in so many tokens. Measured, and not sure: that they do so, or are over it
    by less than MARGIN and SPARE. It held for all real text that bench/tokens.py tried; text that is made to
    defeat a tokenizer can be over it.
    """

    MARGIN, SPARE = 32, 4  # one token more for so many, and so many for each text

    def __init__(self) -> None:
        pieces = Path(__file__).with_name("pieces.txt").read_text("utf-8").replace("▁", " ")
        self._rank = {piece: rank for rank, piece in enumerate(pieces.split("\n"))}
        self._cost = lru_cache(maxsize=1 << 16)(self._pieces)

    def count(self, text: str, start: int, end: int) -> int:
        tokens = sum(map(self._cost, _RUN.findall(text, start, end)))
        return tokens + tokens // self.MARGIN + self.SPARE if tokens else 0

    def fits(self, text: str, start: int, end: int, budget: int) -> bool:
        return self._over(text, start, end, budget) == end

    def reach(self, text: str, start: int, end: int, budget: int) -> int:
        end = self._over(text, start, end, budget)
        while not self.fits(text, start, end, budget):
            end -= 1  # spaces may be other runs where they are cut off
        return end

    def _over(self, text: str, start: int, end: int, budget: int) -> int:
        """Where the first run begins that is over a budget; the end if there is none."""
        room = budget - self.SPARE
        room -= (room + 1) // (self.MARGIN + 1)
        for run in _RUN.finditer(text, start, end):
            room -= self._cost(run[0])
            if room < 0:
                return run.start()
        return end

    def _pieces(self, run: str) -> int:
        """How many pieces a run has, and bytes that are in none, once no two can be put together."""
        parts, none = [*run], len(self._rank)
        while len(parts) > 1:
            ranks = [self._rank.get(one + next, none) for one, next in pairwise(parts)]
            if (lowest := min(ranks)) == none:
                break
            at = ranks.index(lowest)
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        return sum(1 if part in self._rank else len(part.encode("utf-8", "surrogatepass")) for part in parts)


def counter(settings: TokenSettings) -> Counter:
    """The counter of chunk sizes that the settings name."""
    return _named(settings.counter)


def budget_counter(settings: TokenSettings) -> Counter:
    """The counter for what is returned: exact if the settings say so, else an upper bound."""
    return _named("largest" if settings.counter == "bpe" else "bound")


@lru_cache(maxsize=8)
def _named(name: str) -> Counter:
    kinds: dict[str, Callable[[], Counter]] = {
        "chars": Chars,
        "words": Words,
        "bpe": Bpe,
        "largest": Largest,
        "bound": Bound,
    }
    return kinds[name]()
