"""One chunk for each section's own text, whatever its size; heading lines are in none (ra)."""

from __future__ import annotations

from collections.abc import Iterator

from quire.chunkers.base import Cut
from quire.config import NodesSettings
from quire.tokens import Counter
from quire.tree import Tree, has_text


def split(tree: Tree, settings: NodesSettings, counter: Counter) -> Iterator[Cut]:
    """The bodies that are not blank."""
    text = tree.document.text
    for section in tree.sections:
        start, end = section.body_start, section.body_end
        if has_text(text, start, end):
            yield Cut(start, end, section)
