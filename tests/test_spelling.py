"""Close spellings: a word that no document has is replaced by the word that was probably meant."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp import Client

from quire import analyze, embedding, query, searcher, spelling
from quire.library import Library
from quire.meaning import Meaning
from quire.stores import Filters
from tests import postgres
from tests.commands import run
from tests.mcp_client import ask, parameters, talk
from tests.test_embedding import Tiny
from tests.words import WORDS

TEXTS = {
    "pods.md": "# Pods\n\nKubernetes runs a workload. Kubernetes has containers; configuration is text.\n",
    "part.md": "# Parts\n\nA part of the storage, a step, a status. It starts.\n\n## Environment\n\nNamed.\n",
    "names.md": "# Names\n\nsubPath, kube_proxy, v2beta1, and the word authentication. We use kubectl.\n",
    "русский.md": "# Настройка\n\nУстановка контейнера на сервере.\n",
}


@pytest.fixture
def library(library_url: str) -> Iterator[Library]:
    with Library.open(library_url, create=True, config=WORDS) as opened:
        for path, text in TEXTS.items():
            opened.add(content=text, path=path, collection="c")
        yield opened


def asked_for(library: Library, text: str) -> str:
    """The words that are searched for."""
    with library.store.reading():
        return spelling.respelled(library.store, query.parse(text))[0].words


def test_a_close_word_is_searched_instead_and_said(library: Library) -> None:
    """Issue: a word in no document is searched as the close word, and a note says so."""
    found = library.search("kuberntes")
    assert found.notes == ('No document has "kuberntes". Searched for "Kubernetes" instead.',)
    assert found.query == "kuberntes"
    assert [result.path for result in found.results] == ["pods.md"]
    assert "Kubernetes" in {found.results[0].snippet[a:b] for a, b in found.results[0].highlights}


def test_one_note_names_all_words(library: Library) -> None:
    """Issue: with several wrong words, one note names each."""
    (note,) = library.search("kuberntes, contaner workload enviroment?").notes
    wrong, right = '"kuberntes", "contaner" or "enviroment"', '"Kubernetes", "containers" and "Environment"'
    assert note == f"No document has {wrong}. Searched for {right} instead."


@pytest.mark.parametrize(
    ("typed", "meant"),
    {
        "configuraton": "configuration",  # far from the stem, which is configur
        "konfiguration": "konfiguration",  # the first letter counts
        "ocnfiguration": "configuration",  # unless it was swapped
        "contaienrs": "containers",
        "authentification": "authentication",  # two edits in a long word
        "workloads": "workloads",  # it has the stem of a word that is there
        "stauts": "status",  # swapped letters, before `starts`, which is one edit away too
        "Storge": "storage",
        "контейнра": "контейнера",
        "zxqv blarg": "zxqv blarg",
    }.items(),
)
def test_what_is_replaced_by_what(library: Library, typed: str, meant: str) -> None:
    """Issue: a close word is one edit away, or two if it has eight letters or more."""
    assert asked_for(library, typed) == meant


@pytest.mark.parametrize(
    "typed",
    [
        '"kuberntes"',
        "kuberntes*",
        "title:kuberntes",
        "heading:kuberntes",
        "-kuberntes workload",
        "path:kuberntes workload",
        "kube-proxi",
        "kube_prox",
        "v2beta",
        "kubectl.exe",
        "subPat",
        "KUBECT",
        "kubernte's",
        "port stop",  # a word of four letters that has another letter is another word
        "whith",  # the closest word is a stop word
        "should about",
        "установка",
        "検索する",
        "k" * 200,
    ],
)
def test_what_is_left_alone(library: Library, typed: str) -> None:
    """Issue: phrases, prefixes, fields, exclusions, identifiers, short words and stop words stay."""
    assert asked_for(library, typed) == query.parse(typed).words


def test_a_word_outside_the_filters_exists(library: Library) -> None:
    """Issue: what counts is the whole library."""
    library.add(content="# Other\n\nkuberntes\n", path="o.md", collection="other")
    assert library.search("kuberntes", collection="c").notes[0].startswith("No match")


def test_alternatives_are_replaced_each(library: Library) -> None:
    """A word beside OR is a plain word."""
    found = library.search("kuberntes OR storge")
    assert {result.path for result in found.results} == {"pods.md", "part.md"}


def test_the_embedding_is_of_the_replacement(library: Library) -> None:
    """Issue: search by meaning uses the replacement, also by meaning alone."""
    tiny = Tiny()
    embedding.embed(library.store, tiny)
    meaning = Meaning(library.store.models()[0], tiny, "")
    for mode in ("semantic", "hybrid"):
        chosen = replace(WORDS.search, mode=mode)
        with library.store.reading():
            found = searcher.search(library.store, "kuberntes", Filters(), chosen, meaning)
        assert found.notes[0].startswith('No document has "kuberntes"')
    assert tiny.questions == ["Kubernetes", "Kubernetes"]


def test_nothing_is_replaced_while_words_are_those_of_another_stemmer(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such words may be there, with other stems."""
    monkeypatch.setattr(analyze, "fingerprint", lambda: "terms 0, PyStemmer 9, Unicode 14.0.0")
    assert not any("Searched for" in note for note in library.search("kuberntes").notes)


