"""Vaults: links, backlinks, tags, aliases and front matter, on each database."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from quire import Document, Library
from quire.config import DEFAULT
from quire.errors import NoResults, SettingError
from quire.ingest.prepare import prepare
from quire.sources.names import path_of
from quire.stores import Filters
from quire.surfaces.mcp.results import Results
from tests.commands import run
from tests.mcp_client import ask, call, parameters, said, talk
from tests.schemas import make_schema
from tests.words import WORDS

NOTES = {
    "Home.md": "---\naliases: [Start, Main page]\nstatus: draft\ndate: 2026-03-01\nrating: 4\n---\n# Home\n\n"
    "See [[Zettel 12|garbage collection]], [[sub/Note#Second part]] and [[Nowhere]]. #garden/herbs\n\n"
    "## More\n\nGo [there](sub/Note.md#second-part), [[../../etc/passwd]], [[#Home]].\n",
    "sub/Note.md": "---\nstatus: done\ndate: 2025-12-31\nrating: 10\ntags: [work]\n---\n# Note\n\n"
    "[[Start]] and [[zettel 12#^block]].\n\n## Second part\n\nBack [up](../Home.md).\n",
    "Zettel 12.md": "# Reclaiming memory\n\nWe sweep objects that nobody needs. ^block\n",
    "one/Twin.md": "# Twin one\n\nFirst of two.\n",
    "two/Twin.md": "# Twin two\n\nSecond of two.\n",
    "two/Near.md": "# Near\n\n[[Twin]] and [[one/Twin]]\n",
    "Far.md": "# Far\n\n[[Twin]]\n",
}


def write(folder: Path, notes: dict[str, str]) -> None:
    for name, text in notes.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@pytest.fixture
def vault(library_url: str, tmp_path: Path) -> Iterator[Library]:
    write(tmp_path / "vault", NOTES)
    with Library.open(library_url, create=True, config=WORDS) as library:
        library.add(tmp_path / "vault")
        yield library


def out(library: Library, address: str) -> list[str | None]:
    return [link.target for link in library.links(address).out]


def back(library: Library, address: str) -> list[tuple[str, int]]:
    return sorted((link.address, link.line) for link in library.links(address).back)


def test_links_resolve_as_in_obsidian(vault: Library) -> None:
    """Vaults: by path, end of a path and heading; the nearest of several; none outside the vault."""
    assert out(vault, "vault:Home.md") == [
        "vault:Zettel 12.md",
        "vault:sub/Note.md#second-part",
        None,
        "vault:sub/Note.md#second-part",
        None,
        "vault:Home.md#home",
    ]
    assert out(vault, "vault:two/Near.md") == ["vault:two/Twin.md", "vault:one/Twin.md"]
    assert out(vault, "vault:Far.md") == ["vault:one/Twin.md"]
    assert out(vault, "vault:sub/Note.md") == [
        "vault:Home.md",
        "vault:Zettel 12.md#reclaiming-memory",
        "vault:Home.md",
    ]


def test_what_links_to_a_document_or_a_section_is_shown(vault: Library) -> None:
    """Vaults: `links` shows what links to a section; Markdown links count as well."""
    assert back(vault, "vault:Home.md") == [
        ("vault:Home.md#more", 13),
        ("vault:sub/Note.md#note", 9),
        ("vault:sub/Note.md#second-part", 13),
    ]
    assert back(vault, "vault:sub/Note.md#second-part") == [
        ("vault:Home.md#home", 9),
        ("vault:Home.md#more", 13),
    ]
    found = vault.links("vault:sub/Note.md#second-part")
    assert [link.written for link in found.out] == ["../Home.md"]
    assert [link.text for link in found.back] == ["sub/Note#Second part", "there"]
    assert back(vault, "vault:two/Twin.md") == [("vault:two/Near.md#near", 3)]


def test_a_note_that_is_added_later_resolves_older_links(vault: Library, tmp_path: Path) -> None:
    """Vaults: links resolve when asked, not when written."""
    write(tmp_path / "vault", {"Nowhere.md": "# Now here\n\nText.\n"})
    vault.refresh()
    assert out(vault, "vault:Home.md")[2] == "vault:Nowhere.md"
    assert back(vault, "vault:Nowhere.md") == [("vault:Home.md#home", 9)]
    (tmp_path / "vault" / "Nowhere.md").rename(tmp_path / "vault" / "Elsewhere.md")
    vault.refresh(prune=True)
    assert out(vault, "vault:Home.md")[2] is None
    assert vault.links("vault:Elsewhere.md").back == ()


def test_a_moved_note_keeps_its_links(vault: Library, tmp_path: Path) -> None:
    """Vaults: a rename keeps the links, and relative ones start from the new place."""
    (tmp_path / "vault" / "sub" / "Note.md").rename(tmp_path / "vault" / "sub" / "Moved.md")
    vault.refresh(prune=True)
    assert out(vault, "vault:sub/Moved.md")[2] == "vault:Home.md"
    assert ("vault:sub/Moved.md#second-part", 13) in back(vault, "vault:Home.md")


def test_a_removed_note_takes_its_links_along(vault: Library) -> None:
    """Vaults: links go with their document, and the library stays sound."""
    vault.remove("vault:Home.md")
    assert back(vault, "vault:sub/Note.md") == []
    assert vault.store.check() == []
    assert vault.store.has_fields(["status", "rating"], Filters()) == {"status", "rating"}
    vault.remove("vault:sub/Note.md")
    assert vault.store.has_fields(["status", "rating"], Filters()) == set()


def test_links_stay_within_their_collection(vault: Library, tmp_path: Path) -> None:
    """Hostile text: one collection's link never shows another's text; only a URL leads elsewhere."""
    write(tmp_path / "other", {"Home.md": "# Other home\n\nText.\n", "Own.md": "# Own\n\n[[Far]] [[Home]]\n"})
    vault.add(tmp_path / "other")
    assert out(vault, "other:Own.md") == [None, "other:Home.md"]
    assert all(address.startswith("vault:") for address, _ in back(vault, "vault:Home.md"))
    assert back(vault, "vault:Far.md") == []


def test_an_alias_that_two_notes_have_leads_nowhere(vault: Library, tmp_path: Path) -> None:
    """Vaults: an unresolved link that equals exactly one alias resolves to it."""
    write(tmp_path / "vault", {"Second.md": "---\naliases: Start\n---\n# Second\n\nText.\n"})
    vault.refresh()
    assert out(vault, "vault:sub/Note.md")[0] is None
    assert [link.same_alias for link in vault.links("vault:sub/Note.md").out] == [2, 0, 0]
    assert [link.same_alias for link in vault.links("vault:Home.md").out] == [0] * 6


def found(library: Library, query: str, **filters: object) -> set[str]:
    results = library.search(query, **filters).results  # type: ignore[arg-type]
    return {result.path for result in results}


def test_tags_and_fields_filter_a_search(vault: Library) -> None:
    """Vaults: `tag:`, `alias:` and any front-matter field as a filter; a tag holds those within it."""
    words = "home OR note OR memory OR twin"
    assert found(vault, f"{words} tag:garden") == {"Home.md"}
    assert found(vault, f"{words} tag:garden/herbs") == {"Home.md"}
    assert found(vault, f"{words} tag:gard") == set()
    assert found(vault, f"{words} tag:work") == {"sub/Note.md"}
    assert found(vault, f'{words} alias:"main PAGE"') == {"Home.md"}
    assert found(vault, f"{words} status:draft") == {"Home.md"}
    assert found(vault, f"{words} Status:Done") == {"sub/Note.md"}
    assert {"Home.md"} == found(vault, words) - found(vault, f"{words} -status:draft")


TAGS = {"#café/crème": "CAFÉ", "#Straße": "STRASSE", "#ΟΔΟΣ": "οδος", "#cafe\u0301": "café", "#Work": "#work"}


@pytest.mark.parametrize("tag", TAGS)
def test_the_case_of_a_tag_does_not_matter_in_any_script(library_url: str, tag: str) -> None:
    """Vaults: tags are compared without case and sign, on each database alike."""
    with Library.open(library_url, create=True, config=WORDS) as library:
        library.add(content=f"# Note\n\nText {tag} here.\n", path="a.md", collection="n")
        library.add(content="# Note\n\nText #caf here.\n", path="b.md", collection="n")
        for wanted in (TAGS[tag], f"#{TAGS[tag].lstrip('#')}"):
            assert [row.path for row in library.documents(tags=[wanted])] == ["a.md"]
            assert [row.path for row in library.documents(where=[f"tag!={wanted}"])] == ["b.md"]
            assert found(library, "note", tags=[wanted]) == found(library, f"note tag:{wanted}") == {"a.md"}


def test_the_tags_of_an_earlier_library_are_found(library_url: str) -> None:
    """Migrations: tags that an earlier Quire wrote are compared without case as well."""
    with Library.open(library_url, create=True, config=WORDS) as library:
        library.add(content="# Note\n\nText #Café here.\n", path="a.md", collection="n")
    make_schema(library_url, 11 if library_url.startswith("postgres") else 14)
    with Library.open(library_url, config=WORDS) as library:
        assert [row.path for row in library.documents(tags=["CAFÉ"])] == ["a.md"]


def test_an_alias_is_found_as_a_title_is(vault: Library) -> None:
    """Vaults: aliases are searchable."""
    assert vault.search("main page").results[0].path == "Home.md"


def test_what_is_no_field_stays_a_word(vault: Library) -> None:
    """Vaults: `a:b`, `std::vector`, `http://x` and `error: foo` are words, unless there is such a field."""
    assert found(vault, "memory:objects") == {"Zettel 12.md"}
    for query in (
        "status:draft:x objects",
        "std::vector objects",
        "http://x objects",
        "error: objects",
        "status: objects",
    ):
        assert "Zettel 12.md" in found(vault, query), query


CONDITIONS: list[tuple[str, set[str]]] = [
    ("date>=2026-01-01", {"Home.md"}),
    ("date<2026", {"sub/Note.md"}),
    ("date=2026-03", {"Home.md"}),
    ("date <= 2025-12-31", {"sub/Note.md"}),
    ("rating>4", {"sub/Note.md"}),
    ("rating=4.0", {"Home.md"}),
    ("rating<=10", {"Home.md", "sub/Note.md"}),
    ("status='draft'", {"Home.md"}),
    ("Status == done", {"sub/Note.md"}),
    ("status>done", {"Home.md"}),
    ("tag=garden", {"Home.md"}),
    ("alias=start", {"Home.md"}),
    ("status!=draft", {name for name in NOTES if name != "Home.md"}),
    ("tags!=garden", {name for name in NOTES if name != "Home.md"}),
]


def test_conditions_choose_documents(vault: Library) -> None:
    """Vaults: `--where date>=2026-01-01`: numbers, dates and texts, with = != > >= < <=."""
    for condition, paths in CONDITIONS:
        assert {row.path for row in vault.documents(where=[condition])} == paths, condition
        assert found(vault, "home OR note OR memory OR twin", where=[condition]) <= paths, condition


def test_all_conditions_must_hold(vault: Library) -> None:
    """Vaults: --where can be repeated."""
    assert [row.path for row in vault.documents(where=["rating>=4", "status=done"])] == ["sub/Note.md"]
    assert vault.documents(where=["rating>=4", "status=done", "date>2026"]) == []


REFUSED = [
    ("statsu=draft", "no document has a front-matter field 'statsu'. Did you mean 'status'?"),
    ("status", "has no field or no operator. Write it as in status=draft"),
    ("=draft", "has no field or no operator"),
    ("status=", "has no value"),
    ("status=>1", "has another operator than = != > >= < <="),
    ("status<>draft", "has another operator than = != > >= < <="),
    ("date>=2026-3-20", "'2026-3-20' is not a date; write 2026-03-20"),
    ("date=2026-3-20", "'2026-3-20' is not a date; write 2026-03-20"),
    ("date>=2026/03/20", "'2026/03/20' is not a date; write 2026-03-20"),
    ("date>=2026-13-01", "'2026-13-01' is not a date; write it as in 2026-03-20"),
    ("date<2026-02-30", "'2026-02-30' is not a date"),
    ("date>=yesterday", "'yesterday' is not a date; write it as in 2026-03-20"),
    ("date>5", "'5' is not a date"),
    ("rating>12,000", "'12,000' is not a number; write 12000"),
    ("rating>many", "'many' is not a number; write it as in 12000"),
    ("tag>a", "a tag is compared with = or !="),
    ("", "has no field or no operator"),
]


def test_a_bad_condition_is_explained(vault: Library) -> None:
    """Vaults: bad expressions get an error that says what is wrong and shows an example."""
    for condition, wrong in REFUSED:
        with pytest.raises(SettingError, match="where") as refused:
            vault.search("home", where=[condition])
        assert wrong in str(refused.value)
        with pytest.raises(SettingError):
            vault.documents(where=[condition])
        with pytest.raises(SettingError):
            vault.context("home", where=[condition])


def test_a_value_that_can_be_compared_is_taken(vault: Library) -> None:
    """Vaults: a year, a month and a day are dates; texts are compared with texts; `=` takes any text."""
    for condition in ("date>=2026", "date>=2026-01", "date<2026-01-01 10:30", "status>2", "date=unknown"):
        vault.documents(where=[condition])
    assert len(vault.documents(where=["date!=tbd"])) == len(NOTES)
    assert vault.documents(where=["status='!x'"]) == []


def test_conditions_are_counted(vault: Library) -> None:
    """BAD_INPUTS: 2,000 conditions."""
    with pytest.raises(SettingError, match="where: has 2,000 conditions; the most is 100"):
        vault.search("home", where=["status=draft"] * 2000)
    assert found(vault, "home", where=["status=draft"] * 100) == {"Home.md"}


def notes_of(library: Library, query: str, **filters: object) -> tuple[str, ...]:
    return library.search(query, **filters).notes  # type: ignore[arg-type]


def test_a_filter_that_no_document_meets_is_words(vault: Library, tmp_path: Path) -> None:
    """A pasted sentence has `status:500` in it, and means no front matter."""
    write(tmp_path / "vault", {"Log.md": "# Log\n\nThe server answers status 500 and stops.\n"})
    vault.refresh()
    said = "No document has status:500, so it was searched as words."
    for query in ("server answers status:500", "status:500", "status:500 status:500"):
        assert vault.search(query).results[0].path == "Log.md", query
        assert said in notes_of(vault, query)
    assert found(vault, "home status:draft") == {"Home.md"}
    assert notes_of(vault, "home status:draft") == ()
    assert notes_of(vault, "server status:done tag:garden") == (
        "No document is within these filters: tag garden, status=done.",
    )


def test_a_note_says_what_a_minus_excludes(vault: Library) -> None:
    """Searching: what is excluded is said, and how to undo it."""
    said = notes_of(vault, "twin OR far -status:draft -tag:work")[0]
    assert said == (
        "Excluded: all documents with status:draft or tag:work."
        " Without the minus sign, only these are searched."
    )
    said = notes_of(vault, "home OR note -twin")[0]
    assert said == "Excluded: twin. To search for such a word, leave out its minus sign."


def test_a_filter_without_a_word_can_be_listed(vault: Library) -> None:
    """Vaults: whoever searches for `tag:project` alone wants a list."""
    with pytest.raises(SettingError, match="quire list --tag garden --where status=draft"):
        vault.search("tag:#garden status:draft")
    assert [row.path for row in vault.documents(tags=["#garden"], where=["status=draft"])] == ["Home.md"]


def test_filters_apply_before_the_cut(library_url: str, tmp_path: Path) -> None:
    """Searching: filters apply before any top-k cut."""
    notes = {f"n{n}.md": f"# Note {n}\n\napple apple apple\n" for n in range(300)}
    notes["last.md"] = "---\nstatus: rare\n---\n# Last\n\nSomething about an apple, among much else.\n"
    write(tmp_path / "vault", notes)
    with Library.open(library_url, create=True, config=WORDS) as library:
        library.add(tmp_path / "vault")
        assert found(library, "apple status:rare", limit=1) == {"last.md"}
        assert found(library, "apple", where=["status=rare"], limit=1) == {"last.md"}


def test_bad_notes_are_kept_and_resolve(library_url: str, tmp_path: Path) -> None:
    """BAD_INPUTS: link cycles, self-links, many links in a note, odd keys."""
    write(
        tmp_path / "vault",
        {
            "a.md": "[[b]] [[a]] [[a#a]]\n",
            "b.md": "[[a]] [[b|]] [[|x]] [[]] [[#]]\n",
            "many.md": "[[a]] " * 30_000,
            "odd.md": "---\n'': x\n'a b': y\n\"q'\\\"\": z\n'%_*': w\n---\ntext\n",
        },
    )
    with Library.open(library_url, create=True, config=WORDS) as library:
        report = library.add(tmp_path / "vault")
        assert report.added == 4
        assert any("of its 30,000 links are kept" in warning for warning in report.warnings)
        assert out(library, "vault:a.md") == ["vault:b.md", "vault:a.md", "vault:a.md"]
        assert len(library.links("vault:a.md").back) == 20_003
        assert [row.path for row in library.documents(where=["a b=y"])] == ["odd.md"]
        assert [row.path for row in library.documents(where=["%_*=w"])] == ["odd.md"]
        assert library.store.check() == []


def test_a_copy_has_the_links_and_fields(vault: Library, tmp_path: Path) -> None:
    """Vaults: `quire copy` copies them."""
    there = str(tmp_path / "copy.db")
    vault.copy(there)
    with Library.open(there, config=WORDS) as copied:
        for name in NOTES:
            assert copied.links(f"vault:{name}") == vault.links(f"vault:{name}")
        assert [row.path for row in copied.documents(where=["status=draft"])] == ["Home.md"]
        assert found(copied, "home tag:garden") == {"Home.md"}


def test_the_command_prints_links(tmp_path: Path) -> None:
    """Vaults: `quire links ADDRESS`, with --json; exit code 1 if there are none."""
    write(tmp_path / "vault", NOTES)
    run(tmp_path, "add", "vault")
    shown, _ = run(tmp_path, "links", "vault:sub/Note.md#second-part")
    assert shown.splitlines() == [
        "   13  → vault:Home.md  “up”",
        "       ← vault:Home.md#home (line 9)  “sub/Note#Second part”",
        "       ← vault:Home.md#more (line 13)  “there”",
    ]
    told = json.loads(run(tmp_path, "links", "vault:Zettel 12.md", "--json")[0])
    assert [link["address"] for link in told["back"]] == ["vault:Home.md#home", "vault:sub/Note.md#note"]
    write(tmp_path / "vault", {"Second.md": "---\naliases: Start\n---\n# Second\n\nText.\n"})
    run(tmp_path, "refresh")
    assert "→ Start (2 notes have this alias)" in run(tmp_path, "links", "vault:sub/Note.md")[0]
    listed, _ = run(tmp_path, "list", "--where", "date>=2026-01-01")
    assert listed.startswith("vault:Home.md")


ABOUT = {
    "index.md": "# Topics\n\nRead on [[Zettel 12|garbage collection]] and [pruning](<Roses.md#In winter>).\n",
    "Zettel 12.md": "# Reclaiming memory\n\nWe sweep objects that nobody needs.\n",
    "Roses.md": "# Roses\n\nThey smell.\n\n## In winter\n\nCut them back to a hand's width.\n",
    "Others.md": "# Others\n\nNothing to see.\n",
}


def test_the_text_of_a_link_finds_its_section(library_url: str, tmp_path: Path) -> None:
    """Vaults: text of links that point at a section is searchable for it."""
    write(tmp_path / "vault", ABOUT)
    with Library.open(library_url, create=True, config=WORDS) as library:
        library.add(tmp_path / "vault")
        results = library.search("garbage collection").results
        assert [result.path for result in results] == ["index.md", "Zettel 12.md"]
        assert results[1].strength != "none"
        assert "vault:Roses.md#in-winter" in [one.address for one in library.search("pruning").results]
        assert found(library, "garbage collection in old engines") >= {"Zettel 12.md"}
        assert "Others.md" not in found(library, "garbage collection")


def test_link_texts_keep_to_filters_and_demands(library_url: str, tmp_path: Path) -> None:
    """Searching: a result that only links lead to is within the filters, and has what is required."""
    write(tmp_path / "vault", ABOUT)
    write(tmp_path / "other", {"Note.md": "# Note\n\n[[Zettel 12|garbage collection]]\n"})
    with Library.open(library_url, create=True, config=WORDS) as library:
        library.add(tmp_path / "vault")
        library.add(tmp_path / "other")
        assert found(library, "garbage collection", paths=["index"]) == {"index.md"}
        assert found(library, '"garbage collection"', collection="vault") == {"index.md"}
        assert found(library, "garbage collection -topics") == {"Note.md"}
        assert found(library, "garbage collection", collection="other") == {"Note.md"}


def daily(n: int, more: str = "") -> dict[str, str]:
    return {
        f"daily/{d:02}.md": f"# Day {d}\n\nRead [[Zettel 12|garbage collection]]. {more}\n" for d in range(n)
    }


@pytest.mark.parametrize("more", ["", "More on garbage collection.\n\n## Later\n\nGarbage collection again."])
def test_what_many_notes_call_so_comes_before_them(library_url: str, tmp_path: Path, more: str) -> None:
    """Vaults: the more notes link to a section by a name, the surer is that it is meant by the name."""
    write(
        tmp_path / "vault", {**ABOUT, **daily(12, more), "Else.md": "# Else\n\nNo garbage, no collection.\n"}
    )
    for config in (WORDS, DEFAULT):
        with Library.open(library_url, create=True, config=config) as library:
            library.add(tmp_path / "vault")
            for query in ("garbage collection", "Garbage collection?", "what is garbage collection"):
                paths = [result.path for result in library.search(query, limit=20).results]
                assert "Zettel 12.md" in paths[:3], (query, paths)
            within = library.search("garbage collection", paths=["daily/"]).results
            assert {result.path[:6] for result in within} == {"daily/"}


def test_a_text_that_leads_to_many_places_names_none(library_url: str, tmp_path: Path) -> None:
    """Vaults: `next` leads from each page to another."""
    pages = {f"{n:02}.md": f"# Page {n}\n\nText {n}. [Next page]({n + 1:02}.md)\n" for n in range(20)}
    write(tmp_path / "vault", {**pages, "Layout.md": "# Next page\n\nHow to lay out the next page.\n"})
    with Library.open(library_url, create=True, config=WORDS) as library:
        library.add(tmp_path / "vault")
        assert library.search("next page").results[0].path == "Layout.md"


ROOT = "https://example.com/"


def test_a_collection_is_searched_without_the_link_texts_of_others(library_url: str) -> None:
    """Hostile text: one collection's text tells nothing of another's, even where a URL leads there."""
    says = f"# Secret\n\nAbout [operation nightingale]({ROOT}plan.html) we keep still.\n"
    with Library.open(library_url, create=True, config=WORDS) as library:
        pages = {"b": ("plan.html", "# Plan\n\nBirds sing.\n"), "c@1": ("own.md", "# Own\n\nBees hum.\n")}
        made = [
            prepare(Document.from_text(text, path, collection=name), WORDS, url=f"{ROOT}{path}")
            for name, (path, text) in pages.items()
        ]
        made.append(prepare(Document.from_text(says, "note.md", collection="a"), WORDS))
        library.store.write(made)
        assert found(library, "operation nightingale") == {"note.md", "plan.html"}
        assert found(library, "operation nightingale", collection="b") == set()
        assert notes_of(library, "plan -nightingale", collection="b") == ()
        assert "nightingale" in notes_of(library, "plan nightingle")[0]
        assert notes_of(library, "plan nightingle", collection="b") == ()
        assert found(library, "operation nightingale", collection="a") == {"note.md"}


def test_an_error_names_no_field_of_another_collection(library_url: str) -> None:
    """Hostile text: an error about one collection names no field of others; `x@*` are branches."""
    texts = {"h": "secretfield: 1", "g": "colour: red", "x@1": "size: 1", "x@2": "weight: 2"}
    with Library.open(library_url, create=True, config=WORDS) as library:
        for name, line in texts.items():
            document = Document.from_text(f"---\n{line}\n---\n# Note\n\nText.\n", "n.md", collection=name)
            library.store.write([prepare(document, WORDS)])
        for ask in (library.documents, partial(library.search, "note"), partial(library.context, "note")):
            for field in ("secretfeld", "secretfield"):
                with pytest.raises(SettingError, match="no document in g has") as refused:
                    ask(collection="g", where=[f"{field}=1"])
                assert "Known: colour." in str(refused.value)
            with pytest.raises(SettingError, match="Did you mean 'secretfield'"):
                ask(where=["secretfeld=1"])
        assert len(library.documents("x@*", where=["size=1"])) == 1
        with pytest.raises(NoResults, match="nowhere"):
            library.search("note", collection="nowhere", where=["size=1"])
        with pytest.raises(SettingError, match="in x@2 has a front-matter field 'size'"):
            library.documents("x", where=["size=1"])
        assert found(library, "secretfield:1 note", collection="g") == {"n.md"}  # two words there


def test_links_of_a_page_lead_to_pages(library_url: str) -> None:
    """Vaults: an absolute URL leads to the document that has it."""
    pages = {"https://example.com/guide/": "# Guide\n\n[setup](setup.html#linux), [[Note]].\n"}
    pages |= {"https://example.com/guide/setup.html": "# Setup\n\nText.\n\n## Linux\n\nText.\n"}
    with Library.open(library_url, create=True, config=WORDS) as library:
        made = [
            prepare(Document.from_text(text, path_of(url, ROOT), collection="site"), WORDS, url=url)
            for url, text in pages.items()
        ]
        made.append(prepare(Document.from_text(f"<{ROOT}guide/> <https://x.example/>", "n.md"), WORDS))
        library.store.write(made)
        assert out(library, "site:guide/index") == ["site:guide/setup.html#linux", None]
        assert out(library, "local:n.md") == ["site:guide/index", None]
        assert back(library, "site:guide/index") == [("local:n.md", 1)]


def data(answer: Any) -> dict[str, Any]:
    found: dict[str, Any] = answer.meta["quire/results"]
    Results.model_validate(found)
    return found


def test_agents_read_links(tmp_path: Path) -> None:
    """Vaults: MCP shows what a section links to and what links to it; a cut answer goes on."""
    write(
        tmp_path / "docs", {"hub.md": "# Hub\n\n" + "".join(f"[[hub|see {n}]]\n" for n in range(60)), **ABOUT}
    )

    async def work(client: Client) -> None:
        await ask(client, "add", sources=["."])
        answer = await call(client, "read", address="docs:Zettel 12.md", links=True)
        lines = said(answer).splitlines()
        assert lines[0].startswith("1 link: → leads there, ← comes from there.")
        assert lines[-1] == "> - ← docs:index.md#topics (line 3): garbage collection"
        (told,) = data(answer)["links"]
        assert (told["direction"], told["target"]) == ("back", "docs:Zettel 12.md")
        texts, cursor = list[str](), ""
        while cursor is not None:
            hub = {"address": "docs:hub.md", "links": True, "max_tokens": 500}
            page = data(await call(client, "read", **hub, cursor=cursor))
            texts, cursor = texts + [link["text"] for link in page["links"]], page["cursor"]
        assert texts == [f"see {n}" for n in range(60)] * 2

    talk(parameters(tmp_path), work)
