"""Instant meaning: the static vectors, when they are written, and which model serves a search.

What takes its time is the tiny model of `test_embedding`, or a server; D20 and `test_light` use the bundled
models.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from mcp import Client

from quire.config import EmbedSettings
from quire.embed import weights
from quire.embed.base import packed, unpacked
from quire.embed.bert import Bert
from quire.embed.static import Static
from quire.errors import EmbeddingError, NoResults, SettingError
from quire.fusion import weight_of
from quire.ingest import prepare
from quire.ingest.report import Report
from quire.library import Library, embeddings
from quire.progress import Silent
from quire.stores import Filters, open_store
from quire.surfaces.mcp.server import Service
from quire.surfaces.threads import Deepening
from tests import test_vectors
from tests.mcp_client import call, parameters, talk
from tests.models_server import Models, closed_port
from tests.test_bert import MODEL, TEXT, words
from tests.test_embedding import (
    ZOO,
    Run,
    Tiny,
    asking,
    config,
    forget_instant,
    many,
    matches,
    models,
    opened,
    paths,
    place,
    run,
    served,
    tinies,
    tiny,
)

if TYPE_CHECKING:
    from quire.embed.base import Vectors

__all__ = ["models", "place", "run", "tinies", "tiny"]  # fixtures
pytestmark = pytest.mark.usefixtures("place")

STATIC = Static()

# -------------------------------------------------------------------------------------------------- vectors


def summed(text: str) -> Vectors:
    """The sum of the rows of a text's pieces, with length 1, row by row."""
    rows = np.load(MODEL / "static.npy", mmap_mode="r")[words().pieces(text)]
    scales = np.ascontiguousarray(rows[:, :4]).view(np.float32)
    found: Vectors = (scales * rows[:, 4:].view(np.int8)).sum(axis=0)
    return found / np.linalg.norm(found)


ASCII = st.text(st.characters(max_codepoint=127))


@given(st.one_of(ASCII, TEXT, st.text()))
def test_a_vector_is_the_sum_of_the_vectors_of_its_pieces(text: str) -> None:
    """Issue: a vector for each word piece, summed. ASCII is cut by faster code, with the same pieces."""
    if words().pieces(text):
        np.testing.assert_allclose(STATIC.embed_query(text), summed(text), atol=1e-5)


@effort(max_examples=30)
@given(st.lists(st.one_of(ASCII, TEXT), max_size=5))
def test_any_texts_have_vectors_of_length_1_each_its_own(texts: list[str]) -> None:
    """Any text has a vector, an empty one too; the rest of a batch does not show in it."""
    together = STATIC.embed_documents(texts)
    assert together.shape == (len(texts), 256)
    assert together.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    for text, vector in zip(texts, together, strict=True):
        np.testing.assert_allclose(STATIC.embed_query(text), vector, atol=1e-6)


def test_many_texts_have_the_vectors_of_each() -> None:
    """They are summed some at a time."""
    texts = [f"The {n} fish swims, é{n}." for n in range(150)]
    alone = np.stack([STATIC.embed_query(text) for text in texts])
    np.testing.assert_allclose(STATIC.embed_documents(texts), alone, atol=1e-6)
    assert (STATIC.name, STATIC.dimension) == ("static", 256)


def test_near_meanings_are_near() -> None:
    """Synonyms and relatives are nearer than what has nothing to do with a question."""
    for question, near, far in (
        ("JavaScript UI framework", "a library for building user interfaces", "carrots and an onion"),
        ("How do I undo a release?", "rolling back a deployment", "the tide comes in twice a day"),
        ("automobile", "a car with four wheels", "a boat floats on water"),
    ):
        close, distant = STATIC.embed_documents([near, far]) @ STATIC.embed_query(question)
        assert close > distant + 0.1, question


def test_it_knows_only_english() -> None:
    """Its words are those of an English model."""
    assert STATIC.knows("delete network policies")
    assert not STATIC.knows("Netzwerkrichtlinien löschen")


NUMBERS = st.floats(-1, 1, width=32).map(lambda number: number if abs(number) > 0.001 else 0.0)


@given(arrays.arrays(np.float32, st.tuples(st.integers(0, 4), st.integers(1, 9)), elements=NUMBERS))
def test_packing_rounds_once(vectors: Vectors) -> None:
    """A byte for each number: no number is further off than half a step; packed again, nothing changes."""
    found = unpacked(packed(vectors), vectors.shape[1])
    steps = np.abs(vectors).max(axis=1, keepdims=True) / 127
    assert found.shape == vectors.shape
    assert (np.abs(found - vectors) <= 0.501 * steps).all()
    assert packed(found) == packed(vectors)


