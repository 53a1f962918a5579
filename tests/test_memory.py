"""Memories and knowledge: kept, found, forgotten, carried elsewhere; external documents."""

from __future__ import annotations

import io
import json
import logging
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire import memory, sentences, tokens
from quire.address import id_of
from quire.config import DEFAULT, override
from quire.errors import NoResults, NotText, SettingError, Unreadable
from quire.library import Library
from quire.sources import entries
from quire.stores import DocumentRow
from quire.tree import has_text
from tests.words import WORDS

LONG = "\n\n".join(f"Paragraph {n} is about topic{n}. " + "It goes on for a while. " * 20 for n in range(30))


@pytest.fixture
def library(library_url: str) -> Iterator[Library]:
    with Library.open(library_url, create=True, config=WORDS) as opened:
        yield opened


def addresses(library: Library, query: str, **options: object) -> list[str]:
    return [result.address for result in library.recall(query, **options).results]  # type: ignore[arg-type]


def chunks(library: Library, row: DocumentRow) -> list[tuple[int, int]]:
    ids = range(row.seq << 20, (row.seq << 20) + row.chunk_count)
    return [(chunk.start, chunk.end) for chunk in library.store.chunks(ids).values()]


# ---------------------------------------------------------------------------------- remembering


def test_a_memory_is_kept_and_recalled(library: Library) -> None:
    """Kind, source id, index, content and a time in milliseconds; a hit names its source."""
    before = time.time_ns() // 1_000_000
    row = library.remember("We deploy on Tuesdays.", tags=["deploy", " deploy ", ""])
    assert (row.kind, row.collection, row.title) == ("memory", "memory", "We deploy on Tuesdays.")
    assert before <= row.created_at == row.updated_at
    assert row.id == id_of("memory", row.address)
    assert library.store.tags([row.seq]) == {row.seq: ("deploy",)}
    (result,) = library.recall("deploy").results
    assert (result.document_id, result.kind, result.chunk_ids) == (row.id, "memory", (row.id,))
    assert library.read(row.address).text == "We deploy on Tuesdays."
    assert library.learn("The API answers 429.").kind == "knowledge"


def test_the_name_of_an_entry_is_its_day_its_words_and_its_text(library: Library) -> None:
    """Issue: a derived path; the same text twice is one entry, on whatever day."""
    row = library.remember("Don't *panic*: the tests are slow today, and always were.")
    day = datetime.now(UTC).date()
    assert row.path.startswith(f"{day}-don-t-panic-the-tests-are-")
    assert library.remember("Don't *panic*: the tests are slow today, and always were.").id == row.id
    old = library.remember("Yesterday's news.", name=entries.named("Yesterday's news.", date(2020, 1, 1)))
    assert library.remember("Yesterday's news.").id == old.id
    assert len(library.documents()) == 2


@given(st.text(min_size=1))
def test_any_text_gives_a_name_that_is_one_part_of_a_path(text: str) -> None:
    """Issue: a slug and a short hash."""
    name = entries.named(text, date(2026, 1, 31))
    assert name.startswith("2026-01-31-")
    assert name.endswith(entries.ending(text))
    assert not set(name) & set("/\\:#*? \n\0")
    assert len(name) < 80


def test_a_named_entry_is_replaced_and_keeps_its_identity(library: Library) -> None:
    """Of entries: same id and created_at, later updated_at; an update re-chunks (B ruling)."""
    old = library.remember("The limit is 10.", name="limit", tags=["api"])
    new = library.remember(LONG, name="limit")
    assert (new.id, new.created_at) == (old.id, old.created_at)
    assert new.updated_at > old.updated_at
    assert new.chunk_count > 1
    assert "in quotes" in library.recall('"limit is 10"').notes[0]  # nothing has that any more
    assert library.store.tags([new.seq])[new.seq] == ("api",)
    assert library.store.check() == []


def test_what_is_remembered_again_holds_from_now_on(library: Library) -> None:
    """Its time is later, so that it counts more than what was said meanwhile; new tags are written."""
    row = library.remember("We deploy on Tuesdays.", tags=["deploy"], title="Deploying")
    confirmed = library.remember("We deploy on Tuesdays.")
    assert (confirmed.outcome, confirmed.created_at, confirmed.title) == ("known", row.created_at, row.title)
    assert confirmed.updated_at > row.updated_at
    assert library.history(row.address)[1:] == []
    again = library.remember("We deploy on Tuesdays.", tags=["release", "deploy"])
    assert (again.id, again.title) == (row.id, "Deploying")
    assert library.store.tags([again.seq])[again.seq] == ("deploy", "release")
    assert library.remember("We deploy on Tuesdays.", title="When").title == "When"


