"""Text to sentences and words."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire import sentences


def split(text: str) -> list[str]:
    places = [0, *sentences.in_paragraphs(text)]
    return [text[a:b] for a, b in itertools.pairwise(places)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One. ", "Two! ", "Three?"]),
        ("Dr. Smith paid $3.50. He left.", ["Dr. Smith paid $3.50. ", "He left."]),
        ("See e.g. the docs. Then go.", ["See e.g. the docs. ", "Then go."]),
        ("检索文档。找到答案！", ["检索文档。", "找到答案！"]),
        ("no stop\n\nnext", ["no stop\n\n", "next"]),
        ("\n\n\nlate", ["\n\n\n", "late"]),
        ("", []),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    """Paragraphs first, then sentences."""
    assert split(text) == expected


@given(st.text(alphabet='aB. !?。\n中🙂“”"', max_size=300))
def test_sentences_join_to_the_text(text: str) -> None:
    """Nothing is lost between sentences."""
    assert "".join(split(text)) == text


def test_sentences_are_whole_across_the_segmenters_window() -> None:
    """A sentence that crosses the end of a window is not parted there."""
    text = "Short words make up a plain sentence here 中. " * 200
    assert set(split(text)) == {"Short words make up a plain sentence here 中. "}


def test_words_begin_after_white_space() -> None:
    """A cut at a word leaves white space with the word before it."""
    assert sentences.word_edge("hello big world", 0, 12) == 10
    assert sentences.word_edge("hello big world", 0, 10) == 10
    assert sentences.word_edge("aaaaaaaaaaaa", 0, 5) == 5
    assert sentences.word_edge("ab\r\ncd", 0, 3) == 2