# -------------------------------------------------------------------------------- written with the words


def test_vectors_are_written_in_the_transaction_of_the_words(
    library_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue: the same transaction. Nobody sees words without vectors, and a failure leaves neither."""
    with (
        closing(open_store(library_url, create=True)) as store,
        closing(open_store(library_url)) as other,
    ):
        vectors: Any = store.vectors  # type: ignore[attr-defined]
        write, seen = vectors.add_instant, list[tuple[int, int]]()

        def look(*args: Any) -> None:
            write(*args)
            counts = other.counts()
            seen.append((counts.chunks, counts.instant))

        monkeypatch.setattr(vectors, "add_instant", look)
        store.write([test_vectors.prepared("a.md", "one fish", "two birds")])
        assert (seen, other.counts().chunks, other.counts().instant) == ([(0, 0)], 2, 2)

        def fail(*args: Any) -> None:
            write(*args)
            raise RuntimeError

        monkeypatch.setattr(vectors, "add_instant", fail)
        with pytest.raises(RuntimeError):
            store.write([test_vectors.prepared("a.md", "three cats"), test_vectors.prepared("b.md", "x")])
        monkeypatch.setattr(vectors, "add_instant", write)
        assert [row.path for row in store.documents(Filters())] == ["a.md"]
        test_vectors.assert_instant_vectors(store)
        assert store.check() == []


def test_what_is_kept_in_any_way_has_its_vector(library_url: str, place: Path) -> None:
    """Issue: nothing is pending, the same for memories; an edit, a rename and a removal keep that so."""
    with opened(library_url, config("static")) as library:
        library.add(place / "zoo")
        library.add(content="# Okapi\n\nIt eats leaves.\n", path="okapi.md")
        library.remember("The user prefers tea to coffee.")
        library.learn("Green tea steeps for two minutes.")
        (place / "zoo" / "cars.md").write_text(ZOO["cars.md"] + "\n## Brakes\n\nThey stop it.\n")
        (place / "zoo" / "dogs.md").rename(place / "zoo" / "hounds.md")
        (place / "zoo" / "boats.md").unlink()
        library.refresh(prune=True)
        status = library.status()
        assert (status.instant, status.model, status.serving) == (status.chunks, "", "static")
        test_vectors.assert_instant_vectors(library.store)
        assert library.recall("beverage he likes").results[0].snippet.startswith("The user")
        assert paths(library.search("canine", mode="semantic"))[0] == "hounds.md"
        assert library.store.check() == []


def test_without_any_model_there_are_no_vectors(library_url: str, place: Path) -> None:
    """embed.model = "none" is words alone."""
    with opened(library_url, config("none")) as library:
        library.add(place / "zoo")
        library.remember("The user prefers tea.")
        assert (library.store.models(), library.status().serving) == ([], "")
        assert library.search("dog").model == ""


AGAIN: dict[str, Callable[[Library], object]] = {
    "add": lambda library: library.add(content="more", path="more.md"),
    "refresh": lambda library: library.refresh(),
    "embed": lambda library: library.embed(),
    "embed static": lambda library: library.embed("static"),
}


@pytest.mark.parametrize("how", AGAIN)
def test_libraries_of_older_versions_get_theirs(library_url: str, place: Path, tiny: Tiny, how: str) -> None:
    """Issue: at the next add, refresh or embed; what such a library has serves until then."""
    with opened(library_url) as library:
        library.add(place / "zoo")
        forget_instant(library.store)
        found = library.search("dog")
        assert (found.model, found.notes, library.status().instant) == ("tiny", (), 0)
        AGAIN[how](library)
        assert library.status().instant == library.status().chunks
        test_vectors.assert_instant_vectors(library.store)
        assert library.store.check() == []
        assert library.search("dog").model == "tiny"


def test_a_library_made_without_a_model_gets_its_vectors_later(library_url: str, place: Path) -> None:
    """It was added with embed.model = "none"; then that is changed."""
    with opened(library_url, config("none")) as library:
        library.add(place / "zoo")
    with opened(library_url, config("static")) as library:
        with pytest.raises(NoResults, match=r"Nothing is embedded yet\. Embed the library with: quire embed"):
            library.search("automobile", mode="semantic")
        assert library.embed().embedded == 4
        assert library.embed().embedded == 0
        assert paths(library.search("automobile", mode="semantic"))[0] == "cars.md"


# ----------------------------------------------------------------------------------- which model serves


def asked_models(library: Library, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of the models whose vectors are compared from now on."""
    names = set[str]()

    def watch(method: str) -> None:
        compare = getattr(library.store, method)

        def compared(model: Any, *args: Any) -> Any:
            names.add(model.name)
            return compare(model, *args)

        monkeypatch.setattr(library.store, method, compared)

    for method in ("search_vectors", "search_documents", "cosines"):
        watch(method)
    return names


@pytest.mark.parametrize(("refused", "serves"), [(1, "tiny"), (2, "static")])
def test_a_model_serves_with_98_percent_of_its_vectors(
    library_url: str, place: Path, tiny: Tiny, monkeypatch: pytest.MonkeyPatch, refused: int, serves: str
) -> None:
    """Issue: at least 98 % of the chunks in a search's scope, else static; two models are never mixed."""
    tiny.refuses, folder = "rare", many(place / "pages", 50)
    for number in range(refused):
        with (folder / f"{number:04}.md").open("a") as file:
            file.write("rare\n")
    with opened(library_url) as library:
        assert len(library.add(folder, collection="pages").failed) == refused
        library.add(content="A page about tea.", path="tea.md", collection="drinks")
        names = asked_models(library, monkeypatch)
        for mode in ("hybrid", "semantic"):
            for wanted, filters in (
                (serves, {"collection": "pages"}),
                ("tiny", {"collection": "drinks"}),
                ("tiny", {"paths": ["0009.md", "tea.md"]}),
                ("static", {"paths": ["0000.md", "0009.md", "tea.md"]}),
            ):
                names.clear()
                found = library.search("page", mode=mode, **filters)
                assert found.results
                assert (found.model, names, found.notes) == (wanted, {wanted}, ())
        assert library.status().serving == ("tiny" if refused == 1 else "static")
        assert library.search("page", collection="pages", mode="keyword").model == ""


def test_the_share_of_no_chunks_is_whole(library_url: str, place: Path, tiny: Tiny) -> None:
    """Filters that leave nothing ask for no other model."""
    tiny.refuses = "barks"
    with opened(library_url) as library:
        library.add(place / "zoo")
        model, instant = library.store.models()
        shares = {
            (): 0.75,
            ("cars.md",): 1.0,
            ("dogs.md",): 0.0,
            ("no.md",): 1.0,
            ("cars.md", "dogs.md"): 2 / 3,
        }
        for only, share in shares.items():
            assert library.store.embedded_share(model, Filters(paths=only)) == pytest.approx(share)
            assert library.store.embedded_share(instant, Filters(paths=only)) == 1.0


def test_a_cosine_is_that_of_the_model_that_serves(library_url: str, place: Path, tiny: Tiny) -> None:
    """Two models are never mixed in one ranking: what a result says of its meaning is of one."""
    tiny.refuses = "barks"
    with opened(library_url) as library:
        library.add(place / "zoo")
        for served_by in (STATIC, tiny):
            model = next(model for model in library.store.models() if model.name == served_by.name)
            found = library.search("a car at night on water", explain=True)
            assert found.model == served_by.name
            vector = served_by.embed_query("a car at night on water")
            for result in found.results:
                rows = [library.document(result.path).seq << 20]  # type: ignore[union-attr]
                cosines = library.store.cosines(model, vector, [rows[0], rows[0] + 1]).values()
                for hit in result.explain["hits"]:
                    assert min(abs(hit["meaning"] - one) for one in cosines) < 0.002
            tiny.refuses = ""
            library.embed()


def test_static_may_be_chosen(library_url: str, place: Path, tiny: Tiny) -> None:
    """embed.model = "static": nothing else is embedded or asked, whatever a library has."""
    with opened(library_url) as library:
        library.add(place / "zoo")
        tiny.texts.clear()
    with opened(library_url, config("static")) as library:
        assert library.add(content="A feline sleeps.", path="nap.md").failed == []
        found = library.search("feline nap", mode="semantic")
        assert (found.model, found.notes, paths(found)[0]) == ("static", (), "nap.md")
        assert (library.status().serving, tiny.texts, tiny.questions) == ("static", [], [])


def test_each_model_has_a_weight_of_its_own(library_url: str, place: Path, tiny: Tiny) -> None:
    """`search.meaning` is unset: the cosines of each model count as much as was measured for it."""

    def scores(model: str, **search: float) -> list[float]:
        with opened(library_url, config(model, **search)) as library:
            library.add(place / "zoo")
            found = library.search("car dog")
            assert found.model == model
            return [result.score for result in found.results]

    assert weight_of("static") != weight_of("deep")
    for model in ("tiny", "static"):
        assert scores(model) == scores(model, meaning=weight_of(model))
        assert scores(model) != scores(model, meaning=weight_of(model) + 1)
    for wrong in ("much", -1.0, None):
        with pytest.raises(SettingError, match="meaning"):
            config("static", meaning=wrong)


def retired(library: Library, place: Path) -> None:
    """Make a library as an older version embedded it: with minilm, and no instant vectors."""
    library.add(place / "zoo", embed=False)
    store = library.store
    old = store.model("minilm", 384)
    store.write_vectors(old, chunks := store.unembedded(old, 10), np.eye(len(chunks), 384, dtype=np.float32))


@pytest.mark.parametrize("model", ["", "minilm"])
def test_a_library_of_the_retired_model_is_searched_with_static(
    library_url: str, place: Path, model: str
) -> None:
    """`minilm` was the model of older versions: static or words serve, and embedding is with deep."""
    with opened(library_url, config(model)) as library:
        retired(library, place)
        told = "minilm: was the model of older versions. Embed with its successor: quire embed --model deep"
        found = library.search("automobile")
        assert (found.model, found.notes) == ("static", (f"Searched with static. {told}",))
        assert paths(found)[0] == "cars.md"
        forget_instant(library.store)
        found = library.search("dog")
        assert (found.mode, found.notes) == ("keyword", (f"Searched by words only. {told}",))
        done = library.embed()
        assert (done.model, done.embedded, done.searched_with) == ("deep", 4, "deep")
        assert [one.name for one in library.store.models()] == ["deep", "static"]
        assert (library.search("automobile").model, library.search("automobile").notes) == ("deep", ())
        assert library.add(content="A feline sleeps.", path="nap.md").failed == []
        assert library.store.check() == []


# ------------------------------------------------------------------------------------ damaged weights


@pytest.fixture
def damage(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[str], None]]:
    """Makes a file of the models another than was released, from now on."""

    def damage(name: str) -> None:
        monkeypatch.setitem(weights.SHA256, name, "0" * 64)
        weights.weights.cache_clear()
        prepare._static.cache_clear()

    yield damage
    monkeypatch.undo()
    weights.weights.cache_clear()
    prepare._static.cache_clear()


