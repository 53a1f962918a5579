"""What headings, words and whole documents add to a ranking, and how sure an answer is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quire import embedding, query, searcher
from quire.confidence import (
    LEAST_COVERS,
    UNRELATED,
    Evidence,
    Judge,
    confidence,
    evidence,
    is_related,
    relation,
)
from quire.config import DEFAULT, override
from quire.context import NO_GOOD_MATCH
from quire.library import Library
from quire.meaning import Meaning
from quire.rank import QueryTerms, is_question
from quire.stores import Filters
from tests.commands import run
from tests.test_embedding import Tiny
from tests.words import WORDS

ANIMALS = ("okapi", "quokka", "numbat", "tapir")


@pytest.fixture
def library(library_url: str) -> Iterator[Library]:
    with Library.open(library_url, create=True, config=WORDS) as opened:
        yield opened


def add(library: Library, **documents: str) -> None:
    for path, text in documents.items():
        library.add(content=text, path=f"{path}.md", collection="zoo")


def paths(library: Library, asked: str, **options: object) -> list[str]:
    return [result.path for result in library.search(asked, **options).results]  # type: ignore[arg-type]


def test_a_document_with_all_words_far_apart_is_above_those_with_one(library: Library) -> None:
    """Issue: one more entry for each document; today such a document is the last of 17."""
    filler = "Plain text about something else, which goes on for a while. " * 30
    for number in range(16):
        animal = ANIMALS[number % 4]
        add(library, **{f"short{number}": f"# Note {number}\n\nThe {animal} {animal} {animal} sleeps.\n"})
    apart = "".join(f"## Part {n}\n\n{filler} One {animal} was seen.\n\n" for n, animal in enumerate(ANIMALS))
    add(library, long=f"# Report\n\n{apart}")
    assert paths(library, " ".join(ANIMALS), limit=30)[0] == "long.md"
    assert paths(library, "okapi")[0] != "long.md"


def test_a_document_that_is_nearer_as_a_whole_than_any_chunk_is_first(library_url: str) -> None:
    """No word of the query is in any document. A chunk of the other one is nearer than any of its chunks."""
    halves = "".join(f"## {word}\n\n{word} {word}\n\n" for word in ("car", "dog"))
    with Library.open(library_url, create=True, config=WORDS) as library:
        add(library, half="car car dog boat cat\n", whole=halves)
        tiny = Tiny(dimension=97)  # large enough for each word to have a number of its own
        embedding.embed(library.store, tiny)
        meaning = Meaning(library.store.models()[0], tiny, "")
        settings = replace(DEFAULT.search, document_evidence=0, min_aggregation_matches=9)
        found = searcher.search(library.store, "automobile canine", Filters(), settings, meaning)
        assert found.results[0].path == "whole.md"


def test_documents_far_apart_are_found_within_filters_only(library: Library) -> None:
    add(library, **{f"short{n}": f"# Note {n}\n\nThe {ANIMALS[n % 4]} sleeps.\n" for n in range(8)})
    add(library, long="".join(f"# {n}\n\nText with {animal}.\n\n" for n, animal in enumerate(ANIMALS)))
    asked = " ".join(ANIMALS)
    assert "long.md" not in paths(library, asked, paths=["short"])
    assert "long.md" not in paths(library, f"{asked} -path:long")
    assert paths(library, asked, paths=["long"])[0] == "long.md"


def test_a_heading_that_is_asked_for_is_above_text_that_repeats_its_words(library: Library) -> None:
    text = "Rolling back is done by rolling back; the deployment of a deployment is a deployment. " * 3
    add(library, other=f"# Other\n\n{text}\n", right="# Rolling back a deployment\n\nType one command.\n")
    assert paths(library, "Rolling back a deployment. See there for how it is done.")[0] == "right.md"


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("how do I roll back", True),
        ("roll back", False),
        ("Can I unlock it?", True),
        ("pods evicted?", True),
        ("whatever", False),
        ("island", False),
        ("クラスタとは何ですか？", True),
    ],
)
def test_questions_are_told_from_names(text: str, asks: bool) -> None:
    assert is_question(text) == asks


def test_rare_terms_tell_more(library: Library) -> None:
    add(library, **{f"d{n}": f"# D\n\nThe cow eats.{' A tapir too.' if n == 3 else ''}\n" for n in range(9)})
    terms = QueryTerms.of(library.store, query.parse("the cow and a tapir unicorns"))
    assert terms.counts == {"cow": 9, "tapir": 1, "unicorn": 0}
    assert terms.weights["cow"] < terms.weights["tapir"] < terms.weights["unicorn"]
    assert terms.known == ["cow", "tapir"]
    assert 0 < terms.share(["cow"]) < terms.share(["cow", "tapir"]) < 1


def test_words_that_are_nowhere_do_not_hide_common_ones(library: Library) -> None:
    """A name that no document has, beside a word that most have, still finds the word."""
    pages = {
        f"d{n}": f"# D{n}\n\n" + "".join(f"## P{m}\n\nThe pod.\n\n" for m in range(60)) for n in range(40)
    }
    add(library, **pages)  # enough chunks for common words
    assert library.search("Zalando pod").results
    assert not library.search("Zalando the").results


def test_what_a_whole_document_has_is_no_bad_match(library: Library) -> None:
    add(library, **{f"short{n}": f"# Note {n}\n\nThe {ANIMALS[n % 4]} sleeps.\n" for n in range(8)})
    add(library, long="".join(f"# Part {n}\n\nText with {animal}.\n\n" for n, animal in enumerate(ANIMALS)))
    assert library.search(" ".join(ANIMALS)).good_match
    assert library.search("sleep*").good_match


@pytest.mark.parametrize(
    "typed",
    [
        ["kubectl", "apply", "-f"],
        ["tar", "-xzf", "apply"],
        ["rm", "-rf", "apply"],
        ["-tag:draft", "apply"],
        ["apply", "-heading:zebra"],
        ["apply", '-"not this"'],
    ],
)
def test_commands_are_typed_as_queries(tmp_path: Path, typed: list[str]) -> None:
    """Issue: a query needs no quotes; a misspelt option is still an error, which says what to do."""
    (tmp_path / "a.md").write_text("# A\n\nkubectl apply -f file; tar -xzf\n")
    run(tmp_path, "add", "a.md")
    run(tmp_path, "search", *typed)
    assert "put the query in quotes" in run(tmp_path, "search", "git", "push", "--force", code=2)[1]


# ------------------------------------------------------------------------------------------ confidence

SHARES = st.floats(0, 1)
EVIDENCE = st.builds(Evidence, SHARES, st.floats(-1, 1), SHARES, SHARES, SHARES, st.integers(0, 70))


@given(EVIDENCE, st.sampled_from(Judge))
def test_confidence_is_a_chance_and_agrees_with_its_word(found: Evidence, judge: Judge) -> None:
    chance, strength = confidence(found, judge)
    assert 0 <= chance <= 1
    assert strength in ("strong", "weak", "none")
    assert (strength == "none") == (not is_related(found, judge))
    if strength == "none":
        assert chance <= UNRELATED


@given(EVIDENCE, SHARES, st.sampled_from(Judge))
def test_more_of_the_words_never_makes_less_sure(found: Evidence, more: float, judge: Judge) -> None:
    better = found._replace(covers=max(found.covers, more))
    assert confidence(better, judge)[0] >= confidence(found, judge)[0]


def test_noise_has_nothing_to_do_with_a_query() -> None:
    """Gibberish comes near some vectors, though no word of it is anywhere."""
    assert relation(Evidence(0.0, 0.44, 1, 1, 1), 2.0) == 0
    assert relation(Evidence(0.0, 0.6, 1, 1, 1), 2.0) > 0
    assert relation(Evidence(LEAST_COVERS, 0.1, 1, 1, 1), 2.0) > 0
    assert relation(Evidence(0.3, 0.0, 1, 1, 1, words=3), 0.0) == 0
    assert relation(Evidence(0.3, 0.0, 1, 1, 1, words=9), 0.0) > 0


def test_the_cosines_of_other_models_alarm_nobody() -> None:
    assert confidence(Evidence(0.0, 0.1, 1, 0, 0), Judge.UNKNOWN)[1] == "weak"


def test_evidence_compares_results() -> None:
    first, second = evidence([(1.0, 0.5), (0.5, 0.2)], [2.0, 1.0])
    assert first == Evidence(1.0, 0.5, 1.0, 0.5, 0.5)
    assert second == Evidence(0.5, 0.2, 0.5, 0.5, 0.5)
    assert evidence([], []) == []
    assert evidence([(0.0, 0.0)], [0.0])[0].share == 1


def test_every_surface_says_first_that_nothing_matches_well(tmp_path: Path) -> None:
    """Issue: "No good match. Nearest: …", `"good_match": false` in JSON, and small context packs."""
    page = "# Notes\n\n" + "".join(
        f"## Part {n}\n\nThe nodes of part {n} are baked in.\n\n" for n in range(40)
    )
    (tmp_path / "notes.md").write_text(page)
    run(tmp_path, "add", "notes.md")
    asked = "how do I bake sourdough bread"
    assert run(tmp_path, "search", asked)[0].startswith(f"{NO_GOOD_MATCH}\n  1. ")
    found = json.loads(run(tmp_path, "search", asked, "--json")[0])
    assert found["good_match"] is False
    assert {result["strength"] for result in found["results"]} == {"none"}
    pack = run(tmp_path, "context", asked)[0]
    assert pack.startswith(f"{NO_GOOD_MATCH}\n\n## [1] ")
    assert pack.count("## [") <= 2
    shown = json.loads(run(tmp_path, "context", asked, "--format", "json")[0])
    assert shown["good_match"] is False
    assert 0 < shown["tokens"] < 150 < shown["max_tokens"]
    assert '<documents good_match="false">' in run(tmp_path, "context", asked, "--format", "xml")[0]
    good = json.loads(run(tmp_path, "search", "the nodes of part 7", "--json")[0])
    assert good["good_match"] is True
    assert NO_GOOD_MATCH not in run(tmp_path, "search", "the nodes of part 7")[0]


@settings(max_examples=25)
@given(st.integers(1, 200))
def test_a_pack_without_a_good_match_is_within_its_budget(budget: int) -> None:
    with Library.open(
        ":memory:", create=True, config=override(DEFAULT, {"embed": {"model": "none"}})
    ) as opened:
        opened.add(
            content="# A\n\nBaked in long ago, with much text around it.\n", path="a.md", collection="c"
        )
        found = opened.context("bake sourdough bread", max_tokens=budget)
    assert found.tokens <= budget
    assert not found.good_match
