"""Reading the best results again: the cross-encoder, what it adds, and what happens without it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire import reranking
from quire.config import override
from quire.embed import cross as weights
from quire.embed import weights as bundled
from quire.embed.cross import CrossEncoder
from quire.errors import Damaged, EmbeddingError
from quire.library import Library
from quire.reranking import WEIGHT, reordered
from quire.result import Hit
from quire.stores import ChunkRow
from quire.surfaces.mcp import reading
from tests.commands import run
from tests.words import WORDS

ASKED = "how do I roll back a release?"
UNDO = "Every release is kept. To roll back, type `lamp use 41`: that restores release 41 within a second."
ANSWER = f"Lamp\n{UNDO}"
OTHERS = ("Lamp > Install\npip install lamp", "Soup\nTwo carrots, an onion and an hour on a low flame.")
PAGES = {
    "wolves.md": "# Release of wolves\n\nThe crates roll back, and the wolves run.\n",
    "undo.md": f"# Lamp\n\n{UNDO}\n",
    "parts.md": "# Parts\n\nAn older lamp has a switch on its back.\n",
}


@cache
def cross() -> CrossEncoder:
    """The model, loaded once in each process."""
    return CrossEncoder()


@pytest.fixture
def library(library_url: str) -> Iterator[Library]:
    with Library.open(library_url, create=True, config=WORDS) as opened:
        for path, text in PAGES.items():
            opened.add(content=text, path=path, collection="lamp")
        opened._cross = cross()
        yield opened


# ------------------------------------------------------------------------------------------ the model


def test_a_passage_that_answers_has_the_largest_logit() -> None:
    found = cross().logits(ASKED, [*OTHERS, ANSWER])
    assert found[2] == max(found)
    assert found[2] - max(found[:2]) > 2


def test_a_logit_depends_on_nothing_else_that_is_read() -> None:
    """Each row is run alone: the int8 model picks its scales by its input."""
    texts = [ANSWER, *OTHERS, ANSWER * 50, ANSWER]
    together = cross().logits(ASKED, texts)
    alone = []
    for text in texts:
        cross().logits("something else", [])  # it remembers the logits of one question only
        alone += cross().logits(ASKED, [text])
    assert together == alone
    assert cross().logits("something else", []) == []


@pytest.mark.parametrize("question", ["undo", "undo " * 100])
@pytest.mark.parametrize("passage", ["", "keep it", "keep it " * 200])
def test_rows_are_those_of_training(question: str, passage: str) -> None:
    """training/train.py: `both` puts a question of at most 64 tokens and a passage in one row."""
    words = cross()._words
    asked = [101, *words.pieces(question)[:62], 102]
    read = [101, *words.pieces(passage)[:254], 102]
    row = cross()._row(question, passage)
    assert row == [*[*asked, *read[1:]][: weights._ROW - 1], 102]
    assert len(row) <= weights._ROW


def test_making_one_loads_nothing(library: Library) -> None:
    made = CrossEncoder()
    library._cross = made
    assert library.search(ASKED).results
    assert made.__dict__.keys() == {"_last"}


@pytest.fixture
def damaged(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Weights that are not those that Quire came with."""
    monkeypatch.setitem(bundled.SHA256, "cross.onnx", "0" * 64)
    bundled.weights.cache_clear()
    yield
    bundled.weights.cache_clear()


@pytest.mark.usefixtures("damaged")
def test_weights_of_others_are_refused() -> None:
    with pytest.raises(EmbeddingError, match=r"cross\.onnx is damaged.*Install Quire again"):
        CrossEncoder().logits(ASKED, [ANSWER])


# -------------------------------------------------------------------------------------------- the order

SCORES = st.lists(st.floats(0, 5), min_size=1, max_size=30)
LOGITS = st.lists(st.floats(-12, 12), min_size=1, max_size=30)


@given(SCORES, LOGITS)
def test_the_best_are_put_in_order_and_stay_before_the_others(
    scores: list[float], logits: list[float]
) -> None:
    """Score + 0.1 × logit decides among hits that were read; none is lost, and no score falls."""
    hits = [Hit(at, 0, at, score) for at, score in enumerate(sorted(scores, reverse=True))]
    read = min(len(hits), len(logits))
    found = reordered(hits, logits[:read])
    assert sorted(hit.chunk for hit in found[:read]) == list(range(read))
    assert [hit.chunk for hit in found[read:]] == list(range(read, len(hits)))
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
    sums = [hits[hit.chunk].score + WEIGHT * logits[hit.chunk] for hit in found[:read]]
    assert sums == pytest.approx(sorted(sums, reverse=True))
    assert all(hit.score == hits[hit.chunk].score + hit.added for hit in found)
    assert all(hit.added >= 0 for hit in found)


