"""The numbers of the fifth document: the tree of headings, and merging.

Merging is tested with `search.merging = "ra"`, and each section is one chunk.
"""

from __future__ import annotations

from typing import Any

import pytest

import quire
from tests.acceptance.conftest import cli, config

# Each section is a chunk, and sections merge by the founding rules.
NODES = {"chunk": {"strategy": "nodes"}, "search": {"merging": "ra"}}
GUIDE = """\
---
title: The Guide
---
Préamble.

# Guide

Wélcome.

## Install

Use pip.

### Linux

Type apt.

## Empty

## Use

Run it.

# Appendix

End.
"""


def tree(text: str, path: str = "guide.md") -> quire.Tree:
    return quire.tree(quire.Document.from_text(text, path, collection="docs"))


def sections(text: str) -> dict[str, quire.Section]:
    """The sections of a text by their titles, without the root."""
    return {section.title: section for section in tree(text).sections[1:]}


def test_r1_headings_have_level_text_and_the_bytes_of_their_lines() -> None:
    """R1: Headings of levels 1 to 6 are found in order, with their levels, texts and bytes."""
    found = tree(
        "é\n\n# One `code`\n\na\n\n## *Two* ##\n\nb\n\n### Three\n\nc\n\n"
        "#### Four\n\nd\n\n##### Five\n\ne\n\n###### Six\n\nf\n\n"
        "####### seven\n\nSetext\n======\n\ng\n\nLower\n-----\n\n"
        "> # Quoted\n\n- # Listed\n\n```\n# Fenced\n```\n"
    )
    lines = [found.document.source[s.span_start : s.byte_start].decode() for s in found.sections[1:]]
    assert [(s.level, s.title, line) for s, line in zip(found.sections[1:], lines, strict=True)] == [
        (1, "One code", "# One `code`\n"),
        (2, "Two", "## *Two* ##\n"),
        (3, "Three", "### Three\n"),
        (4, "Four", "#### Four\n"),
        (5, "Five", "##### Five\n"),
        (6, "Six", "###### Six\n"),
        (1, "Setext", "Setext\n======\n"),
        (2, "Lower", "Lower\n-----\n"),
    ]


def test_r2_the_preamble_is_all_before_the_first_heading() -> None:
    """R2: The preamble is everything before the first heading."""
    root = tree(GUIDE).root
    assert root.body == GUIDE[: GUIDE.index("# Guide")]
    assert (root.byte_start, root.byte_end) == (0, len(root.body.encode()))
    assert tree("# At once\n\ntext\n").root.body == ""


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("---\ntitle: Front matter\n---\n# Heading\n\nx\n", "Front matter"),
        ("## Small\n\nx\n\n# Heading\n\ny\n\n# Second\n\nz\n", "Heading"),
        ("## Only this\n\nx\n", "Only this"),
        ("Just text.\n", "manual"),
    ],
)
def test_r3_the_root_is_the_document(text: str, title: str) -> None:
    """R3: The root is the document: depth 0, no slug, all bytes, titled by front matter, heading or file."""
    root = tree(text, "folder/manual.md").root
    assert (root.level, root.slug, root.title) == (0, "", title)
    assert (root.span_start, root.span_end) == (0, len(text.encode()))


def test_r4_depth_is_the_level_of_the_heading() -> None:
    """R4: The depth of a section is the level of its heading, also where levels are skipped."""
    found = tree("# A\n\na\n\n#### B\n\nb\n\n###### C\n\nc\n\n## D\n\nd\n")
    assert [section.level for section in found.sections] == [0, 1, 4, 6, 2]


def test_r5_a_span_ends_at_the_next_heading_of_equal_or_lower_depth() -> None:
    """R5: A section reaches from its heading line to the next heading of equal or lower depth, or the end."""
    found = tree(GUIDE)
    spans = {s.title: found.document.source[s.byte_start : s.span_end].decode() for s in found.sections[1:]}
    assert spans == {
        "Guide": GUIDE[GUIDE.index("\nWélcome") : GUIDE.index("# Appendix")],
        "Install": "\nUse pip.\n\n### Linux\n\nType apt.\n\n",
        "Linux": "\nType apt.\n\n",
        "Use": "\nRun it.\n\n",
        "Appendix": "\nEnd.\n",
    }


