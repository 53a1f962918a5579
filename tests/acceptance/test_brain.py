"""B1–B16: overlapping chunks for memories and knowledge, one test for each number."""

from __future__ import annotations

import json
import os
import sqlite3
import time
import uuid
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import quire
from tests import postgres
from tests.acceptance import meaning
from tests.acceptance.conftest import cli, config
from tests.commands import run

# Sentences of exactly 40 characters, ten tokens each.
FORTY = [f"Sentence {number:04} is forty characters long. " for number in range(400)]
LONG = "\n\n".join(f"Paragraph {n} is about topic{n}. " + "It goes on for a while. " * 20 for n in range(30))


def spans(text: str, **settings: Any) -> list[tuple[int, int]]:
    return [(chunk.start, chunk.end) for chunk in quire.chunk(text, "memory", **settings)]


def test_b1_chunks_have_index_text_and_tokens_of_800_and_15_percent() -> None:
    """B1: chunk() packs 800 tokens with an overlap of 15 % unless told otherwise: index, text, tokens."""
    text = "".join(FORTY)
    chunks = quire.chunk(text, "memory")
    step = 80 - 12  # sentences: 800 tokens, less 15 % of them
    assert [(c.index, c.text, c.tokens) for c in chunks] == [
        (n, "".join(FORTY[n * step : n * step + 80]), 600 if n == 5 else 800) for n in range(6)
    ]
    assert spans(text, max_tokens=100, overlap=0.5)[:3] == [(0, 400), (200, 600), (400, 800)]


def test_b2_paragraphs_come_first_then_sentences() -> None:
    """B2: a chunk ends where a paragraph ends, also one without a full stop; a long one at its sentences."""
    no_stops = "no full stop here\n\t\n" * 40  # paragraphs of 20 characters
    assert spans(no_stops, max_tokens=24, overlap=0) == [(at, at + 80) for at in range(0, 800, 80)]
    mixed = "one two three with no stop\n\nFour five six seven. Eight nine ten eleven. Twelve\n\nthirteen"
    assert [c.text for c in quire.chunk(mixed, "memory", max_tokens=7, overlap=0)] == [
        "one two three with no stop\n\n",
        "Four five six seven. ",
        "Eight nine ten eleven. ",
        "Twelve\n\nthirteen",
    ]


def test_b3_chunks_are_packed_greedily() -> None:
    """B3: a chunk takes every sentence that still fits its budget, and no other."""
    sentences = [f"{'Ab' * (n * 7 % 23 + 1)} ends. " for n in range(200)]
    packed, current = list[str](), ""
    for sentence in sentences:
        if len(current + sentence) > 4 * 50:
            packed.append(current)
            current = ""
        current += sentence
    chunks = quire.chunk("".join(sentences), "memory", max_tokens=50, overlap=0)
    assert [chunk.text for chunk in chunks] == [*packed, current]


def test_b4_each_chunk_begins_with_the_tail_of_the_last() -> None:
    """B4: neighbours share overlap × max_tokens: whole sentences, or words where the last one is longer."""
    text = "".join(FORTY)
    for size, overlap in ((800, 0.15), (200, 0.3), (100, 0.1)):
        found = spans(text, max_tokens=size, overlap=overlap)
        shared = [before[1] - after[0] for before, after in pairwise(found)]
        assert shared == [int(4 * size * overlap)] * (len(found) - 1)
    words = "word " * 1000  # one sentence
    for before, after in pairwise(quire.chunk(words, "memory", max_tokens=50, overlap=0.2)):
        assert 35 < before.end - after.start <= 40
        assert after.text.startswith("word")


