"""Budgets: no common tokenizer finds more tokens in an answer than were asked for, whatever its language."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.config import TokenSettings, override
from quire.context import markdown
from quire.library import Library
from quire.surfaces.mcp.text import failure
from quire.surfaces.mcp.tools import TOOLS
from quire.tokens import Bpe, budget_counter
from tests.languages import TEXTS, passages
from tests.words import WORDS

COUNTS = json.loads((Path(__file__).parent / "token_counts.json").read_text("utf-8"))
QUERIES = ["rollback deployment", "версии сервере", "版本 服务器", "kept releases", "العيب", "バージョン"]
BOUND = budget_counter(TokenSettings())
TOOL = {tool.name: tool for tool in TOOLS}


def bound(text: str) -> int:
    return BOUND.count(text, 0, len(text))


def real(text: str) -> int:
    """The most tokens that OpenAI's tokenizers find."""
    each = Bpe("cl100k_base"), Bpe("o200k_base")
    return max(one.count(text, 0, len(text)) for one in each)


@pytest.fixture(scope="module")
def library() -> Iterator[Library]:
    with Library.open(":memory:", create=True, config=WORDS) as opened:
        for name, text in TEXTS.items():
            opened.add(content=text * 3, path=f"{name}.md", collection="texts")
        yield opened


@pytest.mark.parametrize("vocabulary", COUNTS)
def test_no_vocabulary_is_over_the_bound(vocabulary: str) -> None:
    """Recorded counts of nine vocabularies, for passages of nineteen languages and of code."""
    texts = passages()
    assert len(texts) == len(COUNTS[vocabulary])
    over = [text for text, count in zip(texts, COUNTS[vocabulary], strict=True) if count > bound(text)]
    assert over == []


def test_the_bound_wastes_little_of_a_budget_on_english() -> None:
    """At most 15 % more than the largest of the recorded vocabularies."""
    first = [*TEXTS].index("English")
    largest = max(counts[first] for counts in COUNTS.values())
    assert bound(TEXTS["English"]) <= 1.15 * largest


pieces = st.tuples(st.sampled_from([*TEXTS.values()]), st.integers(0, 900), st.integers(1, 400)).map(
    lambda found: found[0][found[1] : found[1] + found[2]]
)
mixtures = st.lists(pieces, max_size=8).map("".join)


@given(mixtures)
def test_mixtures_of_languages_are_within_the_bound(text: str) -> None:
    """Pieces that are cut anywhere, and put together."""
    assert real(text) <= bound(text)


@given(st.text(max_size=300))
def test_random_text_is_within_the_bound(text: str) -> None:
    """Characters of all kinds, in no order."""
    assert real(text) <= bound(text)


@given(st.text(st.sampled_from("0123456789\n\r\t") | st.characters(min_codepoint=0x10000), max_size=200))
def test_text_that_nothing_can_be_made_of_counts_its_bytes(text: str) -> None:
    """What is sure: at most one token for each byte of what is in no piece."""
    assert real(text) <= len(text.encode()) <= bound(text)


@given(st.sampled_from([*TEXTS]), st.integers(1, 700))
def test_a_read_is_never_over_its_budget(library: Library, name: str, max_tokens: int) -> None:
    """The text is the beginning of the document, and says what was left out."""
    found = library.read(f"texts:{name}.md", max_tokens=max_tokens)
    assert max(real(found.text), bound(found.text)) <= max_tokens
    assert found.tokens == bound(found.text)
    assert (TEXTS[name] * 3).startswith(found.text)
    assert bool(found.notes) == (len(found.text) < 3 * len(TEXTS[name]))


@given(st.sampled_from(QUERIES), st.integers(1, 1500), st.sampled_from(["sections", "chunks", "documents"]))
def test_a_pack_is_never_over_its_budget(library: Library, query: str, size: int, include: str) -> None:
    """Counted as Markdown, citations included."""
    found = library.context(query, max_tokens=size, include=include)
    shown = markdown(found.passages, found.good_match)
    assert max(real(shown), bound(shown)) <= size


calls = st.one_of(
    st.fixed_dictionaries({"tool": st.just("search"), "query": st.sampled_from(QUERIES)}),
    st.fixed_dictionaries({"tool": st.just("context"), "query": st.sampled_from(QUERIES)}),
    st.fixed_dictionaries({"tool": st.sampled_from(["read", "toc"]), "address": st.sampled_from([*TEXTS])}),
    st.just({"tool": "list"}),
)


@given(calls, st.integers(200, 900))
def test_no_answer_to_an_agent_is_over_its_budget(
    library: Library, asked: dict[str, Any], max_tokens: int
) -> None:
    """Every page, to the last cursor."""
    name, cursor = asked["tool"], ""
    given = {key: value for key, value in asked.items() if key != "tool"} | {"max_tokens": max_tokens}
    given |= {"address": f"texts:{asked['address']}.md"} if "address" in asked else {}
    while True:
        tool = TOOL[name]
        assert tool.run
        answer = tool.run(library, tool.arguments.checked(given | ({"cursor": cursor} if cursor else {})))
        assert max(real(answer.text), bound(answer.text)) <= max_tokens
        if not (more := re.search(r'and cursor="([^"]+)"$', answer.text)):
            break
        assert more[1] != cursor
        cursor = more[1]


def test_an_error_is_within_the_least_budget() -> None:
    """Whatever it names."""
    from quire.errors import NoResults

    for name in ("漢字" * 5000, "a\n" * 5000, "\u200b" * 5000, "word " * 5000):
        said = failure(NoResults(f"There is no {name}.", missing="document", name=name)).text
        assert max(real(said), bound(said)) <= 200


@given(st.sampled_from([*TEXTS]), st.integers(5, 300))
def test_budgets_are_exact_with_the_extra(library: Library, name: str, max_tokens: int) -> None:
    """Exact by the larger of the two: nearly all of a budget is used."""
    config = override(library.config, {"tokens": {"counter": "bpe"}})
    text = TEXTS[name]
    count = budget_counter(config.tokens)
    reach = count.reach(text, 0, len(text), max_tokens)
    assert real(text[:reach]) <= max_tokens
    assert reach == len(text) or real(text[: reach + 8]) > max_tokens - 4


def test_a_short_hit_tells_nothing_of_the_size_of_the_text_around_it() -> None:
    """Issue: a result of 8,103 tokens that had 700, because the best chunk in it was two characters long."""
    rest = "".join(f"## Part {n}\n\nThe keeper walks along the fence.\n\n" for n in range(200))
    with Library.open(":memory:", create=True, config=WORDS) as library:
        library.add(content=f"# A\n\n{rest}## Q\n\nzyx\n", path="short.md", collection="sizes")
        (result,) = library.search("zyx").results
        assert result.parent
        assert result.parent_tokens == pytest.approx(bound(library.read(result.parent).text), rel=0.2)


def test_sizes_beside_addresses_tell_what_a_read_takes(library: Library) -> None:
    """Search and toc say what a read of the address counts, in English and in Chinese."""
    for query in ("honest postmortem", "事后请写下"):
        result = library.search(query).results[0]
        assert result.tokens == pytest.approx(bound(library.read(result.address).text), rel=0.2)
    shown = TOOL["toc"].run(library, TOOL["toc"].arguments.checked({"address": "Chinese.md"}))  # type: ignore[misc]
    size = library.read("texts:Chinese.md").tokens
    assert f"(line 1, {size:,} tokens)" in shown.text