def test_weights_are_those_that_were_released(damage: Callable[[str], None]) -> None:
    """Issue: the SHA-256 is compared on loading; the error names the file and what to do."""
    assert weights.weights("static.npy") == MODEL / "static.npy"
    for name, model in (
        ("static.npy", Static()),
        ("deep.onnx", Bert(EmbedSettings())),
        ("vocab.txt", Static()),
    ):
        damage(name)
        with pytest.raises(EmbeddingError, match=rf"model/{name} is damaged: .* Install Quire again: pip"):
            model.embed_query("a fish")


def test_weights_that_are_missing_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is not there is named too."""
    monkeypatch.setattr(weights, "_FOLDER", tmp_path)
    with pytest.raises(EmbeddingError, match=r"static\.npy cannot be read: No such file .* Install Quire"):
        weights.weights.__wrapped__("static.npy")


def test_a_damaged_table_costs_only_instant_meaning(
    library_url: str, place: Path, damage: Callable[[str], None]
) -> None:
    """Words go on, and the reason is said: in a search, and in the report of what is added."""
    with opened(library_url, config("static")) as library:
        library.add(place / "zoo")
    damage("static.npy")
    with opened(library_url, config("static")) as library:
        found = library.search("dog")
        assert (found.mode, paths(found)) == ("keyword", ["dogs.md"])
        assert "static.npy is damaged" in found.notes[0]
        with pytest.raises(EmbeddingError, match=r"static\.npy is damaged"):
            library.search("dog", mode="semantic")
        report = library.add(content="A feline sleeps.", path="nap.md")
        assert report.added == 1
        assert ["static.npy is damaged" in failed.reason for failed in report.failed] == [True]
        assert paths(library.search("feline", mode="keyword")) == ["nap.md"]
        assert library.store.check() == []


def test_a_damaged_deep_model_leaves_instant_meaning(
    library_url: str, place: Path, damage: Callable[[str], None]
) -> None:
    """Static serves, and a note says why."""
    with opened(library_url, config("deep")) as library:
        library.add(place / "zoo")
    damage("deep.onnx")
    with opened(library_url, config("deep")) as library:
        for mode in ("hybrid", "semantic"):
            found = library.search("automobile", mode=mode)
            assert (found.model, paths(found)[0]) == ("static", "cars.md")
            assert "deep.onnx is damaged" in found.notes[0]


# ------------------------------------------------------------------------------- what is left for later


def test_a_server_that_is_down_from_the_start_is_the_reason(
    library_url: str, place: Path, models: Models
) -> None:
    """Issue: it is named in the report and in searches, and not that embed.model is none."""
    down = asking(f"http://127.0.0.1:{closed_port()}")
    with served(library_url, down) as library:
        report = library.add(place / "zoo")
        (failed,) = report.failed
        assert failed.source == "embedding"
        assert failed.reason.startswith("ollama/m: ")
        assert "Start it with: ollama serve" in failed.reason
        for mode in ("hybrid", "semantic"):
            found = library.search("automobile", mode=mode)
            assert (found.mode, found.model, paths(found)[0]) == (mode, "static", "cars.md")
            assert found.notes == (
                "Searched with static. ollama/m: nothing is embedded with it yet."
                " Embed the library with: quire embed",
            )
        assert library.status().serving == "static"
        forget_instant(library.store)
        with pytest.raises(NoResults, match=r"Nothing is embedded with ollama/m yet\. Embed the library"):
            library.search("automobile", mode="semantic")
        assert library.search("dog").notes[0].startswith("Searched by words only. ollama/m: nothing is")
    with served(library_url, asking(models.url)) as library:
        library.embed()
        assert (library.search("dog").model, library.search("dog").notes) == ("ollama/m", ())


KEPT: dict[str, Callable[[Library], object]] = {
    "add": lambda library: library.add(content="A feline sleeps.", path="nap.md"),
    "remember": lambda library: library.remember("A feline sleeps."),
    "learn": lambda library: library.learn("A feline sleeps."),
}


@pytest.mark.parametrize("how", KEPT)
def test_what_is_small_is_embedded_alone_beside_much_that_waits(
    library_url: str, place: Path, models: Models, how: str
) -> None:
    """Issue: `remember`, `learn` and small adds embed their own chunks only; all of it by `embed`."""
    with served(library_url, asking(models.url)) as library:
        library.add(many(place / "pages", 90), embed=False)
        assert (models.asked, library.status().embedded, library.status().instant) == ([], 0, 90)
        KEPT[how](library)
        texts = [text for texts in models.inputs for text in texts if text != "dimension"]
        assert [text.endswith("A feline sleeps.") for text in texts] == [True]
        status = library.status()
        assert (status.embedded, status.chunks, status.serving) == (1, 91, "static")
        assert library.embed().embedded == 90
        assert library.status().serving == "ollama/m"


def test_add_stops_embedding_what_would_take_long(
    library_url: str, place: Path, tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue: two batches tell how long it would take; the rest is left, and counted."""
    monkeypatch.setattr(embeddings, "_PATIENCE", 0.0)
    with opened(library_url) as library:
        report = library.add(many(place / "pages", 100))
        assert (report.pending, len(tiny.texts), report.failed) == (20, 80, [])
        assert report.pending_seconds > 0
        assert (library.status().embedded, library.status().serving) == (80, "static")
        assert library.refresh().pending == 0  # two batches do it
        assert (library.status().embedded, library.status().serving) == (100, "tiny")


