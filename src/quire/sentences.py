"""Text to sentences and words, as offsets. The only file that knows the segmenter.

White space after a sentence or a word belongs to it, so they join to the text.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from quire import later

# The segmenter's time grows with the square of the number of sentences or quotation marks (82 s for 400,000
# characters of "好。", and "`" is a quotation mark), so it gets one window at a time.
_WINDOW = 2048

_PARAGRAPH = later.pattern(r"\n[ \t]*\n\s*")
_LONGEST_CHARACTER = 64  # a longer pile of accents or family of emoji may be split
_JOINER = "\u200d"
_JOINED = later.pattern("[\u0300-\u036f\u20d0-\u20ff\u200d\ufe00-\ufe0f\ufe20-\ufe2f\U0001f3fb-\U0001f3ff]")


def in_paragraphs(text: str) -> list[int]:
    """The ends of the sentences of a text, none crossing a blank line; the last is its length."""
    found, start = [], 0
    for gap in _PARAGRAPH.finditer(text):
        found += [*ends(text, start, gap.start())[:-1], gap.end()]
        start = gap.end()
    return found + ends(text, start, len(text)) if start < len(text) else found


def word_edge(text: str, low: int, high: int) -> int:
    """The last place in `(low, high]` where a word begins, else where a character begins.

    Searches for a word at most halfway back. A character must begin at `low`.
    """
    for at in range(high, (low + high) // 2, -1):
        if at >= len(text) or (text[at - 1].isspace() and not text[at].isspace()):
            return at
    return character_edge(text, low, high)


def character_edge(text: str, low: int, high: int) -> int:
    """The last place in `(low, high]` that splits no visible character, if there is one near.

    A character must begin at `low`.
    """
    for at in range(high, max(low, high - _LONGEST_CHARACTER), -1):
        if not _parts_character(text, low, at):
            return at
    return high


def next_character(text: str, low: int, at: int) -> int:
    """The first place from `at` on that splits no character, if there is one near.

    A character must begin at `low`.
    """
    near = range(at, at + _LONGEST_CHARACTER)
    return next((place for place in near if not _parts_character(text, low, place)), at)


def _parts_character(text: str, low: int, at: int) -> bool:
    if at >= len(text):
        return False
    before, after = text[at - 1], text[at]
    if text.isascii():
        return before == "\r" and after == "\n"
    if _is_flag_half(before) and _is_flag_half(after):
        run = at
        while run > low and _is_flag_half(text[run - 1]):
            run -= 1
        return (at - run) % 2 == 1
    return before == _JOINER or bool(_JOINED.match(after)) or (before, after) == ("\r", "\n")


def _is_flag_half(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def ends(text: str, start: int, end: int) -> list[int]:
    """The ends of the sentences of `text[start:end]`; the last is `end`."""
    found: list[int] = []
    boundaries = _segmenter()
    while start < end:
        stop = min(end, start + _WINDOW)
        inside = [start + int(b["end_index"]) for b in boundaries("en", text[start:stop])]
        inside = [place for place in inside if place < stop]
        found += inside
        # The last sentence may continue after the window: segment it again with the text after it.
        start = inside[-1] if inside and stop < end else stop
    return [*found, end]


@lru_cache(maxsize=1)
def _segmenter() -> Any:
    from sentencex import get_sentence_boundaries

    return get_sentence_boundaries
