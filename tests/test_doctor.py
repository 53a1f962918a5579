"""What damages a library is noticed, named and repaired."""

from __future__ import annotations

import json
import random
import re
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from quire import disks, doctor
from quire.config import Config, override
from quire.errors import Damaged, LibraryError, QuireError
from quire.library import Library
from tests import postgres
from tests.commands import run
from tests.web_server import site
from tests.words import WORDS

TEXT = "# Okapi {0}\n\nThe okapi number {0} eats leaves.\n\n## Sleep\n\nIt sleeps at night {0}.\n"


@pytest.fixture(autouse=True)
def _few_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where numbers of documents cannot be read, few are tried: these libraries are small."""
    monkeypatch.setattr(doctor, "_MOST_TRIED", 1000)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A library of files, one text and one memory."""
    docs = tmp_path / "docs"
    docs.mkdir()
    for number in range(6):
        (docs / f"{number}.md").write_text(TEXT.format(number))
    with Library.open(tmp_path / "library.db", create=True, config=WORDS) as library:
        library.add(docs)
        library.add(content="# Text\n\nA quokka has no file.\n", path="text.md")
        library.remember("The numbat hides.")
        library.promote("docs:1.md", "critical")
    return tmp_path / "library.db"


def change(place: Path, statement: str, *args: object) -> None:
    with closing(sqlite3.connect(place)) as db:
        db.execute(statement, args)
        db.commit()


def damage(place: Path, path: str) -> None:
    """Change one letter of a stored text."""
    row = "SELECT source FROM documents WHERE path = ?"
    with closing(sqlite3.connect(place)) as db:
        source = db.execute(row, (path,)).fetchone()[0]
    changed = source.replace(b"okapi", b"OKAPI").replace(b"quokka", b"quoKka")
    assert changed != source
    change(place, "UPDATE documents SET source = ? WHERE path = ?", changed, path)


def test_a_changed_letter_is_not_read_as_truth(place: Path) -> None:
    """Issue: one changed letter in the file was read back as truth."""
    damage(place, "2.md")
    with Library.open(place, config=WORDS) as library:
        for call in (library.read, library.toc, library.source, library.chunks, library.sections):
            with pytest.raises(Damaged, match=r"docs:2\.md is damaged.*quire doctor") as raised:
                call("docs:2.md")
        assert raised.value.details["document"] == "docs:2.md"
        found = library.search("okapi number leaves")
        assert {result.path for result in found.results} == {f"{n}.md" for n in (0, 1, 3, 4, 5)}
        assert all(result.verified for result in found.results)
        assert any("docs:2.md" in note and "damaged" in note for note in found.notes)
        assert [finding.part for finding in doctor.examine(library)] == ["document"]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE chunks SET byte_start = byte_start + 1 WHERE id = (SELECT min(id) FROM chunks)",
        'UPDATE sections SET "end" = "end" - 1 WHERE position = 1',
        "UPDATE sections SET title = 'Another' WHERE position = 1",
    ],
)
def test_a_changed_place_is_not_cited(place: Path, statement: str) -> None:
    change(place, statement)
    with Library.open(place, config=WORDS) as library:
        found = library.search("okapi")
        (left,) = [note for note in found.notes if "damaged" in note]
        assert not any(result.path in left for result in found.results)
        assert "document" in {finding.part for finding in doctor.examine(library)}


def test_a_status_checks_only_if_it_is_asked_to(place: Path) -> None:
    """Issue: `status` answers at once; `--check` checks the file and its indexes."""
    assert "checked: no problem was found" in run(place.parent, "status", "--check", "-L", "library.db")[0]
    change(place, "UPDATE sections SET title = 'Another' WHERE position = 1 AND document = 1")
    assert "problem" not in run(place.parent, "status", "-L", "library.db")[0]
    shown = json.loads(run(place.parent, "status", "--json", "-L", "library.db")[0])
    assert (shown["checked"], shown["problems"]) == (False, [])
    out, _ = run(place.parent, "status", "--check", "--json", "-L", "library.db", code=4)
    assert json.loads(out)["checked"]
    assert json.loads(out)["problems"] == ["1 sections are not what was written"]


def test_a_deep_status_names_what_is_damaged(place: Path) -> None:
    """Issue: the checksums are compared in `status --deep`, which names each document."""
    damage(place, "2.md")
    assert run(place.parent, "status", "--check", "-L", "library.db")[0].count("problem: ") == 0
    out, _ = run(place.parent, "status", "--deep", "-L", "library.db", code=4)
    assert "problem: docs:2.md is not what was written" in out
    shown = json.loads(run(place.parent, "status", "--deep", "--json", "-L", "library.db", code=4)[0])
    assert [problem.split()[0] for problem in shown["problems"]] == ["docs:2.md"]


