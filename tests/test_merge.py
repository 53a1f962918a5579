"""Hits to sections. The tree of each test is drawn in it; a number is the score of a hit."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from inspect import signature
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire import merge
from quire.merge import Key
from quire.result import Hit, Merged, Node


@dataclass
class Drawing:
    """What merging gets, and the titles to show it by."""

    nodes: dict[Key, Node] = field(default_factory=dict)
    hits: list[Hit] = field(default_factory=list)
    titles: dict[Key, str] = field(default_factory=dict)

    def add(self, parent: int, level: int, title: str, scores: list[float], document: int = 1) -> int:
        """Hang a section under another; its position."""
        position = sum(key[0] == document for key in self.nodes)
        self.nodes[document, position] = Node(document, position, parent, level, 0)
        self.titles[document, position] = title
        if parent >= 0:
            above = self.nodes[document, parent]
            self.nodes[document, parent] = replace(above, children=above.children + 1)
        self.hits += [Hit(len(self.hits) + n, document, position, s) for n, s in enumerate(scores)]
        return position


def draw(outline: str, document: int = 1, drawing: Drawing | None = None) -> Drawing:
    """An indented outline as a tree; the first line is the root, and numbers after a title are hits."""
    drawing = drawing or Drawing()
    line: list[int] = []
    for row in outline.strip("\n").splitlines():
        title, *scores = row.split()
        level = (len(row) - len(row.lstrip())) // 2
        parent = line[level - 1] if level else -1
        line[level:] = [drawing.add(parent, level, title, [float(score) for score in scores], document)]
    return drawing


def show(drawing: Drawing, **settings: float) -> list[str]:
    """Each result as `Title score`, and what it replaced: `Title score < A B`."""
    return [told(drawing, result) for result in merge.sections(drawing.hits, drawing.nodes, **settings)]  # type: ignore[arg-type]


def told(drawing: Drawing, result: Merged) -> str:
    title = drawing.titles[result.document, result.section]
    replaced = [drawing.titles[result.document, position] for position in result.merged_from]
    return f"{title} {result.score:g}" + (f" < {' '.join(replaced)}" if replaced else "")


def merged(outline: str, **settings: float) -> list[str]:
    return show(draw(outline), **settings)


def test_the_defaults_are_those_of_the_specification() -> None:
    """aggregation_threshold 0.5, min_aggregation_matches 2, score_cap_multiplier 2.0."""
    defaults = {name: p.default for name, p in signature(merge.sections).parameters.items()}
    assert defaults["threshold"] == 0.5
    assert defaults["min_matches"] == 2
    assert defaults["score_cap"] == 2.0


def test_no_hits_give_no_sections() -> None:
    """Merging what is not there gives nothing."""
    assert merged("Doc\n  A\n    B") == []


MOST = """
Doc
  A
    B 1
    C 2
    D
  Z
"""


def test_a_parent_replaces_most_of_its_children() -> None:
    """Two of three children match, so the parent stands for them."""
    assert merged(MOST) == ["A 3 < B C"]


def test_the_example_of_the_module() -> None:
    """What the head of merge.py draws."""
    outline = """
Guide
  Install
    Linux 0.5
    Mac 0.3
    Windows
  Use
    Start 0.2
"""
    assert merged(outline) == ["Install 0.8 < Linux Mac", "Start 0.2"]


HALF = """
Doc
  A
    B 1
    C 2
    D
    E
  Z