def test_text_that_says_nothing_is_refused(library: Library) -> None:
    """BAD_INPUTS: a clear message, and nothing is written."""
    for text in ("", " \n\t", "\ufeff"):
        with pytest.raises(SettingError, match="text: is empty"):
            library.remember(text)
    with pytest.raises(NotText, match="holds NUL bytes"):
        library.remember("a\0b")
    assert library.documents() == []


def test_the_title_is_the_first_heading_or_line(library: Library) -> None:
    """Of entries: given > first H1 > first line, at most 100 characters."""
    assert library.remember("# Deploying\n\nOn Tuesdays.").title == "Deploying"
    assert len(library.remember("word " * 100).title) <= 100
    assert library.remember("text", title="A\n given  one").title == "A given one"


def test_a_title_that_was_given_stays_when_the_text_is_replaced(library: Library) -> None:
    """Tags and title stay unless you give new ones; a title made from the text follows the text."""
    library.remember("It is 20.", name="limit", title="The limit")
    assert library.remember("It is 30.", name="limit").title == "The limit"
    assert library.remember("It is 40.", name="limit", title="Our limit").title == "Our limit"
    library.remember("Tea at four.", name="tea")
    assert library.remember("Tea at five.", name="tea").title == "Tea at five."


# -------------------------------------------------------------------------- sameness and history


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("we deploy on tuesdays.", "We deploy on Tuesdays"),
        ("We deploy  on Tuesdays!", " We deploy on Tuesdays.\n"),
        ("Caf\u00e9 is closed.", "Cafe\u0301 is closed"),
        ("Don\u2019t panic", "don't panic."),
    ],
)
def test_spellings_of_one_text_are_one_entry(library: Library, one: str, other: str) -> None:
    """Issue: case, stop, spaces and Unicode form; the entry that says it already is named."""
    first = library.remember(one, tags=["a"])
    again = library.remember(other)
    assert (again.id, again.outcome, again.similar) == (first.id, "known", ())
    assert library.read(first.address).text == one
    assert len(library.documents()) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The limit is 20.", "The limit is 2.0."),
        ("Use C", "Use C++"),
        ("It is 10\u00b2 cm", "It is 102 cm"),
        ("if a:\n    b()\nc()", "if a:\n    b()\n    c()"),
        ("Is it safe?", "Is it safe."),
    ],
)
def test_texts_that_mean_something_else_are_two_entries(library: Library, one: str, other: str) -> None:
    """Nothing is lost for being spelled alike."""
    assert {library.remember(one).outcome, library.remember(other).outcome} == {"added"}
    assert len(library.documents()) == 2


def test_what_is_known_under_a_name_is_not_kept_again(library: Library) -> None:
    """An entry without a name is compared with those that have one; a new name is always kept."""
    named = library.remember("The limit is 20.", name="limit")
    assert library.remember("the limit is 20").id == named.id
    other = library.remember("The limit is 20!", name="other")
    assert [one.address for one in other.similar] == ["memory:limit"]
    assert len(library.documents()) == 2
    assert len(library.recall("limit").results) == 1  # one fact is told once
    taken = library.remember("Something else.", name=library.remember("First.").path)
    assert library.remember("First.").path == f"2-{taken.path}"
    assert library.read(taken.address).text == "Something else."


def test_a_name_keeps_its_earlier_texts(library: Library) -> None:
    """Issue: the same name replaces and keeps the history, newest first; recall finds only the current."""
    for number in (10, 20, 30):
        row = library.remember(f"The limit is {number}.", name="limit")
    assert row.outcome == "replaced"
    history = library.history("limit")
    assert [one.text for one in history] == ["The limit is 30.", "The limit is 20.", "The limit is 10."]
    times = [one.written_at for one in history]
    assert times == sorted(set(times), reverse=True)
    assert times[0] == row.updated_at
    assert library.history(row.id) == library.history("memory:limit") == history
    assert [result.snippet for result in library.recall("limit is 20").results] == ["The limit is 30."]
    assert (library.status().documents, library.status().chunks) == (1, 1)
    library.learn("Another.", name="limit")
    with pytest.raises(SettingError, match="Say which: knowledge:limit or memory:limit"):
        library.history("limit")
    with pytest.raises(NoResults, match=r"Nothing is remembered as 'limits'\. Did you mean 'limit'"):
        library.history("limits")


