"""What was named is what a library holds: sources, plans, renames, removals, on both databases."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from quire.config import IngestSettings
from quire.errors import NoResults, SettingError, SourceError, SourceMoved, Unreadable
from quire.ingest import plan as planning
from quire.library import Library
from quire.stores import SourceRow
from quire.tree import Tree
from tests.commands import run
from tests.schemas import make_schema
from tests.words import WORDS


@pytest.fixture
def library(library_url: str) -> Iterator[Library]:
    with Library.open(library_url, create=True, config=WORDS) as opened:
        yield opened


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    write(folder, {f"{name}.md": f"# {name}\n\n{name} text\n" for name in ("one", "two", "three", "four")})
    return folder


def write(folder: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def held(library: Library) -> list[str]:
    return [row.address for row in library.documents()]


def actions(plan: planning.Plan) -> dict[str, str]:
    return {item.path: item.action for item in plan.items}


# --------------------------------------------------------------------------------------- the faults


def test_refreshing_a_file_takes_in_that_file_only(library: Library, tmp_path: Path) -> None:
    """Issue: `quire add todo.md; quire refresh` indexed the whole folder, a private diary included."""
    write(tmp_path / "home", {"todo.md": "# Todo\n", "diary.md": "# Dear diary\n"})
    library.add(tmp_path / "home" / "todo.md")
    library.refresh()
    library.refresh(prune=True)
    assert held(library) == ["home:todo.md"]


def test_a_rename_over_an_indexed_file_is_followed(library: Library, docs: Path) -> None:
    """Issue: `mv a.md b.md` over an indexed file ended every later add with an IntegrityError."""
    library.add(docs)
    (docs / "one.md").replace(docs / "two.md")
    library.refresh()
    assert held(library) == ["docs:four.md", "docs:three.md", "docs:two.md"]
    assert library.read("docs:two.md").text == "# one\n\none text\n"
    assert library.add(docs).unchanged == 3


def test_pruning_a_folder_leaves_a_file_of_it_that_was_named_by_itself(library: Library, docs: Path) -> None:
    """Issue: `add docs --prune` removed docs/spec.adoc, which exists."""
    write(docs, {"spec.adoc": "= Spec\n"})
    library.add(docs)
    library.add(docs / "spec.adoc")
    library.add(docs, prune=True)
    library.refresh(prune=True)
    assert "docs:spec.adoc" in held(library)


def test_texts_without_a_name_do_not_replace_one_another(library: Library) -> None:
    """Issue: a second add of content without a path replaced the first in silence."""
    first = library.add(content="The okapi is shy.")
    second = library.add(content="The zebra is not.")
    again = library.add(content="The okapi is shy.")
    assert (first.added, second.added, again.unchanged, len(held(library))) == (1, 1, 1, 2)
    assert first.addresses == again.addresses != second.addresses
    assert library.search("okapi").results[0].address.startswith(first.addresses[0])


def test_standard_input_twice_is_two_documents(tmp_path: Path) -> None:
    """Issue: a second `quire add -` replaced the first text in silence."""
    run(tmp_path, "add", "-", stdin=b"# Okapi\n\nshy\n")
    run(tmp_path, "add", "-", stdin=b"# Zebra\n\nnot shy\n")
    assert len(run(tmp_path, "list")[0].splitlines()) == 2


def test_ignore_files_above_the_folder_are_read(library: Library, tmp_path: Path) -> None:
    """Issue: a .gitignore above the added folder was not read."""
    write(tmp_path / "repo", {".gitignore": "private/\n*.draft.md\n", "docs/a.md": "# A\n"})
    write(tmp_path / "repo", {"docs/private/b.md": "# B\n", "docs/c.draft.md": "# C\n"})
    (tmp_path / "repo" / ".git").mkdir()
    library.add(tmp_path / "repo" / "docs")
    assert held(library) == ["docs:a.md"]
    reasons = {item.path: item.reason for item in library.plan(tmp_path / "repo" / "docs")[0].of("ignore")}
    assert "ignored by ../.gitignore:1" in reasons["private"]
    assert "ignored by ../.gitignore:2" in reasons["c.draft.md"]


def test_ignore_files_above_are_read_outside_a_repository_too(library: Library, tmp_path: Path) -> None:
    """A tree that was exported from a repository keeps its rules; those of a home do not reach into it."""
    write(tmp_path, {"tree/.gitignore": "/docs/deep/*.draft.md\n", "tree/docs/deep/a.md": "# A\n"})
    write(tmp_path, {"tree/docs/deep/b.draft.md": "# B\n", "tree/docs/.quireignore": "c.md\n"})
    write(tmp_path, {"tree/docs/deep/c.md": "# C\n"})
    library.add(tmp_path / "tree" / "docs" / "deep")
    assert held(library) == ["deep:a.md"]


def test_what_a_person_named_is_taken_though_the_repository_ignores_it(
    library: Library, tmp_path: Path
) -> None:
    """The user's word is the law: an ignored folder that is named by itself is read."""
    write(tmp_path / "repo", {".gitignore": "build/**\n", "build/docs/a.md": "# A\n"})
    (tmp_path / "repo" / ".git").mkdir()
    library.add(tmp_path / "repo" / "build" / "docs")
    assert held(library) == ["docs:a.md"]


def test_files_of_one_size_renamed_together_are_renames(library: Library, docs: Path) -> None:
    """Issue: four files of one size renamed together left seven documents."""
    names = ["aa", "bb", "cc", "dd"]
    folder = docs.parent / "same"
    write(folder, {f"{name}.md": f"# {name}\n" for name in names})
    library.add(folder)
    before = {row.title: (row.seq, row.created_at) for row in library.documents()}
    for name in names:
        (folder / f"{name}.md").rename(folder / f"new-{name}.md")
    report = library.refresh()
    after = {row.title: (row.seq, row.created_at) for row in library.documents()}
    assert (report.moved, report.added, report.removed) == (4, 0, 0)
    assert after == before
    assert held(library) == [f"same:new-{name}.md" for name in names]