def test_r6_a_heading_with_nothing_under_it_is_discarded() -> None:
    """R6: A heading without text and without headings under it is no section, and renumbers no other."""
    found = tree(
        "# Foo\n\n# Foo\n\ntext\n\n# Parent\n\n## Child\n\ntext\n\n## Blank\n\n  \n\n# Outer\n## Inner\n"
    )
    assert [(s.title, s.slug) for s in found.sections[1:]] == [
        ("Foo", "foo-1"),
        ("Parent", "parent"),
        ("Child", "child"),
        ("Outer", "outer"),
    ]


def test_r7_the_parent_is_the_nearest_heading_above_of_lower_depth() -> None:
    """R7: A section hangs on the nearest heading before it of lower depth, else on the root, in order."""
    found = tree("### A\n\na\n\n# B\n\nb\n\n### C\n\nc\n\n## D\n\nd\n\n### E\n\ne\n\n## F\n\nf\n\n# G\n\ng\n")
    children = {s.slug: [child.title for child in found.children(s)] for s in found.sections}
    assert children == {
        "": ["A", "B", "G"],
        "a": [],
        "b": ["C", "D", "F"],
        "c": [],
        "d": ["E"],
        "e": [],
        "f": [],
        "g": [],
    }
    assert all(c.parent is s for s in found.sections for c in found.children(s))


def test_r8_a_body_is_what_no_child_has() -> None:
    """R8: A body is a section without its children; the root's is the preamble, or all without headings."""
    bodies = {section.title: section.body for section in tree(GUIDE).sections}
    assert bodies == {
        "The Guide": "---\ntitle: The Guide\n---\nPréamble.\n\n",
        "Guide": "\nWélcome.\n\n",
        "Install": "\nUse pip.\n\n",
        "Linux": "\nType apt.\n\n",
        "Use": "\nRun it.\n\n",
        "Appendix": "\nEnd.\n",
    }
    assert tree("No heading.\n\nAt all.\n").root.body == "No heading.\n\nAt all.\n"


def test_r9_every_byte_is_in_at_most_one_body() -> None:
    """R9: No byte is in two bodies, and a heading line is in none."""
    found = tree(GUIDE.replace("Type apt.", "Type\r\n\r\nápt.\n\nSetext\n------\n\nmore"))
    source = found.document.source
    bodies = [place for s in found.sections for place in range(s.byte_start, s.byte_end)]
    assert len(bodies) == len(set(bodies))
    outside = bytes(source[place] for place in range(len(source)) if place not in set(bodies))
    lines = b"# Guide\n## Install\n### Linux\nSetext\n------\n## Empty\n\n## Use\n# Appendix\n"
    assert outside == lines


def test_r10_no_section_is_dropped_or_split_for_its_size() -> None:
    """R10: Sections of one character and of a million are each one chunk."""
    large = "word " * 200_000 + "\n"
    chunks = quire.chunk(f"# Small\n\nx\n\n# Large\n\n{large}\n# Blank\n\n## Below\n\ny\n", "nodes")
    assert [(c.section.title, c.text.strip()) for c in chunks] == [
        ("Small", "x"),
        ("Large", large.strip()),
        ("Below", "y"),
    ]


def test_r11_plain_text_is_one_chunk_named_by_its_file() -> None:
    """R11: A plain text is one chunk: its title is the file's name, its id has no fragment."""
    text = "# A hash is no heading here.\n\nAnd so on.\n"
    (chunk,) = quire.chunk(tree(text, "notes/to do.txt"), "nodes")
    assert (chunk.address, chunk.text) == ("docs:notes/to do.txt", text)
    assert (chunk.section.title, chunk.breadcrumb) == ("to do", "> to do")


def test_r12_ids_are_made_of_tree_path_and_slug() -> None:
    """R12: A document's id is `tree:path`, a section's `tree:path#slug`; each has its parent and place."""
    found = tree(GUIDE, "a/guide.md").sections
    assert [(s.position, s.address, s.parent_id) for s in found] == [
        (0, "docs:a/guide.md", None),
        (1, "docs:a/guide.md#guide", "docs:a/guide.md"),
        (2, "docs:a/guide.md#install", "docs:a/guide.md#guide"),
        (3, "docs:a/guide.md#linux", "docs:a/guide.md#install"),
        (4, "docs:a/guide.md#use", "docs:a/guide.md#guide"),
        (5, "docs:a/guide.md#appendix", "docs:a/guide.md"),
    ]
    assert {section.document.address for section in found} == {"docs:a/guide.md"}


