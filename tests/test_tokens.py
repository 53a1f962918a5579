"""Token counters."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import quire
from quire.config import TokenSettings
from quire.errors import MissingExtra
from quire.tokens import _named, counter

NAMES = ["chars", "words", "bpe", "bound", "largest"]


@pytest.mark.parametrize(
    ("name", "tokens"), [("chars", 8), ("words", 8), ("bpe", 9), ("largest", 9), ("bound", 13)]
)
def test_counters_count(name: str, tokens: int) -> None:
    """Four characters a token by default; by words and exactly on demand; and the two for budgets."""
    text = "Hello, big world: 你好 wonderful"
    assert _named(name).count(text, 0, len(text)) == tokens


PIECES = [*"ab cd,.\n中🙂\u0301", "'s", "    ", "-" * 64, "//" + "-" * 80]


@given(
    st.lists(st.sampled_from(PIECES), max_size=80).map("".join), st.integers(0, 20), st.sampled_from(NAMES)
)
def test_a_budget_reaches_no_further_than_it_counts(text: str, budget: int, name: str) -> None:
    """The text within reach is never over the budget, and reaches the end if all of it fits."""
    chosen = _named(name)
    reach = chosen.reach(text, 0, len(text), budget)
    assert chosen.count(text, 0, reach) <= budget
    assert chosen.fits(text, 0, len(text), budget) == (chosen.count(text, 0, len(text)) <= budget)
    assert chosen.fits(text, 0, len(text), budget) == (reach == len(text))


def test_chunks_are_counted_by_the_counter_chosen() -> None:
    """Tokens: the counter is a setting."""
    config = quire.config.override(quire.Config(), {"tokens": {"counter": "bpe"}})
    (chunk,) = quire.chunk("Hello, big world", config=config)
    assert chunk.tokens == 4


def test_an_absent_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Optional parts say how to get them."""
    monkeypatch.setitem(sys.modules, "rs_bpe.bpe", None)
    _named.cache_clear()
    with pytest.raises(MissingExtra, match=r"pip install 'quire-docs\[tokens\]'"):
        counter(TokenSettings("bpe"))
    _named.cache_clear()