def test_adding_says_what_is_left(place: Path, run: Run, tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue: `Searchable now. Deeper meaning: quire embed (about N minutes)`, in words and as JSON."""
    monkeypatch.setattr(embeddings, "_PATIENCE", 0.0)
    many(place / "pages", 100)
    out, err = run("add", "pages")
    assert out.startswith("100 added")
    assert "Searchable now. Deeper meaning: quire embed (about 1 minute)" in err
    assert "meaning: static serves; tiny has 80 of 100 chunks; static has all chunks" in run("status")[0]
    found = json.loads(run("search", "word7", "--json")[0])
    assert (found["model"], found["notes"]) == ("static", [])
    many(place / "more", 200)
    shown = json.loads(run("add", "more", "--json")[0])
    assert (shown["pending"], type(shown["pending_seconds"])) == (140, int)
    assert run("embed")[0].startswith("140 chunks embedded with tiny: ")
    assert "meaning: tiny serves; tiny has all chunks\n" in run("status")[0]


def test_embedding_can_be_left_out(place: Path, run: Run, tiny: Tiny) -> None:
    """`--no-embed`: what is new is searched with static until `quire embed`."""
    out, err = run("add", "zoo", "--no-embed")
    assert (out.startswith("3 added"), err, tiny.texts) == (True, "", [])
    found = json.loads(run("search", "automobile", "-m", "semantic", "--json")[0])
    assert (found["model"], found["results"][0]["path"]) == ("static", "cars.md")
    assert run("embed")[0].startswith("4 chunks embedded with tiny: ")
    assert json.loads(run("search", "automobile", "--json")[0])["model"] == "tiny"


# -------------------------------------------------------------------------------------- in the background


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_server_embeds_what_was_left_in_the_background(
    library_url: str, place: Path, tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue: servers do it; whatever is left when a server starts, and whatever it left itself."""
    monkeypatch.setattr("quire.surfaces.threads._BEFORE_WATCHING", 0.01)
    with opened(library_url) as library:
        library.add(place / "zoo", embed=False)
        background = Deepening(library_url, config())
        background.start()
        try:
            until(lambda: library.status().embedded == 4)
            library.add(content="A feline sleeps.", path="nap.md", embed=False)
            background.wake()
            until(lambda: library.status().embedded == 5)
        finally:
            background.stop()
        assert matches(library.search("cat"))["nap.md"] == "semantic"
        assert library.search("cat").model == "tiny"


def test_the_background_ends_between_two_batches(
    library_url: str, place: Path, tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was embedded stays; the end of a server does not wait for the rest."""
    monkeypatch.setattr("quire.surfaces.threads._BEFORE_WATCHING", 0.01)
    monkeypatch.setattr("quire.embedding._BATCH", 10)
    begun, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        go_on.wait(30)

    tiny.breaks = wait
    with opened(library_url) as library:
        library.add(many(place / "pages", 40), embed=False)
        background = Deepening(library_url, config())
        background.start()
        assert begun.wait(30)
        background._ended.set()
        background._job.stop.set()
        go_on.set()
        background._thread.join(30)
        assert not background._thread.is_alive()
        assert library.status().embedded == 10
        assert library.store.check() == []


def test_watching_embeds_everything_however_long_it_takes(
    library_url: str, place: Path, tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue: `quire watch` does it in the background: nobody waits for it."""
    monkeypatch.setattr(embeddings, "_PATIENCE", 0.0)
    with opened(library_url) as library:
        library.add(many(place / "pages", 100), embed=False)
        with library._another() as (_, embed):
            embed(Report(), Silent())
        assert (library.status().embedded, library.status().serving) == (100, "tiny")


def test_an_mcp_server_embeds_what_was_left(place: Path, models: Models) -> None:
    """The same of a whole server, in a process of its own; one that only reads leaves it."""
    with served(place / "l.db", asking(models.url)) as library:
        library.add(place / "zoo", embed=False)

    async def until_embedded(client: Client) -> None:
        with anyio.fail_after(30):
            while (await call(client, "status")).structured_content["embedded"] < 4:
                await anyio.sleep(0.05)

    options = {"QUIRE_EMBED_MODEL": "ollama/m", "QUIRE_EMBED_URL": models.url}
    talk(parameters(place, "--root", str(place / "zoo"), **options), until_embedded)
    assert Service(str(place / "l.db"), config(), read_only=True).background == []


def test_a_model_that_cannot_be_used_is_no_file_that_failed(
    library_url: str, place: Path, models: Models
) -> None:
    """Every file is in: the line counts none as failed, and the time includes the attempts."""
    from quire.surfaces import render

    with served(library_url, asking(f"http://127.0.0.1:{closed_port()}")) as library:
        report = library.add(place / "zoo")
        assert "failed" not in render.report_line(report)
        assert (render.report_code(report), [one.source for one in report.failed]) == (
            render.PARTLY,
            ["embedding"],
        )


def test_a_refresh_may_leave_embedding_for_later(library_url: str, place: Path, tiny: Tiny) -> None:
    """As adding may: static serves until then."""
    with opened(library_url) as library:
        library.add(place / "zoo", embed=False)
        (place / "zoo" / "new.md").write_text("# New\n\nA tapir.\n")
        assert library.refresh(embed=False).added == 1
        assert library.status().serving == "static"
        library.refresh()
        assert library.status().serving == tiny.name