def test_files_with_the_same_content_are_renamed_in_pairs(library: Library, tmp_path: Path) -> None:
    """Renames are found by content among all gone and all new; each goes to one."""
    write(tmp_path / "d", {"a/x.md": "# Same\n", "b/y.md": "# Same\n", "keep.md": "# K\n", "k2.md": "# L\n"})
    library.add(tmp_path / "d")
    (tmp_path / "d" / "a").rename(tmp_path / "d" / "z")
    (tmp_path / "d" / "b").rename(tmp_path / "d" / "c")
    (plan,) = library.plan()
    moves = {item.old_path: item.path for item in plan.of("move")}
    assert moves == {"a/x.md": "z/x.md", "b/y.md": "c/y.md"}
    assert library.refresh().moved == 2


def test_a_document_whose_title_is_its_file_name_is_renamed_too(library: Library, tmp_path: Path) -> None:
    """A rename keeps promotion and times, and the title follows the name."""
    write(tmp_path / "d", {"old.txt": "plain words\n", "b.txt": "other\n", "c.txt": "more\n"})
    library.add(tmp_path / "d")
    library.promote("d:old.txt", "important")
    (tmp_path / "d" / "old.txt").rename(tmp_path / "d" / "new.txt")
    library.refresh()
    row = library.document("d:new.txt")
    assert row
    assert (row.title, row.promotion, library.document("d:old.txt")) == ("new", "important", None)


def test_a_folder_that_moved_is_followed(library: Library, docs: Path, tmp_path: Path) -> None:
    """Issue: a project folder that moved could neither be refreshed, pruned nor added again."""
    library.add(docs)
    before = [(row.id, row.seq, row.created_at) for row in library.documents()]
    new = tmp_path / "work" / "docs"
    new.parent.mkdir()
    docs.rename(new)
    assert library.refresh().removed == 0
    with pytest.raises(SourceMoved, match="quire sources move"):
        library.add(new)
    library.move_source(str(docs), str(new))
    report = library.add(new)
    assert (report.added, report.unchanged, report.failed) == (0, 4, [])
    assert [(row.id, row.seq, row.created_at) for row in library.documents()] == before
    assert not library.check()
    assert not any(result.stale for result in library.search("text").results)


def test_a_folder_that_moved_and_was_renamed_is_offered_too(library: Library, docs: Path) -> None:
    """Issue: what is known from a place that is gone is recognised by its documents, not by its name."""
    library.add(docs)
    docs.rename(docs.parent / "manual")
    with pytest.raises(SourceMoved):
        library.add(docs.parent / "manual")
    library.add(docs.parent / "manual", collection="manual")  # said otherwise
    assert len(held(library)) == 8


def test_the_command_that_is_offered_works(docs: Path) -> None:
    """Advice works when followed: the command in the message moves the source."""
    place = docs.parent
    run(place, "add", "docs")
    (place / "a b").mkdir()
    docs.rename(place / "a b" / "docs")
    _, err = run(place, "add", "a b/docs", code=4)
    command = err.partition("type: ")[2].partition(". To keep")[0]
    assert command.startswith("quire sources move ")
    subprocess.run(f"PATH={Path(sys.executable).parent}:$PATH; {command}", shell=True, cwd=place, check=True)
    assert "4 unchanged" in run(place, "add", "a b/docs")[0]


# ------------------------------------------------------------------------------------------ sources


def test_sources_are_listed_as_they_were_given(library: Library, docs: Path) -> None:
    """Issue: every source with its place, collection, kind, options, age, documents and last problem."""
    library.add(docs, exclude=["f*.md"])
    library.add(docs / "four.md", collection="alone")
    library.add(content="# T\n", path="t.md", collection="texts")
    found = {source.type: source for source in library.sources()}
    folder, file, text = found["folder"], found["file"], found["text"]
    assert (folder.place, folder.collection, folder.documents) == (str(docs.resolve()), "docs", 3)
    assert folder.options.exclude == ("f*.md",)
    assert folder.checked_at >= folder.added_at > 1_600_000_000_000
    assert (file.place, file.documents, text.name) == (f"{docs.resolve()}/four.md", 1, "texts:t.md")


def test_options_are_remembered_until_others_are_given(library: Library, docs: Path) -> None:
    """Issue: a source is remembered with its options; refresh follows them."""
    library.add(docs, exclude=["one.md"], include=["*.md"], keep=True)
    write(docs, {"five.md": "# five\n"})
    library.refresh()
    library.add(docs)
    assert held(library) == [f"docs:{name}.md" for name in ("five", "four", "three", "two")]
    (docs / "two.md").unlink()
    assert library.refresh().removed == 0
    library.add(docs, keep=False, exclude=[])
    library.refresh()
    assert held(library) == [f"docs:{name}.md" for name in ("five", "four", "one", "three")]


def test_a_document_of_two_sources_goes_with_the_last(library: Library, docs: Path) -> None:
    """Issue: a document named by two sources belongs to both."""
    library.add(docs)
    library.add(docs / "one.md")
    assert held(library).count("docs:one.md") == 1
    gone = library.remove_source(str(docs))
    assert sorted(row.path for row in gone) == ["four.md", "three.md", "two.md"]
    assert held(library) == ["docs:one.md"]
    assert library.remove_source(f"{docs}/one.md", dry_run=True)[0].path == "one.md"
    library.remove_source(f"{docs}/one.md")
    assert (held(library), library.sources()) == ([], [])
    with pytest.raises(NoResults, match="No source"):
        library.remove_source(str(docs))