def test_after_any_sequence_the_current_texts_are_recalled_and_the_earlier_ones_listed(
    library: Library,
) -> None:
    """Issue: remember with or without a name, and forget, in any order."""
    rng, texts = random.Random(5), dict[str, list[str]]()
    for step in range(60):
        name = rng.choice([*"abcd", ""])
        text = f"okapi word{rng.randrange(12)}"
        if rng.random() < 0.2 and texts:
            gone = rng.choice(sorted(texts))
            library.forget(gone)
            del texts[gone]
        elif name:
            library.remember(text, name=name)
            past = texts.setdefault(f"memory:{name}", [])
            past += [text] if past[-1:] != [text] else []
        else:
            row = library.remember(text)
            if row.outcome == "added":
                assert all(past[-1] != text for past in texts.values()), step
                texts[row.address] = [text]
            assert texts[row.address][-1] == text
    found = {result.snippet for result in library.recall("okapi", limit=100).results}
    assert found == {past[-1] for past in texts.values()}
    for address, past in texts.items():
        assert [one.text for one in library.history(address)] == past[::-1]
    assert {row.address for row in library.documents()} == texts.keys()
    assert library.store.check() == []


def test_history_is_carried_and_copied(library: Library, fresh_url: Callable[[], str]) -> None:
    """Export, import and copy have the earlier texts; importing twice changes nothing."""
    library.remember("The limit is 10.", name="limit")
    library.remember("The limit is 20.", name="limit")
    past, line = library.history("limit"), exported(library)
    assert [one["text"] for one in line[0]["history"]] == ["The limit is 10."]  # type: ignore[attr-defined]
    with Library.open(fresh_url(), create=True, config=WORDS) as other:
        other.remember("The limit is 5.", name="limit")
        other.import_(map(json.dumps, line))
        texts = [one.text for one in other.history("limit")]
        assert (texts[0], set(texts[1:])) == ("The limit is 20.", {"The limit is 5.", "The limit is 10."})
        assert other.import_(map(json.dumps, line)).unchanged == 1
    target = fresh_url()
    library.copy(target)
    with Library.open(target, config=WORDS) as copied:
        assert copied.history("limit") == past
        assert copied.store.check() == []
    bad = json.dumps({**line[0], "history": [{"text": "x"}]})
    assert "written_at: must be milliseconds" in library.import_([bad]).failed[0].reason


def test_forgetting_takes_the_history_along(library: Library) -> None:
    """Issue: forget removes the earlier texts as well."""
    row = library.remember("The limit is 10.", name="limit")
    library.remember("The limit is 20.", name="limit")
    assert library.store.earlier_versions(row.seq)
    library.forget("limit")
    assert library.store.earlier_versions(row.seq) == []
    assert library.remember("The limit is 30.", name="limit").outcome == "added"
    assert len(library.history("limit")) == 1


def test_similar_entries_are_shown_and_the_later_one_comes_first(library_url: str) -> None:
    """Issue: near-duplicates are kept but shown; of two that contradict, recall prefers the later."""
    with Library.open(library_url, create=True) as library:
        old = library.remember("The rate limit of the API is 30 requests.")
        assert not library.remember("The cat is called Tom.").similar
        new = library.remember("The rate limit of the API is 20 requests.", tags=["api"])
        assert [(one.address, one.text) for one in new.similar] == [
            (old.address, "The rate limit of the API is 30 requests.")
        ]
        first, second = library.recall("what is the rate limit of the API").results[:2]
        assert [first.address, second.address] == [new.address, old.address]
        assert (first.tags, first.updated_at, second.tags) == (("api",), new.updated_at, ())
        library.remember("The rate limit of the API is 30 requests.")  # said again: it holds now
        assert library.recall("what is the rate limit of the API").results[0].address == old.address
        library.config = override(DEFAULT, {"memory": {"similar": 1.0}})
        assert not library.remember("The rate limit of the API is 25 requests.").similar