def test_b5_a_sentence_over_the_budget_stands_alone() -> None:
    """B5: with oversize="keep" it is one chunk, exactly; by default it is cut, and no chunk is too large."""
    long = "word " * 400 + "end. "
    text = f"Short one. {long}Short two."
    assert [c.text for c in quire.chunk(text, "memory", max_tokens=100, overlap=0, oversize="keep")] == [
        "Short one. ",
        long,
        "Short two.",
    ]
    kept = quire.chunk(text, "memory", max_tokens=100, oversize="keep")
    assert [chunk.text for chunk in kept if chunk.tokens > 100] == [long]
    assert max(chunk.tokens for chunk in quire.chunk(text, "memory", max_tokens=100)) == 100


def test_b6_four_characters_are_a_token() -> None:
    """B6: the default estimate is a token for each four characters, rounded up."""
    tokens = [quire.chunk("x" * length, "memory")[0].tokens for length in range(1, 14)]
    assert tokens == [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4]
    assert [c.tokens for c in quire.chunk("ж" * 41, "memory")] == [11]  # characters, not bytes


def test_b7_a_chunk_has_a_record_of_its_own(library: quire.Library) -> None:
    """B7: A chunk has an id, its source's id and kind, an index, text, current words, and times in ms."""
    before = time.time_ns() // 1_000_000
    memory, fact = library.remember(LONG, name="long"), library.learn("The okapi sleeps.")
    after = time.time_ns() // 1_000_000
    chunks = library.chunks("memory:long")
    assert [chunk.index for chunk in chunks] == list(range(memory.chunk_count))
    assert [(chunk.start, chunk.end) for chunk in chunks] == spans(LONG)
    assert [chunk.text for chunk in chunks] == [LONG[start:end] for start, end in spans(LONG)]
    assert len({uuid.UUID(chunk.id) for chunk in chunks}) == len(chunks)
    for chunk in chunks:
        assert (chunk.document_id, chunk.kind, chunk.embedded) == (memory.id, "memory", False)
        assert before <= chunk.created_at <= chunk.updated_at <= after
        assert library.chunk(chunk.id) == chunk
    (only,) = library.chunks(fact.id)
    assert (only.document_id, only.kind, only.index, only.text) == (
        fact.id,
        "knowledge",
        0,
        "The okapi sleeps.",
    )
    # Nobody tells the index of words that an entry has changed.
    library.remember(LONG.replace("topic7.", "quaggas."), name="long")
    assert library.recall("topic7").results == ()
    (found,) = library.recall("quaggas").results
    assert "quaggas" in next(chunk.text for chunk in library.chunks(memory.id) if chunk.id in found.chunk_ids)


def test_b8_chunks_are_created_in_bulk(library: quire.Library) -> None:
    """B8: the chunks of a memory are written together: all of them, or none where one cannot be."""
    row = library.remember(LONG)
    assert row.chunk_count == len(quire.chunk(LONG, "memory")) > 4
    library.forget(row.id)
    _refuse_the_fourth_chunk(library.url)
    with pytest.raises(Exception, match="refused"):
        library.remember(LONG)
    counts = library.status()
    assert (counts.documents, counts.chunks, counts.sections) == (0, 0, 0)
    assert library.remember("Short.").chunk_count == 1
    assert library.recall("topic0").results == ()


def _refuse_the_fourth_chunk(url: str) -> None:
    """Let the database itself refuse it, as a full disk might."""
    if not url.startswith("postgresql:"):
        with sqlite3.connect(url) as database:
            database.execute(
                "CREATE TRIGGER refused BEFORE INSERT ON chunks WHEN new.id % 1048576 = 3"
                " BEGIN SELECT RAISE(ABORT, 'refused'); END"
            )
        database.close()
        return
    postgres.execute(
        url,
        "CREATE FUNCTION quire.refuse() RETURNS trigger LANGUAGE plpgsql"
        " AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$",
    )
    postgres.execute(
        url,
        "CREATE TRIGGER refused BEFORE INSERT ON quire.chunks FOR EACH ROW WHEN (new.index = 3)"
        " EXECUTE FUNCTION quire.refuse()",
    )


