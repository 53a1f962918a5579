"""One chunk for each section's own text, whatever its size; no chunk has heading lines (ra)."""

from __future__ import annotations

from collections.abc import Iterator

from quire.chunkers.base import Cut
from quire.config import NodesSettings
from quire.tokens import Counter
from quire.tree import Tree


def split(tree: Tree, settings: NodesSettings, counter: Counter) -> Iterator[Cut]:
    """The bodies that are not blank; of a document of nothing but headings, the document."""
    for section in tree.sections:
        if not section.is_blank:
            yield Cut(section.body_start, section.body_end, section)
    if tree.headings and all(section.is_blank for section in tree.sections):
        yield Cut(0, len(tree.document.text), tree.root)
