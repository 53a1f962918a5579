"""A string to a query (DESIGN §6, BAD_INPUTS "Queries")."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from quire.errors import SettingError
from quire.query import MAX_CHARS, Query, Term, parse

Groups = tuple[tuple[Term, ...], ...]


def words(*texts: str) -> Groups:
    return tuple((Term(text),) for text in texts)


def phrase(text: str, field: str = "") -> Term:
    return Term(text, phrase=True, field=field)


def refusal(text: str) -> str:
    with pytest.raises(SettingError) as caught:
        parse(text)
    assert caught.value.name == "query"
    return str(caught.value)


GROUPS: dict[str, Groups] = {
    "install linux": words("install", "linux"),
    "  install\t\nlinux ": words("install", "linux"),
    '"two words" three': ((phrase("two words"),), (Term("three"),)),
    '" two \n words "': ((phrase("two words"),),),
    "“two words” three": ((phrase("two words"),), (Term("three"),)),
    '"one"two': ((phrase("one"),), (Term("two"),)),
    'one"two"': ((Term("one"),), (phrase("two"),)),
    "a OR b c": ((Term("a"), Term("b")), (Term("c"),)),
    "a OR b OR c": ((Term("a"), Term("b"), Term("c")),),
    "a b OR c": ((Term("a"),), (Term("b"), Term("c"))),
    'a OR "b c"': ((Term("a"), phrase("b c")),),
    "title:a OR heading:b": ((Term("a", field="title"), Term("b", field="heading")),),
    "a or b": words("a", "or", "b"),
    "OR a": words("or", "a"),
    "a OR": words("a", "or"),
    "a OR *": words("a", "or"),
    "a OR OR b": words("a", "or", "or", "b"),
    'a "OR" b': ((Term("a"),), (phrase("OR"),), (Term("b"),)),
    "a AND b": words("a", "b"),
    "a OR b AND c": ((Term("a"), Term("b")), (Term("c"),)),
    "AND a": words("and", "a"),
    "a AND OR b": words("a", "and", "or", "b"),
    "a NOT b": words("a", "NOT", "b"),
    "inst*": ((Term("inst", prefix=True),),),
    "inst**": ((Term("inst", prefix=True),),),
    "a*b *c": words("a*b", "*c"),
    "title:install": ((Term("install", field="title"),),),
    "Title:install": ((Term("install", field="title"),),),
    'title:"two words"': ((phrase("two words", "title"),),),
    "heading:inst*": ((Term("inst", prefix=True, field="heading"),),),
    "title:a:b": ((Term("a b", field="title"),),),
    "title: install": words("title", "install"),
    "path::new": words("path new"),
    "std::vector": words("std vector"),
    "12:30:00": words("12 30 00"),
    "note: :smile: :) a": words("note", "smile", "a"),
    "a - & b ... !": words("a", "b"),
    "--flag": words("--flag"),
    "foo-bar x.y.z": words("foo-bar", "x.y.z"),
    'foo-"bar"': ((Term("foo-"),), (phrase("bar"),)),
    '"foo"-bar': ((phrase("foo"),), (Term("-bar"),)),
}


@pytest.mark.parametrize("text", GROUPS)
def test_a_query_asks_for_its_groups(text: str) -> None:
    """DESIGN §6: words, "phrases", OR, prefix*, title: and heading:, as in a web search."""
    query = parse(text)
    assert query.groups == GROUPS[text]
    assert (query.negated, query.filters, query.notes) == ((), (), ())


PROSE = {
    'The readiness probe runs mysql -h 127.0.0.1 -e "SELECT 1" to make sure that it answers.': 16,
    "Ignore commits that start with “Rollup merge” or that a robot has made in the last week.": 17,
    "a b c d e f g h i j k -long": 12,
}


@pytest.mark.parametrize("text", PROSE)
def test_a_pasted_sentence_demands_and_leaves_out_nothing(text: str) -> None:
    """Any input is a valid query: what an agent pastes has quotes and dashes that are no operators."""
    query = parse(text)
    assert (query.demanded, query.negated) == ((), ())
    assert len(query.groups) == PROSE[text]
    assert query.notes == ("This is read as prose: its quotes and minus signs demand and leave out nothing.",)


@pytest.mark.parametrize(
    "text",
    [
        'a b c d e f g h i "k l" -more',
        "a OR b OR c OR d OR e OR f -good",
        "a -bed -cat -dog -eel -fig -gnu -hat -ink -jam -kit -leg",
        'a path:1 path:2 title:3 path:4 path:5 path:6 path:7 path:8 path:9 path:10 "x y" -zoo',
    ],
)
def test_signs_count_beside_as_many_words_as_one_searches_with(text: str) -> None:
    """Operators, fields and what is left out are no prose, however many."""
    query = parse(text)
    assert query.negated or query.demanded
    assert query.notes == ()


def test_long_text_without_signs_is_as_it_was() -> None:
    """Nothing is said where nothing is ignored."""
    assert parse("one two three four five six seven eight nine ten eleven twelve").notes == ()


BAD: dict[str, Groups] = {
    '"unbalanced to the end': ((phrase("unbalanced to the end"),),),
    'a "b c': ((Term("a"),), (phrase("b c"),)),
    "AND": words("and"),
    "OR": words("or"),
    "NEAR(": words("NEAR("),
    "NEAR(a b)": words("NEAR(a", "b)"),
    "C++": words("C++"),
    "don't": words("don't"),
    "a:b": words("a b"),
    "a\0b \0": words("ab"),
    "a\ud800 \udcffb": words("a", "b"),
    "🙂 👩‍👩‍👧": words("🙂", "👩‍👩‍👧"),
    "你好世界": words("你好世界"),
    "Привет мир": words("Привет", "мир"),
    "مرحبا بالعالم": words("مرحبا", "بالعالم"),
    "'; DROP TABLE x;--": words("DROP", "TABLE", "x;--"),
}


@pytest.mark.parametrize("text", BAD)
def test_a_bad_query_is_still_a_query(text: str) -> None:
    """BAD_INPUTS: quotes, operators, NUL, emoji and every script get an answer, never a database error."""
    query = parse(text)
    assert query.groups == BAD[text]
    assert "\0" not in query.text
    query.text.encode()


@pytest.mark.parametrize(
    "text", ["", " \n\t ", "\0", "*", "-", "--", "-*", '"', '""', '-"', "...", "_ + $ ^", "—"]
)
def test_a_query_without_words_is_refused_as_empty(text: str) -> None:
    """BAD_INPUTS: empty → a clear message."""
    assert refusal(text) == 'query: is empty: type some words, or a "phrase"'


def test_a_place_to_look_is_nothing_to_look_for() -> None:
    """BAD_INPUTS: empty → a clear message."""
    assert "has only filters" in refusal("path:docs/ title:*")


@pytest.mark.parametrize("text", ["-only", "-one -two", '-"a b"', "-one path:b", "-title:a"])
def test_a_query_that_only_leaves_out_is_refused(text: str) -> None:
    """BAD_INPUTS: `-only` → a clear message."""
    assert refusal(text) == "query: has only words to leave out: add one to look for"


NEGATED = {
    "-bed": Term("bed", negated=True),
    "-bed*": Term("bed", prefix=True, negated=True),
    '-"b c"': Term("b c", phrase=True, negated=True),
    "-bed:cat": Term("bed cat", negated=True),
    "-title:b": Term("b", negated=True, field="title"),
    '-heading:"b c"': Term("b c", phrase=True, negated=True, field="heading"),
    "-path:b": Term("b", negated=True, field="path"),
    "-ORE": Term("ORE", negated=True),
}


@pytest.mark.parametrize("text", NEGATED)
def test_a_leading_minus_leaves_out(text: str) -> None:
    """DESIGN §6: -not, on words, prefixes, phrases and fields."""
    query = parse(f"a {text}")
    assert (query.groups, query.negated, query.filters) == (words("a"), (NEGATED[text],), ())


FILTERS = {
    "path:docs/": Term("docs/", field="path"),
    "path:docs/*": Term("docs/*", field="path"),
    "path:*docs*": Term("*docs*", field="path"),
    "path:docs/*.md": Term("docs/*.md", field="path"),
    "path:C:/docs": Term("C:/docs", field="path"),
    'path:"my docs"': phrase("my docs", "path"),
}


@pytest.mark.parametrize("text", FILTERS)
def test_a_path_is_a_filter(text: str) -> None:
    """DESIGN §6: path: filters."""
    query = parse(f"a {text}")
    assert (query.groups, query.negated, query.filters) == (words("a"), (), (FILTERS[text],))


@pytest.mark.parametrize("text", ["a OR -bed c", "a OR path:b c", "a -bed OR c", "a path:b OR c"])
def test_or_beside_what_is_not_wanted_is_ignored_and_said(text: str) -> None:
    """DESIGN §6: any input is a valid query, and what is ignored is told."""
    query = parse(text)
    assert query.groups == words("a", "c")
    assert query.notes == ("OR is ignored beside a -word, or a filter such as path: or tag:.",)


def test_paths_joined_by_or_are_filters() -> None:
    """DESIGN §6: path: filters."""
    query = parse("a path:b OR path:c")
    assert query.filters == (Term("b", field="path"), Term("c", field="path"))
    assert query.notes == ()


def test_terms_over_the_limit_are_ignored_and_said() -> None:
    """BAD_INPUTS: 1 MB of words → an answer in bounded time."""
    query = parse("a OR b -cat path:d e", max_terms=4)
    assert query.groups == ((Term("a"), Term("b")),)
    assert (len(query.negated), len(query.filters)) == (1, 1)
    assert query.notes == ("Only the first 4 terms are used.",)


@pytest.mark.parametrize("count", [63, 64])
def test_terms_up_to_the_limit_are_all_used(count: int) -> None:
    """BAD_INPUTS: 1 MB of words → an answer; OR is not counted as a term."""
    query = parse(" OR ".join(["a"] * count))
    assert query.groups == ((Term("a"),) * count,)
    assert query.notes == ()


def test_a_long_word_is_cut_and_said() -> None:
    """BAD_INPUTS: 1 MB in one word → an answer."""
    query = parse("x" * 1_000_000)
    assert query.groups == words("x" * MAX_CHARS)
    assert query.notes == ("Terms are cut to 200 characters.",)
    assert parse("x" * MAX_CHARS).notes == ()


def test_a_long_phrase_is_cut_after_a_whole_word() -> None:
    """BAD_INPUTS: an unbalanced quote before long text → a phrase that can still be found."""
    (term,) = parse('"' + "words " * 100).groups[0]
    assert set(term.text.split()) == {"words"}
    assert MAX_CHARS - len("words ") <= len(term.text) <= MAX_CHARS


def test_a_phrase_of_one_long_word_is_cut_inside_it() -> None:
    """BAD_INPUTS: 1 MB in one word → an answer."""
    assert parse('"' + "x" * 300).groups == ((phrase("x" * MAX_CHARS),),)


HOSTILE: dict[str, Callable[[int], str]] = {
    "words": lambda n: "word " * (n // 5),
    "different words": lambda n: " ".join(map(str, range(n // 6))),
    "stars": lambda n: "* " * (n // 2),
    "one row of stars": lambda n: "*" * n,
    "minuses": lambda n: "-" * n,
    "spaced minuses": lambda n: "- " * (n // 2),
    "quotes": lambda n: '"' * n,
    "one phrase": lambda n: '"' + "a " * (n // 2),
    "colons": lambda n: ":" * n,
    "parts": lambda n: "a:" * (n // 2),
    "fields": lambda n: "title:" * (n // 6),
    "empty fields": lambda n: "title:* " * (n // 8),
    "operators": lambda n: "OR " * (n // 3),
    "alternatives": lambda n: "a OR " * (n // 5),
    "white space": lambda n: "a" + " " * n + "b",
    "dashes": lambda n: "— " * (n // 2),
    "NUL": lambda n: "\0" * n,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_megabyte_is_parsed_in_bounded_time(name: str) -> None:
    """BAD_INPUTS: 1 MB of words → an answer or a clear message, in bounded time."""
    text = HOSTILE[name](1_000_000)
    started = time.process_time()
    outcome(text)
    assert time.process_time() - started < 2


def outcome(text: str) -> Query | str:
    try:
        return parse(text)
    except SettingError as refused:
        return str(refused)


any_text = st.text() | st.lists(
    st.sampled_from(
        ["a", "OR", "AND", '"', "“", "-", "*", ":", "title:", "path:", " ", "\0", "\ud800", "🙂", "好"]
    )
    | st.text(max_size=3),
).map("".join)


@given(any_text, st.integers(1, 5))
def test_any_text_is_a_query_or_is_refused(text: str, max_terms: int) -> None:
    """DESIGN §6: any input is a valid query; every term of it says something."""
    try:
        query = parse(text, max_terms)
    except SettingError:
        return
    sought = [term for group in query.groups for term in group]
    terms = [*sought, *query.negated, *query.filters]
    assert 1 <= len(terms) <= max_terms
    assert all(query.groups)
    assert all(term.text and term.text == term.text.strip() for term in terms)
    assert all(len(term.text) <= MAX_CHARS and "\0" not in term.text for term in terms)
    assert not any(term.phrase and term.prefix for term in terms)
    assert all(term.negated for term in query.negated)
    assert not any(term.negated or term.field == "path" for term in sought)
    assert all(term.field == "path" and not term.negated for term in query.filters)
    "".join(term.text for term in terms).encode()


@given(any_text, st.text(" \t\n\r\u00a0\u3000\x1f"), st.text(" \t\n\r\u00a0\u3000\x1f"))
def test_white_space_around_a_query_changes_nothing(text: str, before: str, after: str) -> None:
    """DESIGN §6: any input is a valid query, however it was pasted."""
    assert outcome(before + text + after) == outcome(text)


@given(st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=20))
def test_a_word_of_any_script_is_kept_as_typed(word: str) -> None:
    """BAD_INPUTS: CJK, Cyrillic, Arabic → hits."""
    assume(word not in ("OR", "AND"))
    assert parse(word).groups == words(word)


@given(
    st.lists(st.sampled_from(["a", "b*", '"c d"', "-e", "title:f", "path:g"]), min_size=1, max_size=10),
    st.integers(1, 8),
)
def test_the_limit_keeps_the_first_terms(parts: list[str], limit: int) -> None:
    """BAD_INPUTS: 1 MB of words → the first of them are used."""
    cut = outcome(" ".join(parts[:limit]))
    assume(isinstance(cut, Query))
    assert isinstance(cut, Query)
    limited = parse(" ".join(parts), limit)
    assert (limited.groups, limited.negated, limited.filters) == (cut.groups, cut.negated, cut.filters)
    assert bool(limited.notes) == (len(parts) > limit)


# -------------------------------------------------------------------- as people and agents type them


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kubectl apply -f", ("kubectl", "apply", "f")),
        ("tar -xzf", ("tar", "xzf")),
        ("git push --force", ("git", "push", "--force")),
        ("ls -la -9", ("ls", "la", "9")),
    ],
)
def test_options_of_commands_are_words(text: str, expected: tuple[str, ...]) -> None:
    """Issue: a minus excludes only when a word of three letters or more follows."""
    query = parse(text)
    assert (query.groups, query.negated) == (words(*expected), ())


@pytest.mark.parametrize(
    "text", ["„exit code“", "“exit code”", "«exit code»", "»exit code«", "「exit code」", "『exit code』"]
)
def test_quotes_of_every_kind_pair_up(text: str) -> None:
    """Issue: „…“ “…” «…» 「…」."""
    assert parse(text).groups == ((phrase("exit code"),),)


def test_an_arrow_is_no_quote() -> None:
    """A breadcrumb that was pasted is made of words."""
    assert parse("Settings » General » Reset").groups == words("Settings", "General", "Reset")