def test_a_damaged_chunk_is_read_as_nothing() -> None:
    class Broken:
        def section(self, row: int, position: int) -> None:
            raise Damaged("library", "a.md")

    chunk = ChunkRow(1, 1, 1, 0, 0, 9, 0, 9, 1, 1, 2, "", "")
    assert reranking._text(Broken(), chunk) == ""  # type: ignore[arg-type]


# -------------------------------------------------------------------------------------------- searching


def test_what_answers_comes_first_though_its_words_are_others(library: Library) -> None:
    """Issue: the best results are read again, in any mode."""
    assert library.search(ASKED).results[0].path != "undo.md"
    found = library.search(ASKED, rerank=True, explain=True)
    assert found.results[0].path == "undo.md"
    assert found.notes == library.search(ASKED).notes
    told = {result.path: result.explain["hits"][0] for result in found.results}
    least = min(hit["logit"] for hit in told.values())
    for hit in told.values():
        assert hit["added"] == pytest.approx(WEIGHT * (hit["logit"] - least), abs=1e-3)
    assert library.context(ASKED, rerank=True).passages[0].path == "undo.md"


def test_the_setting_counts_unless_a_call_says_otherwise(library: Library) -> None:
    plain = library.search(ASKED)
    library.config = override(library.config, {"search": {"rerank": True}})
    assert library.search(ASKED).results[0].path == "undo.md"
    assert library.search(ASKED, rerank=False) == plain


def test_memories_are_read_again_too(library: Library) -> None:
    for text in PAGES.values():
        library.remember(text)
    library.config = override(library.config, {"search": {"rerank": True}})
    assert "lamp use 41" in library.recall(ASKED).results[0].snippet


@pytest.mark.parametrize("problem", ["onnxruntime", "weights"])
def test_without_the_model_results_stay_as_they_were(
    library: Library, problem: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A note says why."""
    library._cross = CrossEncoder()
    if problem == "onnxruntime":
        monkeypatch.setitem(sys.modules, "onnxruntime", None)
        why = "needs onnxruntime, which is not installed: pip install onnxruntime"
    else:
        request.getfixturevalue("damaged")
        why = "cross.onnx is damaged"
    plain, found = library.search(ASKED), library.search(ASKED, rerank=True)
    assert found.results == plain.results
    assert [note for note in found.notes if note not in plain.notes] == [found.notes[-1]]
    assert found.notes[-1].startswith("Not read again. ")
    assert why in found.notes[-1]


def test_a_language_that_the_model_does_not_know_is_not_read_again(library: Library) -> None:
    asked = "wie kann ich eine ältere Version von lamp wieder bekommen"
    plain, found = library.search(asked), library.search(asked, rerank=True)
    assert found.results == plain.results
    assert found.notes[-1] == "Not read again: the cross-encoder does not know the language of this query."


def test_the_command_line_has_it(tmp_path: Path) -> None:
    for path, text in PAGES.items():
        (tmp_path / path).write_text(text)
    run(tmp_path, "add", ".")
    for options, wanted in (("--rerank", True), ("", True), ("--no-rerank", False)):
        args = ["search", ASKED, "--json", *options.split()]
        found = json.loads(run(tmp_path, *args, QUIRE_SEARCH_RERANK=str(options != "--rerank"))[0])
        assert (found["results"][0]["path"] == "undo.md") == wanted
    pack = json.loads(run(tmp_path, "context", ASKED, "--rerank", "--format", "json")[0])
    assert pack["passages"][0]["path"] == "undo.md"


# -------------------------------------------------------------------------------------------- over MCP


@pytest.mark.parametrize("is_reread", [False, True])
def test_context_over_mcp_reads_the_best_again_if_that_is_set(library: Library, is_reread: bool) -> None:
    library.config = override(library.config, {"search": {"rerank": is_reread}})
    assert first_of_pack(library) == ("undo.md" if is_reread else "wolves.md")


def first_of_pack(library: Library) -> str:
    """The document of the first passage that an agent gets."""
    text = reading.context(library, reading.ContextArguments(query=ASKED)).text
    return min(PAGES, key=lambda path: text.find(path) if path in text else len(text))
