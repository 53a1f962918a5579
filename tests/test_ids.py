"""Ids are accepted wherever an address is, in Python, on the command line and over MCP, on both databases."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID, uuid4, uuid5

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client

from quire.address import id_of, key_of_id, keys_of, of_part, of_section, parse_id
from quire.config import override
from quire.errors import NoResults, SettingError
from quire.library import Library
from quire.stores import MAX_CHUNKS
from quire.stores.ids import with_id
from quire.stores.sqlite import SqliteStore
from tests import postgres
from tests.commands import run
from tests.mcp_client import ask, parameters, refused, talk
from tests.schemas import make_schema
from tests.words import WORDS

LONG = "".join(f"Sentence {number} is about topic{number} and nothing else.\n\n" for number in range(120))
GUIDE = f"# Guide\n\nWelcome.\n\n## Install\n\nUse the package manager.\n\n## Reference\n\n{LONG}"
PLAIN = f"No heading at all.\n\n{LONG}"
SMALL = override(WORDS, {"chunk": {"auto": {"max_tokens": 120}}})


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "guide.md").write_text(GUIDE)
    (folder / "plain.txt").write_text(PLAIN)
    (folder / "faq.md").write_text("# FAQ\n\nPenguins swim.\n")
    return folder


@pytest.fixture
def library(library_url: str, docs: Path) -> Iterator[Library]:
    with Library.open(library_url, create=True, config=SMALL) as opened:
        opened.add(docs)
        yield opened


def every_address(library: Library) -> dict[str, str]:
    """The addresses of all documents, sections and chunks of a library, by their ids."""
    found: dict[str, str] = {}
    for row in library.documents():
        sections = library.store.sections(row.seq)
        numbers = range(row.seq * MAX_CHUNKS, row.seq * MAX_CHUNKS + row.chunk_count)
        chunks = library.store.chunks(numbers).values()
        places = [(section, 0) for section in sections]
        places += [(sections[chunk.section], chunk.part) for chunk in chunks]
        for section, part in places:
            address = of_part(of_section(row.address, section.slug), part, is_root=not section.slug)
            found[id_of(row.kind, address)] = address
    return found


def assert_ids_lead_back(library: Library) -> None:
    known = every_address(library)
    assert {id: library.read(id).address for id in known} == known
    assert library.store.check() == []


# ------------------------------------------------------------------------------------------- the text


@given(st.uuids())
def test_an_id_is_read_in_any_case_with_or_without_hyphens(id: UUID) -> None:
    """Issue: ids are accepted as the text of a UUID."""
    for text in (str(id), str(id).upper(), id.hex, id.hex.upper()):
        assert parse_id(text) == str(id)


@pytest.mark.parametrize(
    "text",
    ["", "docs:a.md", "{%s}", "urn:uuid:%s", "%s0", " %s", "%s\n", "01234567-89ab-cdef-0123456789ab-cdef"],
)
def test_other_texts_are_no_ids(text: str) -> None:
    """A path is not taken for an id because Python would read it as one."""
    assert parse_id(text.replace("%s", str(uuid4()))) is None


@given(st.sampled_from(["document", "memory", "external"]), st.text(st.characters(codec="utf-8")))
def test_the_key_of_an_address_is_the_beginning_of_its_id(kind: str, address: str) -> None:
    """What is written without making the id is what a lookup computes from it."""
    key = key_of_id(id_of(kind, address))
    assert keys_of(kind, [address, "x"])[0] == key < 1 << 47


@given(st.sampled_from(["document", "memory"]), st.text(st.characters(codec="utf-8")))
def test_an_id_is_a_uuid_of_version_5(kind: str, address: str) -> None:
    """Anybody can derive it: uuid5 of one namespace and the address, after the kind if it is no document."""
    name = address if kind == "document" else f"{kind} {address}"
    assert id_of(kind, address) == str(uuid5(UUID("6f1a7c3e-2f0b-5d7e-9a54-0c9f8b1d2e63"), name))


def test_ids_that_share_a_key_are_told_apart(library: Library) -> None:
    """The whole id is compared: no place that another id leads to is ever shown for it."""
    guide, faq = (library.document(f"docs:{name}.md") for name in ("guide", "faq"))
    assert guide
    assert faq
    places = [(guide, "", 0), (faq, "", 0), (guide, "install", 0), (guide, "reference", 2)]
    assert with_id(faq.id, places) == (faq, "")
    assert with_id(id_of("document", "docs:guide.md#reference~2"), places) == (guide, "reference~2")
    assert with_id(str(uuid4()), places) is None


# --------------------------------------------------------------------------------------------- Python


def test_every_id_leads_back_to_its_address(library: Library) -> None:
    """Issue: documents, sections, chunks, and parts of a document without headings."""
    assert_ids_lead_back(library)
    known = set(every_address(library).values())
    assert {"docs:faq.md", "docs:guide.md#install", "docs:guide.md#reference~2", "docs:plain.txt#~2"} <= known


def test_every_id_that_is_shown_leads_back(library: Library) -> None:
    """Issue: every id that a search result or a document shows leads to the same place."""
    for query in ("package manager", "topic7", "penguins", "topic99 nothing else"):
        for result in library.search(query).results:
            assert library.read(result.document_id).address == f"{result.collection}:{result.path}"
            places = [library.read(id) for id in result.chunk_ids]
            assert all(place.address.startswith(result.address.partition("#")[0]) for place in places)
            assert min(place.start for place in places) >= min(result.start, places[0].start)
            if len(places) == 1 and result.start == places[0].start:
                assert places[0].address == result.address
    for row in library.documents():
        assert library.document(row.id) == row


def test_an_id_works_as_its_address_in_every_method(library: Library) -> None:
    """Issue: document, read, source, toc and promote, by the id of a document or of a section."""
    for address in ("docs:guide.md", "docs:guide.md#install", "docs:guide.md#reference~2"):
        id = id_of("document", address)
        for text in (id, id.upper(), UUID(id).hex):
            assert library.document(text) == library.document(address)
            assert library.read(text) == library.read(address)
            assert library.read(text, "Install") == library.read(address, "Install")
            assert library.source(text) == library.source(address)
            assert library.toc(text).document.address == library.toc(address).document.address
    assert library.promote(id_of("document", "docs:guide.md"), "critical").promotion == "critical"
    with pytest.raises(SettingError, match=r"applies to whole documents: docs:guide\.md"):
        library.promote(id_of("document", "docs:guide.md#install"), "important")


def test_an_unknown_id_is_told_as_one(library: Library) -> None:
    """Issue: the same error as for an unknown address, saying that nothing has this id."""
    unknown = str(uuid4())
    assert library.document(unknown) is None
    for use in (library.read, library.source, library.toc, library.remove):
        with pytest.raises(NoResults, match=f"No document or section has the id {unknown}"):
            use(unknown.upper())


def test_an_id_in_an_empty_library_says_that_it_is_empty(library_url: str) -> None:
    """As an address does."""
    with (
        Library.open(library_url, create=True, config=WORDS) as library,
        pytest.raises(NoResults, match="The library is empty"),
    ):
        library.read(str(uuid4()))


def test_a_path_that_looks_like_an_id_wins(library: Library) -> None:
    """Issue: addresses are tried first."""
    id = id_of("document", "docs:guide.md")
    library.add(content="# Mine\n", path=id)
    assert library.read(id).text == "# Mine\n"
    assert library.read(id.upper()).address == "docs:guide.md"
    (gone,) = library.remove_source(id)
    assert gone.path == id


def test_documents_are_removed_by_id_once(library: Library) -> None:
    """Issue: remove takes ids; two names of one document are one document."""
    row = library.document("docs:guide.md")
    assert row
    for part in ("docs:guide.md#install", id_of("document", "docs:guide.md#install")):
        with pytest.raises(SettingError, match="is only part of docs:guide"):
            library.remove(part)
    assert library.remove(row.id, row.address) == [row]
    for gone in (row.id, id_of("document", "docs:guide.md#install")):
        assert library.document(gone) is None
    assert_ids_lead_back(library)


def test_a_text_is_removed_from_the_sources_by_its_id(library: Library) -> None:
    """Issue: the address of a text names its source, and so does its id."""
    library.add(content="# Note\n\nOne.\n\n## Part\n\nTwo.\n", path="note.md")
    with pytest.raises(NoResults, match="No source"):
        library.remove_source(id_of("document", "content:note.md#part"))
    (row,) = library.remove_source(id_of("document", "content:note.md"))
    assert row.address == "content:note.md"


def test_memories_have_ids_of_their_own_kind(library: Library) -> None:
    """Issue: recall shows ids that read and forget take; kinds do not share ids."""
    row = library.remember(LONG, name="long")
    (result, *_) = library.recall("topic7").results
    assert library.read(result.chunk_ids[0]).address == result.address
    assert library.document(id_of("document", row.address)) is None
    assert_ids_lead_back(library)
    with pytest.raises(SettingError, match="is not a memory but of kind document"):
        library.forget(id_of("document", "docs:faq.md"))
    assert library.forget(result.chunk_ids[0], row.id, row.address) == [row]
    assert library.document(row.id) is None


def test_other_peoples_documents_have_ids(library: Library, tmp_path: Path) -> None:
    """Kinds: the ids of external documents are theirs alone."""
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "a.md").write_text(GUIDE)
    library.add(tmp_path / "theirs", external=True)
    assert library.read(id_of("external", "theirs:a.md#install")).address == "theirs:a.md#install"
    assert_ids_lead_back(library)


# -------------------------------------------------------------------------------- what changes ids


def test_ids_follow_a_rename(library: Library, docs: Path) -> None:
    """A rename changes addresses, and so ids: the new ones work, the old ones are unknown."""
    old = every_address(library)
    (docs / "guide.md").rename(docs / "manual.md")
    assert library.refresh().moved == 1
    assert library.read(id_of("document", "docs:manual.md#reference~2")).address.endswith(
        "manual.md#reference~2"
    )
    gone = old.keys() - every_address(library).keys()
    assert {old[id].partition("#")[0] for id in gone} == {"docs:guide.md"}
    assert all(library.document(id) is None for id in gone)
    assert_ids_lead_back(library)


def test_ids_follow_new_content(library: Library, docs: Path) -> None:
    """A document that is indexed again has the ids of its new sections, and no others."""
    (docs / "guide.md").write_text("# Guide\n\nWelcome back.\n\n## Set up\n\nBy hand.\n")
    library.refresh()
    assert library.document(id_of("document", "docs:guide.md#install")) is None
    assert library.read(id_of("document", "docs:guide.md#set-up")).text == "## Set up\n\nBy hand.\n"
    assert_ids_lead_back(library)


def test_ids_stay_when_a_folder_moves(library: Library, docs: Path, tmp_path: Path) -> None:
    """The collection and the paths stay, and so do the ids."""
    before = every_address(library)
    docs.rename(tmp_path / "elsewhere")
    library.move_source(str(docs), str(tmp_path / "elsewhere"))
    assert every_address(library) == before
    assert_ids_lead_back(library)


def test_a_copy_has_the_same_ids(library: Library, fresh_url: Callable[[], str]) -> None:
    """quire copy: ids are derived from addresses, and lead to the same places."""
    url = fresh_url()
    library.copy(url)
    with Library.open(url, config=SMALL) as copied:
        assert every_address(copied) == every_address(library)
        assert_ids_lead_back(copied)


# ---------------------------------------------------------------------------------------- the database


def spoil(library: Library, statement: str) -> None:
    if isinstance(library.store, SqliteStore):
        library.store.db.execute(statement.replace("quire.", ""))
    else:
        library.store.db.write(lambda db: db.execute(statement))  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE quire.sections SET key = NULL WHERE slug = 'install'",
        "UPDATE quire.sections SET key = key + 1 WHERE slug = 'install'",
        "UPDATE quire.chunks SET key = key + 1 WHERE part = 9",
    ],
)
def test_checking_names_ids_that_lead_nowhere(library: Library, statement: str) -> None:
    """Issue: `quire status` says where ids and sections disagree."""
    spoil(library, statement)
    said = library.store.check()
    assert len(said) == 1
    assert said[0].startswith("ids that lead nowhere: ")


def test_looking_an_id_up_reads_no_other_sections(tmp_path: Path) -> None:
    """Issue: a lookup uses an index, however many sections there are."""
    with Library.open(tmp_path / "l.db", create=True, config=WORDS) as library:
        assert isinstance(library.store, SqliteStore)
        asked: list[str] = []
        library.store.db.set_trace_callback(asked.append)
        library.store.by_id(str(uuid4()))
        library.store.db.set_trace_callback(None)
        (lookup,) = (statement for statement in asked if "slug" in statement)
        plan = [row[3] for row in library.store.db.execute(f"EXPLAIN QUERY PLAN {lookup}")]
    assert not [step for step in plan if step.startswith("SCAN") and step != "SCAN p"], plan


def test_a_library_of_before_gets_its_ids(library_url: str, docs: Path) -> None:
    """Issue: older libraries are filled when they are migrated, and nothing is indexed anew."""
    with Library.open(library_url, create=True, config=SMALL) as library:
        library.add(docs)
        library.remember(LONG, name="long")
        before = every_address(library)
    make_schema(library_url, 4 if library_url.startswith("postgres") else 6)
    with Library.open(library_url, config=SMALL) as library:
        assert every_address(library) == before
        assert_ids_lead_back(library)
        (docs / "faq.md").rename(docs / "questions.md")
        assert (library.refresh().moved, library.status().documents) == (1, 4)
        assert_ids_lead_back(library)


@postgres.needs_postgres
def test_a_role_finds_ids_of_its_own_collections_only(docs: Path) -> None:
    """Policies: an id tells nobody of a collection that they may not see."""
    url = postgres.borrow()
    with Library.open(url, create=True, config=WORDS) as library:
        library.add(docs)
        library.add(content="# Note\n\nOne.\n\n## Part\n\nTwo.\n", path="note.md")
    with Library.open(f"{url}&collections=content", config=WORDS) as scoped:
        assert scoped.read(id_of("document", "content:note.md#part")).address == "content:note.md#part"
        assert scoped.document(id_of("document", "docs:faq.md")) is None
        assert scoped.store.check() == []
    postgres.give_back(url)


# ------------------------------------------------------------------------------------------- surfaces


def test_commands_take_ids(tmp_path: Path, docs: Path) -> None:
    """Issue: read, toc, promote, remove, forget and sources remove take an id where they take an address."""
    run(tmp_path, "add", "docs")
    found = json.loads(run(tmp_path, "search", "package manager", "--json")[0])["results"][0]
    assert run(tmp_path, "read", found["chunk_ids"][0])[0] == "## Install\n\nUse the package manager.\n\n"
    assert run(tmp_path, "read", found["document_id"])[0] == GUIDE
    assert run(tmp_path, "toc", found["document_id"]) == run(tmp_path, "toc", "docs:guide.md")
    assert run(tmp_path, "promote", found["document_id"], "critical")[0] == "docs:guide.md is critical.\n"
    kept = json.loads(run(tmp_path, "remember", "We deploy on Tuesdays.", "--json")[0])
    assert run(tmp_path, "read", kept["id"])[0] == "We deploy on Tuesdays."
    assert kept["address"] in run(tmp_path, "forget", kept["id"])[0]
    assert "docs:guide.md" in run(tmp_path, "remove", found["document_id"])[0]
    for command in ("read", "toc", "remove"):
        _, said = run(tmp_path, command, found["document_id"], code=1)
        assert f"No document or section has the id {found['document_id']}" in said
    run(tmp_path, "add", "-", "--as", "note.md", stdin=b"# Note\n")
    assert "content:note.md" in run(tmp_path, "sources", "remove", id_of("document", "content:note.md"))[0]


def test_a_file_that_is_named_like_an_id_is_outlined(tmp_path: Path) -> None:
    """toc takes a file first, as it does for an address."""
    name = str(uuid4())
    (tmp_path / name).write_text("# Mine\n")
    assert "Mine" in run(tmp_path, "toc", name)[0]


def test_tools_take_ids(tmp_path: Path, docs: Path) -> None:
    """Issue: read, toc, remove and forget over MCP."""
    with Library.open(tmp_path / "l.db", create=True, config=WORDS) as library:
        library.add(docs)
        memory = library.remember("We deploy on Tuesdays.")
        guide, section = id_of("document", "docs:guide.md"), id_of("document", "docs:guide.md#install")

    async def work(client: Client) -> None:
        assert "Use the package manager." in await ask(client, "read", address=section)
        by_id = await ask(client, "toc", address=guide)
        assert by_id == await ask(client, "toc", address="docs:guide.md")
        assert memory.address in await ask(client, "forget", addresses=[memory.id])
        assert "docs:guide.md" in await ask(client, "remove", addresses=[guide])
        assert "No document or section has the id" in await refused(client, "read", address=section)

    talk(parameters(tmp_path), work)