def test_b9_deleting_a_source_deletes_its_chunks(library: quire.Library) -> None:
    """B9: The chunks of an entry go with it, by address and by id, and the chunks of others stay."""
    long, short = library.remember(LONG, name="long"), library.learn("The okapi is about topic1.")
    assert library.status().chunks == long.chunk_count + 1
    assert [row.id for row in library.forget("memory:long")] == [long.id]
    assert library.status().chunks == 1
    assert [result.document_id for result in library.recall("topic1").results] == [short.id]
    with pytest.raises(quire.NoResults):
        library.read("memory:long#~2")
    library.forget(short.id)
    assert library.status().chunks == 0


def test_b10_an_embedding_may_be_stored_later_than_its_chunk(library: quire.Library) -> None:
    """B10: Chunks are found by words before they have a vector, and by meaning once it is stored."""
    row = library.remember(LONG + "\n\nThe okapi sleeps.")
    *others, last = library.chunks(row.id)
    assert [library.vector(chunk.id) for chunk in (*others, last)] == [None] * row.chunk_count
    assert library.recall("okapi").results[0].chunk_ids == (last.id,)
    with meaning.knowing("okapi") as models:
        library.config = meaning.config(models, {"embed": {"max_tokens": 4000}})
        assert library.embed().embedded == row.chunk_count
        assert [chunk.embedded for chunk in library.chunks(row.id)] == [True] * row.chunk_count
        vector = library.vector(last.id)
        assert vector is not None
        assert vector == pytest.approx([1, 0.01], abs=0.02)
        found = library.recall("okapiwood", mode="semantic").results
        assert [result.chunk_ids for result in found] == [(last.id,)]


def test_b11_ranks_by_words_and_meaning_are_fused_and_name_their_source(library_url: str) -> None:
    """B11: With search.fusion = "rrf" a chunk scores the sum of w / (60 + rank), and has its source's id."""
    with (
        meaning.knowing("zebra", "lion") as models,
        quire.Library.open(library_url, create=True, config=meaning.config(models)) as library,
    ):
        words = library.remember("Quagga quagga quagga.")
        both = library.learn(LONG + "\n\nA quagga beside a zebrafish and a lionfish.")
        near = library.remember("A zebrafish.")
        for weight in (1.0, 0.5, 2.0):
            library.config = meaning.config(models, {"search": {"fusion": "rrf", "meaning": weight}})
            found = library.recall("quagga zebrawood").results
            assert {result.document_id: result.match for result in found} == {
                words.id: "keyword",  # first by words
                near.id: "semantic",  # first by meaning
                both.id: "both",  # second by either
            }
            scores = {words.id: 1 / 61, near.id: weight / 61, both.id: (1 + weight) / 62}
            assert {result.document_id: result.score for result in found} == pytest.approx(scores, abs=1e-6)
            assert len(found) == 3
            assert [result.score for result in found] == sorted((r.score for r in found), reverse=True)


def test_b12_only_long_entries_are_cut_and_none_is_lost(library: quire.Library, tmp_path: Path) -> None:
    """B12: remember() and learn() cut only what is over 200 characters; what cannot be cut is kept whole."""
    library.config = config({"chunk": {"memory": {"max_tokens": 20}}})
    for keep in (library.remember, library.learn):
        assert keep("four " * 39 + "five!").chunk_count == 1  # 200 characters, 50 tokens
        assert keep("four " * 39 + "sixes!").chunk_count > 1
    library.config = config()
    assert library.learn("four " * 600).chunk_count == 1  # one chunk of 800 tokens has it all
    # Without the package that finds sentences, nothing can be cut.
    (tmp_path / "sentencex.py").write_text("raise ImportError('broken')")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    out, err = run(tmp_path, "remember", "-L", library.url, "-", stdin=LONG.encode(), PYTHONPATH=path)
    row = library.document(out.strip())
    assert "cannot be cut" in err
    assert row is not None
    assert (row.kind, row.chunk_count) == ("memory", 1)
    assert library.read(row.id).text == LONG
    assert library.recall("topic29").results[0].document_id == row.id