@pytest.mark.parametrize("fresh_url", postgres.DATABASES, indirect=True)
def test_a_copy_leaves_damaged_documents_behind_and_names_them(place: Path, library_url: str) -> None:
    """Issue: the checksums are compared in `copy`. Bad data in a batch never stops the rest."""
    damage(place, "2.md")
    with Library.open(place, config=WORDS) as library:
        done = library.copy(library_url)
        assert done.damaged == ("docs:2.md",)
        assert done.documents == library.status().documents - 1
        assert library.copy(library_url).damaged == ("docs:2.md",)
    with Library.open(library_url, config=WORDS) as copied:
        assert copied.damaged() == []
        assert copied.document("docs:2.md") is None
        assert copied.search("okapi").results
    _, err = run(place.parent, "copy", "--to", "copy.db", "-L", "library.db", code=3)
    assert "docs:2.md is damaged, and was not copied" in err


@pytest.mark.parametrize("fresh_url", postgres.DATABASES[1:], indirect=True)
def test_a_damaged_text_on_a_server_is_noticed(library_url: str) -> None:
    with Library.open(library_url, create=True, config=WORDS) as library:
        library.add(content=TEXT.format(1), path="a.md")
        library.add(content=TEXT.format(2), path="b.md")
        change = "UPDATE quire.documents SET pieces = set_byte(pieces, 9, get_byte(pieces, 9) # 64)"
        postgres.execute(library_url, f"{change} WHERE path = 'a.md' RETURNING 1")
        assert library.damaged() == ["content:a.md"]
        found = library.search("okapi")
        assert {result.path for result in found.results} == {"b.md"}
        assert any("content:a.md" in note for note in found.notes)
        with pytest.raises(Damaged):
            library.read("content:a.md")


def test_a_model_that_is_gone_is_a_problem(place: Path, tmp_path: Path) -> None:
    with Library.open(place, config=Config()) as library:
        library.embed()
        assert doctor.examine(library) == []
        assert re.search(r"(SQLite|PostgreSQL) \d.*, schema \d+$", doctor.versions(library)["database"])
    gone = override(Config(), {"embed": {"model": str(tmp_path / "nowhere")}})
    with Library.open(place, config=gone) as library:
        assert [(finding.part, "nowhere" in finding.problem) for finding in doctor.examine(library)] == [
            ("model", True)
        ]


@pytest.mark.parametrize(
    ("mounts", "folder", "part"),
    [
        ("server:/export {0}/net nfs4 rw 0 0", "net", "another machine (nfs4)"),
        ("me@host: {0}/net fuse.sshfs rw 0 0", "net", "another machine (fuse.sshfs)"),
        ("/dev/sda1 {0}/net ext4 rw 0 0", "net", ""),
        ("/dev/sda1 {0}/net fuseblk rw 0 0", "net", ""),
        ("", "Dropbox/notes", "Dropbox"),
        ("", "OneDrive - Example Ltd/notes", "OneDrive"),
        ("", "synced/notes", "Syncthing"),
    ],
)
def test_a_library_on_a_shared_disk_is_warned_of(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    mounts: str,
    folder: str,
    part: str,
) -> None:
    """Issue: a library on a network or synchronised folder is recognised where the system tells."""
    root = tmp_path.resolve()
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "synced" / ".stfolder").mkdir(parents=True)
    lines = f"/dev/root / ext4 rw 0 0\n{mounts.format(str(root).replace(' ', chr(92) + '040'))}\n"
    (tmp_path / "mounts").write_text(lines)
    monkeypatch.setattr(disks, "MOUNTS", tmp_path / "mounts")
    with Library.open(tmp_path / folder / "l.db", create=True, config=WORDS) as library:
        found = [finding.problem for finding in doctor.examine(library)]
    assert [part in problem for problem in found] == ([True] if part else [])
    assert (part in caplog.text) if part else (caplog.text == "")
    if part:
        assert "PostgreSQL" in caplog.text
    caplog.clear()
    Library.open(tmp_path / folder / "l.db", config=WORDS).close()
    assert caplog.text == ""  # it was said


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM chunks WHERE document IN (SELECT seq FROM documents WHERE path < '4')",
        "UPDATE sections SET own_end = own_end + 1",
        "UPDATE documents SET title = 'Another' WHERE kind = 'document'",
        "DELETE FROM facts",
        "DROP TABLE members",
    ],
)
def test_what_can_be_made_from_the_texts_is_made_again(place: Path, statement: str) -> None:
    """Issue: --repair rebuilds what is derived. It is all there afterwards, without the files."""
    with Library.open(place, config=WORDS) as library:
        before = {row.address: (row.title, row.chunk_count, row.promotion) for row in library.documents()}
    shutil.rmtree(place.parent / "docs")
    change(place, statement)
    run(place.parent, "doctor", "-L", "library.db", code=4)
    done = doctor.repair(str(place), WORDS)
    assert done.lost == ()
    with Library.open(place, config=WORDS) as library:
        after = {row.address: (row.title, row.chunk_count, row.promotion) for row in library.documents()}
        assert after == before
        assert len({result.path for result in library.search("okapi", limit=20).results}) == 6
        assert {one.part for one in doctor.examine(library)} <= {"sources"}  # the files are gone