def test_a_folder_inside_a_held_folder_belongs_to_it(library: Library, docs: Path) -> None:
    """A subfolder that is named by itself adds no second copy of its documents."""
    write(docs, {"sub/deep.md": "# deep\n", "sub/x/spec.adoc": "= spec\n"})
    library.add(docs)
    library.add(docs / "sub")
    library.add(docs / "sub" / "x" / "spec.adoc")
    assert [address for address in held(library) if "sub" in address] == [
        "docs:sub/deep.md",
        "docs:sub/x/spec.adoc",
    ]


def test_what_a_person_removed_stays_removed(library: Library, docs: Path) -> None:
    """The user's word is the law: a refresh does not bring back a removed document; naming it does."""
    library.add(docs)
    library.remove("docs:one.md")
    library.refresh()
    library.add(docs)
    assert "docs:one.md" not in held(library)
    library.add(docs / "one.md")
    library.refresh()
    assert "docs:one.md" in held(library)
    library.remove(collection="docs")
    library.refresh()
    assert (held(library), library.sources()) == ([], [])


def test_a_file_that_cannot_be_taken_in_is_no_source(library: Library, tmp_path: Path) -> None:
    """A source that never held anything is not followed for ever."""
    (tmp_path / "bad.md").write_bytes(b"\0\1\2")
    assert library.add(tmp_path / "bad.md").failed
    assert library.sources() == []
    with pytest.raises(Unreadable, match="no such file or folder"):
        library.add(tmp_path / "absent.md")
    os.mkfifo(tmp_path / "pipe.md")
    with pytest.raises(Unreadable, match="is a pipe"):
        library.add(tmp_path / "pipe.md")


def test_content_does_not_take_the_place_of_a_file(library: Library, docs: Path) -> None:
    """Nothing is lost: text under a path that a file has is refused."""
    library.add(docs)
    with pytest.raises(SettingError, match=r"already has one\.md"):
        library.add(content="# Mine\n", path="one.md", collection="docs")


# --------------------------------------------------------------------------------------------- gone


def test_gone_documents_go_while_their_source_is_healthy(library: Library, docs: Path) -> None:
    """Ruling: less than half missing at once is healthy; `keep` removes none, `prune` all."""
    library.add(docs)
    (docs / "one.md").unlink()
    assert library.refresh(keep=True).removed == 0
    assert library.refresh().removed == 1
    (docs / "two.md").unlink()
    (docs / "three.md").unlink()
    report = library.refresh()
    assert (report.removed, report.missing) == (0, ["docs:three.md", "docs:two.md"])
    assert "2 of its 3 documents are missing at once" in report.warnings[0]
    assert "2 of its 3" in library.sources()[0].problem
    assert library.refresh(prune=True).removed == 2


@pytest.mark.parametrize("how", ["emptied", "gone"])
def test_a_source_that_is_suddenly_empty_or_gone_loses_nothing(
    library: Library, docs: Path, how: str
) -> None:
    """BAD_INPUTS: nothing is deleted without --prune, and the reason is said."""
    library.add(docs)
    for path in docs.iterdir():
        path.unlink()
    if how == "gone":
        docs.rmdir()
    report = library.refresh()
    assert (report.removed, len(report.missing)) == (0, 4)
    assert ("is empty" if how == "emptied" else "no such file") in report.warnings[0]
    assert library.refresh(prune=True).removed == 4


def test_documents_below_a_folder_that_cannot_be_read_stay(library: Library, tmp_path: Path) -> None:
    """What cannot be looked at is not gone."""
    from quire.sources.files import Skipped

    write(tmp_path / "d", {f"{n}.md": f"# {n}\n" for n in range(5)} | {"shut/a.md": "# A\n"})
    library.add(tmp_path / "d")
    source = library.sources()[0]
    held_rows = {row.path: planning.Held(row, 1) for row in library.documents()}
    listing = [Skipped("shut", "permission denied")]
    plan = planning.make_plan(source, listing, held_rows, planning.Rules("m"))
    assert "shut/a.md" not in actions(plan)
    assert actions(plan)["0.md"] == "keep"


def test_what_is_ignored_now_goes_with_the_rule_as_the_reason(library: Library, docs: Path) -> None:
    """Issue: the plan names the rule of the file that ignores a path."""
    library.add(docs)
    (docs / ".quireignore").write_text("# comment\none.md\n")
    (plan,) = library.plan()
    (item,) = plan.of("remove")
    assert (item.path, item.reason) == ("one.md", "ignored by .quireignore:2")
    assert library.refresh().removed == 1


# --------------------------------------------------------------------------------------------- plans


def test_a_plan_says_what_would_be_done_and_does_nothing(library: Library, docs: Path) -> None:
    """Issue: new, changed, touched, moved, gone, ignored, skipped, refused, each with its reason."""
    write(docs, {"six.md": "# six\n", "seven.md": "# seven\n", "eight.md": "# eight\n"})
    time.sleep(0.12)  # a file that was just written is read again, to be sure
    library.add(docs)
    before = library.documents()
    write(docs, {"new.md": "# new\n", "two.md": "# changed\n", "report.exe": "MZ", ".hidden.md": "x"})
    (docs / "bad.md").write_bytes(b"\0")
    os.utime(docs / "three.md", ns=(1, 1))
    (docs / "one.md").rename(docs / "uno.md")
    (docs / "four.md").unlink()
    (plan,) = library.plan()
    assert actions(plan) == {
        ".hidden.md": "ignore",
        "bad.md": "skip",
        "four.md": "remove",
        "new.md": "add",
        "report.exe": "skip",
        "three.md": "touch",
        "two.md": "update",
        "uno.md": "move",
    }
    assert plan.counts["unchanged"] == 3
    assert library.documents() == before


