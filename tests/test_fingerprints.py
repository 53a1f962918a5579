"""What made what: libraries of other stemmers and other versions are found, searched and made again."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from quire import analyze, fingerprint
from quire.errors import LibraryError
from quire.ingest import plan as planning
from quire.ingest import prepare
from quire.library import Library
from quire.query import parse
from quire.stores import Filters, matching
from quire.stores.matching import Phrase
from tests.words import WORDS

WORD = "emergencies"  # PyStemmer 2.2 makes `emerg` of it, 3.1 makes `emergenc`
OLD = f"terms {analyze.RULES}, PyStemmer 2.2.0.3, Unicode 14.0.0"


class Short:
    """A stemmer that takes more from a word than this one."""

    def stemWord(self, word: str) -> str:
        return word[: max(3, len(word) - 4)] if len(word) > 6 else word


@contextmanager
def other_stemmer() -> Iterator[None]:
    """A program with another version of the stemmer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(analyze, "_TERMS", analyze._Terms())
        patch.setattr(analyze, "_stemmer", lambda _: Short())
        patch.setattr(analyze, "fingerprint", lambda: OLD)
        yield


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    for number in range(40):
        (folder / f"{number}.md").write_text(f"# Page {number}\n\nplain text\n")
    (folder / "exit.md").write_text(f"# Exit\n\nIn {WORD}, walk.\n")
    return folder


@pytest.fixture
def library(library_url: str, docs: Path) -> Iterator[Library]:
    """A library that a program with another stemmer has made."""
    with other_stemmer(), Library.open(library_url, create=True, config=WORDS) as made:
        made.add(docs)
        made.add(content=f"{WORD} of my own", path="own.txt", collection="texts")
        made.remember(f"remember {WORD}")
    with Library.open(library_url, config=WORDS) as opened:
        yield opened


def found(library: Library) -> list[str]:
    return sorted(result.path for result in library.search(WORD, mode="keyword").results)


def makers(library: Library) -> frozenset[str]:
    return library.store.word_makers()


def is_sqlite(library: Library) -> bool:
    return not library.store.is_shared


def test_words_of_another_stemmer_are_found_as_well_as_can_be_and_said(library: Library) -> None:
    """Issue: a program with another stemmer warns and searches by the library's terms as well as it can."""
    assert found(library) == ["exit.md", "own.txt"]
    (note,) = library.search(WORD, mode="keyword").notes
    assert "PyStemmer 2.2.0.3 was used, and this is PyStemmer" in note
    assert ("--remake" in note) == library.store.is_shared


def test_a_refresh_remakes_what_another_stemmer_made(library: Library, docs: Path) -> None:
    """Issue: the plan says `remade, because …`, and the work is done; a shared library needs --remake."""
    (plan, *_) = library.plan(remake=True)
    assert {item.action for item in plan.items} == {planning.REMAKE}
    assert len(plan.items) == 43
    assert "PyStemmer 2.2.0.3 was used, and this is" in plan.items[0].reason
    assert len(library.check().remade) == (43 if is_sqlite(library) else 0)
    report = library.refresh(remake=True)
    assert "The words of 43 documents were remade, because PyStemmer 2.2.0.3 was used" in report.warnings[0]
    assert makers(library) == {analyze.fingerprint()}
    assert found(library) == ["exit.md", "own.txt"]
    assert library.search(WORD, mode="keyword").notes == ()
    assert len(library.recall(WORD, mode="keyword").results) == 1
    assert library.store.check() == []
    assert library.refresh().warnings == []
    assert not library.check()
    (docs / "exit.md").write_text("# Exit\n\nnothing\n")
    library.refresh()
    assert found(library) == ["own.txt"]
    assert library.store.check() == []


def test_two_programs_do_not_remake_a_shared_library_in_turn(library: Library, docs: Path) -> None:
    """Issue: two programs with different versions on one PostgreSQL library do not remake it in turn."""
    if is_sqlite(library):
        pytest.skip("a file is one program's")
    before = library.documents()
    assert "quire refresh --remake" in library.refresh().warnings[0]
    assert makers(library) == {OLD}
    with other_stemmer():
        assert library.refresh().warnings == []
    assert library.documents() == before
    (docs / "new.md").write_text(f"# New\n\n{WORD}\n")
    library.refresh()
    assert makers(library) == {OLD, analyze.fingerprint()}
    assert found(library) == ["exit.md", "new.md", "own.txt"]
    with other_stemmer():
        assert found(library) == ["exit.md", "new.md", "own.txt"]


def test_a_write_with_another_stemmer_leaves_a_file_sound(library: Library, docs: Path) -> None:
    """A full-text table that took out other terms than went in would be broken."""
    library.remove("docs:exit.md")
    library.add(content=f"more {WORD}", path="more.txt", collection="texts")
    assert found(library) == ["more.txt", "own.txt"]
    assert library.store.check() == []