def test_a_file_that_was_cut_short_is_repaired_from_its_texts_and_files(place: Path) -> None:
    for number in range(6, 200):
        (place.parent / "docs" / f"{number}.md").write_text(TEXT.format(number))
    with Library.open(place, config=WORDS) as library:
        library.refresh()
        before = sorted(row.address for row in library.documents())
        library.store.settle()
    with place.open("r+b") as file:
        file.truncate(place.stat().st_size * 9 // 10)  # of a smaller library, the schema is at its end
    done = doctor.repair(str(place), WORDS)
    with Library.open(place, config=WORDS) as library:
        there = sorted(row.address for row in library.documents())
        assert doctor.examine(library) == []
    assert set(before) - set(there) <= {"content:text.md"} | {one for one in before if "memor" in one}
    assert done.notes
    place.write_bytes(bytes(5000))
    with pytest.raises(LibraryError, match=r"quire restore"):
        doctor.repair(str(place), WORDS)


def test_sources_that_cannot_be_read_are_named(place: Path) -> None:
    change(place, "UPDATE sources SET options = '{'")
    with Library.open(place, config=WORDS) as library, pytest.raises(LibraryError, match="quire doctor"):
        library.sources()
    out, _ = run(place.parent, "doctor", "--repair", "-L", "library.db", code=3)
    assert f"Add them again: {place.parent / 'docs'}" in out


def test_a_changed_title_is_noticed(place: Path) -> None:
    change(place, "UPDATE documents SET title = 'Another' WHERE path = '2.md'")
    with Library.open(place, config=WORDS) as library:
        assert library.store.check() == ["1 of the titles are not what was written"]


def test_a_missing_row_is_said(place: Path) -> None:
    change(place, "DELETE FROM chunks WHERE id = (SELECT min(id) FROM chunks)")
    with Library.open(place, config=WORDS) as library, pytest.raises(LibraryError, match="quire doctor"):
        library.search("okapi")


@pytest.mark.parametrize("name", ["generation", "last_segment", "terms", "id", "history"])
@pytest.mark.parametrize(
    "statement", ["DELETE FROM facts WHERE name = ?", "UPDATE facts SET value = '' WHERE name = ?"]
)
def test_a_missing_fact_is_damage_and_no_traceback(place: Path, name: str, statement: str) -> None:
    """Soak: a page of facts that was zeroed ended in a TypeError."""
    change(place, statement, name)
    uses: list[Callable[[Library], object]] = [
        lambda library: library.search("okapi"),
        lambda library: library.status(),
        lambda library: library.add(content="# New\n\nwombat\n", path="new.md"),
        lambda library: library.remember("The wombat digs."),
    ]
    said = set[str]()
    for use in uses:
        try:
            with Library.open(place, config=WORDS) as library:
                said |= {problem.part for problem in doctor.examine(library)}
                use(library)
        except QuireError as problem:
            said.add(problem.code)
    assert said & {"file", "library_error"}


def test_a_chunk_of_a_section_that_is_not_there_is_damage(place: Path) -> None:
    """Soak: one changed byte of a chunk ended in a KeyError, with a clean check."""
    change(place, "UPDATE chunks SET section = -82")
    with Library.open(place, config=WORDS) as library:
        assert any("chunks are not what was written" in problem for problem in library.store.check())
        with pytest.raises(LibraryError, match="quire doctor"):
            library.search("okapi")


def test_what_a_check_stumbles_over_is_damage(place: Path) -> None:
    """Soak: pages that were swapped gave a model without a dimension."""
    with closing(sqlite3.connect(place, isolation_level=None)) as db:
        db.execute("PRAGMA writable_schema = ON")
        db.execute("UPDATE sqlite_schema SET sql = replace(sql, ' NOT NULL', '') WHERE name = 'models'")
    change(place, "INSERT INTO models (name, dimension) VALUES ('a', NULL)")
    with Library.open(place, config=WORDS) as library:
        assert library.store.check() != []
        assert "file" in {problem.part for problem in doctor.examine(library)}


def test_a_repair_takes_over_what_is_sound_and_reads_the_rest_again(place: Path) -> None:
    """What has no file is lost, and what can be read of it is saved; the old library is kept."""
    for path in ("2.md", "text.md"):
        damage(place, path)
    done = doctor.repair(str(place), WORDS)
    assert (done.documents, done.again, done.lost) == (6, 1, ("content:text.md",))
    (saved,) = (file for file in Path(done.saved).iterdir() if "text.md" in file.name)
    assert b"quoKka" in saved.read_bytes()
    assert Path(done.kept).is_file()
    with Library.open(place, config=WORDS) as library:
        assert doctor.examine(library) == []
        assert re.search(r"(SQLite|PostgreSQL) \d.*, schema \d+$", doctor.versions(library)["database"])
        assert library.read("docs:2.md").text == TEXT.format(2)
        assert len(library.recall("numbat").results) == 1
        row = library.document("docs:1.md")
        assert row is not None
        assert row.promotion == "critical"
        assert library.refresh().unchanged == 6


def test_a_sound_library_has_nothing_to_repair(library_url: str) -> None:
    with Library.open(library_url, create=True, config=WORDS) as library:
        library.add(content=TEXT, path="a.md")
        assert doctor.examine(library) == []
        assert re.search(r"(SQLite|PostgreSQL) \d.*, schema \d+$", doctor.versions(library)["database"])


def test_a_server_repairs_its_own() -> None:
    with pytest.raises(LibraryError, match="server"):
        doctor.repair("postgresql://somebody@localhost/x", WORDS)


def test_damaged_copies_never_give_wrong_text_and_never_a_traceback(place: Path, tmp_path: Path) -> None:
    """Issue: of 160 damaged copies, 13 read wrong text with a clean check, others ended in tracebacks."""
    with Library.open(place, config=WORDS) as library:
        library.backup(tmp_path / "base.db")
        true = {row.address: library.read(row.address).text for row in library.documents()}
    data, rng, ends = (tmp_path / "base.db").read_bytes(), random.Random(7), Counter[str]()
    for _ in range(120):
        copy = bytearray(data)
        for start in (rng.randrange(len(copy)), rng.randrange(len(copy))):
            copy[start : start + 8] = rng.randbytes(len(copy[start : start + 8]))
        for file in tmp_path.glob("copy.db*"):
            file.unlink()
        (tmp_path / "copy.db").write_bytes(copy)
        try:
            with Library.open(tmp_path / "copy.db", config=WORDS) as library:
                shown = [(row.address, library.read(row.address).text) for row in library.documents()]
                found = library.search("okapi leaves").results
        except QuireError:
            ends["said"] += 1
            continue
        assert all(true.get(address, text) == text for address, text in shown)
        assert all(result.document_id and result.snippet for result in found)
        ends["same"] += 1
    assert ends["said"] > 5
    assert ends["same"] > 5


def test_the_doctor_on_the_command_line(place: Path) -> None:
    assert "All is well" in run(place.parent, "doctor", "-L", "library.db")[0]
    damage(place, "2.md")
    out = run(place.parent, "doctor", "-L", "library.db", code=4)[0]
    assert "docs:2.md" in out
    assert "quire doctor -L library.db --repair" in out
    said = json.loads(run(place.parent, "doctor", "--repair", "--json", "-L", "library.db")[0])
    assert (said["findings"], said["repaired"]["again"]) == ([], 1)
    assert "docs:2.md" in run(place.parent, "list", "-L", "library.db")[0]


def vault(tmp_path: Path, url: str) -> Library:
    """A library of notes with links, tags, aliases and fields, and one that was converted."""
    notes = tmp_path / "vault"
    notes.mkdir()
    front = "---\naliases: [Start]\nstatus: draft\nrating: 4\ntags: [work]\n---\n"
    (notes / "Home.md").write_text(f"{front}# Home\n\n[[Other|there]] #garden\n")
    (notes / "Other.md").write_text("# Other\n\nBack to [[Start]] and [home](Home.md).\n")
    (notes / "page.html").write_text("<h1>Page</h1><p>A wombat digs a long tunnel.</p>")
    library = Library.open(url, create=True, config=WORDS)
    library.add(notes)
    library.add(content="# Text\n\nSee [[Home]].\n", path="text.md")
    library.remember("The numbat hides from [[Home]].", tags=["animals"])
    return library


def all_of(library: Library) -> dict[str, tuple[object, ...]]:
    """What is stored of each document besides its text. Entries are given theirs."""
    store, found = library.store, dict[str, tuple[object, ...]]()
    for row in library.documents(kind="document"):
        links = [(link.number, link.target, link.key) for link in store.links(row.seq)]
        said = (store.tags([row.seq]).get(row.seq), store.fields(row.seq), sorted(store.names(row.seq)))
        found[row.address] = (links, *said, store.original_checksums([row.seq]).get(row.seq))
    return found


MISSING = {
    "DELETE FROM tags WHERE tag <> 'animals'": "tags",
    "INSERT INTO tags SELECT seq, 'planted', 'planted' FROM documents WHERE path = 'Other.md'": "tags",
    "DELETE FROM fields": "front-matter fields",
    "UPDATE fields SET value = 'done' WHERE name = 'status'": "front-matter fields",
    "UPDATE fields SET number = 5 WHERE name = 'rating'": "front-matter fields",
    "INSERT INTO fields SELECT seq, 'status', 'x', NULL, NULL FROM documents": "front-matter fields",
    "DELETE FROM names": "names",
    "INSERT INTO names SELECT seq, 'planted' FROM documents": "names",
    "DELETE FROM links": "links",
    "DELETE FROM links WHERE number = 1": "links",
    "DELETE FROM originals": "converted",
}


@pytest.mark.parametrize("statement", MISSING)
def test_missing_and_planted_rows_are_noticed_and_made_again(tmp_path: Path, statement: str) -> None:
    """Issue: all was well without links, tags, fields, names or originals."""
    place = tmp_path / "library.db"
    with vault(tmp_path, str(place)) as library:
        assert doctor.examine(library) == []
        before = all_of(library)
    change(place, statement)
    with Library.open(place, config=WORDS) as library:
        assert all_of(library) != before
        found = doctor.examine(library)
        assert {problem.part for problem in found} == {"document"}
        assert all(MISSING[statement] in problem.problem for problem in found)
    assert doctor.repair(str(place), WORDS).lost == ()
    with Library.open(place, config=WORDS) as library:
        assert doctor.examine(library) == []
        assert all_of(library) == before


@pytest.mark.parametrize("fresh_url", postgres.DATABASES[1:], indirect=True)
def test_missing_rows_on_a_server_are_noticed(tmp_path: Path, library_url: str) -> None:
    """Issue: all was well without links, tags, fields or names."""
    with vault(tmp_path, library_url) as library:
        assert doctor.examine(library) == []
        for table in ("tags", "fields", "names", "links"):
            postgres.execute(library_url, f"DELETE FROM quire.{table} RETURNING 1")
        problems = {problem.problem for problem in doctor.examine(library)}
        wrong = "its links, tags, front-matter fields are not those that its text gives"
        assert f"vault:Home.md: {wrong}" in problems
        assert "vault:page.html: its names are not those that its text gives" in problems


def test_a_repair_keeps_the_tags_that_an_entry_was_given(tmp_path: Path) -> None:
    """An entry's tags are not in its text."""
    place = tmp_path / "library.db"
    vault(tmp_path, str(place)).close()
    change(place, "UPDATE sections SET title = 'Another'")
    assert doctor.repair(str(place), WORDS).lost == ()
    with Library.open(place, config=WORDS) as library:
        assert [row.kind for row in library.documents(tags=["animals"], kind="memory")] == ["memory"]


def test_a_page_is_sound_and_its_links_are_made_again_from_its_url(tmp_path: Path) -> None:
    """The links of a page begin from its URL, and it has no #tags."""
    place, local = tmp_path / "library.db", override(WORDS, {"web": {"allow_hosts": ["127.0.0.1"]}})
    with site() as web:
        web.page("/a/b.md", b"# B\n\nSee [C](c.md), #notag.\n", content_type="text/markdown")
        with Library.open(place, create=True, config=local) as library:
            library.add(web.url("/a/b.md"))
            assert doctor.examine(library) == []
            before = all_of(library)
        ((links, tags, *_),) = before.values()
        assert (links, tags) == ([(0, web.url("/a/c.md"), "c")], None)
        change(place, "DELETE FROM links")
        doctor.repair(str(place), local)
        with Library.open(place, config=local) as library:
            assert all_of(library) == before