def test_other_settings_are_a_reason_to_cut_documents_anew(library: Library, docs: Path) -> None:
    """Issue: remade, because of what."""
    from quire.config import override

    library.add(docs)
    library.config = override(WORDS, {"chunk": {"strategy": "nodes"}})
    (plan,) = library.plan()
    assert {item.reason for item in plan.of("remake")} == {"the settings that cut documents have changed"}
    assert len(library.check().remade) == 4
    assert library.refresh().updated == 4


def test_two_folders_that_claim_one_path_are_told_so(library: Library, docs: Path, tmp_path: Path) -> None:
    """Issue: refused, with who has the path."""
    library.add(docs)
    write(tmp_path / "other", {"one.md": "# Other\n"})
    (plan,) = library.plan(tmp_path / "other", collection="docs")
    assert plan.of("refuse")[0].reason.startswith(f"docs already has this path from {docs}")
    assert library.add(tmp_path / "other", collection="docs").failed


def test_a_dry_run_prints_the_plan_and_makes_no_library(docs: Path) -> None:
    """Issue: --dry-run on add and refresh, --json too; after a real run skipped kinds are counted."""
    place = docs.parent
    write(docs, {"a.exe": "x", "b.exe": "x", "c.psd": "x", ".env": "KEY=1", "id_rsa": "x"})
    out, _ = run(place, "add", "docs", "--dry-run")
    assert "  add     one.md" in out
    assert "4 to add" in out
    assert not (place / ".quire").exists()
    shown = json.loads(run(place, "add", "docs", "--dry-run", "--json")[0])
    assert (shown["source"], shown["counts"]["add"]) == (str(docs), 4)
    assert {"action": "skip", "path": "a.exe", "from": None, "reason": ".exe files are not read"} in shown[
        "items"
    ]
    _, err = run(place, "add", "docs")
    assert "skipped 2 .exe, 1 .psd, 2 files that may hold secrets" in err
    (docs / "one.md").rename(docs / "uno.md")
    assert "move    one.md → uno.md" in run(place, "refresh", "--dry-run")[0]
    moved = json.loads(run(place, "refresh", "--dry-run", "--json")[0])["items"]
    assert {"action": "move", "path": "uno.md", "from": "one.md", "reason": "renamed from one.md"} in moved


def test_check_lists_new_files_and_exits_1_when_anything_would_change(docs: Path) -> None:
    """Issue: --check lists what is new as well."""
    place = docs.parent
    run(place, "add", "docs")
    assert run(place, "refresh", "--check", code=0)[0] == ""
    write(docs, {"new.md": "# new\n", "one.md": "# changed\n"})
    (docs / "two.md").unlink()
    out, _ = run(place, "refresh", "--check", code=1)
    assert out.splitlines() == ["changed  docs:one.md", "missing  docs:two.md", "new      docs:new.md"]
    assert json.loads(run(place, "refresh", "--check", "--json", code=1)[0])["new"] == ["docs:new.md"]


def test_sources_from_the_command_line(docs: Path) -> None:
    """Issue: quire sources lists, removes and moves."""
    place = docs.parent
    run(place, "add", "docs", "--exclude", "four.md", "--keep")
    out, _ = run(place, "sources")
    assert out.splitlines()[0] == str(docs)
    assert "folder in docs: 3 documents, checked" in out
    assert "exclude four.md, keeps what is gone" in out
    (shown,) = [json.loads(line) for line in run(place, "sources", "--json")[0].splitlines()]
    assert (shown["type"], shown["documents"], shown["exclude"]) == ("folder", 3, ["four.md"])
    docs.rename(place / "moved")
    run(place, "refresh")
    assert "problem: " not in run(place, "sources")[0]  # it keeps what is gone
    assert "docs → " in run(place, "sources", "move", "docs", "moved")[0]
    assert "3 documents" in run(place, "sources")[0]
    assert "Would remove 3 documents" in run(place, "sources", "remove", "moved", "--dry-run")[1]
    run(place, "sources", "remove", "moved")
    assert "no sources" in run(place, "sources", code=1)[1]


# ------------------------------------------------------------------------------------ items fail alone