def test_r13_slugs() -> None:
    """R13: Slugs have lower case ASCII letters, digits, underscores, single hyphens; repeats are numbered."""
    slugs = {
        "Getting Started": "getting-started",
        "snake_case & 2 -- more": "snake_case-2-more",
        "- What's new?! -": "whats-new",
        "Straße": "strae",
        "文档": "heading",
        "!": "heading-1",
        "Foo": "foo",
        "foo": "foo-1",
        "Foo 1": "foo-1-1",
        "Bar": "bar",
        "Bar 1": "bar-1",
        "bar": "bar-2",
    }
    found = tree("".join(f"# {title}\n\ntext\n\n" for title in slugs))
    assert [section.slug for section in found.sections[1:]] == list(slugs.values())
    github = config({"tree": {"slug_style": "github"}})
    assert quire.tree("# 安装 指南\n\nx\n", config=github).sections[1].slug == "安装-指南"


def test_r14_byte_start_and_byte_end_are_those_of_the_body() -> None:
    """R14: byte_start and byte_end are the bytes of the body in the source, of sections and of chunks."""
    found = tree(GUIDE)
    spans = [(s.byte_start, s.byte_end, s.body) for s in found.sections]
    spans += [(c.byte_start, c.byte_end, c.section.body) for c in quire.chunk(found, "nodes")]
    assert [found.document.source[a:b].decode() for a, b, _ in spans] == [body for _, _, body in spans]
    assert (found.sections[1].byte_start, found.sections[1].byte_end) == (45, 57)


def test_r15_a_parent_is_rebuilt_from_the_tree(library: quire.Library) -> None:
    """R15: A section with all below it is rebuilt by joining the tree, by its range, and by reading it."""
    text = GUIDE.replace("## Empty\n\n", "")
    library.add(content=text, path="guide.md", collection="docs")
    found, source = library.toc("docs:guide.md"), text.encode()
    for section in found.sections:
        family = [section, *found.descendants(section)]
        whole = source[section.span_start : section.span_end]
        assert b"".join(source[s.span_start : s.byte_end] for s in family) == whole
        assert library.read(section.address).text == whole.decode()
    install = "## Install\n\nUse pip.\n\n### Linux\n\nType apt.\n\n"
    assert library.read("docs:guide.md#install").text == install


def test_r16_breadcrumbs(library: quire.Library) -> None:
    """R16: A breadcrumb names the document and the headings down to its own, before a text and not in it."""
    assert [section.breadcrumb for section in tree(GUIDE).sections[:4]] == [
        "> The Guide",
        "> The Guide › Guide",
        "> The Guide › Guide › Install",
        "> The Guide › Guide › Install › Linux",
    ]
    repeated = tree("Preamble.\n\n# Guide\n\na\n\n## Install\n\nb\n\n# Guide\n\nc\n").sections
    assert [section.breadcrumb for section in repeated] == [
        "> Guide",
        "> Guide",
        "> Guide › Install",
        "> Guide › Guide",
    ]
    library.config = config(NODES)
    library.add(content=GUIDE, path="guide.md", collection="docs")
    (result,) = library.search("apt").results
    assert (result.breadcrumb, result.snippet) == ("> The Guide › Guide › Install › Linux", "Type apt.")
    assert GUIDE[result.start : result.end] == "\nType apt.\n\n"
    shown, _ = cli("context", "apt", "--include", "chunks", "-L", library.url)
    assert "\n> The Guide › Guide › Install › Linux\n```\nType apt.\n```\n" in shown
    assert "Nothing has what is in quotes" in library.search('"Guide Install Linux"').notes[0]


