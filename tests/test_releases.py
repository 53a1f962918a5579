"""Versions of a collection: their order, and which are searched."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire import Library, NoResults
from quire.config import DEFAULT, Config, override
from quire.releases import newest_of, older_versions, split_version, version_order, versions_of
from tests.commands import run

ORDERED = """
0 0.9.9 1.0.dev1 1.0a1 1.0a2 1.0b1 1.0rc1.dev2 1.0rc1 v1.0-rc.2 1.0 1.0.post1 1.0.1-x.1 1.0.1 v1.2 1.9
1.10.0-alpha.1 1.10 2 2024.1 2024.10.2
""".split()


def test_versions_are_in_their_natural_order() -> None:
    """Issue: 5.10 is after 5.9, pre-releases before releases, a v says nothing."""
    orders = [version_order(version) for version in ORDERED]
    assert None not in orders
    assert orders == sorted(orders)  # type: ignore[type-var]
    assert len(set(orders)) == len(orders)
    assert version_order("v5.2") == version_order("5.2.0") == version_order("5.2.0+build.7")


@pytest.mark.parametrize(
    "name",
    ["main", "stable/5.2.x", "5.x", "7-1-stable", "5.2-stable", "", "v", "1..2", "a1", "1" * 40, "4d" * 20],
)
def test_branches_and_commits_are_no_versions(name: str) -> None:
    """Issue: branches that are not versions, such as main, are not versions."""
    assert version_order(name) is None
    assert split_version(f"django@{name}") is None


_VERSIONS = st.builds(
    lambda v, numbers, end: f"{v}{'.'.join(map(str, numbers))}{end}",
    st.sampled_from(["", "v", "V"]),
    st.lists(st.integers(0, 10**6), min_size=1, max_size=4),
    st.sampled_from(["", "a1", "b2", "rc1", "-rc.10", ".dev3", ".post1", "-beta", "+abc"]),
)


@given(
    st.lists(st.integers(0, 10**6), min_size=1, max_size=4),
    st.lists(st.integers(0, 10**6), min_size=1, max_size=4),
)
def test_numbers_decide_first(one: list[int], other: list[int]) -> None:
    """Issue: versions are compared number by number."""
    size = max(len(one), len(other))
    padded = [tuple(some + [0] * (size - len(some))) for some in (one, other)]
    orders = [version_order(".".join(map(str, some))) for some in (one, other)]
    assert None not in orders
    assert (orders[0] < orders[1]) == (padded[0] < padded[1])  # type: ignore[operator]
    assert version_order(f"{'.'.join(map(str, one))}rc1") < orders[0]  # type: ignore[operator]


@given(st.lists(_VERSIONS, unique=True, min_size=1), st.randoms())
def test_the_newest_does_not_depend_on_the_order_of_collections(versions: list[str], random: object) -> None:
    """Issue: ordering is total: the same collections always have the same newest version."""
    names = [f"x@{version}" for version in versions]
    mixed = list(names)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    assert versions_of(mixed) == versions_of(names)
    newest = newest_of("x", mixed)
    assert newest in names
    assert set(older_versions(mixed)) == set(names) - {newest}
    assert newest_of("x", [*mixed, "x"]) == "x"


@given(st.text(max_size=30))
def test_any_text_may_be_a_name(text: str) -> None:
    """BAD_INPUTS: anything can be a collection."""
    assert newest_of(text, [text]) == text
    assert versions_of([text, f"{text}@main"]).keys() <= {text.partition("@")[0]}


# ---------------------------------------------------------------------------------------- libraries


def config() -> Config:
    return override(DEFAULT, {"embed": {"model": "static"}})


@pytest.fixture
def library(library_url: str) -> Iterator[Library]:
    """Three versions of one document, a branch, and another collection."""
    opened = Library.open(library_url, create=True, config=config())
    for version, word in (("5.9", "walnut"), ("5.10", "acorn"), ("5.11rc1", "cashew"), ("main", "pecan")):
        text = f"# Guide\n\nThe squirrel eats a {word}.\n"
        opened.add(content=text, path="guide.md", collection=f"nuts@{version}")
    opened.add(content="# Other\n\nThe squirrel sleeps.\n", path="other.md", collection="zoo")
    with opened:
        yield opened


def found(library: Library, **given: str) -> list[str]:
    return sorted(result.collection for result in library.search("squirrel", **given).results)  # type: ignore[arg-type]


def test_the_newest_version_is_searched_by_default(library: Library) -> None:
    """Issue: newest by default, on both databases; what was left out is said."""
    assert found(library) == ["nuts@5.11rc1", "nuts@main", "zoo"]
    for mode in ("keyword", "semantic", "hybrid"):
        assert found(library, mode=mode) == ["nuts@5.11rc1", "nuts@main", "zoo"]
    (note,) = [note for note in library.search("squirrel").notes if "left out" in note]
    assert "nuts@5.10, nuts@5.9" in note
    assert "nuts@*" in note


def test_a_version_may_be_named(library: Library) -> None:
    """Issue: search -c django@5.2; @* are all; the name alone is the newest."""
    assert found(library, collection="nuts@5.9") == ["nuts@5.9"]
    assert found(library, collection="nuts@*") == ["nuts@5.10", "nuts@5.11rc1", "nuts@5.9", "nuts@main"]
    answer = library.search("squirrel", collection="nuts")
    assert [result.collection for result in answer.results] == ["nuts@5.11rc1"]
    assert answer.notes[-1].startswith("nuts is nuts@5.11rc1, the newest of 3 versions.")
    assert [row.collection for row in library.documents("nuts")] == ["nuts@5.11rc1"]
    assert library.read("nuts@5.9:guide.md#guide").text.startswith("# Guide")
    with pytest.raises(NoResults, match="No collection"):
        library.search("squirrel", collection="nut")


def test_a_plain_collection_is_itself(library: Library) -> None:
    """Issue: the newest stands for a name only if no collection has it."""
    library.add(content="# Guide\n\nThe squirrel is plain.\n", path="guide.md", collection="nuts")
    assert found(library, collection="nuts") == ["nuts"]
    assert found(library) == ["nuts", "nuts@5.11rc1", "nuts@main", "zoo"]
    assert [row.collection for row in library.documents("nuts")] == ["nuts"]


def test_old_copies_do_not_crowd_out_the_newest(library_url: str) -> None:
    """Issue: versions are left out before any cut to the best."""
    few = override(config(), {"search": {"candidates": 3}})
    with Library.open(library_url, create=True, config=few) as library:
        for version in range(1, 8):
            text = "# Guide\n\nThe squirrel eats nuts. Squirrel, squirrel, squirrel.\n"
            library.add(content=text, path="guide.md", collection=f"nuts@{version}", embed=False)
        library.add(content="# Guide\n\nA squirrel, once.\n", path="guide.md", collection="nuts@10")
        for mode in ("keyword", "semantic", "hybrid"):
            answer = library.search("squirrel", limit=1, mode=mode)
            assert [result.collection for result in answer.results] == ["nuts@10"]
        assert library.search("squirrel", limit=1).notes[-1].count("nuts@") == 6  # five of them, and all


def test_a_pack_has_the_newest_version(library: Library) -> None:
    """Issue: context keeps to the newest version, its critical documents too."""
    for version in ("5.9", "5.11rc1"):
        library.promote(f"nuts@{version}:guide.md", "critical")
    for named in ({}, {"collection": "nuts"}):
        pack = library.context("squirrel", **named)  # type: ignore[arg-type]
        text = "".join(passage.text for passage in pack.passages)
        assert "cashew" in text
        assert "walnut" not in text
        assert any("nuts@" in note for note in pack.notes)


def test_removing_means_exactly_what_is_named(library: Library) -> None:
    """Issue: only reading follows the newest; nothing is removed by a name that is none."""
    with pytest.raises(NoResults):
        library.remove(collection="nuts")
    assert len(library.documents("nuts@*")) == 4


def test_list_shows_the_versions(tmp_path: Path) -> None:
    """Issue: quire list and --json show the versions, the newest marked; folders work without git."""
    for version in ("4.2", "5.2"):
        folder = tmp_path / version
        folder.mkdir()
        (folder / "guide.md").write_text(f"# Guide\n\nVersion {version}.\n")
        run(tmp_path, "add", str(folder), "-c", f"django@{version}")
    out, err = run(tmp_path, "list")
    assert [("newest" in line) for line in out.splitlines()] == [False, True]
    assert "versions: django 5.2 (newest), 4.2" in err
    out, _ = run(tmp_path, "list", "--json")
    told = [json.loads(line) for line in out.splitlines()]
    assert [(one["version"], one["newest"]) for one in told] == [("4.2", False), ("5.2", True)]
    out, err = run(tmp_path, "list", "-c", "django")
    assert out.startswith("django@5.2:guide.md")
    assert "the newest of 2 versions" in err
    out, err = run(tmp_path, "search", "version", "-c", "django@4.2")
    assert "django@4.2:guide.md" in out