# -------------------------------------------------------------------------------------- cutting


def test_long_entries_are_cut_as_memories_are(library: Library) -> None:
    """800 tokens with 15 % in common, whatever strategy documents have, in one transaction."""
    library.config = override(WORDS, {"chunk": {"strategy": "nodes"}})
    before = library.store.generation()
    row = library.remember(LONG)
    assert library.store.generation() == before + 1
    spans = chunks(library, row)
    assert len(spans) > 3
    assert all((end - start + 3) // 4 <= 800 for start, end in spans)
    assert all(second[0] < first[1] for first, second in pairwise(spans))


def test_a_failure_to_cut_keeps_the_entry_whole(
    library: Library, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A failure to chunk never loses the memory; it is noted, and put right the next time."""
    library.config = override(WORDS, {"tokens": {"counter": "bpe"}})
    with monkeypatch.context() as broken:
        broken.setitem(sys.modules, "rs_bpe.bpe", None)
        tokens._named.cache_clear()
        row = library.remember(LONG)
    tokens._named.cache_clear()
    assert row.chunk_count == 1
    assert f"{row.address} is kept as one chunk, because it cannot be cut: Exact token" in caplog.text
    assert library.read(row.address).text == LONG
    assert library.remember(LONG).chunk_count > 1


def test_a_failure_of_any_other_kind_keeps_the_entry_too(
    library: Library, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Also one that is no error of Quire's: here the segmenter is not installed."""
    with monkeypatch.context() as broken:
        broken.setitem(sys.modules, "sentencex", None)
        sentences._segmenter.cache_clear()
        row = library.remember(LONG)
    assert row.chunk_count == 1
    assert "cannot be cut" in caplog.text
    assert addresses(library, "topic29") == [row.address]


def test_a_failure_to_embed_keeps_the_entry(
    library_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The embedding may follow; until then words find it."""
    absent = override(DEFAULT, {"embed": {"model": f"folder/{tmp_path}/absent"}})
    with Library.open(library_url, create=True, config=absent) as library:
        row = library.remember("We deploy on Tuesdays.")
        assert f"{row.address} is kept, but embedding failed: " in caplog.text
        assert addresses(library, "deploy") == [row.address]
    with Library.open(library_url) as library:
        assert library.embed().embedded == 1
        assert addresses(library, "the day of a release", mode="semantic") == [row.address]


# ------------------------------------------------------------------------------------ recalling


def test_memories_and_documents_are_kept_apart(library: Library) -> None:
    """Search never returns memories, recall never documents."""
    library.add(content="# Penguins\n\nThey swim.\n", path="p.md", collection="docs")
    memory, fact = library.remember("Penguins were mentioned."), library.learn("Penguins are birds.")
    assert [result.kind for result in library.search("penguins").results] == ["document"]
    assert set(addresses(library, "penguins")) == {memory.address, fact.address}
    assert addresses(library, "penguins", kinds=["knowledge"]) == [fact.address]
    with pytest.raises(SettingError, match="kind: 'document' is not of what is remembered"):
        library.recall("penguins", kinds=["document"])


def test_each_kind_has_collections_of_its_own(library: Library) -> None:
    """An address is the name of one thing."""
    library.add(content="# A\n\ntext\n", path="a.md", collection="docs")
    library.remember("text")
    with pytest.raises(SettingError, match="'docs' is a collection of kind document, and this is memory"):
        library.remember("text", collection="docs")
    with pytest.raises(SettingError, match="'memory' is a collection of kind memory"):
        library.learn("text", collection="memory")
    with pytest.raises(SettingError, match="'docs' is a collection of kind document, and this is external"):
        library.add(content="x", path="x.md", collection="docs", external=True)
    with pytest.raises(SettingError, match="'memory' is where Quire keeps"):
        library.add(content="x", path="x.md", collection="memory")
    with pytest.raises(SettingError, match="'docs' is a collection of kind document, and this is external"):
        library.add("https://example.com/", collection="docs", external=True)


@pytest.mark.parametrize("name", ["memory", "knowledge"])
def test_documents_leave_the_names_of_memories_alone(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A folder of that name would block `remember`; documents that an older version put there are kept up."""
    (tmp_path / name).mkdir()
    (tmp_path / name / "a.md").write_text("# A\n")
    with pytest.raises(SettingError, match="Name another for documents: -c NAME"):
        library.add(content="x", path="x.md", collection=name)
    with pytest.raises(SettingError, match="Name another for documents: -c NAME"):
        library.add(tmp_path / name)
    assert library.add(tmp_path / name, collection="mine").added == 1
    with monkeypatch.context() as older:
        older.setattr(memory, "check_collection", lambda *_: None)
        library.add(content="x", path="x.md", collection=name)
    assert library.add(content="y", path="y.md", collection=name).added == 1


def test_several_chunks_of_one_entry_come_unless_they_are_grouped(library: Library) -> None:
    """Each with its own span, the same source id; grouping is the caller's choice."""
    row = library.remember(LONG)
    other = library.remember("A paragraph, and nothing else.")
    found = library.recall("paragraph").results
    mine = [result for result in found if result.document_id == row.id]
    assert len(mine) == row.chunk_count
    assert sorted((result.start, result.end) for result in mine) == sorted(chunks(library, row))
    assert len({result.chunk_ids for result in mine}) == len({result.address for result in mine}) == len(mine)
    for result in mine:
        assert library.read(result.address).text == LONG[result.start : result.end]
        assert "aragraph" in result.snippet
    scores = [result.score for result in found]
    assert scores == sorted(scores, reverse=True)
    grouped = library.recall("paragraph", group=True).results
    assert [result.document_id for result in grouped] == list(dict.fromkeys(r.document_id for r in found))
    assert {result.document_id for result in grouped} == {row.id, other.id}
    assert grouped[0] == found[0]


def test_the_entry_itself_is_indexed_beside_its_chunks(library: Library) -> None:
    """Its title finds it, and its whole text is read by its address."""
    row = library.learn(LONG, title="Okapi handbook")
    assert library.recall("okapi", group=True).results[0].document_id == row.id
    assert library.read(row.address).text == LONG
    assert library.document(row.address) == row


def test_headings_of_an_entry_do_not_hide_its_chunks(library: Library) -> None:
    """Sections of an entry are not merged up its tree."""
    parts = "".join(f"## Part {n}\n\n{'zebra words here. ' * 200}\n\n" for n in range(3))
    row = library.remember(f"# Zebra\n\n{parts}")
    found = library.recall("zebra", limit=50).results
    assert len(found) == row.chunk_count
    assert all(not result.merged_from for result in found)


def test_recall_keeps_to_tags_collections_and_times(library: Library) -> None:
    """Issue: filters by collection, tags and time."""
    a = library.remember("deploy one", tags=["x", "y"])
    b = library.remember("deploy two", tags=["x"], collection="work")
    assert set(addresses(library, "deploy", tags=["x"])) == {a.address, b.address}
    assert addresses(library, "deploy", tags=["x", "y"]) == [a.address]
    assert addresses(library, "deploy", collection="work") == [b.address]
    now = datetime.now(UTC)
    assert len(addresses(library, "deploy", since="1h", until=now + timedelta(seconds=5))) == 2
    assert len(addresses(library, "deploy", until=now.astimezone().date().isoformat())) == 2
    assert addresses(library, "deploy", until="1d") == []
    assert addresses(library, "deploy", since=now + timedelta(hours=1)) == []
    assert len(addresses(library, "deploy", limit=1)) == 1
    assert addresses(library, "deploy", tags=["z"]) == []


def test_what_is_not_there_is_told_from_no_match(library: Library) -> None:
    """BAD_INPUTS: times and limits that are none."""
    assert library.recall("deploy").notes == ("Nothing is remembered yet.",)
    library.remember("We deploy on Tuesdays.")
    assert library.recall("xyzzy").notes == ("No match in 1 memory (1 chunk in the library).",)
    assert library.recall("deploy", tags="z").notes == ("Nothing remembered is within these filters: tag z.",)
    with pytest.raises(NoResults, match="No collection 'memori'"):
        library.recall("deploy", collection="memori")
    for said in ("yesterday", "7", "2026-13-01", "999999w", "10000-01-01", "0001-01-01"):
        with pytest.raises(SettingError, match="since: "):
            library.recall("deploy", since=said)
    with pytest.raises(SettingError, match="limit: 0 is outside"):
        library.recall("deploy", limit=0)


def test_no_entry_is_less_sure_than_one_after_it(library_url: str) -> None:
    """The order of a recall is not that of its confidence: who reads from the top may stop early."""
    with Library.open(library_url, create=True, config=DEFAULT) as library:
        for text in (
            "The limit is 20.",
            "Rate limits are strict here.",
            "A limit of requests is 30 a minute.",
        ):
            library.remember(text)
        found = library.recall("what is the limit of requests").results
    assert [one.confidence for one in found] == sorted((one.confidence for one in found), reverse=True)
    sure = [
        memory.Recalled(0, replace(found[0], confidence=chance, strength=strength))
        for chance, strength in SURE
    ]
    told = [(one.result.confidence, one.result.strength) for one in memory.no_less_sure(sure)]
    assert told == [(0.8, "strong"), (0.8, "strong"), (0.3, "weak"), (0.3, "weak"), (0.0, "none")]


SURE = [(0.2, "none"), (0.8, "strong"), (0.1, "none"), (0.3, "weak"), (0.0, "none")]


def test_what_is_recalled_is_spelled_by_words_of_entries(library: Library) -> None:
    """A word of documents is no help in finding a memory, nor the other way round."""
    library.add(content="# Settings\n\nEvery setting of the machine.\n", path="a.md", collection="docs")
    library.remember("We deployed the penguin.")
    assert "instead" not in " ".join(library.recall("seting").notes)
    assert 'Searched for "setting" instead' in " ".join(library.search("seting").notes)
    assert 'Searched for "penguin" instead' in " ".join(library.recall("pengiun").notes)
    assert "instead" not in " ".join(library.search("pengiun").notes)


def test_a_search_says_that_there_are_only_memories(library: Library) -> None:
    """A stranger found: with only memories left, search spoke of filters that nobody gave."""
    library.remember("We deploy on Tuesdays.")
    library.add(content="# Deploying\n", path="a.md")
    assert library.search("xyzzy").notes[0].startswith("No match in 1 document")
    assert library.search("deploy", paths=["b"]).notes == ("No document is within these filters: path b.",)
    library.remove("content:a.md")
    only = "has no documents, only 1 memory. Search there with: quire recall QUERY"
    for text in ("deploy", "xyzzy"):
        with pytest.raises(NoResults, match=f"^The library {only}$"):
            library.search(text)
    library.remember("And on Fridays.")
    library.learn("Deploying takes an hour.")
    with pytest.raises(NoResults, match="only 2 memories and 1 piece of knowledge"):
        library.context("deploy")
    with pytest.raises(NoResults, match="Collection knowledge has no documents, only 1 piece of knowledge"):
        library.search("deploy", collection="knowledge")
    assert len(library.recall("deploy").results) == 2


def test_a_memory_is_recalled_by_its_meaning(library_url: str) -> None:
    """Hybrid, with the model that comes along."""
    with Library.open(library_url, create=True) as library:
        row = library.remember("We deploy on Tuesdays.")
        library.remember("The cat is called Tom.")
        assert addresses(library, "which day is a new version released")[0] == row.address


# ----------------------------------------------------------------------------------- forgetting


def test_forgetting_leaves_nothing_behind(library: Library) -> None:
    """Chunks, terms and tags go with their source."""
    long, short = library.remember(LONG, tags=["x"]), library.learn("short")
    assert library.forget(long.address, dry_run=True) == [long]
    assert len(library.documents()) == 2
    assert library.forget(long.address, f"{long.address}#~2") == [long]
    assert addresses(library, "topic1") == []
    assert library.forget(collection="knowledge") == [short]
    assert library.status().chunks == library.status().documents == 0
    assert library.store.tags([long.seq]) == {}
    assert library.store.check() == []


def test_forgetting_by_tags_and_time(library: Library) -> None:
    """Issue: filters of forget; all of them hold."""
    a, b = library.remember("one", tags=["x"]), library.remember("two", tags=["y"])
    assert library.forget(tags=["x"], before="1h") == []
    assert library.forget(tags=["x"]) == [a]
    assert library.forget(before=datetime.now(UTC) + timedelta(minutes=1)) == [b]


def test_forgetting_refuses_documents(library: Library) -> None:
    """Only memories and knowledge are forgotten; the error says what to do."""
    library.add(content="# A\n\ntext\n", path="a.md", collection="docs")
    with pytest.raises(SettingError, match=r"docs:a.md is not a memory .* quire remove docs:a.md"):
        library.forget("docs:a.md")
    with pytest.raises(SettingError, match=r"docs is a collection of documents.* --collection docs"):
        library.forget(collection="docs")
    with pytest.raises(NoResults, match="No collection 'nothing'"):
        library.forget(collection="nothing")
    with pytest.raises(NoResults, match="Nothing is remembered as 'memory:x'"):
        library.forget("memory:x")
    with pytest.raises(SettingError, match="Name what to forget"):
        library.forget()
    with pytest.raises(SettingError, match="Name what to forget"):
        library.forget("memory:x", tags=["x"])
    assert len(library.documents()) == 1


# ------------------------------------------------------------------------------------- carrying


def exported(library: Library) -> list[dict[str, object]]:
    stream = io.StringIO()
    library.export(stream)
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_entries_are_carried_from_one_library_to_another(
    library: Library, fresh_url: Callable[[], str], tmp_path: Path
) -> None:
    """Issue: export and import as JSON lines; the times are kept, importing twice changes nothing."""
    library.remember("We deploy on Tuesdays.\u2028\r\n", tags=["x", "y"], title="When", collection="work")
    library.learn(LONG)
    library.add(content="# A\n\ntext\n", path="a.md", collection="docs")
    assert library.export(tmp_path / "out.jsonl") == 2
    assert [path.name for path in tmp_path.glob("out*")] == ["out.jsonl"]
    fields = "id kind collection path title tags created_at updated_at text history"
    assert [set(line) for line in exported(library)] == [set(fields.split())] * 2
    time.sleep(0.01)
    with Library.open(fresh_url(), create=True, config=WORDS) as other:
        report = other.import_(tmp_path / "out.jsonl")
        assert (report.added, report.failed) == (2, [])
        known = other.documents()
        again = other.import_(tmp_path / "out.jsonl")
        assert (again.added, again.updated, again.unchanged) == (0, 0, 2)
        assert other.documents() == known
        here = exported(library)
        assert exported(other) == here
        assert addresses(other, "topic29", kinds=["knowledge"])
        row = other.remember("We deploy on Wednesdays.", collection="work", name=str(here[1]["path"]))
        assert row.created_at == here[1]["created_at"]
        assert row.updated_at > row.created_at


def test_a_broken_line_is_reported_and_the_rest_goes_on(library: Library) -> None:
    """Issue, BAD_INPUTS: report, go on."""
    good = {"kind": "memory", "text": "deploy"}
    wrong: list[tuple[object, str]] = [
        ("{", "line: is not JSON"),
        ("[1]", "line: is not an object"),
        ("[" * 100_000, "line: is not JSON"),
        (b'{"kind": "\xff"}', "line: is not JSON"),
        ({"text": "x"}, "kind: 'None' is not of what is remembered"),
        ({**good, "kind": "document"}, "kind: 'document' is not of what is remembered"),
        ({**good, "text": 1}, "text: is missing"),
        ({**good, "text": " "}, "text: is empty"),
        ({**good, "text": "a\0b"}, "holds NUL bytes"),
        ({**good, "tags": "x"}, "tags: must be a list of strings"),
        ({**good, "path": 1}, "path: must be a string"),
        ({**good, "created_at": 10**30}, "created_at: must be milliseconds"),
        ({**good, "updated_at": True}, "updated_at: must be milliseconds"),
        ({**good, "collection": "docs"}, "collection: 'docs' is a collection of kind document"),
    ]
    library.add(content="# A\n\ntext\n", path="a.md", collection="docs")
    lines = [line if isinstance(line, str | bytes) else json.dumps(line) for line, _ in wrong]
    report = library.import_([*lines, "", json.dumps(good), json.dumps({**good, "path": None, "tags": None})])
    assert [failed.source for failed in report.failed] == [f"line {n}" for n in range(1, len(wrong) + 1)]
    for failed, (_, reason) in zip(report.failed, wrong, strict=True):
        assert reason in failed.reason
    assert (report.added, report.unchanged) == (1, 1)
    assert len(addresses(library, "deploy")) == 1
    with pytest.raises(Unreadable, match="absent: no such file"):
        library.import_("absent")


def test_an_export_that_fails_leaves_nothing_half_written(library: Library, tmp_path: Path) -> None:
    """BAD_INPUTS: nothing may lose an earlier good version."""
    library.remember("text")
    (tmp_path / "out").mkdir()
    with pytest.raises(OSError, match="directory"):
        library.export(tmp_path / "out")
    assert not (tmp_path / "out.part").exists()


@given(
    st.text(min_size=1).filter(lambda text: has_text(text, 0, len(text))),
    st.sets(st.text()),
    st.one_of(st.none(), st.text()),
    st.integers(0, 9_000_000_000_000),
)
def test_a_line_is_read_as_the_entry_that_was_written(
    text: str, tags: set[str], title: str | None, made: int
) -> None:
    """Issue: JSON lines, one for each entry."""
    entry = entries.make_entry(
        "memory", text, tags=tags, title=title, name="n", created_at=made, updated_at=made
    )
    line = entries.to_line(entry, "i")
    assert line.isascii()
    assert len(line.splitlines()) == 1
    assert entries.from_line(line.encode()) == entries.from_line(line) == entry


# -------------------------------------------------------------------- external documents, removal


def test_external_documents_are_found_but_never_promoted(library: Library, tmp_path: Path) -> None:
    """Same rules, a collection of their own, read-only, no promotion."""
    vendor = tmp_path / "vendor"
    vendor.mkdir()
    (vendor / "api.md").write_text("# API\n\n## Penguins\n\nThey swim.\n")
    assert library.add(vendor, external=True).added == 1
    assert library.add(vendor, external=True).unchanged == 1
    library.add(content="# B\n\npenguins\n", path="b.md", collection="more", external=True)
    (row,) = library.documents("vendor")
    assert (row.kind, row.id) == ("external", id_of("external", "vendor:api.md"))
    assert {result.kind for result in library.search("penguins").results} == {"external"}
    assert {passage.path for passage in library.context("penguins").passages} == {"api.md", "b.md"}
    with pytest.raises(SettingError, match=r"promotion: vendor:api.md is external: only your own have one"):
        library.promote("vendor:api.md", "critical")
    (vendor / "api.md").write_text("# API\n\nokapi\n")
    (vendor / "new.md").write_text("# New\n\nokapi\n")
    report = library.refresh()
    assert (report.added, report.updated) == (1, 1)
    assert {row.kind for row in library.documents()} == {"external"}
    assert (vendor / "api.md").read_text() == "# API\n\nokapi\n"


def test_a_promotion_survives_an_update(library: Library) -> None:
    """Promotion lives in the database; important ones score ×1.5."""
    library.add(content="# A\n\nzebra\n", path="a.md", collection="c")
    plain = library.search("zebra").results[0].score
    library.promote("c:a.md", "important")
    assert library.search("zebra").results[0].score == pytest.approx(1.5 * plain, abs=1e-5)
    library.add(content="# A\n\nzebra and lion\n", path="a.md", collection="c")
    row = library.document("c:a.md")
    assert row
    assert row.promotion == "important"


def test_documents_of_some_paths_are_removed(library: Library) -> None:
    """A collection, or a part of it; a dry run only tells."""
    for path in ("drafts/a.md", "drafts/b.md", "c.md"):
        library.add(content=f"# {path}\n\nzebra\n", path=path, collection="docs")
    library.add(content="# other\n\nzebra\n", path="drafts/a.md", collection="other")
    gone = library.remove(collection="docs", paths=["drafts/"], dry_run=True)
    assert [row.address for row in gone] == ["docs:drafts/a.md", "docs:drafts/b.md"]
    assert len(library.documents()) == 4
    assert library.remove(collection="docs", paths=["drafts/", "*.txt"]) == gone
    assert [row.address for row in library.documents()] == ["docs:c.md", "other:drafts/a.md"]
    with pytest.raises(NoResults, match="No document of docs is in drafts/"):
        library.remove(collection="docs", paths=["drafts/"])
    with pytest.raises(SettingError, match="Name the collection"):
        library.remove(paths=["drafts/"])
    with pytest.raises(SettingError, match="not both"):
        library.remove("docs:c.md", collection="docs")
    assert library.store.check() == []


def test_nothing_is_logged_where_nothing_is_wrong(library: Library, caplog: pytest.LogCaptureFixture) -> None:
    """Warnings are about failures alone."""
    with caplog.at_level(logging.WARNING, "quire"):
        library.remember(LONG)
    assert caplog.text == ""