def test_r17_every_body_is_one_indexed_chunk(library: quire.Library) -> None:
    """R17: Each body that is not blank is one chunk in the index, with its ids, title, place and bytes."""
    library.config = config(NODES)
    library.add(content=GUIDE, path="a/guide.md", collection="docs")
    sections = [s for s in library.toc("docs:a/guide.md").sections if s.body.strip()]
    chunks, document = library.chunks("docs:a/guide.md"), library.document("docs:a/guide.md")
    assert document is not None
    assert [chunk.text for chunk in chunks] == [section.body for section in sections]
    assert [chunk.index for chunk in chunks] == [0, 1, 2, 3, 4, 5]
    words = ["préamble", "wélcome", "pip", "apt", "run", "end"]
    for word, chunk, section in zip(words, chunks, sections, strict=True):
        assert (chunk.address, chunk.document_id) == (section.address, document.id)
        assert (chunk.byte_start, chunk.byte_end) == (section.byte_start, section.byte_end)
        (result,) = library.search(word).results
        assert (result.address, result.chunk_ids) == (section.address, (chunk.id,))
        assert (result.breadcrumb, result.depth) == (section.breadcrumb, section.level)
        assert (result.trail[-1], result.heading) == (section.title, section.title if section.slug else None)
        assert (result.path, result.collection) == ("a/guide.md", "docs")


def build(outline: str) -> str:
    """A document from an outline: `A: text` is a heading and its text, indented by its level from 1."""
    lines = []
    for line in outline.strip("\n").splitlines():
        title, _, text = line.strip().partition(": ")
        level = (len(line) - len(line.lstrip())) // 2 + 1
        lines.append(f"{'#' * level} {title.removesuffix(':')}\n\n{text}\n\n" if title else f"{text}\n\n")
    return "".join(lines)


def merged(library: quire.Library, text: str, query: str = "zebra", **search: Any) -> list[quire.Result]:
    """The results of a search by the founding rules, in a library of one document and many others."""
    if library.document("docs:a.md") is None:
        library.config = config(NODES)
        others = "".join(f"# Other {n}\n\nCows eat grass.\n\n" for n in range(20))
        library.add(content=others, path="others.md", collection="docs")
    library.config = config(NODES | {"search": {"merging": "ra", **search}})
    library.add(content=text, path="a.md", collection="docs")
    return list(library.search(query, explain=True).results)


def told(results: list[quire.Result]) -> list[str]:
    """Each result by its slug, and what it replaced: `p < a b`."""

    def slug(address: str) -> str:
        return address.partition("#")[2] or "document"

    return [
        " ".join([slug(r.address), *("<" for _ in r.merged_from[:1]), *map(slug, r.merged_from)])
        for r in results
    ]


HALF = build("""
Doc: welcome
  P:
    A: zebra
    B: a zebra and more
    C: lion
    D: lion
""")
MOST = HALF.replace("### D\n\nlion\n\n", "")


def test_r18_the_parameters_of_merging_and_their_defaults(library: quire.Library) -> None:
    """R18: Merging has a threshold of 0.5, a minimum of 2 matches and a cap of 2.0, which can be changed."""
    search = quire.Config().search
    assert (search.aggregation_threshold, search.min_aggregation_matches) == (0.5, 2)
    assert search.score_cap_multiplier == 2.0
    assert told(merged(library, HALF)) == ["a", "b"]
    assert told(merged(library, HALF, aggregation_threshold=0.49)) == ["p < a b"]
    assert told(merged(library, MOST)) == ["p < a b"]
    assert told(merged(library, MOST, min_aggregation_matches=3)) == ["a", "b"]
    best, other = (r.score for r in merged(library, MOST, min_aggregation_matches=3))
    (result,) = merged(library, MOST, score_cap_multiplier=1.5)
    assert best + other > 1.6 * best
    assert result.score == pytest.approx(1.5 * best)


def test_r19_more_than_half_of_the_children_become_their_parent(library: quire.Library) -> None:
    """R19: If more than half of a section's children match, and at least two, it replaces them, bottom-up."""
    assert told(merged(library, HALF)) == ["a", "b"]
    (result,) = merged(library, MOST)
    assert told([result]) == ["p < a b"]
    assert MOST[result.start : result.end] == MOST[MOST.index("## P") :]
    one = build("""
Doc: welcome
  P:
    A: zebra
  Q: lion
""")
    assert told(merged(library, one)) == ["a"]
    nested = build("""
Doc: welcome
  P:
    A:
      A1: zebra
      A2: zebra
      A3: lion
    B: zebra
    C: lion
  Q: lion
""")
    assert told(merged(library, nested)) == ["p < a a1 a2 b"]
    many = "# Doc\n\nwelcome\n\n## P\n\n" + "".join(
        f"### S{n}\n\n{'zebra' if n < 26 else 'lion'}\n\n" for n in range(50)
    )
    (result,) = merged(library, many, limit=5)
    assert (result.heading, len(result.merged_from)) == ("P", 26)