def test_remaking_goes_on_where_it_was_stopped(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue: document by document, and search goes on meanwhile, saying so."""
    texts, calls = type(library.store)._texts, list[int]()  # type: ignore[attr-defined]

    def stopped(self: Any, row: int) -> Any:
        calls.append(row)
        if len(calls) == 36:
            raise LibraryError("the library", "was stopped")
        return texts(self, row)

    monkeypatch.setattr("quire.stores.postgres.documents.SOME", 32)
    with monkeypatch.context() as patch:
        patch.setattr(type(library.store), "_texts", stopped)
        with pytest.raises(LibraryError, match="was stopped"):
            library.store.remake_words()
    assert OLD in makers(library)
    assert found(library) == ["exit.md", "own.txt"]
    assert "PyStemmer 2.2.0.3 was used" in library.search(WORD).notes[0]
    done = library.store.remake_words()
    assert done == 43 - 32
    assert makers(library) == {analyze.fingerprint()}
    assert found(library) == ["exit.md", "own.txt"]
    assert library.store.check() == []


def test_what_changes_while_words_are_remade_is_not_lost(library: Library, docs: Path) -> None:
    """Another program writes by its own stemmer meanwhile: then all is made again."""
    if not is_sqlite(library):
        pytest.skip("each document has its own words there")
    store: Any = library.store
    with store.writing():
        with store._transaction():
            store._begin_remake()
        store._remake_some()
    with other_stemmer(), Library.open(library.url, config=WORDS) as other:
        other.remove("docs:0.md")
        (docs / "1.md").write_text(f"# One\n\n{WORD}\n")
        other.add(docs / "1.md")
    assert store.remake_words() > 40
    assert found(library) == ["1.md", "exit.md", "own.txt"]
    assert store.check() == []


def test_a_library_that_cannot_be_written_is_searched_all_the_same(library: Library) -> None:
    """Readers never wait, and never write."""
    if not is_sqlite(library):
        pytest.skip("about files")
    library.close()
    path = Path(library.url)
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    path.chmod(0o444)
    with Library.open(path, config=WORDS) as opened:
        assert found(opened) == ["exit.md", "own.txt"]
    path.chmod(0o644)


def test_another_sentence_splitter_is_a_reason_to_cut_again(
    library_url: str, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue: everything derived names what made it; the plan says `remade, because …`."""
    with Library.open(library_url, create=True, config=WORDS) as library:
        with monkeypatch.context() as patch:
            versions = prepare._versions()
            patch.setattr(prepare, "_versions", lambda: versions.rpartition(" ")[0] + " 0.9")
            library.add(docs)
            library.add(content="text", path="t.txt", collection="texts")
        plans = library.plan(remake=True)
        reasons = {item.reason for plan in plans for item in plan.of(planning.REMAKE)}
        (reason,) = reasons
        assert reason.startswith("sentencex 0.9 was used, and this is sentencex ")
        if library.store.is_shared:
            assert library.refresh().updated == 0
        assert library.refresh(remake=True).updated == 42
        assert library.refresh(remake=True).updated == 0
        assert {row.made_by for row in library.store.documents(Filters())} == {prepare.made_by(WORDS)}


def test_a_difference_names_what_changed() -> None:
    """People read why."""
    old, new = "a 1, b 2", "a 1, b 3, c 1"
    assert fingerprint.difference(old, new) == "b 2 was used, and this is b 3, c 1"
    assert fingerprint.difference("", new) == "an earlier Quire was used, and this is a 1, b 3, c 1"
    assert fingerprint.why_remade("x | a 1", "x | a 1", shared=False) == ""
    assert fingerprint.why_remade("x | a 1", "x | a 2", shared=True) == ""
    assert "settings" in fingerprint.why_remade("x | a 1", "y | a 1", shared=True)


def test_loose_terms_hold_what_both_stemmers_make() -> None:
    """The words that the change from PyStemmer 2.2 to 3.1 lost: stems are prefixes."""
    assert {"intern", "internal"} <= set(analyze.loose_terms("internal"))
    assert {"emerg", "emergenc"} <= set(analyze.loose_terms("emergency"))
    assert analyze.loose_terms("cat") == ["cat"]


def test_a_common_word_of_another_stemmer_is_found() -> None:
    """A stranger found: what most chunks have only ranks, so its other stems alone must not decide."""
    common = frozenset({"emerg"})
    loose = matching.word_query(parse("emergency"), common, loose=True)
    assert Phrase(("emerg",)) in loose.rare
    both = matching.word_query(parse("emergency zebra"), common, loose=True)
    assert Phrase(("zebra",)) in both.rare
    assert Phrase(("emerg",)) in both.others
    assert Phrase(("emerge",)) not in both.rare


def test_a_write_that_remakes_words_says_so(library: Library, caplog: pytest.LogCaptureFixture) -> None:
    """Issue: remade, because …; a file is remade before anything is written to it."""
    library.remember("zzz")
    said = [record.message for record in caplog.records if "were remade, because PyStemmer" in record.message]
    assert len(said) == is_sqlite(library)