"""


def test_exactly_the_threshold_is_not_over_it() -> None:
    """Ruling: "exceeds" is strictly more."""
    assert merged(HALF) == ["C 2", "B 1"]
    assert merged(HALF, threshold=0.49) == ["A 3 < B C"]


def test_a_decimal_threshold_is_compared_exactly() -> None:
    """Ruling: 29 of 100 do not exceed 0.29, though 29 > 0.29 * 100 in floating point."""
    children = ["    M 1"] * 29 + ["    N"] * 71
    outline = "\n".join(["Doc", "  A", *children, "  Z"])
    assert len(merged(outline, threshold=0.29)) == 29
    assert len(merged(outline, threshold=0.28)) == 1


def test_an_only_child_is_too_few() -> None:
    """All children match, but they are fewer than the minimum."""
    outline = "Doc\n  A\n    B 1\n  Z"
    assert merged(outline) == ["B 1"]
    assert merged(outline, min_matches=1) == ["A 1 < B"]


def test_the_minimum_is_enough() -> None:
    """At least the minimum, not more than it."""
    assert merged(MOST, min_matches=2) == ["A 3 < B C"]
    assert merged(MOST, min_matches=3) == ["C 2", "B 1"]


def test_several_chunks_of_one_child_are_one_match() -> None:
    """Sections are counted, not chunks; a section scores as its best chunk."""
    assert merged("Doc\n  A\n    B 1 3 2\n    C\n  Z") == ["B 3"]


def test_an_aggregated_parent_counts_as_a_match_for_its_own_parent() -> None:
    """Merging goes bottom-up, and names all it replaced on the way."""
    outline = """
Doc
  A
    B
      C 1
      D 1
    E 1
    F
  Z
"""
    assert merged(outline) == ["A 3 < B C D E"]


def test_a_match_two_levels_down_does_not_count_for_the_grandparent() -> None:
    """A child that neither matches nor aggregates is no match, and its own child stays apart."""
    outline = """
Doc
  A
    B 1
    C 1
    D
      E 5
      F
      G
  Z
"""
    assert merged(outline) == ["E 5", "A 2 < B C"]
    assert merged(outline.replace("    C 1", "    C")) == ["E 5", "B 1"]


def test_a_parent_that_matches_is_returned_instead_of_its_children() -> None:
    """Even one child of many goes into it."""
    assert merged("Doc\n  A 1\n    B 0.5\n    C\n    D\n  Z") == ["A 1 < B"]


def test_a_matching_parent_takes_in_what_its_children_took_in() -> None:
    """Children merge first, then go into the parent whole."""
    outline = """
Doc
  A 1
    B
      C 1
      D 2
    E
    F
  Z
"""
    assert merged(outline) == ["A 3 < B C D"]


def test_a_matching_grandparent_leaves_a_grandchild_apart() -> None:
    """The rule is of parents and children; the section between them did not match."""
    assert merged("Doc\n  A 1\n    B\n      C 2\n  Z") == ["C 2", "A 1"]


def test_the_sum_of_the_children_is_capped_by_the_best() -> None:
    """At most twice the best child."""
    outline = "Doc\n  A\n    B 1\n    C 1\n    D 1\n  Z"
    assert merged(outline) == ["A 2 < B C D"]
    assert merged(outline, score_cap=2.5) == ["A 2.5 < B C D"]
    assert merged(outline, score_cap=9) == ["A 3 < B C D"]


def test_an_aggregated_child_counts_with_its_own_score() -> None:
    """The cap of each level is over the children of that level."""
    outline = """
Doc
  A
    B
      C 1
      D 1
      E 1
    F 1
    G 1
  Z
"""
    assert merged(outline) == ["A 4 < B C D E F G"]


@pytest.mark.parametrize(("own", "score"), [(1, 3), (3, 3), (7, 7)])
def test_a_matching_parent_scores_the_larger_of_its_own_and_the_aggregate(own: int, score: int) -> None:
    """Ruling: under rule 20 the larger of the two."""
    assert merged(f"Doc\n  A {own}\n    B 1\n    C 2\n  Z") == [f"A {score} < B C"]


def test_most_top_level_sections_do_not_make_the_document() -> None:
    """Aggregation stops at depth 1, whatever the threshold."""
    outline = "Doc\n  A 3\n  B 2\n  C 1\n  D"
    assert merged(outline) == ["A 3", "B 2", "C 1"]
    assert merged(outline, threshold=0) == ["A 3", "B 2", "C 1"]


def test_all_top_level_sections_make_the_document() -> None:
    """All match, so the document stands for them."""
    assert merged("Doc\n  A 2\n  B 1") == ["Doc 3 < A B"]


def test_top_level_sections_that_aggregate_make_the_document() -> None:
    """A top-level section that became a result counts as one that matches."""
    outline = """
