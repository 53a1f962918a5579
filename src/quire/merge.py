"""Hits to the sections that answer: siblings that match together become their parent.

Input: ranked chunks of any number of documents, and the nodes of their sections and all ancestors.
Output: sections, best first. Always: every hit is in exactly one section, the order of the hits makes
no difference, and only the root can be returned beside its own child.

    Guide
    ├── Install             ──►  Install  0.8   two of its three children match
    │   ├── Linux    0.5
    │   ├── Mac      0.3
    │   └── Windows
    └── Use
        └── Start    0.2    ──►  Start    0.2   one child alone stays as it is
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from quire.config import DEFAULT
from quire.result import Hit, Merged, Node

Key = tuple[int, int]  # a document's row and a section's position in it


def sections(
    hits: Sequence[Hit],
    nodes: Mapping[Key, Node],
    *,
    threshold: float = DEFAULT.search.aggregation_threshold,
    min_matches: int = DEFAULT.search.min_aggregation_matches,
    score_cap: float = DEFAULT.search.score_cap_multiplier,
    max_tokens: int | None = None,
    titled: Collection[Key] = (),
) -> list[Merged]:
    """The sections that answer, best first; ties are in order of document and position.

    `nodes` holds every section with a hit and all its ancestors. More than `threshold` of a section's
    children and at least `min_matches` of them must match for it to replace them; it then scores at
    most `score_cap` times the best of them, which assumes that scores are not negative. No section of
    more than `max_tokens` replaces others. `titled` sections match by their titles, with hits or without.
    """
    rules = _Rules(threshold, min_matches, score_cap, max_tokens)
    own = _by_section(hits)
    matching: defaultdict[Key, list[Merged]] = defaultdict(list)  # by the parent that may replace them
    settled: list[Merged] = []
    for key in _bottom_up(own, nodes):
        node, mine, below = nodes[key], own.get(key, []), matching.pop(key, [])
        if not rules.absorbs(node, bool(mine) or key in titled, below):
            settled += below
            below = []
        if mine or below:
            matching[node.document, node.parent].append(rules.merged(node, mine, below))
    settled += chain.from_iterable(matching.values())  # the roots: nothing is left above them
    return sorted(map(_in_order, settled), key=lambda it: (-it.score, it.document, it.section))


def apart(hits: Iterable[Hit]) -> list[Merged]:
    """The sections of hits, unmerged and unordered."""
    return [
        _in_order(Merged(*key, max(hit.score for hit in mine), tuple(mine)))
        for key, mine in _by_section(hits).items()
    ]


def runs(found: Merged, tokens: Mapping[int, int], max_tokens: int, share: float = 0.0) -> list[Merged]:
    """The hits of a section that is too large to return, as one result for each run of adjacent chunks.

    `tokens` are those of the chunks. No run has more than `max_tokens`, unless one chunk has; each of its
    chunks scores at least a share of its best.
    """
    groups: list[list[Hit]] = []
    for hit in sorted(found.hits, key=lambda hit: hit.chunk):
        last = groups[-1] if groups else []
        run = [*last, hit]
        scores = [one.score for one in run]
        fits = sum(tokens[one.chunk] for one in run) <= max_tokens and min(scores) >= share * max(scores)
        if last and hit.chunk == last[-1].chunk + 1 and fits:
            last.append(hit)
        else:
            groups.append([hit])
    return [
        _in_order(replace(found, score=max(hit.score for hit in group), hits=tuple(group), is_run=True))
        for group in groups
    ]


@dataclass(frozen=True, slots=True)
class _Rules:
    """When a section replaces its matching children, and what it then scores."""

    threshold: float
    min_matches: int
    score_cap: float
    max_tokens: int | None = None

    def absorbs(self, node: Node, matches: bool, below: list[Merged]) -> bool:
        """Whether a section, which matches by itself or not, replaces its matching children."""
        if self.max_tokens is not None and node.tokens > self.max_tokens:
            return False
        # Rule 4 lets the document be returned if it matches; it does not say that its children are then
        # dropped. A matching preamble must not swallow better sections: the root is returned beside its
        # children, and replaces them only if all of them match.
        if node.parent < 0:
            return self._enough(below) and len(below) == node.children
        # The share is a division: 29 / 100 is not over 0.29, but 29 is over 0.29 * 100 in floating point.
        return matches or (self._enough(below) and len(below) / node.children > self.threshold)

    def _enough(self, below: list[Merged]) -> bool:
        return len(below) >= max(1, self.min_matches)

    def merged(self, node: Node, mine: list[Hit], below: list[Merged]) -> Merged:
        """A section with its own hits and all that it replaces, not yet in order."""
        scores = [hit.score for hit in mine]
        if below:
            scores.append(self._aggregate([child.score for child in below]))
        return Merged(
            node.document,
            node.position,
            max(scores),
            (*mine, *chain.from_iterable(child.hits for child in below)),
            (*chain.from_iterable((child.section, *child.merged_from) for child in below),),
        )

    def _aggregate(self, scores: list[float]) -> float:
        return min(sum(scores), self.score_cap * max(scores))


def _by_section(hits: Iterable[Hit]) -> dict[Key, list[Hit]]:
    found: defaultdict[Key, list[Hit]] = defaultdict(list)
    for hit in hits:
        found[hit.document, hit.section].append(hit)
    return dict(found)


def _bottom_up(matched: Iterable[Key], nodes: Mapping[Key, Node]) -> list[Key]:
    """Every matching section and all their ancestors, children before parents."""
    family: set[Key] = set()
    for document, position in matched:
        while position >= 0 and (document, position) not in family:
            family.add((document, position))
            position = nodes[document, position].parent
    return sorted(family, reverse=True)  # positions are in document order: a child's is the larger


def _in_order(result: Merged) -> Merged:
    hits = sorted(result.hits, key=lambda hit: (-hit.score, hit.section, hit.chunk, hit.match))
    return replace(result, hits=tuple(hits), merged_from=tuple(sorted(result.merged_from)))