def test_b13_forgetting_leaves_no_orphan(library_url: str) -> None:
    """B13: Forgetting a memory or knowledge leaves no chunk, word, vector or section of it."""
    text = f"{LONG} The okapi sleeps."
    with (
        meaning.knowing("okapi") as models,
        quire.Library.open(library_url, create=True, config=meaning.config(models)) as library,
    ):
        memory, fact = library.remember(text, name="same"), library.learn(text, name="same")
        chunks = memory.chunk_count
        assert library.status().embedded == 2 * chunks
        library.forget(memory.id)
        counts = library.status()
        assert (counts.documents, counts.chunks, counts.embedded) == (1, chunks, chunks)
        assert {r.document_id for r in library.recall("okapi", mode="semantic").results} == {fact.id}
        library.forget(fact.id)
        counts = library.status()
        assert (counts.documents, counts.chunks, counts.sections, counts.embedded) == (0, 0, 0, 0)
        assert library.recall("okapi", mode="semantic").results == ()
    assert json.loads(cli("status", "--check", "-L", library_url, "--json")[0])["problems"] == []


def test_b14_the_whole_document_is_indexed_and_queried(library_url: str) -> None:
    """B14: An entry that answers as a whole is first, by words and by meaning, though no chunk is best."""
    filler = "It goes on for a while. " * 200
    with meaning.knowing("zebra", "lion", "tiger", "okapi") as models:
        chosen = meaning.config(models, {"embed": {"max_tokens": 4000}})  # a chunk is one text for it
        with quire.Library.open(library_url, create=True, config=chosen) as library:
            text = f"Zebrafish, by the quagga.\n\n{filler}Lionfish, by the numbat."
            whole = library.learn(text, title="Notes")
            assert whole.chunk_count == 2
            for number in range(8):
                animal = ("quagga", "numbat")[number % 2]
                library.learn(f"The {animal}, {animal} and {animal} of place{number}.")
            library.learn("Zebrafish, zebrafish, lionfish, tigerfish and okapifish.")
            for query, mode in (("quagga numbat", "keyword"), ("zebrawood lionwood", "hybrid")):
                found = library.recall(query, mode=mode, limit=20).results
                assert found[0].document_id == whole.id
                assert len({result.document_id for result in found}) > 1
            assert library.read(whole.address).text == text


def test_b15_several_chunks_of_one_source_are_returned(library: quire.Library) -> None:
    """B15: each matching chunk of an entry is a result; grouping them is the caller's choice."""
    row, other = library.remember(LONG), library.learn("A paragraph, and nothing else.")
    found = library.recall("paragraph", limit=50).results
    mine = [(result.start, result.end) for result in found if result.document_id == row.id]
    assert sorted(mine) == spans(LONG)
    assert len({result.chunk_ids for result in found}) == len(found) == row.chunk_count + 1
    grouped = library.recall("paragraph", limit=50, group=True).results
    assert sorted(result.document_id for result in grouped) == sorted([row.id, other.id])
    assert grouped[0] == found[0]


def test_b16_the_tail_of_a_long_document_is_never_lost(library_url: str) -> None:
    """B16: Every character is in a chunk, and the last words are embedded and found by words and meaning."""
    text = LONG + "\n\nThe xylophone stands last."
    chunks = quire.chunk(text, "memory")
    assert chunks[0].start == 0
    assert all(after.start <= before.end for before, after in pairwise(chunks))
    assert chunks[-1].end == len(text)
    with (
        meaning.knowing("xylophone") as models,
        quire.Library.open(library_url, create=True, config=meaning.config(models)) as library,
    ):
        row = library.learn(text)
        assert any("stands last." in part for parts in models.inputs for part in parts)
        for mode in ("keyword", "semantic"):
            (found,) = library.recall("xylophone", mode=mode).results
            assert (found.document_id, found.end) == (row.id, len(text))
            assert library.read(found.address).text.endswith("The xylophone stands last.")