def test_whatever_a_parser_throws_costs_that_file_alone(
    library: Library, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue: that file is in `failed`, the rest goes on."""
    import quire.ingest.prepare as preparing

    def throws(document: object, *args: object) -> object:
        if "two" in document.path:  # type: ignore[attr-defined]
            raise KeyError("a parser's own")
        if "three" in document.path:  # type: ignore[attr-defined]
            raise RecursionError
        return Tree(document, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(preparing, "Tree", throws)
    report = library.add(docs)
    assert (report.added, sorted(failed.source for failed in report.failed)) == (2, ["three.md", "two.md"])
    assert "KeyError" in {failed.source: failed.reason for failed in report.failed}["two.md"]


def test_a_document_that_a_database_refuses_costs_itself_alone(
    library: Library, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue: each item fails alone, in writing too."""
    kind, write_all = type(library.store), type(library.store).write

    def refuses(self: object, batch: list[object], *rest: object) -> list[bool]:
        if any("two" in one.path for one in batch):  # type: ignore[attr-defined]
            raise OverflowError("integer out of range")
        return write_all(self, batch, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(kind, "write", refuses)
    report = library.add(docs)
    assert (report.added, [failed.source for failed in report.failed]) == (3, ["two.md"])


def test_a_document_is_prepared_within_limits(tmp_path: Path) -> None:
    """Issue: a hostile file costs itself only: time and memory have limits in the worker."""
    from quire.config import override

    write(tmp_path / "d", {"long.md": "# Long\n\n" + "words and words. " * 200_000, "short.md": "# S\n"})
    slow = override(WORDS, {"ingest": {"max_seconds": 0.1}})
    with Library.open(":memory:", create=True, config=slow) as library:
        report = library.add(tmp_path / "d")
        assert "took longer than 0.1 s" in {f.source: f.reason for f in report.failed}["long.md"]
    small = override(WORDS, {"ingest": {"max_memory": 30_000_000}})
    with Library.open(":memory:", create=True, config=small) as library:
        report = library.add(tmp_path / "d")
        assert [f.source for f in report.failed] == ["long.md"]
        assert held(library) == ["d:short.md"]


SLOW = "`" * 1_500_000  # takes far longer than the limit below


def test_limits_hold_for_one_file_and_for_text(library: Library, tmp_path: Path) -> None:
    """Issue: a document is prepared within limits, whichever way it comes."""
    from quire.config import override

    library.config = override(WORDS, {"ingest": {"max_seconds": 0.5}})
    write(tmp_path / "d", {"slow.txt": SLOW, "short.md": "# S\n"})
    report = library.add(tmp_path / "d")
    assert ["took longer than 0.5 s" in failed.reason for failed in report.failed] == [True]
    assert held(library) == ["d:short.md"]
    with pytest.raises(SourceError, match=r"slow\.txt: took longer than 0\.5 s"):
        library.add(content=SLOW, path="slow.txt")
    assert held(library) == ["d:short.md"]
    assert [source.type for source in library.sources()] == ["folder"]


def test_no_small_document_comes_near_the_limits() -> None:
    """What is prepared in the process itself is so small that nothing in it could reach them."""
    limits = IngestSettings()
    assert limits.are_far(100_000)
    assert not limits.are_far(1_000_000)
    assert not IngestSettings(max_seconds=1).are_far(100_000)
    assert not IngestSettings(max_memory=30_000_000).are_far(100_000)


def test_a_private_key_is_left_out_whatever_its_name(library: Library, docs: Path) -> None:
    """Issue: files that usually hold secrets are left out by default, and counted."""
    write(
        docs, {"key.txt": "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n", "credentials.md": "# Credentials\n"}
    )
    write(docs, {"credentials.txt": "root:x", "server.pem": "x", ".env": "A=1", "id_ed25519": "x"})
    report = library.add(docs)
    assert [skipped.source for skipped in report.skipped] == ["key.txt"]
    assert report.kinds == {"may hold secrets": 5}  # the key counts, though its name is harmless
    assert "docs:credentials.md" in held(library)  # a page about them
    library.add(docs / "credentials.txt")  # named by itself
    assert "docs:credentials.txt" in held(library)


def test_names_that_look_alike_are_two_documents(library: Library, tmp_path: Path) -> None:
    r"""BAD_INPUTS: a name with byte 0xFF and one with the four characters `\xff`."""
    folder = tmp_path / "d"
    folder.mkdir()
    (folder / os.fsdecode(b"\xff.md")).write_text("# byte\n")
    (folder / r"\xff.md").write_text("# four\n")
    (folder / "line\nfeed.md").write_text("# feed\n")
    library.add(folder)
    assert len(held(library)) == 3
    assert not library.check()
    assert {library.read(address).text for address in held(library)} == {"# byte\n", "# four\n", "# feed\n"}
    assert not any(row.file is None or not Path(row.file).exists() for row in library.documents())


def test_what_another_process_did_after_the_plan_harms_nothing(library_url: str, docs: Path) -> None:
    """Documents that were removed, or whose paths were taken, between planning and writing are no fault."""
    from quire.ingest import apply

    with (
        Library.open(library_url, create=True, config=WORDS) as library,
        Library.open(library_url, config=WORDS) as other,
    ):
        library.add(docs)
        os.utime(docs / "one.md", ns=(1, 1))
        (docs / "two.md").rename(docs / "dos.md")
        (docs / "three.md").unlink()
        plan = apply.plan(library.store, library.sources()[0], WORDS, thorough=True)
        assert {item.action for item in plan.items} == {"touch", "move", "remove"}
        other.remove(collection="docs")
        other.add(docs)
        apply.apply(library.store, plan, WORDS)
        library.refresh()
        assert held(library) == ["docs:dos.md", "docs:four.md", "docs:one.md"]
        assert library.store.check() == []


def test_a_run_undoes_nothing_that_a_person_does_meanwhile(library_url: str, docs: Path) -> None:
    """What is removed, excluded or let go of during a refresh stays so."""
    from quire.ingest import apply

    with (
        Library.open(library_url, create=True, config=WORDS) as library,
        Library.open(library_url, config=WORDS) as other,
    ):
        library.add(docs)
        write(docs, {"five.md": "# five\n", "six.md": "# six\n"})
        plan = apply.plan(library.store, library.sources()[0], WORDS)
        other.add(docs)
        other.remove("docs:five.md")
        other.add(docs, exclude=["one.md"], keep=True)
        apply.apply(library.store, plan, WORDS)
        library.refresh()
        assert held(library) == [f"docs:{name}.md" for name in ("four", "six", "three", "two")]
        (source,) = library.sources()
        assert (source.options.exclude, source.options.keep) == (("one.md",), True)
        plan = apply.plan(library.store, source, WORDS)
        other.remove_source(str(docs))
        write(docs, {"seven.md": "# seven\n"})
        library.refresh()
        assert (held(library), library.sources()) == ([], [])


def test_a_folder_that_cannot_be_read_is_not_gone(
    library: Library, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pruning removes what is gone, and nothing that only cannot be looked at."""
    from quire.sources import files

    def shut(*_: object, **__: object) -> Iterator[files.Seen]:
        raise Unreadable(str(docs), "permission denied")

    library.add(docs)
    monkeypatch.setattr(files, "walk", shut)
    report = library.refresh(prune=True)
    assert (report.removed, len(held(library))) == (0, 4)
    assert report.failed[0].reason == "permission denied"


def test_a_file_that_gets_another_format_is_cut_anew(library: Library, docs: Path) -> None:
    """A rename from .md to .txt makes plain text of a document."""
    library.add(docs)
    (docs / "one.md").rename(docs / "one.txt")
    library.refresh()
    row = library.document("docs:one.txt")
    assert row
    assert (row.format, row.title) == ("text", "one")


def test_a_file_that_two_folders_hold_keeps_its_document_when_renamed(library: Library, docs: Path) -> None:
    """A rename keeps what is known, however many sources hold the file."""
    write(docs, {"sub/a.md": "# a\n", "sub/b.md": "# b\n", "sub/c.md": "# c\n"})
    library.add(docs)
    library.add(docs / "sub")
    library.promote("docs:sub/a.md", "critical")
    (docs / "sub" / "a.md").rename(docs / "sub" / "z.md")
    library.refresh()
    library.refresh()
    row = library.document("docs:sub/z.md")
    assert row
    assert (row.promotion, library.document("docs:sub/a.md")) == ("critical", None)


def test_a_folder_that_moves_out_of_another_takes_its_documents_along(library: Library, docs: Path) -> None:
    """sources move: promotions stay, and nothing is held twice."""
    write(docs, {"sub/a.md": "# a\n", "sub/b.md": "# b\n"})
    library.add(docs)
    library.add(docs / "sub")
    library.promote("docs:sub/a.md", "critical")
    (docs / "sub").rename(docs.parent / "out")
    library.move_source(str(docs / "sub"), str(docs.parent / "out"))
    library.refresh()
    row = library.document("docs:a.md")
    assert row
    assert row.promotion == "critical"
    assert held(library) == [f"docs:{name}.md" for name in ("a", "b", "four", "one", "three", "two")]
    assert not library.check()


def test_what_is_no_move_is_refused(library: Library, docs: Path, tmp_path: Path) -> None:
    """sources move follows what has moved: the old place is gone, and the new one is free and alike."""
    library.add(docs)
    write(tmp_path / "other", {"x.md": "# x\n"})
    library.add(tmp_path / "other")
    with pytest.raises(SettingError, match="is still there"):
        library.move_source(str(docs), str(tmp_path / "other"))
    docs.rename(tmp_path / "away")
    with pytest.raises(SettingError, match="is a source already"):
        library.move_source(str(docs), str(tmp_path / "other"))
    with pytest.raises(SettingError, match="is a file"):
        library.move_source(str(docs), str(tmp_path / "other" / "x.md"))


def test_what_was_removed_stays_so_in_a_folder_inside(library: Library, docs: Path) -> None:
    """Only adding it by its name brings a removed document back."""
    write(docs, {"sub/a.md": "# a\n", "sub/b.md": "# b\n"})
    library.add(docs)
    library.remove("docs:sub/a.md")
    library.add(docs / "sub")
    assert "docs:sub/a.md" not in held(library)


def test_what_a_person_excludes_goes_at_once(library: Library, docs: Path) -> None:
    """The options of a source are a person's word: they need no pruning, however much they leave out."""
    library.add(docs)
    report = library.add(docs, exclude=["t*.md", "one.md"])
    assert (report.removed, report.missing, held(library)) == (3, [], ["docs:four.md"])


def test_a_dry_run_of_several_sources_is_what_the_run_does(docs: Path) -> None:
    """Later plans know of earlier ones, a bad source stops no other, and exit codes agree."""
    place = docs.parent
    write(place / "other", {"one.md": "# other\n"})
    given = ("docs", "other", "absent", "docs/two.md", "-c", "z")
    out, err = run(place, "add", *given, "--dry-run", code=3)
    assert "refuse  one.md" in out
    assert "4 to add" in out
    assert out.count("  add     two.md") == 1
    assert "absent: no such file or folder" in err
    done = json.loads(run(place, "add", *given, "--json", code=3)[0])
    assert (done["added"], done["unchanged"], len(done["failed"])) == (4, 1, 2)


def test_a_project_narrows_its_sources_wherever_one_works(docs: Path) -> None:
    """What a library holds does not depend on the folder that a command is typed in."""
    place = docs.parent
    write(place, {"quire.toml": '[files]\nexclude = ["docs/one.md"]\n', "elsewhere/x": ""})
    run(place, "add", "docs")
    library = str(place / ".quire" / "library.db")
    for folder in (place / "elsewhere", place, Path("/")):
        run(folder, "refresh", "-L", library, HOME=str(place))
        assert "docs:one.md" not in run(place, "list")[0]
    (place / "quire.toml").unlink()
    run(place, "refresh", "-L", library)
    assert "docs:one.md" not in run(place, "list")[0]  # as it was named


def test_a_library_that_a_project_only_leads_to_is_not_used(tmp_path: Path, docs: Path) -> None:
    """Trust: a link in a clone cannot stand for a library elsewhere."""
    run(tmp_path, "add", "docs")
    clone = tmp_path / "clone"
    (clone / ".quire").mkdir(parents=True)
    (clone / ".quire" / "library.db").symlink_to(tmp_path / ".quire" / "library.db")
    _, err = run(clone, "list", code=2)
    assert "leads to" in err
    real = tmp_path / ".quire" / "library.db"
    assert "docs:one.md" in run(clone, "list", "-L", str(real))[0]


def test_many_files_that_were_named_one_by_one_are_followed_in_linear_time(tmp_path: Path) -> None:
    """A source of one file costs what that file costs, however many there are."""
    write(tmp_path / "d", {f"{n}.md": f"# {n}\n" for n in range(300)})
    with Library.open(":memory:", create=True, config=WORDS) as library:
        library.add(*(tmp_path / "d" / f"{n}.md" for n in range(300)))
        start = time.process_time()
        assert library.refresh().unchanged == 300
        assert time.process_time() - start < 10


# -------------------------------------------------------------------------------- libraries of before


def test_libraries_of_before_get_the_sources_they_came_from(library: Library, tmp_path: Path) -> None:
    """Issue: existing libraries migrate: what was one file becomes a file source."""
    write(tmp_path / "home", {"todo.md": "# Todo\n", "diary.md": "# Diary\n", "idea.md": "# Idea\n"})
    write(tmp_path / "flat", {"a.md": "# A\n", "b.md": "# B\n"})
    write(tmp_path / "deep", {"x/a.md": "# A\n", "c.md": "# C\n"})
    library.add(tmp_path / "home" / "todo.md")
    library.add(tmp_path / "home" / "idea.md")
    library.add(tmp_path / "flat")
    library.add(tmp_path / "deep")
    library.add(content="# T\n", path="t.md")
    before = held(library)
    forget_sources(library)
    write(tmp_path / "deep", {"new.md": "# New\n"})
    library.refresh()
    assert held(library) == sorted([*before, "deep:new.md"])
    assert sorted((s.type, s.collection, s.documents) for s in library.sources()) == [
        ("file", "home", 1),
        ("file", "home", 1),
        ("folder", "deep", 3),
        ("folder", "flat", 2),
        ("text", "content", 1),
    ]


def test_a_library_of_the_schema_before_sources_is_upgraded(tmp_path: Path, docs: Path) -> None:
    """A library made before sources were remembered opens, and follows what it came from."""
    with Library.open(tmp_path / "l.db", create=True, config=WORDS) as library:
        library.add(docs)
    make_schema(str(tmp_path / "l.db"), 3)
    with Library.open(tmp_path / "l.db", config=WORDS) as library:
        assert [(s.type, s.documents) for s in library.sources()] == [("folder", 4)]
        write(docs, {"new.md": "# new\n"})
        assert library.refresh().added == 1
        assert library.store.check() == []


def forget_sources(library: Library) -> None:
    """Make a library as it was before sources were remembered."""
    store = library.store
    if hasattr(store, "path"):
        store.db.execute("DELETE FROM members")  # type: ignore[attr-defined]
        store.db.execute("DELETE FROM sources")  # type: ignore[attr-defined]
        store.db.execute("INSERT INTO facts VALUES ('adopt', 'yes')")  # type: ignore[attr-defined]
        return

    def action(db: object) -> None:
        for statement in (
            "DELETE FROM quire.members",
            "DELETE FROM quire.sources",
            "INSERT INTO quire.facts VALUES ('adopt', 'yes')",
        ):
            db.execute(statement)  # type: ignore[attr-defined]

    store.db.write(action)  # type: ignore[attr-defined]


def test_sources_are_copied_with_their_documents(fresh_url: Callable[[], str], docs: Path) -> None:
    """A copy follows what the library follows."""
    target = fresh_url()
    with Library.open(fresh_url(), create=True, config=WORDS) as library:
        library.add(docs, exclude=["four.md"])
        library.add(docs / "four.md")
        library.copy(target)
        wanted = library.sources()
    with Library.open(target, config=WORDS) as copy:
        assert copy.sources() == wanted
        assert copy.refresh().unchanged == 4
        (docs / "one.md").unlink()
        assert copy.refresh().removed == 1


def test_a_source_has_the_same_number_everywhere() -> None:
    """Invariant 6: the same input gives the same ids, in any process, on either database."""
    source = SourceRow("folder", "/docs", "/docs", "docs", "document")
    assert source.seq == 4532316664253113017


# ------------------------------------------------------------------------------- found by strangers


def test_a_move_of_two_sources_takes_no_document_from_either(library: Library, tmp_path: Path) -> None:
    """Issue: a document named by two sources belongs to both and goes with the last."""
    write(tmp_path / "b", {"9.md": "nine", "8.md": "eight"})
    library.add(tmp_path / "b")
    library.add(tmp_path / "b/9.md")
    (tmp_path / "b").rename(tmp_path / "b2")
    library.move_source(str(tmp_path / "b"), str(tmp_path / "b2"))
    assert sorted((s.type, s.documents) for s in library.sources()) == [("file", 1), ("folder", 2)]
    assert library.remove_source(str(tmp_path / "b2/9.md")) == []
    assert held(library) == ["b:8.md", "b:9.md"]


def test_a_folder_named_by_a_link_is_followed_by_that_link(library: Library, tmp_path: Path) -> None:
    """Issue: a library remembers every source as it was given."""
    write(tmp_path, {"v1/a.md": "one", "v2/a.md": "two, which is longer"})
    (tmp_path / "current").symlink_to("v1")
    library.add(tmp_path / "current")
    assert held(library) == ["current:a.md"]
    (tmp_path / "current").unlink()
    (tmp_path / "current").symlink_to("v2")
    library.refresh()
    assert library.source("current:a.md") == b"two, which is longer"


def test_an_ignored_path_names_the_file_of_its_rule(library: Library, tmp_path: Path) -> None:
    """Issue: ignored, by which rule of which file."""
    write(
        tmp_path / "r", {".gitignore": "a.md", "docs/.gitignore": "b.md", "docs/a.md": "a", "docs/b.md": "b"}
    )
    (tmp_path / "r/.git").mkdir()
    (plan,) = library.plan(tmp_path / "r/docs")
    reasons = {item.path: item.reason for item in plan.of(planning.IGNORE)}
    assert reasons == {"a.md": "ignored by ../.gitignore:1", "b.md": "ignored by .gitignore:1"}


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ({"a.md": "# A", "k.txt": "-----BEGIN PRIVATE KEY-----\nabc\n"}, 0),
        ({"n.md": "a\0"}, 4),
        ({"n.md": "a\0", "a.md": "# A"}, 3),
        ({"a.md": "# A"}, 0),
    ],
)
def test_a_dry_run_has_the_exit_code_of_the_run(tmp_path: Path, files: dict[str, str], code: int) -> None:
    """Issue: --dry-run prints the plan, which is what is then done."""
    write(tmp_path / "d", files)
    run(tmp_path, "add", "d", "--dry-run", code=code)
    run(tmp_path, "add", "d", code=code)


def test_a_folder_that_cannot_be_read_is_a_failure(library: Library, docs: Path) -> None:
    """Issue: nothing is removed where a source is not healthy, and the reason is said."""
    write(docs, {"inner/one.md": "# One"})
    library.add(docs)
    before = held(library)
    (docs / "inner").chmod(0)
    try:
        if os.access(docs / "inner", os.R_OK):
            pytest.skip("the user may read everything")
        report = library.refresh()
    finally:
        (docs / "inner").chmod(0o755)
    assert [(failed.source, failed.reason) for failed in report.failed] == [("inner", "permission denied")]
    assert held(library) == before


def test_check_tells_what_stays_from_what_would_go(tmp_path: Path) -> None:
    """Issue: --check exits 1 when anything would change."""
    write(tmp_path / "d", {f"{n}.md": str(n) * 2 for n in range(5)})
    run(tmp_path, "add", "d", "--keep")
    (tmp_path / "d/1.md").unlink()
    assert run(tmp_path, "refresh", "--check")[0] == "kept     d:1.md\n"
    run(tmp_path, "add", "d", "--no-keep")
    assert run(tmp_path, "refresh", "--check", code=1)[0] == "missing  d:1.md\n"


def test_what_is_ignored_is_not_said_to_be_gone(library: Library, docs: Path) -> None:
    """Issue: nothing is removed, and the reason is said: a reason that is true."""
    library.add(docs)
    write(docs, {".gitignore": "*.md\n"})
    (warning,) = library.refresh().warnings
    assert "ignored or missing at once" in warning
    assert "gone" not in warning


def test_a_working_folder_that_is_gone_is_said_in_one_line(tmp_path: Path) -> None:
    """Errors help: what was wrong, and what to do next."""
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f"import os, sys; os.chdir({str(gone)!r}); os.rmdir({str(gone)!r}); import pathlib"
    code = f"{script}; from quire.surfaces.cli import main; sys.argv[1:] = ['list']; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "the working folder: cannot be used" in done.stderr
    assert "Traceback" not in done.stderr


def test_as_needs_standard_input(tmp_path: Path) -> None:
    """No option does nothing."""
    write(tmp_path, {"a.md": "# A"})
    assert "--as names text from standard input" in run(tmp_path, "add", "a.md", "--as", "b.md", code=2)[1]


def test_no_library_is_made_for_what_is_not_there(tmp_path: Path) -> None:
    """A library that nobody filled would be the nearest one for every later command."""
    err = run(tmp_path, "add", "nope.md", "neither.md", code=4)[1]
    assert err.count("no such file or folder") == 2
    assert not (tmp_path / ".quire").exists()


def test_a_folder_around_a_source_says_that_documents_are_held_twice(library: Library, docs: Path) -> None:
    """Nothing is doubled without saying so."""
    write(docs, {"sub/b.md": "# B"})
    library.add(docs / "sub")
    (warning,) = library.add(docs).warnings
    assert "twice" in warning
    assert library.add(docs).warnings == []


def test_check_says_what_it_could_not_look_at(
    tmp_path: Path, library: Library, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stranger found: a file that cannot be read was passed over in silence."""
    from quire.sources import files

    library.add(docs)
    skipped = files.Skipped("inner", "permission denied", "unreadable")
    walk = files.walk
    monkeypatch.setattr(files, "walk", lambda *args, **rest: iter([*walk(*args, **rest), skipped]))
    changes = library.check()
    assert not changes
    assert [(failed.source, failed.reason) for failed in changes.failed] == [("inner", "permission denied")]


def test_a_link_that_leads_nowhere_is_gone(library: Library, tmp_path: Path) -> None:
    """A stranger found: neither pruned nor moved while the link itself was there."""
    write(tmp_path / "t1", {"a.md": "# A"})
    (tmp_path / "s").symlink_to("t1")
    library.add(tmp_path / "s")
    (tmp_path / "t1").rename(tmp_path / "t9")
    assert library.refresh().failed == []
    library.move_source(str(tmp_path / "s"), str(tmp_path / "t9"))
    assert library.refresh().unchanged == 1


def test_a_key_of_the_wrong_type_is_not_shown() -> None:
    """A stranger found: a key that is a list was printed."""
    from quire.config import DEFAULT, override

    with pytest.raises(SettingError) as raised:
        override(DEFAULT, {"embed": {"key": ["sk-secret"]}})
    assert "sk-secret" not in str(raised.value)


def test_a_query_may_begin_with_what_it_excludes(tmp_path: Path) -> None:
    """A stranger found: in one argument with blanks it was taken for an option."""
    write(tmp_path / "d", {"a.md": "# A\n\nzebra"})
    run(tmp_path, "add", "d")
    assert "d:a.md" in run(tmp_path, "search", "-lion zebra")[0]
    assert "only filters" in run(tmp_path, "search", "path:*d*", code=2)[1]
