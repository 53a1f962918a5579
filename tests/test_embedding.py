"""Search by meaning, end to end: what is embedded when, what a failure leaves, and which half answers.

Most tests run with a tiny embedder that is put in where a model is opened by its name
(`quire.embed.open_embedder`): nothing else is touched. D20 runs with the model that comes with Quire, and
what happens between processes with a real server.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import quire.embed
from quire import embedding
from quire.config import DEFAULT, Config, override
from quire.embed import http
from quire.errors import EmbeddingError, NoResults, SettingError
from quire.library import Library
from quire.progress import Silent
from quire.searcher import Found
from quire.stores import MAX_CHUNKS, Store
from quire.stores.postgres import PostgresStore
from quire.stores.postgres.database import Connection, next_generation
from quire.stores.sqlite import SqliteStore
from quire.surfaces import cli
from tests import models_server as server
from tests.models_server import Models, closed_port, serving

if TYPE_CHECKING:
    from quire.config import EmbedSettings
    from quire.embed.base import Embedder, Vectors

pytestmark = pytest.mark.usefixtures("place")  # no settings of whoever runs this are read

HERE = Path(".quire") / "library.db"  # where commands look
SAME = {"automobile": "car", "canine": "dog", "feline": "cat", "vessel": "boat"}
ZOO = {
    "cars.md": "# Cars\n\nA car has four wheels.\n\n## Engine\n\nThe motor turns petrol into noise.\n",
    "dogs.md": "# Dogs\n\nA dog barks at night.\n",
    "boats.md": "# Boats\n\nA boat floats on water.\n",
}


class Tiny:
    """A deterministic embedder: a hashed bag of words in which some words mean the same."""

    max_tokens = 512

    def __init__(self, name: str = "tiny", dimension: int = 16) -> None:
        self.name, self.dimension = name, dimension
        self.texts: list[str] = []  # all that were embedded
        self.questions: list[str] = []
        self.refuses = ""  # texts with this word
        self.foreign = ""  # a word of a language that it does not know
        self.breaks: Callable[[], BaseException | None] = lambda: None  # asked before each text

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        vectors = np.full((len(texts), self.dimension), np.nan, np.float32)
        refused = [at for at, text in enumerate(texts) if self.refuses and self.refuses in text]
        for at, text in enumerate(texts):
            if problem := self.breaks():
                raise problem
            if at not in refused:
                self.texts.append(text)
                vectors[at] = self._vector(text)
        if refused:
            raise EmbeddingError(self.name, "does not take some texts", refused, vectors)
        return vectors

    def knows(self, text: str) -> bool:
        return not self.foreign or self.foreign not in text

    def embed_query(self, text: str) -> Vectors:
        self.questions.append(text)
        return self._vector(text)

    def close(self) -> None:
        """There is nothing to let go of."""

    def _vector(self, text: str) -> Vectors:
        row = np.zeros(self.dimension, np.float32)
        for word in "".join(char if char.isalnum() else " " for char in text.lower()).split() or [""]:
            row[zlib.crc32(SAME.get(word, word).encode()) % self.dimension] += 1
        return row / np.float32(np.linalg.norm(row))


Tinies = dict[str, Tiny]
Run = Callable[..., tuple[str, str]]


@pytest.fixture
def tinies(monkeypatch: pytest.MonkeyPatch) -> Tinies:
    """Two tiny models, `tiny` and `other`; any other name opens what it always does."""
    known = {"tiny": Tiny("tiny", 64), "other": Tiny("other", 100)}
    really_open = quire.embed.open_embedder

    def open_embedder(name: str, settings: EmbedSettings) -> Embedder | None:
        return known.get(name) or really_open(name, settings)

    monkeypatch.setattr(quire.embed, "open_embedder", open_embedder)
    return known


@pytest.fixture
def tiny(tinies: Tinies) -> Tiny:
    return tinies["tiny"]


def config(model: str = "tiny", **search: Any) -> Config:
    return override(DEFAULT, {"embed": {"model": model}, "search": search})


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with documents in it, in which commands run."""
    folder = tmp_path / "zoo"
    folder.mkdir()
    for name, text in ZOO.items():
        (folder / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("QUIRE_LIBRARY", raising=False)
    return tmp_path


@contextmanager
def opened(url: str | Path, settings: Config | None = None) -> Iterator[Library]:
    with Library.open(url, create=True, config=settings or config()) as library:
        yield library


@pytest.fixture
def library(library_url: str, place: Path, tiny: Tiny) -> Iterator[Library]:
    """The zoo, embedded by the tiny model."""
    with opened(library_url) as library:
        assert not library.add(place / "zoo").failed
        yield library


def vectors_in(store: Store, *, instant: bool = False) -> int:
    """How many vectors of chunks are stored, of any model of a sort."""
    numbers = [model.id for model in store.models() if model.is_instant == instant]
    if isinstance(store, SqliteStore):
        of_chunks = f"SELECT count(*) FROM vectors WHERE slot >> 32 IN ({', '.join(map(str, numbers))})"
        return int(store.db.execute(of_chunks).fetchone()[0])
    assert isinstance(store, PostgresStore)
    return int(store.db.value("SELECT count(*) FROM quire.vectors WHERE model = ANY (%s)", numbers))


def forget_instant(store: Store) -> None:
    """Delete the instant vectors and their model: older versions made none."""
    (model,) = (model for model in store.models() if model.is_instant)
    if isinstance(store, SqliteStore):
        with store._transaction():
            store.vectors.forget(model)
            store.db.execute("DELETE FROM models WHERE id = ?", (model.id,))
            store._next_generation()
        return
    assert isinstance(store, PostgresStore)

    def forget(db: Connection) -> None:
        store.vectors.forget(db, model)
        next_generation(db)

    store.db.write(forget)


def paths(found: Found) -> list[str]:
    return [result.path for result in found.results]


def matches(found: Found) -> dict[str, str]:
    return {result.path: result.match for result in found.results}


def failing_after(count: int, problem: BaseException) -> Callable[[], BaseException | None]:
    """Something that breaks once so many texts have been embedded, and from then on."""
    asked = iter(range(count))
    return lambda: None if next(asked, None) is not None else problem


def many(folder: Path, count: int) -> Path:
    """A folder with so many documents of one chunk, no two alike."""
    folder.mkdir(exist_ok=True)
    for number in range(count):
        (folder / f"{number:04}.md").write_text(f"# Page {number}\n\nword{number} on its own page.\n")
    return folder


@pytest.fixture
def run(tiny: Tiny, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in this process, as `quire` does, with the tiny model: what it printed and said."""
    monkeypatch.setenv("QUIRE_EMBED_MODEL", "tiny")

    def run(*args: str, code: int = 0) -> tuple[str, str]:
        monkeypatch.setattr(sys, "argv", ["quire", *args])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capsys.readouterr()
        assert (ended.value.code or 0) == code, (ended.value.code, out, err)
        return out, err

    return run


# ------------------------------------------------------------------------------- what is stored and searched


def test_each_chunk_has_a_vector_of_the_model(library: Library) -> None:
    """Vector record: chunk id, model id, vector, dimension."""
    store, status = library.store, library.status()
    model, instant = store.models()
    assert (model.name, model.dimension, model.active, model.is_instant) == ("tiny", 64, True, False)
    assert (instant.name, instant.dimension, instant.active, instant.is_instant) == (
        "static",
        256,
        True,
        True,
    )
    chunks = [row.seq * MAX_CHUNKS + n for row in library.documents() for n in range(row.chunk_count)]
    vectors = store.vectors_of(model, chunks)
    assert {chunk: len(vector) for chunk, vector in vectors.items()} == dict.fromkeys(chunks, 64)
    assert vectors_in(store) == vectors_in(store, instant=True) == 4
    assert (status.embedded, status.instant, status.chunks) == (4, 4, 4)
    assert (status.model, status.serving) == ("tiny", "tiny")
    assert store.check() == []


def test_a_model_reads_where_a_chunk_stands(library: Library, tiny: Tiny) -> None:
    """Issue: what is embedded is the breadcrumb and the chunk's text."""
    (engine,) = (text for text in tiny.texts if "petrol" in text)
    assert engine.startswith("Cars > Engine\n")


def test_a_result_says_by_what_it_matched(library: Library) -> None:
    """Match type semantic | keyword | both."""
    assert matches(library.search("automobile")) == {"cars.md": "semantic"}
    assert matches(library.search("dog automobile")) == {"dogs.md": "both", "cars.md": "semantic"}
    assert matches(library.search("dog", mode="keyword")) == {"dogs.md": "keyword"}
    assert matches(library.search("dog automobile", mode="semantic")) == {
        "dogs.md": "semantic",
        "cars.md": "semantic",
    }
    far = replace(library.config, search=replace(library.config.search, min_cosine=1.0))
    with Library.open(library.url, config=far) as same:
        assert matches(same.search("dog")) == {"dogs.md": "keyword"}


def test_an_explanation_shows_both_halves(library: Library) -> None:
    """DESIGN §6: every result has an explanation on demand: scores and fusion."""
    (result,) = library.search("dog", limit=1, explain=True).results
    (hit,) = result.explain["hits"]
    assert (hit["match"], hit["words"]) == ("both", 1.0)
    assert 0 < hit["meaning"] <= 1


def test_the_bundled_model_finds_by_meaning_alone(library_url: str) -> None:
    """In semantic mode alone, and with no setting at all: embedded by `add`, answered by both halves."""
    lines = [
        "React is a JavaScript library for building user interfaces.",
        "Soup wants carrots and an onion.",
    ]
    lines += ["The tide comes in twice a day.", "A violin has four strings."]
    with Library.open(library_url, create=True) as library:
        for number, line in enumerate(lines):
            assert not library.add(content=line, path=f"{number}.md").failed
        assert library.status().model == library.status().serving == "deep"
        found = library.search("JavaScript UI framework", mode="semantic")
        assert found.results[0].path == "0.md"
        assert found.results[0].match == "semantic"
        assert paths(library.search("JavaScript UI framework"))[0] == "0.md"
        assert matches(library.search("vegetable broth"))["1.md"] == "semantic"
        assert (library.search("vegetable broth").notes, library.search("broth").model) == ((), "deep")
        assert library.store.check() == []


def test_embeddings_may_come_later_than_the_chunks(library_url: str, place: Path, tiny: Tiny) -> None:
    """With model none, words answer at once; then the library is embedded."""
    with opened(library_url, config("none")) as library:
        assert not library.add(place / "zoo").failed
        found = library.search("dog")
        assert (paths(found), found.mode, found.notes) == (["dogs.md"], "keyword", ())
        with pytest.raises(NoResults, match="Embed the library with: quire embed"):
            library.search("dog", mode="semantic")
        with pytest.raises(SettingError, match="quire embed --model deep"):
            library.embed()
        assert (library.status().model, library.status().instant, library.status().serving) == ("", 0, "")
    with opened(library_url) as library:
        done = library.embed()
        assert (done.model, done.embedded, done.reused, done.failed) == ("tiny", 4, 0, {})
        assert matches(library.search("automobile")) == {"cars.md": "semantic"}


def test_a_second_run_embeds_nothing(library: Library, tiny: Tiny) -> None:
    """Issue: what is embedded stays."""
    tiny.texts.clear()
    assert library.embed().embedded == 0
    library.add(Path("zoo"))
    library.refresh()
    assert tiny.texts == []


def test_an_edit_embeds_only_the_chunk_that_changed(library: Library, tiny: Tiny, place: Path) -> None:
    """DESIGN §5: cached by text; the vectors of the rest of the document stay."""
    tiny.texts.clear()
    (place / "zoo" / "cars.md").write_text(ZOO["cars.md"].replace("petrol", "diesel"))
    library.refresh()
    assert [text.split("\n")[0] for text in tiny.texts] == ["Cars > Engine"]
    (place / "zoo" / "cars.md").rename(place / "zoo" / "renamed.md")
    library.refresh(prune=True)
    assert len(tiny.texts) == 1
    assert matches(library.search("automobile")) == {"renamed.md": "semantic"}
    assert library.store.check() == []


def test_the_whole_document_is_evidence_for_each_chunk(fresh_url: Callable[[], str], tiny: Tiny) -> None:
    """Of two chunks alike, the one in a document about the matter comes first."""
    same = "## Part\n\nThe okapi eats leaves.\n"
    texts = {"a.md": f"# A\n\n{same}", "b.md": f"# B\n\n{same}\n## More\n\nThe okapi sleeps.\n"}
    for weight in (0.0, 0.5):
        settings = config(document_evidence=weight, aggregation_threshold=1.0, meaning=0.0)
        with Library.open(fresh_url(), create=True, config=settings) as library:
            for path, text in texts.items():
                library.add(content=text, path=path)
            results = library.search("okapi leaves").results
            a, b = (max(r.score for r in results if r.path == path) for path in texts)
            assert (a == b) if not weight else (a < b)


# ---------------------------------------------------------------------------------------- modes and queries


def test_a_mode_asks_one_half_only(library: Library, tiny: Tiny) -> None:
    """Issue: `mode` forces one half; the answer says which was used."""
    tiny.questions.clear()
    found = library.search("automobile", mode="keyword")
    assert (paths(found), found.mode, tiny.questions) == ([], "keyword", [])
    found = library.search("automobile", mode="semantic")
    assert (paths(found), found.mode, tiny.questions) == (["cars.md"], "semantic", ["automobile"])
    assert library.search("automobile").mode == "hybrid"


@pytest.mark.parametrize("mode", ["hybrid", "semantic"])
def test_what_a_query_demands_holds_by_meaning_too(library: Library, mode: str) -> None:
    """DESIGN §6: "phrases" must be there, -words must not, fields and filters hold, in every mode."""

    def asked(query: str, **options: Any) -> list[str]:
        return sorted(set(paths(library.search(query, mode=mode, **options))))

    assert asked('"four wheels"') == ["cars.md"]
    assert asked('"wheels four" car') == ["cars.md"]  # nothing has that: a note says so
    assert "in quotes" in library.search('"wheels four" car', mode=mode).notes[0]
    assert asked("car dog -barks") == ["cars.md"]
    assert asked("heading:boats") == ["boats.md"]
    assert asked("float* vessel") == ["boats.md"]
    assert asked("automobile canine path:dogs") == ["dogs.md"]
    assert asked("automobile canine -path:dogs") == ["cars.md"]
    assert asked("automobile canine", paths=["dogs"]) == ["dogs.md"]
    with pytest.raises(NoResults, match="Did you mean 'zoo'"):
        asked("automobile", collection="zooo")


@pytest.mark.parametrize("mode", ["hybrid", "semantic"])
def test_leaving_a_word_out_does_not_demand_the_others(library: Library, mode: str) -> None:
    """DESIGN §6: -word only takes away: what was found by meaning without that word is still found."""
    assert paths(library.search("automobile -barks", mode=mode)) == ["cars.md"]


@pytest.mark.parametrize("mode", ["hybrid", "semantic"])
def test_a_phrase_is_looked_for_before_the_cut(library_url: str, tiny: Tiny, mode: str) -> None:
    """Store: filters apply before any limit: what is near and has the phrase counts, however it ranks."""
    with Library.open(library_url, create=True, config=config(candidates=3, limit=1)) as library:
        for number in range(6):
            library.add(content=f"exit code {number}", path=f"{number}.md")
        library.add(content=f"{'car ' * 40} exit code", path="long.md")
        question = f'"exit code" {"automobile " * 9}'
        assert paths(library.search("automobile", mode=mode)) == ["long.md"]
        assert paths(library.search(question, mode=mode)) == ["long.md"]


@pytest.mark.parametrize("mode", ["hybrid", "semantic"])
def test_odd_queries_are_answered_by_meaning_too(library: Library, mode: str) -> None:
    """BAD_INPUTS: any query gets an answer or a clear message, in every mode."""
    for query in ('"unbalanced', "AND", "NEAR(", "C++", "don't", "a:b", "\0x", "🙂", "word " * 50_000, "猫"):
        assert isinstance(library.search(query, mode=mode), Found)
    for query in ("", "*", "-only"):
        with pytest.raises(SettingError, match="query: "):
            library.search(query, mode=mode)


@pytest.mark.parametrize("limit", [0, -1, 10**9])
def test_a_limit_out_of_range_names_the_range(library: Library, limit: int) -> None:
    """BAD_INPUTS: limit = 0, -1, 10**9 → error that names the range."""
    for mode in ("hybrid", "keyword", "semantic"):
        with pytest.raises(SettingError, match=r"limit: .* is outside 1 to 1,000"):
            library.search("dog", limit=limit, mode=mode)


def test_an_unknown_mode_names_the_nearest(library: Library) -> None:
    """BAD_INPUTS: unknown → error with the nearest name."""
    with pytest.raises(SettingError, match="Did you mean 'semantic'"):
        library.search("dog", mode="semantics")
    with pytest.raises(SettingError, match="Known: hybrid, keyword, semantic"):
        library.search("dog", mode="xyz")


SEARCH_BY_WORDS = """
import sys
sys.argv = ["quire", "search", "dog", "--mode", "keyword"]
from quire.surfaces import cli
try:
    cli.main()
except SystemExit as ended:
    assert not ended.code
print(sorted({"onnxruntime", "httpx2", "quire.embed.static"} & set(sys.modules)))
"""


def test_searching_by_words_loads_no_model(place: Path) -> None:
    """DESIGN §7: loaded lazily, never in a process that does not need it; the library is embedded."""
    with opened(HERE, DEFAULT) as library:
        library.add(content=ZOO["dogs.md"], path="dogs.md")
        assert library.status().model == "deep"
    done = subprocess.run([sys.executable, "-c", SEARCH_BY_WORDS], capture_output=True, text=True, check=True)
    assert "content:dogs.md#dogs" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


# ------------------------------------------------------------------------------------ resuming and failing


@pytest.mark.parametrize("problem", [EmbeddingError("tiny", "has gone away"), KeyboardInterrupt()])
def test_a_run_that_was_cut_short_goes_on_where_it_stopped(
    library_url: str, place: Path, tiny: Tiny, monkeypatch: pytest.MonkeyPatch, problem: BaseException
) -> None:
    """Issue: resumable; what was written stays, and only the rest is embedded."""
    monkeypatch.setattr(embedding, "_BATCH", 10)
    folder = many(place / "pages", 45)
    with opened(library_url, config("none")) as library:
        library.add(folder)
    with opened(library_url) as library:
        tiny.breaks = failing_after(25, problem)
        with pytest.raises(type(problem)):
            library.embed()
        assert library.status().embedded == 20
        assert library.store.check() == []
        found = library.search("word7")
        assert (paths(found)[0], found.model, found.notes) == ("0007.md", "static", ())
        assert library.status().serving == "static"
        tiny.breaks = lambda: None
        tiny.texts.clear()
        assert library.embed().embedded == len(tiny.texts) == len(set(tiny.texts)) == 25
        assert (library.search("word7").model, library.search("word7").notes) == ("tiny", ())
        assert library.status().embedded == 45
        assert library.store.check() == []


def test_adding_where_the_model_fails_keeps_what_was_added(place: Path, tiny: Tiny, run: Run) -> None:
    """Issue: a failure never blocks keyword search; exit code 3 and a note, and the next run goes on."""
    tiny.breaks = failing_after(0, EmbeddingError("tiny", "has gone away"))
    out, err = run("add", "zoo", code=3)
    assert out.startswith("3 added, 0 updated, 0 unchanged: 4 chunks")
    assert "embedding: tiny: has gone away" in err
    assert run("search", "dog")[0].startswith("  1. zoo:dogs.md#dogs")
    tiny.breaks = lambda: None
    assert run("add", "zoo")[0].startswith("0 added, 0 updated, 3 unchanged: ")
    assert json.loads(run("status", "--json")[0])["embedded"] == 4


def test_interrupting_says_how_to_go_on(place: Path, tiny: Tiny, run: Run) -> None:
    """Issue: Ctrl-C keeps what was embedded."""
    tiny.breaks = failing_after(2, KeyboardInterrupt())
    assert "To go on, type the same command." in run("add", "zoo", code=130)[1]
    assert "To go on, type the same command" in run("embed", code=130)[1]
    tiny.breaks = lambda: None
    assert run("embed")[0].startswith("4 chunks embedded with tiny: ")
    assert json.loads(run("status", "--check", "--json")[0])["problems"] == []


def test_a_refused_document_is_marked_and_the_rest_is_embedded(library: Library, tiny: Tiny) -> None:
    """Issue: a failure marks the document, keeps other vectors, and never blocks keyword search."""
    tiny.refuses = "unicorn"
    text = "# Myths\n\nA vessel sails.\n\n## Horns\n\nThe unicorn has one.\n"
    report = library.add(content=text, path="myths.md")
    assert [(failed.source, failed.reason) for failed in report.failed] == [
        ("content:myths.md", "tiny: does not take some texts")
    ]
    assert library.unembeddable() == {"content:myths.md": "tiny: does not take some texts"}
    assert (library.status().embedded, library.status().chunks) == (5, 6)
    found = library.search("unicorn horns")
    assert (matches(found)["myths.md"], found.model, found.notes) == ("both", "static", ())
    forget_instant(library.store)
    found = library.search("unicorn horns")
    assert (matches(found)["myths.md"], found.model) == ("keyword", "")
    assert found.notes == ("Searched by words only: 1 chunk is not embedded yet. Go on with: quire embed",)
    assert set(matches(library.search("boat", mode="semantic"))) == {"myths.md", "boats.md"}
    assert library.store.check() == []


def test_what_was_refused_is_found_by_words_among_many(library_url: str, place: Path, tiny: Tiny) -> None:
    """Issue: with 98 % of the vectors a model serves; the few chunks without one are ranked by words."""
    tiny.refuses = "word7 "
    with opened(library_url) as library:
        assert len(library.add(many(place / "pages", 50)).failed) == 1
        found = library.search("word7 word8 page own")
        assert (found.model, found.notes) == ("tiny", ())
        assert (matches(found)["0007.md"], matches(found)["0008.md"]) == ("keyword", "both")
        assert library.status().embedded == 49


def test_a_later_success_takes_the_mark_away(library: Library, tiny: Tiny) -> None:
    """Issue: a document that the model takes at last is like any other."""
    tiny.refuses = "unicorn"
    library.add(content="The unicorn has a horn.", path="a.md")
    library.add(content="Another unicorn.", path="b.md")
    assert set(library.unembeddable()) == {"content:a.md", "content:b.md"}
    library.remove("content:b.md")
    assert set(library.unembeddable()) == {"content:a.md"}
    tiny.refuses = ""
    assert library.embed().embedded == 1
    assert library.unembeddable() == {}
    assert (library.search("unicorn").model, library.search("unicorn").notes) == ("tiny", ())


def test_an_edit_that_leaves_out_what_was_refused_takes_the_mark_away(library: Library, tiny: Tiny) -> None:
    """Issue: what is all embedded is not marked."""
    tiny.refuses = "unicorn"
    text = "# Myths\n\nA vessel sails.\n\n"
    library.add(content=f"{text}## Horns\n\nThe unicorn has one.\n", path="myths.md")
    library.add(content=text, path="myths.md")
    assert library.status().embedded == library.status().chunks
    assert library.unembeddable() == {}


def test_an_edit_that_is_refused_keeps_the_vectors_of_the_rest(
    library: Library, tiny: Tiny, place: Path
) -> None:
    """D rulings: a failed embedding leaves the rest searchable and the document marked."""
    tiny.refuses = "unicorn"
    (place / "zoo" / "cars.md").write_text(ZOO["cars.md"].replace("petrol", "unicorn"))
    assert len(library.refresh().failed) == 1
    assert library.status().embedded == 3
    assert library.search("automobile").model == "static"
    assert paths(library.search("automobile"))[0] == "cars.md"
    assert matches(library.search("automobile", paths=["dogs.md"])) == {}
    assert library.search("automobile", paths=["dogs.md"]).model == "tiny"
    assert set(library.unembeddable()) == {"zoo:cars.md"}


def test_commands_say_what_was_refused(place: Path, tiny: Tiny, run: Run) -> None:
    """Issue: exit code 3, a line for each document, and `quire status` remembers."""
    tiny.refuses = "barks"
    assert "zoo:dogs.md: tiny: does not take some texts" in run("add", "zoo", code=3)[1]
    out, err = run("embed", "--json", code=3)
    shown = json.loads(out)
    why = "tiny: does not take some texts"
    assert shown["failed"] == [{"source": "zoo:dogs.md", "reason": why, "code": "embedding_error"}]
    assert "zoo:dogs.md: tiny: does not take some texts" in err
    assert run("embed", code=3)[0].startswith("0 chunks embedded with tiny, 1 document failed: ")
    status = json.loads(run("status", "--json")[0])
    assert status["not_embedded"] == {"zoo:dogs.md": "tiny: does not take some texts"}
    told = run("status")[0]
    assert "meaning: static serves; tiny has 3 of 4 chunks; static has all chunks. Go on with: quire" in told
    assert "not embedded: zoo:dogs.md: tiny: does not take some texts" in told
    assert json.loads(run("search", "dog", "--json")[0])["model"] == "static"
    tiny.refuses = ""
    run("embed")
    assert "meaning: tiny serves; tiny has all chunks\n" in run("status")[0]


# ------------------------------------------------------------------------------------------ other models


@pytest.fixture
def unset(library_url: str, library: Library) -> Iterator[Library]:
    """The zoo, embedded by the tiny model, with no model in the settings."""
    with opened(library_url, config("")) as unset:
        yield unset


def test_a_switch_of_models_has_no_gap(
    unset: Library, library: Library, tinies: Tinies, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue: the old vectors serve until the new ones are complete; then only those."""
    monkeypatch.setattr(embedding, "_BATCH", 1)
    tiny, other, seen = tinies["tiny"], tinies["other"], list[str]()

    def look() -> None:
        found = library.search("automobile")
        assert (matches(found), found.notes) == ({"cars.md": "semantic"}, ())
        seen.append(library.status().model)

    other.breaks = look
    tiny.questions.clear()
    assert unset.embed("other").embedded == 4
    assert (seen, len(tiny.questions), other.questions) == (["tiny"] * 4, 4, [])
    assert matches(unset.search("automobile")) == {"cars.md": "semantic"}
    assert (len(tiny.questions), other.questions) == (4, ["automobile"])
    assert [model.name for model in unset.store.models()] == ["other", "static"]
    assert vectors_in(unset.store) == 4
    assert unset.store.check() == []


def test_a_switch_that_was_cut_short_goes_on(
    unset: Library, tinies: Tinies, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue: resumable; until then the old model is searched, and kept up to date."""
    monkeypatch.setattr(embedding, "_BATCH", 1)
    tiny, other = tinies["tiny"], tinies["other"]
    other.breaks = failing_after(3, EmbeddingError("other", "has gone away"))
    with pytest.raises(EmbeddingError):
        unset.embed("other")
    assert matches(unset.search("automobile")) == {"cars.md": "semantic"}
    tiny.texts.clear()
    assert not unset.add(content="A feline sleeps.", path="nap.md").failed
    assert len(tiny.texts) == 1
    assert matches(unset.search("cat"))["nap.md"] == "semantic"
    other.breaks = lambda: None
    assert unset.embed("other").embedded == 2
    assert unset.status().model == "other"
    assert unset.status().embedded == 5
    assert other.questions == []
    assert matches(unset.search("cat"))["nap.md"] == "semantic"


def test_a_model_that_takes_nothing_does_not_replace_one_that_does(unset: Library, tinies: Tinies) -> None:
    """Issue: switches without a gap: a broken model must not cost the vectors of a good one."""
    tinies["other"].refuses = "\n"  # which is in every text
    assert len(unset.embed("other").failed) == 3
    assert (unset.status().model, unset.status().embedded) == ("tiny", 4)
    assert matches(unset.search("automobile")) == {"cars.md": "semantic"}


def test_a_library_keeps_to_its_model(unset: Library, tinies: Tinies) -> None:
    """Issue: with no model set, a library is embedded and searched with its own."""
    unset.embed("other")
    tinies["other"].texts.clear()
    tinies["tiny"].texts.clear()
    assert not unset.add(content="A feline sleeps.", path="nap.md").failed
    assert (len(tinies["other"].texts), tinies["tiny"].texts) == (1, [])


def test_settings_that_name_another_model_are_refused(
    library: Library, library_url: str, tinies: Tinies
) -> None:
    """BAD_INPUTS: model changed → refused, with the command that re-embeds; words answer."""
    fix = "this library is embedded with tiny. To change that: quire embed --model other"
    with opened(library_url, config("other")) as changed:
        for mode in ("hybrid", "semantic"):
            found = changed.search("dog automobile", mode=mode)
            assert (found.mode, found.model) == (mode, "static")
            assert set(paths(found)[:2]) == {"dogs.md", "cars.md"}
            assert [note.startswith("Searched with static") and fix in note for note in found.notes] == [True]
        report = changed.add(content="A feline sleeps.", path="nap.md")
        assert report.added == 1
        assert [fix in failed.reason for failed in report.failed] == [True]
        assert changed.status().model == "tiny"
        assert tinies["other"].texts == tinies["other"].questions == []
        changed.embed("other")
        assert matches(changed.search("automobile")) == {"cars.md": "semantic"}


UNKNOWN = "tiny does not know the language of this query"


def test_meaning_counts_less_in_a_language_that_the_model_does_not_know(
    library_url: str, library: Library, tiny: Tiny
) -> None:
    """The cosines of such a query say little: a match by words stays above a match by meaning."""
    query = "night automobile automobile automobile"
    with opened(library_url, config(meaning=20.0, meaning_unknown=0.5)) as changed:
        assert paths(changed.search(query)) == ["cars.md", "dogs.md"]
        tiny.foreign = "night"
        found = changed.search(query)
    assert (found.mode, paths(found)) == ("hybrid", ["dogs.md", "cars.md"])
    assert found.notes == (f"{UNKNOWN}: meaning counts less.",)


def test_meaning_can_be_left_out_in_a_language_that_the_model_does_not_know(
    library_url: str, library: Library, tiny: Tiny
) -> None:
    """With search.meaning_unknown = 0, words answer alone and the query is not embedded."""
    asked, tiny.foreign = len(tiny.questions), "dog"
    with opened(library_url, config(meaning_unknown=0.0)) as changed:
        found = changed.search("dog automobile")
    assert (found.mode, matches(found)) == ("keyword", {"dogs.md": "keyword"})
    assert found.notes == (f"{UNKNOWN}: searched by words only.",)
    assert len(tiny.questions) == asked


@pytest.mark.parametrize("weight", [0.0, 0.5])
def test_meaning_answers_in_any_language_where_no_word_matches(
    library_url: str, library: Library, tiny: Tiny, weight: float
) -> None:
    """A doubtful answer is better than none, if a note says that it is doubtful."""
    tiny.foreign = "automobile"
    with opened(library_url, config(meaning_unknown=weight)) as changed:
        found = changed.search("automobile")
    assert (found.mode, matches(found)) == ("hybrid", {"cars.md": "semantic"})
    assert found.notes == (f"{UNKNOWN}, and no word matches: these results may be wrong.",)


def test_semantic_search_is_done_as_asked_in_any_language(library: Library, tiny: Tiny) -> None:
    """Who asks for meaning gets meaning."""
    tiny.foreign = "automobile"
    found = library.search("automobile", mode="semantic")
    assert (found.mode, matches(found), found.notes) == ("semantic", {"cars.md": "semantic"}, ())


def test_a_phrase_in_an_unknown_language_that_nothing_has_gets_one_note_about_it(
    library: Library, tiny: Tiny
) -> None:
    """Words of a phrase are searched in a second step; the language is mentioned once."""
    tiny.foreign = "dog"
    notes = library.search('"dog wheels"').notes
    assert [note.startswith(UNKNOWN) for note in notes] == [False, True]


def test_a_model_that_makes_other_vectors_than_before_is_refused(
    library: Library, library_url: str, tinies: Tinies
) -> None:
    """BAD_INPUTS: dimension changed → refused, with the command that re-embeds; static answers, or words."""
    tinies["tiny"] = Tiny("tiny", 32)
    fix = "quire embed --model tiny"
    with opened(library_url) as changed:
        found = changed.search("dog automobile")
        assert (found.model, set(paths(found)[:2])) == ("static", {"dogs.md", "cars.md"})
        assert [note.startswith("Searched with static. tiny: ") and fix in note for note in found.notes] == [
            True
        ]
        forget_instant(library.store)
        found = changed.search("dog automobile")
        assert matches(found) == {"dogs.md": "keyword"}
        assert [
            note.startswith("Searched by words only. tiny: ") and fix in note for note in found.notes
        ] == [True]
        with pytest.raises(EmbeddingError, match=fix):
            changed.search("dog", mode="semantic")
        changed.embed("tiny")
        assert paths(changed.search("automobile"))[0] == "cars.md"
        assert [model.dimension for model in changed.store.models()] == [32, 256]


def test_adding_does_not_embed_everything_anew(library: Library, library_url: str, tinies: Tinies) -> None:
    """BAD_INPUTS: dimension changed → refused, with the command that re-embeds: adding one page is no such.

    A thousand pages may be paid for by the token.
    """
    tinies["tiny"] = changed_model = Tiny("tiny", 32)
    with opened(library_url) as changed:
        report = changed.add(content="A feline sleeps.", path="nap.md")
        assert changed_model.texts == []
        assert ["quire embed --model tiny" in failed.reason for failed in report.failed] == [True]


# ------------------------------------------------------------------------------------- two things at once


def test_an_edit_while_its_document_is_embedded_wins(library: Library, tiny: Tiny) -> None:
    """D rulings: a vector of an older version is not stored, nor is one remembered given to it."""
    store = library.store
    library.config = config("none")
    library.add(content="The first version.", path="a.md")
    (model, _), (old,) = store.models(), store.unembedded(store.models()[0], 10)
    library.add(content="The second version.", path="a.md")
    store.write_vectors(model, [old], tiny.embed_documents([old.text]))
    assert (library.status().embedded, store.count_unembedded(model)) == (4, 1)
    assert store.reuse(model, [old]) == set()
    library.remove("content:a.md")
    store.write_vectors(model, [old], tiny.embed_documents([old.text]))
    assert store.check() == []


def test_an_edit_in_the_middle_of_a_run_is_embedded_by_the_next(
    library: Library, tiny: Tiny, library_url: str
) -> None:
    """Issue: nothing half new; the run goes on, and says afterwards what is left."""
    library.config = config("none")
    library.add(content="The first version.", path="a.md")
    edits = iter(["The second version."])

    def edit() -> None:
        with opened(library_url, config("none")) as writer:
            for text in edits:
                writer.add(content=text, path="a.md")

    tiny.breaks = edit
    library.config = config()
    library.embed()
    assert library.status().embedded == 4
    library.embed()
    assert library.status().embedded == 5
    assert library.store.check() == []


# ----------------------------------------------------------------------------------------- a real server


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Iterator[Models]:
    """A server of embeddings, which is asked again at once where it fails."""
    monkeypatch.setattr(http, "WAITS", (0.0, 0.0))
    with serving() as models:
        yield models


def asking(url: str, model: str = "ollama/m", **embed: Any) -> Config:
    return override(DEFAULT, {"embed": {"model": model, "url": url, "timeout": 5.0, **embed}})


@contextmanager
def served(url: str | Path, settings: Config) -> Iterator[Library]:
    """A library whose model is behind a server, with no connection left open."""
    with opened(url, settings) as library:
        try:
            yield library
        finally:
            for embedder in library._embedders.values():
                getattr(embedder, "close", lambda: None)()


def test_a_library_is_embedded_by_a_server(library_url: str, place: Path, models: Models) -> None:
    """Issue: ollama end to end; the server says the dimension, and refuses one text by 400."""
    models.refuses = lambda text: "barks" in text
    models.next.append(server.status(500))
    models.dimension = 256
    with served(library_url, asking(models.url)) as library:
        report = library.add(place / "zoo")
        assert [failed.source for failed in report.failed] == ["zoo:dogs.md"]
        assert (library.status().embedded, library.status().model) == (3, "ollama/m")
        assert library.store.models()[0].dimension == 256
        assert library.search("dog").model == library.status().serving == "static"
        assert "context length" in library.unembeddable()["zoo:dogs.md"]
        models.refuses = lambda text: False
        library.embed()
        assert library.unembeddable() == {}
        found = library.search("dog barks night", mode="semantic")
        assert (paths(found)[0], found.model) == ("dogs.md", "ollama/m")


def test_a_library_lets_go_of_its_connections(library_url: str, models: Models) -> None:
    """HABITS: what is opened is closed; an agent that opens a library a thousand times does not run out."""
    with opened(library_url, asking(models.url)) as library:
        library.add(content="one fish", path="a.md")
        (embedder,) = library._embedders.values()
    assert isinstance(embedder, http.Ollama)
    with embedder:
        assert embedder._client is None


def test_requests_run_beside_each_other_and_are_bounded(library_url: str, models: Models) -> None:
    """Embedding is parallel and bounded."""
    models.pause = 0.05
    with served(library_url, asking(models.url, batch=2, parallel=3)) as library:
        library.add(content="".join(f"# Part {n}\n\nword{n}\n\n" for n in range(20)), path="a.md")
        assert library.status().embedded == 20
    assert 2 <= models.busiest <= 3
    assert max(len(texts) for texts in models.inputs) == 2


MISBEHAVIOUR = {
    "500": server.status(500),
    "404": server.status(404),
    "html": server.said("<html>Welcome</html>", Content_Type="text/html"),
    "another dimension": server.rows(lambda rows: [row[:5] for row in rows]),
    "not a number": server.rows(lambda rows: [[float("nan")] * len(row) for row in rows]),
    "hangs": server.hang,
    "reset": server.reset,
}


@pytest.mark.parametrize("name", MISBEHAVIOUR)
def test_searches_answer_where_the_server_misbehaves(
    library_url: str, place: Path, models: Models, name: str
) -> None:
    """BAD_INPUTS: Ollama down, slow, wrong dimension, HTML → static or words answer, and a note says so."""
    with served(library_url, asking(models.url)) as library:
        library.add(place / "zoo")
    models.always = MISBEHAVIOUR[name]
    with served(library_url, asking(models.url, timeout=0.1)) as library:
        for mode, match in (("hybrid", "both"), ("semantic", "semantic")):
            found = library.search("dog", mode=mode)
            assert (found.model, matches(found)["dogs.md"]) == ("static", match)
            assert [note.startswith("Searched with static. ollama/m: ") for note in found.notes] == [True]
        forget_instant(library.store)
        found = library.search("dog")
        assert matches(found) == {"dogs.md": "keyword"}
        assert [note.startswith("Searched by words only. ollama/m: ") for note in found.notes] == [True]
        with pytest.raises(EmbeddingError, match="ollama/m: "):
            library.search("dog", mode="semantic")
        assert library.add(content="A feline sleeps.", path="nap.md").failed
        assert library.search("feline").model == "static"
        assert matches(library.search("feline"))["nap.md"] == "both"
        assert library.store.check() == []


def test_commands_where_the_server_is_down(place: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue: instant meaning answers, with a note that says why; embedding fails with exit 4."""
    monkeypatch.setattr(http, "WAITS", ())
    with serving() as models, served(HERE, asking(models.url)) as library:
        library.add(place / "zoo")
    monkeypatch.setenv("QUIRE_EMBED_MODEL", "ollama/m")
    monkeypatch.setenv("QUIRE_EMBED_URL", f"http://127.0.0.1:{closed_port()}")
    out, err = run("search", "dog")
    assert out.startswith("  1. zoo:dogs.md#dogs")
    for said in (err, run("search", "dog", "--mode", "semantic")[1]):
        assert "Searched with static" in said
        assert "Start it with: ollama serve" in said
    assert run("search", "dog", "--mode", "keyword")[1] == ""
    (place / "zoo" / "cats.md").write_text("# Cats\n\nA cat purrs.\n")
    assert "embedding: ollama/m: " in run("add", "zoo", code=3)[1]
    assert "Start it with: ollama serve" in run("embed", code=4)[1]
    assert run("search", "purrs", "-m", "keyword")[0].startswith("  1. zoo:cats.md#cats")


def test_an_address_that_no_server_can_have_stops_no_search(
    library_url: str, place: Path, models: Models
) -> None:
    """Issue: a model that cannot be used never blocks a search, whatever the reason."""
    with served(library_url, asking(models.url)) as library:
        library.add(place / "zoo")
    with served(library_url, asking("http://a..b")) as library:
        found = library.search("dog")
        assert (found.model, matches(found)["dogs.md"]) == ("static", "both")
        assert "embed.url" in found.notes[0]


def model_folder(folder: Path) -> Path:
    """A folder with the bundled model, as one of the user's own."""
    folder.mkdir()
    for name, file in (("model.onnx", "deep.onnx"), ("vocab.txt", "vocab.txt")):
        (folder / name).symlink_to(Path(quire.embed.__file__).parent / "model" / file)
    return folder


@pytest.mark.parametrize(("short", "full"), [("ollama", "ollama/mxbai-embed-large"), ("mine", "folder/")])
def test_a_model_may_be_set_by_its_short_name(
    library_url: str, place: Path, models: Models, short: str, full: str
) -> None:
    """DESIGN §7: `ollama`, or a folder as it is seen from here, is the model that it stands for."""
    model_folder(place / "mine")
    for _ in range(2):
        with served(library_url, asking(models.url, short)) as library:
            assert library.add(place / "zoo").failed == []
            assert library.status().model.startswith(full)
            assert library.search("dog").notes == ()


def test_words_answer_where_the_folder_of_a_model_is_gone(library_url: str, place: Path) -> None:
    """Issue: a failure of the model never blocks keyword search."""
    folder = model_folder(place / "mine")
    with opened(library_url, config("none")) as library:
        library.add(content=ZOO["dogs.md"], path="dogs.md")
        library.embed(str(folder))
    (folder / "vocab.txt").unlink()
    with opened(library_url, config("")) as library:
        found = library.search("dog")
        assert matches(found) == {"dogs.md": "keyword"}
        assert "the folder must hold model.onnx" in found.notes[0]
        with pytest.raises(EmbeddingError, match="the folder must hold"):
            library.search("dog", mode="semantic")


# ------------------------------------------------------------------------------------- several processes


def command(url: str, models: Models, *args: str) -> subprocess.Popen[str]:
    """`quire` in a process of its own, asking the server of models."""
    settings = {"QUIRE_LIBRARY": url, "QUIRE_EMBED_URL": models.url, "QUIRE_EMBED_PARALLEL": "2"}
    return subprocess.Popen(
        [Path(sys.executable).parent / "quire", *args],
        env={**os.environ, **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def parts(url: str, count: int) -> None:
    """One document of so many chunks, not embedded."""
    with opened(url, config("none")) as library:
        text = "".join(f"# Part {number}\n\nword{number} stands here.\n\n" for number in range(count))
        assert library.add(content=text, path="a.md").chunks == count


def test_a_run_that_was_killed_goes_on(library_url: str, models: Models) -> None:
    """BAD_INPUTS: kill -9 at any moment → reopens; no text is embedded twice but those of one batch."""
    parts(library_url, 600)
    models.next.extend([server.fine] * 8)  # the first five are for the dimension and the first batch
    models.always = server.hang
    with command(library_url, models, "embed", "--model", "ollama/m") as process:
        deadline = time.monotonic() + 30
        while len(models.asked) < 9 and time.monotonic() < deadline:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=30)
    assert process.returncode == -signal.SIGKILL
    models.always = None
    with opened(library_url, config("none")) as library:
        assert library.status().embedded == embedding._BATCH
        assert library.store.check() == []
    with command(library_url, models, "embed", "--json") as process:
        out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert json.loads(out)["embedded"] == 600 - embedding._BATCH
    asked = Counter(text for texts in models.inputs for text in texts if text.startswith("Part"))
    assert len(asked) == 600
    assert sum(times - 1 for times in asked.values()) <= embedding._BATCH
    with opened(library_url, config("none")) as library:
        assert library.status().embedded == 600
        assert library.store.check() == []


def test_two_runs_at_once_give_each_chunk_one_vector(library_url: str, models: Models) -> None:
    """BAD_INPUTS: two writers → both finish."""
    parts(library_url, 300)
    models.pause = 0.02
    embed = ("embed", "--model", "ollama/m")
    with command(library_url, models, *embed) as one, command(library_url, models, *embed) as other:
        said = one.communicate(timeout=60), other.communicate(timeout=60)
    assert (one.returncode, other.returncode) == (0, 0), said
    with opened(library_url, config("none")) as library:
        store = library.store
        assert (vectors_in(store), store.counts().embedded) == (300, 300)
        assert [model.name for model in store.models()] == ["ollama/m", "static"]
        assert store.check() == []


# ------------------------------------------------------------------------------------------- the commands


class Told(Silent):
    """A progress bar that keeps what it is told."""

    def __init__(self) -> None:
        self.begun: list[tuple[str, int, str]] = []
        self.done = 0

    def begin(self, work: str, total: int, unit: str) -> None:
        self.begun.append((work, total, unit))
        self.done = 0

    def advance(self, amount: int, failed: int = 0) -> None:
        self.done += amount


def test_long_work_tells_how_far_it_is(library_url: str, place: Path, tiny: Tiny) -> None:
    """HABITS: progress is told; surfaces show it."""
    told = Told()
    with opened(library_url) as library:
        library.add(place / "zoo", progress=told)
    assert told.begun[-1] == ("embedding with tiny", 4, "chunks")
    assert told.done == 4


def test_json_of_embedding(place: Path, run: Run) -> None:
    """DESIGN §9: --json on all that read; the shapes of embed, status and search."""
    assert json.loads(run("add", "zoo", "--json")[0])["failed"] == []
    shown = json.loads(run("embed", "--json")[0])
    del shown["seconds"]
    assert shown == {"model": "tiny", "embedded": 0, "reused": 0, "failed": [], "searched_with": "tiny"}
    status = json.loads(run("status", "--json")[0])
    expected = "library documents sections chunks bytes collections embedded model instant serving"
    about = ["goes_on", "model_problem", "not_embedded", "checked", "problems"]
    assert list(status) == [*expected.split(), *about]
    assert (status["embedded"], status["model"], status["not_embedded"]) == (4, "tiny", {})
    assert (status["instant"], status["serving"]) == (4, "tiny")
    for mode, match in (("hybrid", "both"), ("keyword", "keyword"), ("semantic", "semantic")):
        found = json.loads(run("search", "dog", "--mode", mode, "--json")[0])
        assert (found["mode"], found["notes"]) == (mode, [])
        assert found["model"] == ("" if mode == "keyword" else "tiny")
        assert found["results"][0]["match"] == match


def test_embedding_from_the_command_line(place: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue: `quire embed` goes on, `--model` switches."""
    assert "No library at" in run("embed", code=1)[1]
    monkeypatch.setenv("QUIRE_EMBED_MODEL", "none")
    run("add", "zoo")
    assert "Name one: quire embed --model deep" in run("embed", code=2)[1]
    assert "quire embed" in run("search", "dog", "-m", "semantic", code=1)[1]
    monkeypatch.delenv("QUIRE_EMBED_MODEL")
    assert run("embed", "--model", "tiny")[0].startswith("4 chunks embedded with tiny: ")
    assert run("search", "automobile")[0].startswith("  1. zoo:cars.md#cars")
    assert run("embed", "--model", "other")[0].startswith("4 chunks embedded with other: ")
    assert "meaning: other serves; other has all chunks\n" in run("status")[0]
    (place / "zoo" / "more.md").write_text(ZOO["dogs.md"])
    run("add", "zoo")
    assert run("embed")[0].startswith("0 chunks embedded with other: ")
    assert "Did you mean 'deep'" in run("embed", "--model", "depe", code=2)[1]


def test_wrong_arguments_name_the_nearest(place: Path, run: Run) -> None:
    """BAD_INPUTS: unknown → exit 2 with the nearest name; limits name their range."""
    run("add", "zoo")
    assert "Known: hybrid, keyword, semantic" in run("search", "dog", "--mode", "nonsense", code=2)[1]
    assert "Did you mean 'hybrid'" in run("search", "dog", "--mode", "hybird", code=2)[1]
    assert "is outside 1 to 1,000" in run("search", "dog", "-m", "semantic", "-n", "0", code=2)[1]
