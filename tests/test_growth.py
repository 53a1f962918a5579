"""Linear time on hostile input: twice the input takes at most two and a half times as long."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

import pytest

import quire
from quire import sentences
from quire.config import STRATEGIES, override
from quire.errors import BrokenInvariant
from quire.snippet import densest, snippet

HOSTILE: dict[str, Callable[[int], str]] = {
    "headings": lambda n: "# heading\n\ntext\n" * n,
    "empty headings": lambda n: "# heading\n" * n,
    "deep headings": lambda n: "".join(f"{'#' * (i % 6 + 1)} h\n\nt\n" for i in range(n)),
    "quotes": lambda n: ">" * 6 * n,
    "stars": lambda n: "*" * 20 * n,
    "brackets": lambda n: "[" * n + "]" * n,
    "newlines": lambda n: "\n" * 20 * n,
    "one line": lambda n: "x" * 50 * n,
    "one line of words": lambda n: "word " * 10 * n,
    "sentences": lambda n: "One. Two! " * 4 * n,
    "chinese sentences": lambda n: "好。" * 4 * n,
    "quotation marks": lambda n: "“a. " * 2 * n,
    "indented fences in one item": lambda n: "- a\n\n" + "  ```\n  x\n  ```\n\n" * n,
    "unclosed fences": lambda n: "text\n```\n" * n,
    "indented fences": lambda n: " ```\nx\n\n" * n,
    "comments never closed": lambda n: "<!--\n\ntext\n\n" * n,
    "tags": lambda n: "<x>\ny\n" * n,
    "underlines": lambda n: "a\n=\n" * n,
    "spaced blank lines": lambda n: "a\n \n" * n + "b\n---\n",
    "table": lambda n: "| a | b |\n|---|---|\n" + "| c | d |\n" * n,
    "nested list": lambda n: "".join(f"{'  ' * (i % 40)}- x\n" for i in range(n)),
    "link definitions": lambda n: "".join(f"[r{i}]: /u\n" for i in range(n)) + "# [r1] x\n\ny\n",
    "flags": lambda n: "🇫🇷" * 5 * n,
    "carriage returns": lambda n: "a\r" * 4 * n,
    "stacked accents": lambda n: "a" + "\u0301" * 4 * n,
}
SIZE = 1500


def seconds(text: str) -> float:
    started = time.process_time()
    for strategy in STRATEGIES:
        try:
            chunks = quire.chunk(text, strategy, path="a.md")
        except BrokenInvariant:
            continue
        assert all(chunk.address for chunk in chunks[:3] + chunks[-3:])
        assert all(chunk.byte_end > chunk.byte_start for chunk in chunks)
    return time.process_time() - started


def assert_linear(make: Callable[[int], str], seconds: Callable[[str], float], size: int) -> None:
    """Growth is the claim: four times the text takes a quadratic stage sixteen times as long."""
    gc.collect()
    gc.freeze()  # what other tests left in memory is not to be searched while time is taken
    most, ratios = 64 * size, list[float]()
    while (once := min(seconds(make(size)) for _ in range(2))) < 0.05 and size < most:
        size *= 2  # too quick to measure: take more of it
    while len(ratios) < 10:
        ratios.append(seconds(make(4 * size)) / max(once, 0.02))
        if ratios[-1] <= 8:
            return
        once = max(once, seconds(make(size)))
    assert min(ratios) <= 8


@pytest.mark.parametrize("name", HOSTILE)
def test_time_grows_with_the_input(name: str) -> None:
    """BAD_INPUTS: 100,000 headings, 300 KB of >, 1 MB of *, 50,000 nested brackets → linear time."""
    assert_linear(HOSTILE[name], seconds, SIZE)


@pytest.mark.parametrize(("mark", "counter"), [("-", "bpe"), ("-", "words"), ("\u0301", "bpe")])
def test_counters_take_linear_time_under_the_smallest_limits(mark: str, counter: str) -> None:
    """Issue: bpe counting of dash runs, words with max_tokens=1, stacked accents over the limit."""
    config = override(quire.Config(), {"tokens": {"counter": counter}})

    def seconds(text: str) -> float:
        started = time.process_time()
        quire.chunk(text, "auto", max_tokens=8, config=config)
        quire.chunk(text, "windows", max_tokens=1, min_chars=0, config=config)
        quire.chunk(text, "windows", max_tokens=16, min_chars=0, config=config)
        return time.process_time() - started

    assert_linear(lambda n: mark * n, seconds, 4000)


@pytest.mark.parametrize("mark", ["`", "A?"])
def test_sentences_are_found_in_linear_time(mark: str) -> None:
    """Issue: 1.28 MB of backtick runs took 24 s."""

    def seconds(text: str) -> float:
        started = time.process_time()
        sentences.ends(text, 0, len(text))
        return time.process_time() - started

    assert_linear(lambda n: (mark * n)[:n], seconds, 8000)


def test_a_hundred_thousand_headings() -> None:
    """BAD_INPUTS: 100,000 headings."""
    tree = quire.tree("# h\n\nt\n" * 100_000)
    assert len(tree.sections) == 100_001
    assert tree.sections[-1].slug == "h-99999"


@pytest.mark.timeout(60)
def test_one_line_of_fifty_megabytes() -> None:
    """BAD_INPUTS: one line of 50 MB → bounded chunks, bounded time."""
    chunks = quire.chunk("word " * 10_000_000, path="a.md")
    assert max(chunk.tokens for chunk in chunks) <= 800
    assert chunks[-1].byte_end == 50_000_000


LONG: dict[str, Callable[[int], str]] = {
    "one word": lambda n: "zebra," * n,
    "no spaces": lambda n: "斑马" * n,
    "fences": lambda n: "```zebra\nzebra\n" * n,
    "many terms": lambda n: " ".join(f"w{i}" for i in range(n)),
}


@pytest.mark.parametrize("name", LONG)
def test_a_snippet_takes_linear_time_and_is_short(name: str) -> None:
    """Issue: snippets of long sections took 22 s at 533 KB; of a text without spaces, all was shown."""
    terms = {"zebra", "斑马", "马斑", *(f"w{i}" for i in range(2000))}

    def seconds(text: str) -> float:
        started = time.process_time()
        shown, highlights = snippet(text, terms)
        start, end = densest(text, terms, 800)
        taken = time.process_time() - started
        assert highlights
        assert len(shown) <= 50 * 21 + 4
        assert end - start <= 800
        return taken

    assert_linear(LONG[name], seconds, 2000)