def test_r20_a_parent_that_matches_is_returned_instead_of_its_children(library: quire.Library) -> None:
    """R20: A section that matches by its text or its title is returned instead of its children."""
    weak = "a zebra among many other words that are here to make this a long text and a weak match"
    outline = build("""
Doc: welcome
  P: OWN
    A: CHILD
    B: lion
    C: lion
    D: lion
""")
    for text in (
        outline.replace("OWN", weak).replace("CHILD", "zebra"),
        outline.replace("OWN", "zebra").replace("CHILD", weak),
    ):
        (result,) = merged(library, text)
        assert told([result]) == ["p < a"]
        strong, other = (hit["score"] for hit in result.explain["hits"])
        assert other < result.score == pytest.approx(strong, abs=1e-3)
    by_title = outline.replace("## P", "## The zebra house").replace("CHILD", "zebra")
    assert told(merged(library, by_title))[0].startswith("the-zebra-house < a")
    without_text = build("""
Doc: welcome
  Zebra:
    A: lion
  Q: lion
""")
    assert told(merged(library, without_text)) == ["zebra < a"]
    for strategy in ("auto", "sections", "windows", "headers"):
        library.config = config({"chunk": {"strategy": strategy}})
        library.add(content=without_text, path="a.md", collection="docs")
        (result,) = library.search("zebra").results
        assert result.path == "a.md"


def test_r21_a_parent_scores_the_sum_of_its_children_up_to_twice_the_best(library: quire.Library) -> None:
    """R21: A section that replaces its children scores their sum, at most twice the best of them."""
    two = [r.score for r in merged(library, MOST, min_aggregation_matches=100)]
    (result,) = merged(library, MOST)
    assert len(two) == 2
    assert two[0] > two[1]
    assert result.score == pytest.approx(sum(two), abs=1e-5)
    all_match = HALF.replace("lion", "one zebra")
    four = [r.score for r in merged(library, all_match, min_aggregation_matches=100)]
    (result,) = merged(library, all_match)
    assert len(four) == 4
    assert sum(four) > 2 * max(four)
    assert result.score == pytest.approx(2 * max(four), abs=1e-5)


def test_r22_a_document_replaces_its_sections_only_if_all_match(library: quire.Library) -> None:
    """R22: The document is a result only if its own text matches, or if all its top sections are replaced."""
    most = build("""
A: zebra
B: a zebra
C: lion
""")
    assert told(merged(library, most)) == ["a", "b"]
    assert told(merged(library, most.replace("# ", "## "))) == ["a", "b"]
    assert told(merged(library, most.replace("lion", "zebra"))) == ["document < a b c"]
    assert told(merged(library, most.replace("# ", "## ").replace("lion", "zebra"))) == ["document < a b c"]
    deep = build("""
A:
  A1: zebra
  A2: zebra
B: zebra
""")
    assert told(merged(library, deep)) == ["document < a a1 a2 b"]
    assert set(told(merged(library, "A zebra in the preamble.\n\n" + most))) == {"document", "a", "b"}


def test_r23_a_lone_leaf_stays_a_leaf(library: quire.Library) -> None:
    """R23: A section whose parent and siblings do not match is returned by itself, whatever its size."""
    large = "zebra " + "word " * 20_000
    text = build(f"""
Doc: welcome
  P: lion
    A: {large}
    B: lion
    C: lion
""")
    (result,) = merged(library, text)
    assert told([result]) == ["a"]
    assert text[result.start : result.end].strip() == large.strip()


def test_r24_ids_stay_when_the_structure_stays(library: quire.Library) -> None:
    """R24: Ids of documents, sections and chunks stay the same when text changes and headings do not."""
    library.config = config(NODES)

    def ids(text: str) -> dict[str, tuple[str, tuple[str, ...]]]:
        library.add(content=text, path="a.md", collection="docs")
        results = [library.search(word).results[0] for word in ("apt", "run", "end")]
        return {result.address: (result.document_id, result.chunk_ids) for result in results}

    before = ids(GUIDE)
    assert list(before) == ["docs:a.md#linux", "docs:a.md#use", "docs:a.md#appendix"]
    edited = GUIDE.replace("Use pip.", "Use pip or uv. " * 500).replace("Préamble.", "Another beginning.")
    assert ids(edited.replace("Type apt.", "Now type apt, twice.")) == before
