"""Subtrees that fit are chunks; the others are cut at their topmost headings, to any depth (Tome).

Chunks join to the text. Only the tree and the token counter decide.
"""

from __future__ import annotations

from collections.abc import Iterator

from quire.chunkers.base import Cut
from quire.config import SectionsSettings
from quire.errors import BrokenInvariant
from quire.tokens import Counter
from quire.tree import Section, Tree


def split(tree: Tree, settings: SectionsSettings, counter: Counter) -> Iterator[Cut]:
    """The cuts in document order. Raises BrokenInvariant for text over the limit without headings."""
    text, sections = tree.document.text, tree.sections
    starts = [section.start for section in sections] + [len(text)]
    after = _after_subtree(sections)
    start = position = 0
    while tree.has_text(start, len(text)):
        section, position = sections[position], after[position]
        if counter.count(text, start, starts[position]) > settings.max_tokens:
            position = section.position + 1
            _check(section, counter.count(text, start, section.own_end), settings.max_tokens)
        if tree.has_text(start, starts[position]):  # a blank beginning joins the text after it
            yield Cut(start, starts[position], section)
            start = starts[position]


def _after_subtree(sections: list[Section]) -> list[int]:
    """For each section, the position of the first section after its subtree."""
    after = [len(sections)] * len(sections)
    waiting: list[Section] = []
    for section in sections:
        while waiting and waiting[-1].level >= section.level:
            after[waiting.pop().position] = section.position
        waiting.append(section)
    return after


def _check(section: Section, tokens: int, limit: int) -> None:
    if tokens > limit:
        raise BrokenInvariant(
            f"{section.address}: {tokens:,} tokens with no heading to cut them at are over "
            f"max_tokens = {limit:,}. Strategy 'auto' cuts such text.",
            address=section.address,
            tokens=tokens,
            max_tokens=limit,
        )