def test_terms_are_counted_by_chunks(library: Library) -> None:
    """Both databases count few terms and many, of any script, and leave out those that are in none."""
    few = {"kubernet": 1, "part": 2, "контеинер": 1}  # folding makes и of й
    assert library.store.term_counts([*few, "unicorn"]) == few
    many = [f"{word}{letter}" for word in ("p", "part", "к") for letter in "abcdefghijklmnopqrstuvwxyz"]
    assert library.store.term_counts([*many, *few]) == few
    assert library.store.term_counts([]) == {}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.data())
def test_a_word_that_is_there_is_never_replaced_and_a_replacement_is_close(
    library: Library, data: st.DataObject
) -> None:
    """Issue: words of the library stay; the distance has a bound; a replacement is a word of a document."""
    words = sorted({word for text in TEXTS.values() for word in re.findall(r"[^\W\d_]+", text)})
    word = data.draw(st.sampled_from(words))
    assert asked_for(library, word) == word
    at = data.draw(st.integers(0, len(word)))
    letters = st.text("abcdeinorstuxzно", max_size=2)
    typed = word[:at] + data.draw(letters) + word[at + data.draw(st.integers(0, 2)) :]
    if typed and typed not in ("OR", "AND") and (meant := asked_for(library, typed)) != typed:
        assert meant in words
        assert not library.store.term_counts(analyze.terms(typed))
        a, b = analyze.fold(typed), analyze.fold(meant)
        assert 0 < spelling.distance(a, b, 5) <= spelling.most_edits(a)
        assert a[0] == b[0] or a[:2] == b[1::-1]


# --------------------------------------------------------------------------------------- the surfaces


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a document about Kubernetes, and the library of its user."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text(TEXTS["pods.md"])
    run(tmp_path, "add", "-L", "l.db", "docs")
    return tmp_path


NOTE = 'No document has "kuberntes". Searched for "Kubernetes" instead.'


def test_the_command_line_says_it(place: Path) -> None:
    """Issue: the note is in the text, the JSON and the context pack."""

    def asked(*args: str) -> tuple[str, str]:
        return run(place, *args, "-L", "l.db")

    assert NOTE in asked("search", "kuberntes")[1]
    assert json.loads(asked("search", "kuberntes", "--json")[0])["notes"] == [NOTE]
    assert NOTE in asked("context", "kuberntes")[1]
    assert NOTE in json.loads(asked("context", "kuberntes", "--format", "json")[0])["notes"]


def test_the_mcp_server_says_it(place: Path) -> None:
    """Issue: an agent reads the note, in the answer to a search and in a context pack."""

    async def work(client: Client) -> None:
        assert NOTE in await ask(client, "search", query="kuberntes")
        assert NOTE in await ask(client, "context", query="kuberntes")

    talk(parameters(place), work)


