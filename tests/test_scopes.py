"""A library that is opened for some collections, and the keys that open it so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from quire import Library, NoResults, SettingError
from quire.errors import Forbidden
from quire.library.keys import valid_key
from quire.stores.base import Store
from quire.stores.scoped import PLAIN, REFUSED, ScopedStore

SECRET = "zanzibar"  # a word that only the other collection has


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """Two folders of documents that link to files of the same names."""
    for name, word in (("open", "lantern"), ("closed", SECRET)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "guide.md").write_text(f"# Guide\n\nHow to light a {word}.\n\n## Care\n\nSee [[note]].\n")
        (folder / "note.md").write_text(
            f"---\ntags: [{word}]\nowner: {word}\n---\n# Note\n\nOil of {word}.\n"
        )
    (tmp_path / "closed" / "only.md").write_text(f"# Only\n\nA {SECRET} alone. See [[guide]].\n")
    return tmp_path


@pytest.fixture
def both(library_url: str, folders: Path) -> Iterator[Library]:
    with Library.open(library_url, create=True) as library:
        library.add(folders / "open", folders / "closed", embed=False)
        library.promote("closed:guide.md", "critical")
        library.remember(f"The {SECRET} is in the cellar.", collection="closed-notes", name="where")
        library.remember("The lantern is in the hall.", collection="open-notes", name="here")
        yield library


@pytest.fixture
def scoped(both: Library) -> Iterator[Library]:
    with Library.open(both.url, collections=["open", "open-notes"]) as library:
        yield library


def test_every_method_of_a_store_is_limited_passed_on_or_refused() -> None:
    """Issue: a key scoped to collections. What is new in a store is closed until someone opens it."""
    members = {name for part in Store.__mro__ for name in getattr(part, "__protocol_attrs__", ())}
    limited = {name for part in ScopedStore.__mro__ for name in vars(part) if name[0] != "_"}
    assert members - limited - PLAIN - REFUSED == set()
    assert limited & (PLAIN | REFUSED) == set()


def test_nothing_of_another_collection_is_returned(scoped: Library, both: Library) -> None:
    """BAD_INPUTS: one collection's key or filter never returns another's text."""
    id = both.document("closed:only.md").id  # type: ignore[union-attr]
    told = [
        *(
            scoped.search(query)
            for query in (SECRET, "guide", f'"{SECRET}"', f"{SECRET[:4]}*", f"light tag:{SECRET}")
        ),
        *(scoped.search("light", mode=mode) for mode in ("keyword", "semantic", "hybrid")),
        scoped.search("light", explain=True),
        scoped.context(f"guide {SECRET}"),
        *(scoped.documents(), scoped.collections(), scoped.sources(), scoped.status(), scoped.check()),
        *(scoped.links("open:guide.md"), scoped.links("open:note.md"), scoped.read("guide.md")),
        *(scoped.toc("guide.md").title, scoped.recall("where is it"), scoped.recall(SECRET)),
        *(scoped.document(id), scoped.document("closed:only.md"), scoped.document("only.md")),
        scoped.unembeddable(),
    ]
    text = repr(told).replace(f"query='{SECRET}'", "").replace(f"query='\"{SECRET}\"'", "")
    text = (
        text.replace(f"No document has {SECRET!r}", "")
        .replace(f"tag:{SECRET}", "")
        .replace(f"tag {SECRET}", "")
    )
    assert "closed" not in text
    assert SECRET not in text.lower().replace(f"guide {SECRET}", "")
    assert told[-4:-1] == [None, None, None]
    assert {row.collection for row in scoped.documents()} == {"open", "open-notes"}
    assert scoped.status().documents == 3
    assert scoped.status().sections == sum(len(scoped.sections(row.address)) for row in scoped.documents())


def test_scores_tell_nothing_of_the_words_of_others(scoped: Library) -> None:
    """Found by attack: a word that only others have ranks as one that nobody has."""
    of_others, of_nobody = (
        scoped.search(f"{word} lantern", mode="keyword").results[0] for word in (SECRET, "quagmire")
    )
    assert (of_others.score, of_others.confidence) == (of_nobody.score, of_nobody.confidence)
    assert scoped.store.term_counts(["guid", SECRET, "lantern"]).keys() == {"guid", "lantern"}
    assert scoped.store.size() == sum(row.chunk_count for row in scoped.documents())


@pytest.mark.parametrize("call", ["read", "toc", "source", "links", "chunks", "sections"])
def test_a_document_of_another_collection_is_not_there(scoped: Library, call: str) -> None:
    """The error does not tell it from one that does not exist, and names none of its neighbours."""
    for address in ("closed:only.md", "closed:guide.md#care"):
        with pytest.raises(NoResults) as raised:
            getattr(scoped, call)(address)
        assert "only.md" not in str(raised.value).removeprefix(f"No document {address.partition('#')[0]!r}")


@pytest.mark.parametrize("within", ["closed", "closed-notes", "nowhere"])
def test_an_unknown_collection_and_a_closed_one_are_the_same(scoped: Library, within: str) -> None:
    """Issue: the right and the wrong collection."""
    for call in (scoped.search, scoped.context):
        with pytest.raises(NoResults, match=f"No collection '{within}'") as raised:
            call("light", collection=within)
        assert raised.value.details["name"] == within
        assert "closed" not in str(raised.value).replace(f"'{within}'", "", 1)


def test_nothing_of_another_collection_is_written(scoped: Library, both: Library, folders: Path) -> None:
    """Issue: a key that writes some collections changes no others."""
    before = {row.address: row.updated_at for row in both.documents()}
    with pytest.raises(Forbidden, match="No access to the collection 'closed'"):
        scoped.add(content="# New\n\nText.\n", path="new.md", collection="closed")
    for place in (folders / "closed", folders / "closed" / "only.md"):
        with pytest.raises(Forbidden):
            scoped.add(place)
    with pytest.raises(Forbidden):
        scoped.remember("A memory.", collection="closed-notes")
    for attempt in (
        lambda: scoped.remove("closed:only.md"),
        lambda: scoped.remove(collection="closed"),
        lambda: scoped.promote("closed:only.md", "important"),
        lambda: scoped.forget("closed-notes:where"),
        lambda: scoped.remove_source(str(folders / "closed")),
    ):
        with pytest.raises(NoResults):
            attempt()
    assert {row.address: row.updated_at for row in both.documents()} == before


def test_a_refresh_follows_only_the_sources_of_the_scope(
    scoped: Library, both: Library, folders: Path
) -> None:
    """Issue: sources belong to collections as documents do."""
    for name in ("open", "closed"):
        (folders / name / "note.md").write_text("# Note\n\nOther words entirely.\n")
    assert scoped.refresh(embed=False).updated == 1
    assert "Other words" in both.read("open:note.md").text
    assert SECRET in both.read("closed:note.md").text


def test_its_own_collections_are_written_as_ever(scoped: Library, both: Library, folders: Path) -> None:
    """A scope narrows what there is, not what can be done with it."""
    scoped.add(content="# New\n\nA wick.\n", path="new.md", collection="open")
    (folders / "open" / "more.md").write_text("# More\n\nA wick again.\n")
    assert scoped.add(folders / "open", embed=False).added == 1
    assert [row.address for row in scoped.remove("open:more.md")] == ["open:more.md"]
    assert scoped.promote("open:new.md", "important").promotion == "important"
    assert scoped.remember("A second lantern.", collection="open-notes").outcome
    assert scoped.forget("open-notes:here")[0].path == "here"
    assert {row.collection for row in both.documents()} == {"open", "closed", "open-notes", "closed-notes"}


def test_the_whole_library_is_not_for_a_scope(scoped: Library) -> None:
    """What concerns all collections is refused: checking the file, keys, other models."""
    for attempt in (lambda: scoped.store.check(), scoped.keys, lambda: scoped.make_key("mine")):
        with pytest.raises(Forbidden, match="whole library"):
            attempt()


@pytest.mark.parametrize("none", [[], [""]])
def test_a_scope_names_a_collection(tmp_path: Path, none: list[str]) -> None:
    """An empty scope would be all or nothing, and nobody can say which."""
    with pytest.raises(SettingError, match="Name at least one"):
        Library.open(tmp_path / "a.db", create=True, collections=none)


# ------------------------------------------------------------------------------------------- keys


@pytest.fixture
def library(library_url: str) -> Iterator[Library]:
    with Library.open(library_url, create=True) as opened:
        yield opened


def test_a_key_is_shown_once_and_stored_hashed(library: Library) -> None:
    """Issue: keys are shown once, stored hashed, scoped, with expiry."""
    version = library.store.version()
    made, key = library.make_key("ci", level="write", collections=["a", "b"], expires="90d")
    assert key.startswith(f"quire_{made.id}_")
    assert library.keys() == [made]
    assert key.rpartition("_")[2] not in repr(library.keys()) + made.to_json()
    assert library.store.version() == version
    assert valid_key(key, library.keys(), made.created_at) == made
    assert valid_key(key, library.keys(), made.created_at + 90 * 86_400_000 + 60_000) is None
    assert valid_key(key[:-1], library.keys(), made.created_at) is None
    assert [made.allows(level) for level in ("read", "write", "admin")] == [True, True, False]


def test_a_key_is_withdrawn_by_name_or_id(library: Library) -> None:
    """Issue: keys are made, listed and withdrawn."""
    one, _ = library.make_key("one")
    two, _ = library.make_key("two", level="admin")
    assert library.withdraw_key("one") == one
    assert library.withdraw_key(two.id) == two
    assert library.keys() == []
    with pytest.raises(NoResults, match="No key 'one'"):
        library.withdraw_key("one")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": ""}, "say whose key it is"),
        ({"name": "x" * 101}, "say whose key it is"),
        ({"name": "known"}, "there is a key 'known' already"),
        ({"name": "a", "level": "root"}, "there is no 'root'"),
        ({"name": "a", "level": "wirte"}, "Did you mean 'write'"),
        ({"name": "a", "collections": []}, "Name at least one"),
        ({"name": "a", "collections": ["x@*"]}, "Name each of them"),
        ({"name": "a", "collections": ["x"], "level": "admin"}, "whole library"),
        ({"name": "a", "expires": "2020-01-01"}, "in the past"),
        ({"name": "a", "expires": "soon"}, "is no time"),
        ({"name": "a", "expires": "999999w"}, "too long"),
    ],
)
def test_a_key_that_makes_no_sense_is_refused(library: Library, given: dict[str, object], said: str) -> None:
    """BAD_INPUTS: settings and arguments get an error that names what is wrong."""
    library.make_key("known")
    with pytest.raises(SettingError, match=said):
        library.make_key(**given)  # type: ignore[arg-type]


def test_on_postgresql_a_scope_is_one_of_row_level_security(library_url: str) -> None:
    """Issue: on PostgreSQL keys map to row-level security: the database itself is told the collections."""
    if not library_url.startswith("postgres"):
        pytest.skip("a file has no policies")
    with Library.open(library_url, create=True) as whole:
        whole.add(content="# A\n", path="a.md", collection="open", embed=False)
        whole.add(content="# B\n", path="b.md", collection="closed", embed=False)
    with Library.open(library_url, collections=["open"]) as library:
        db = library.store._store.db  # type: ignore[attr-defined]
        assert db.value("SELECT current_setting('quire.collections')") == '{"open"}'
    narrowed = f"{library_url}{'&' if '?' in library_url else '?'}collections=closed"
    with Library.open(narrowed, collections=["open"]) as nothing:
        assert nothing.documents() == []