Doc
  A
    B 1
    C 1
  D 1
"""
    assert merged(outline) == ["Doc 3 < A B C D"]


def test_a_single_top_level_section_does_not_make_the_document() -> None:
    """All top-level sections match, but one is fewer than the minimum."""
    assert merged("Doc\n  A\n    B 1\n    C 1") == ["A 2 < B C"]


def test_a_matching_preamble_stands_beside_the_sections() -> None:
    """The document is returned if it matches, and swallows nothing."""
    assert merged("Doc 1\n  A 3\n  B") == ["A 3", "Doc 1"]


def test_a_matching_preamble_goes_with_all_the_sections() -> None:
    """When all top-level children match, the document is one result, with its own hit in it."""
    assert merged("Doc 1\n  A 3\n  B 1") == ["Doc 4 < A B"]
    assert merged("Doc 9\n  A 3\n  B 1") == ["Doc 9 < A B"]


def test_a_document_without_headings_is_itself() -> None:
    """The document node matches by itself."""
    assert merged("Doc 1 2") == ["Doc 2"]


def test_the_depth_limit_is_the_children_of_the_root_whatever_their_level() -> None:
    """Ruling: where the top headings are h2, they are the top-level children."""
    drawing = draw("Doc\n  A\n    B 1\n    C 2\n  D")
    deeper = {key: replace(node, level=node.level + 1) for key, node in drawing.nodes.items() if key[1]}
    drawing.nodes.update(deeper)
    assert show(drawing) == ["A 3 < B C"]
    drawing.hits.append(Hit(9, 1, 4, 1.0))
    assert show(drawing) == ["Doc 4 < A B C D"]


def test_a_lone_leaf_stays_a_leaf() -> None:
    """Whatever stands above it did not match."""
    assert merged("Doc\n  A\n    B\n      C 1\n      D\n    E\n  Z") == ["C 1"]


def test_hits_are_kept_best_first() -> None:
    """A result stands for all hits of what it replaced, and for its own."""
    drawing = draw("Doc\n  A 2\n    B 1 5\n    C 3\n  Z")
    (result,) = merge.sections(drawing.hits, drawing.nodes)
    assert [(hit.section, hit.score) for hit in result.hits] == [(2, 5), (3, 3), (1, 2), (2, 1)]


def test_documents_do_not_merge_with_each_other() -> None:
    """Siblings are of one document; equal scores are in order of document and position."""
    drawing = draw("Doc\n  A\n    B 1\n    C\n    D 1\n    E", document=7)
    draw("Other\n  F\n    G 1\n    H\n  I 2", document=3, drawing=drawing)
    assert show(drawing) == ["I 2", "G 1", "B 1", "D 1"]


def test_only_nodes_above_a_hit_are_asked_for() -> None:
    """Merging needs the parents of what matched, not the tree."""
    drawing = draw(MOST)
    needed = {key: node for key, node in drawing.nodes.items() if drawing.titles[key] in "Doc A B C".split()}
    assert merge.sections(drawing.hits, needed) == merge.sections(drawing.hits, drawing.nodes)


SCORES = st.lists(st.integers(1, 64).map(lambda n: n / 8), max_size=2)  # eighths add up exactly


@st.composite
def drawings(draws: st.DrawFn) -> Drawing:
    """Up to three documents, each section hung under any on the line to the one before."""
    drawing = Drawing()
    for document in draws(st.lists(st.integers(1, 9), min_size=1, max_size=3, unique=True)):
        line = [drawing.add(-1, 0, "Doc", draws(SCORES), document)]
        for _ in range(draws(st.integers(0, 12))):
            level = draws(st.integers(1, min(len(line), 6)))
            line[level:] = [drawing.add(line[level - 1], level, "S", draws(SCORES), document)]
    return drawing


def run(drawing: Drawing) -> list[Merged]:
    return merge.sections(drawing.hits, drawing.nodes)


def best_of_each_section(result: Merged) -> list[float]:
    places = {hit.section for hit in result.hits}
    return [max(hit.score for hit in result.hits if hit.section == place) for place in places]


@given(drawings())
def test_every_hit_is_in_exactly_one_result(drawing: Drawing) -> None:
    """Nothing is lost and nothing is said twice."""
    found = [hit.chunk for result in run(drawing) for hit in result.hits]
    assert sorted(found) == [hit.chunk for hit in drawing.hits]


@given(drawings())
def test_results_are_sorted_and_each_section_is_one(drawing: Drawing) -> None:
    """Best first, ties in order of document and position."""
    order = [(-result.score, result.document, result.section) for result in run(drawing)]
    assert order == sorted(order)
    assert len({key[1:] for key in order}) == len(order)


@given(drawings(), st.randoms())
def test_the_order_of_the_hits_makes_no_difference(drawing: Drawing, random: Random) -> None:
    """Merging depends on what matched, not on how it was listed."""
    before = run(drawing)
    random.shuffle(drawing.hits)
    assert run(drawing) == before


@given(drawings())
def test_no_result_is_the_child_of_another(drawing: Drawing) -> None:
    """What replaces its children leaves none; only a matching preamble stands beside them."""
    results = run(drawing)
    took_in = {(r.document, r.section) for r in results if r.section > 0 or r.merged_from}
    parents = {(r.document, drawing.nodes[r.document, r.section].parent) for r in results}
    assert not took_in & parents


@given(drawings())
def test_a_hit_is_of_the_result_or_of_what_it_replaced(drawing: Drawing) -> None:
    """Every replaced section hangs, link by link, on the result."""
    for result in run(drawing):
        members = {result.section, *result.merged_from}
        assert {hit.section for hit in result.hits} <= members
        assert list(result.merged_from) == sorted(members - {result.section})
        assert all(drawing.nodes[result.document, place].parent in members for place in result.merged_from)


@given(drawings())
def test_scores_stay_between_the_best_hit_and_the_caps(drawing: Drawing) -> None:
    """Never under the best hit, never over the sum, never over twice the best for each level."""
    for result in run(drawing):
        members = (result.section, *result.merged_from)
        levels = [drawing.nodes[result.document, place].level for place in members]
        height = max(levels) - levels[0]
        best = result.hits[0].score
        assert best <= result.score <= min(sum(best_of_each_section(result)), best * 2**height)


@given(drawings())
def test_a_replaced_group_was_large_enough_or_its_parent_matched(drawing: Drawing) -> None:
    """Counted afresh for every section that is no leaf of its result."""
    matched = {(hit.document, hit.section) for hit in drawing.hits}
    for result in run(drawing):
        above = [drawing.nodes[result.document, place].parent for place in result.merged_from]
        for parent in set(above):
            share = above.count(parent) / drawing.nodes[result.document, parent].children
            aggregated = above.count(parent) >= 2 and (share > 0.5 if parent else share == 1)
            assert aggregated or (parent and (result.document, parent) in matched)


@given(drawings())
def test_a_group_left_apart_was_too_small_or_its_parent_is_the_root(drawing: Drawing) -> None:
    """Nothing that should have merged was left."""
    results = run(drawing)
    above = [(r.document, drawing.nodes[r.document, r.section].parent) for r in results]
    for document, parent in {key for key in above if key[1] >= 0}:
        count = above.count((document, parent))
        share = count / drawing.nodes[document, parent].children
        assert count < 2 or (share <= 0.5 if parent else share < 1)