# ------------------------------------------------------------------------------------------- distances


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("kubernetes", "kubernetes", 0),
        ("kuberntes", "kubernetes", 1),
        ("kubernettes", "kubernetes", 1),
        ("kubernates", "kubernetes", 1),
        ("kuberentes", "kubernetes", 1),
        ("authentification", "authentication", 2),
        ("ca", "abc", 3),  # no letter is edited twice
        ("", "ab", 2),
    ],
)
def test_the_distance_of_two_words(a: str, b: str, expected: int) -> None:
    """An edit inserts, deletes or substitutes a letter, or swaps two neighbours."""
    assert spelling.distance(a, b, 3) == expected
    assert spelling.distance(b, a, 3) == expected


def plain_distance(a: str, b: str) -> int:
    """The same by its definition, slowly."""
    if not a or not b:
        return len(a) + len(b)
    ways = [plain_distance(a[1:], b) + 1, plain_distance(a, b[1:]) + 1]
    ways.append(plain_distance(a[1:], b[1:]) + (a[0] != b[0]))
    if len(a) > 1 and a[:2] == b[1::-1]:
        ways.append(plain_distance(a[2:], b[2:]) + 1)
    return min(ways)


@given(st.text("abc", max_size=6), st.text("abc", max_size=6), st.integers(0, 4))
def test_the_distance_is_the_least_number_of_edits_up_to_a_bound(a: str, b: str, most: int) -> None:
    """A word that is further away is just `most` + 1 away."""
    assert spelling.distance(a, b, most) == min(plain_distance(a, b), most + 1)


@settings(max_examples=20)  # each makes thousands of words
@given(st.text("abeist", min_size=4, max_size=8))
def test_made_words_are_as_far_as_they_say(word: str) -> None:
    """The first letter stays, or is swapped. Where two edits meet, their distance may be one more."""
    for most, made in ((1, spelling.one_edit(word)), (3, spelling.two_edits(word))):
        for other in made:
            assert spelling.distance(word, other, most) <= most
            assert other[0] == word[0] or other[:2] == word[1::-1]


@given(st.text("aeinst", min_size=6, max_size=9), st.data())
def test_every_word_that_is_one_edit_away_is_made(word: str, data: st.DataObject) -> None:
    """No misspelling of one letter is missed, from the second letter on."""
    at = data.draw(st.integers(1, len(word)))
    letter = data.draw(st.sampled_from("abcxyz"))
    edited = {word[:at] + letter + rest for rest in (word[at:], word[at + 1 :])} | {
        word[:at] + word[at + 1 :]
    }
    assert edited <= {word, *spelling.one_edit(word)}


def test_long_words_take_little_time() -> None:
    """Bounded: by the length of a word that is replaced, and by the width of the band."""
    begin = time.process_time()
    assert spelling.distance("ab" * 100, "ba" * 100, 2) == 2
    assert spelling.distance("a" * 200, "b" * 200, 2) == 3
    assert spelling.plain_word(query.Term("a" * 200)) == ""
    assert len(list(spelling.one_edit("a" * 32))) < 2000
    assert len(list(spelling.two_edits("abecidofug" + "abecid"))) < 15_000
    assert time.process_time() - begin < 1


# -------------------------------------------------------------------------------------------- tenants


@postgres.needs_postgres
def test_a_tenant_is_offered_no_word_of_another() -> None:
    """What a scope does not see is not in its library."""
    url = postgres.borrow()
    with Library.open(url, create=True, config=WORDS) as library:
        library.add(content="# Mine\n\nA workload of mine.\n", path="a.md", collection="mine")
        library.add(content="# Secret\n\nThe okapizebra launches.\n", path="s.md", collection="theirs")
        assert asked_for(library, "okapizebro") == "okapizebra"
    with Library.open(f"{url}&collections=mine", config=WORDS) as library:
        assert asked_for(library, "okapizebro workloda") == "okapizebro workload"
    postgres.give_back(url)
