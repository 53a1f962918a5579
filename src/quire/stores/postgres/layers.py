"""Which levels of each word must be looked up to find the best chunks, and no others.

Input: words with their weights, and how many chunks have each on each level. Output: of each word the least
level to look up. Always: a chunk that has words only below these levels scores at most what was allowed, so
none of the best is missed, whatever the counts were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quire.stores.postgres.terms import LEVEL_COUNT, most_of

# Shares of the chunks with a term that are on each level, where they are not known. Of bench/postgres.py.
USUAL_SHARES = (0.25, 0.22, 0.17, 0.12, 0.09, 0.07, 0.05, 0.03)


@dataclass(frozen=True, slots=True)
class Word:
    """A word that chunks are looked up by."""

    most: tuple[float, ...]  # that it adds to a score, on each level; () for what has no levels
    chunks: tuple[float, ...]  # that have it, on each level

    def bound(self, least: int) -> float:
        """The most that it adds to the score of a chunk below a level."""
        return self.most[least - 1] if least else 0.0

    def found(self, least: int) -> float:
        """How many chunks have it from a level on."""
        return sum(self.chunks[least:])


def word(weight: float, shares: Sequence[float], chunks: float, average: float) -> Word:
    """A word of a weight in so many chunks, of which shares are on each level."""
    most = tuple(weight * most_of(level, average) for level in range(LEVEL_COUNT))
    return Word(most, tuple(share * chunks for share in shares))


def least_levels(words: Sequence[Word], room: float) -> list[int]:
    """The least level of each word, so that chunks with lower ones alone score at most `room`.

    Levels are left out one step after the other, always those that save the most chunks for what they take.
    """
    least = [0] * len(words)
    while steps := [step for at in range(len(words)) for step in _steps(words[at], at, least[at], room)]:
        _, at, level = max(steps)
        room -= words[at].bound(level) - words[at].bound(least[at])
        least[at] = level
    return least


def _steps(word: Word, at: int, least: int, room: float) -> list[tuple[float, int, int]]:
    """What a word may leave out next: the chunks saved for what it takes, the word, and its new level."""
    steps = []
    for level in range(least + 1, len(word.most) + 1):
        takes, saves = word.bound(level) - word.bound(least), word.found(least) - word.found(level)
        if takes <= room and saves > 0:
            steps.append((saves / max(takes, 1e-9), at, level))
    return steps


def probe(words: Sequence[Word], enough: float) -> list[int]:
    """The highest levels at which so many chunks should be found."""
    total = sum(word.most[-1] for word in words if word.most)
    least = [0] * len(words)
    for tenths in range(9, -1, -1):
        least = least_levels(words, total * tenths / 10)
        if found(words, least) >= enough:
            break
    return least


def suffices(least: Sequence[int], needed: Sequence[int]) -> bool:
    """Whether all that is needed was looked up."""
    return all(one <= other for one, other in zip(least, needed, strict=True))


def found(words: Sequence[Word], least: Sequence[int]) -> float:
    """How many chunks are found from these levels on, those with several words counted for each."""
    return sum(one.found(level) for one, level in zip(words, least, strict=True))
