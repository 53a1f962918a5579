"""Embedding by a server: every row against a real one that misbehaves."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from quire.config import EmbedSettings
from quire.embed import http
from quire.embed.http import Ollama, OpenAI
from quire.errors import EmbeddingError, SettingError
from tests import models_server as server
from tests.models_server import DIMENSION, Models, serving, vector

if TYPE_CHECKING:
    from quire.embed.base import Embedder, Vectors

KEY = "sk-very-secret-0123456789"
Shape = type[Ollama] | type[OpenAI]


class Time:
    """A clock that stands still but for the sleeps, which it keeps."""

    def __init__(self) -> None:
        self.now, self.slept = 1000.0, list[float]()

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def models() -> Iterator[Models]:
    with serving() as models:
        yield models


@pytest.fixture
def watch() -> Time:
    return Time()


@pytest.fixture
def make(models: Models, watch: Time) -> Iterator[Callable[..., Any]]:
    """Makes embedders that ask the server, sleep in no time, and are closed before it is."""
    made = []

    def make(
        shape: Shape = Ollama, *, clock: Callable[[], float] = time.monotonic, key: str = "", **options: Any
    ) -> Any:
        url = models.url if shape is Ollama else f"{models.url}/v1"
        made.append(shape("m", EmbedSettings(url=url, key=key, **options), sleep=watch.sleep, clock=clock))
        return made[-1]

    yield make
    for embedder in made:
        embedder.close()


@pytest.fixture(params=[Ollama, OpenAI])
def both(request: pytest.FixtureRequest, make: Callable[..., Any]) -> Any:
    """The test is run with either shape."""
    return make(request.param)


def expected(*texts: str) -> Vectors:
    """What the server gives for each text, at length 1."""
    rows = np.array([vector(text) for text in texts], np.float32)
    unit: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def failure(ask: Callable[[], object]) -> EmbeddingError:
    with pytest.raises(EmbeddingError) as caught:
        ask()
    return caught.value


# ------------------------------------------------------------------------------------- what goes well


def test_each_text_gets_its_vector_of_length_1(both: Embedder) -> None:
    """One float32 vector for each text, in order; the model says how long."""
    vectors = both.embed_documents(["one fish", "two fish", ""])
    assert vectors.dtype == np.float32
    assert vectors.shape == (3, both.dimension) == (3, DIMENSION)
    np.testing.assert_allclose(vectors, expected("one fish", "two fish", " "), atol=1e-6)
    np.testing.assert_allclose(both.embed_query("red fish"), expected("red fish")[0], atol=1e-6)
    assert both.max_tokens == 512


def test_requests_are_what_each_server_expects(models: Models, make: Callable[..., Any]) -> None:
    """FIELD_NOTES: the two shapes; the key goes in its header, and only when there is one."""
    make(Ollama).embed_query("a")
    make(OpenAI, key=f"{KEY}\n").embed_query("")
    ollama, openai = models.asked
    assert (ollama.path, ollama.body) == ("/api/embed", {"model": "m", "input": ["a"], "truncate": False})
    assert (openai.path, openai.body) == ("/v1/embeddings", {"model": "m", "input": [" "]})
    assert "Authorization" not in ollama.headers
    assert openai.headers["Authorization"] == f"Bearer {KEY}"


def test_names_and_defaults() -> None:
    """DESIGN §7: `ollama` and `openai` have a model and a server of their own; making one asks nothing."""
    with Ollama("", EmbedSettings()) as ollama, OpenAI("", EmbedSettings()) as openai:
        assert (ollama.name, openai.name) == ("ollama/mxbai-embed-large", "openai/text-embedding-3-small")


def test_prefixes_go_before_questions_and_documents(models: Models, make: Callable[..., Any]) -> None:
    """DESIGN §7: some models want to know which of the two a text is; so does each window."""
    embedder = make(query_prefix="ask: ", document_prefix="doc: ", max_tokens=64)
    embedder.embed_query("a")
    embedder.embed_documents(["b", "word " * 60])
    assert models.inputs[0] == ["ask: a"]
    assert len(models.inputs[1]) > 2
    assert all(text.startswith("doc: ") for text in models.inputs[1])
    assert all(http._reach(text, 0, 64 - 2) == len(text) for text in models.inputs[1])


def test_the_dimension_is_asked_for_once(models: Models, both: Embedder) -> None:
    """SEEDS H: the model's dimension is checked at start."""
    assert [both.dimension, both.dimension] == [DIMENSION, DIMENSION]
    assert models.inputs == [["dimension"]]


def test_no_texts_give_no_vectors(models: Models, both: Embedder) -> None:
    """An empty list is asked for only to learn the dimension."""
    assert both.embed_documents([]).shape == (0, DIMENSION)
    assert both.embed_documents([]).shape == (0, DIMENSION)
    assert len(models.asked) == 1


def test_items_that_come_out_of_order_are_sorted(models: Models, make: Callable[..., Any]) -> None:
    """FIELD_NOTES: sort by `index`."""
    models.always = server.backwards
    texts = ["one", "two", "three"]
    np.testing.assert_allclose(make(OpenAI).embed_documents(texts), expected(*texts), atol=1e-6)


def test_parallel_batches_keep_the_order_and_the_bound(models: Models, make: Callable[..., Any]) -> None:
    """Embedding is parallel and bounded."""
    models.pause = 0.02
    texts = [f"text number {number}" for number in range(100)]
    vectors = make(batch=3, parallel=4).embed_documents(texts)
    np.testing.assert_allclose(vectors, expected(*texts), atol=1e-6)
    assert max(map(len, models.inputs)) == 3
    assert 2 <= models.busiest <= 4


def test_the_bound_of_ollama_is_for_ollama(models: Models, make: Callable[..., Any]) -> None:
    """003: OLLAMA_NUM_PARALLEL bounds the requests to an Ollama server."""
    models.pause = 0.02
    texts = [f"text number {number}" for number in range(40)]
    make(batch=2, parallel=8, ollama_parallel=1).embed_documents(texts)
    assert models.busiest == 1
    make(OpenAI, batch=2, parallel=8, ollama_parallel=1).embed_documents(texts)
    assert models.busiest > 1


def test_a_request_holds_no_more_tokens_than_openai_takes(models: Models, make: Callable[..., Any]) -> None:
    """FIELD_NOTES: at most 300,000 tokens a request."""
    make(OpenAI, batch=2048, max_tokens=100_000).embed_documents(["word"] * 7)
    assert sorted(map(len, models.inputs)) == [1, 3, 3]


def test_a_closed_embedder_opens_again(both: Any) -> None:
    """Closing lets go of connections and of nothing else."""
    before = both.embed_query("a")
    both.close()
    both.close()
    assert (both.embed_query("a") == before).all()


def test_proxies_of_the_environment_are_not_used(both: Embedder, monkeypatch: pytest.MonkeyPatch) -> None:
    """FIELD_NOTES: environment proxies off."""
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{server.closed_port()}")
    assert both.dimension == DIMENSION


def test_text_that_is_no_unicode_can_be_asked_for(models: Models, both: Embedder) -> None:
    """BAD_INPUTS: NUL, emoji and half a character get an answer."""
    both.embed_documents(["\0", "🙂", "\ud800"])
    assert models.inputs == [["\0", "🙂", "\ud800"]]


# ------------------------------------------------------------------------------------------ long texts


def test_every_part_of_a_long_text_counts(models: Models, make: Callable[..., Any]) -> None:
    """The tail of a long document is never lost."""
    text = "".join(f"word{number} " for number in range(300))
    (found,) = make(max_tokens=64).embed_documents([text])
    (windows,) = models.inputs
    assert "".join(windows) == text
    assert all(window.endswith(" ") for window in windows)
    mean = np.average(expected(*windows), axis=0, weights=[len(window) for window in windows])
    np.testing.assert_allclose(found, mean / np.linalg.norm(mean), atol=1e-6)


@given(st.text(st.sampled_from("ab Z9.\n é한好🙂\u0301\u200d"), max_size=400), st.integers(14, 60))
def test_windows_join_to_the_text_and_fit(text: str, room: int) -> None:
    """Windows leave nothing out, and none is over the limit."""
    windows = http._windows(text, room)
    assert "".join(windows) == text
    assert all(http._reach(window, 0, room) == len(window) for window in windows)
    assert windows == [""] or all(windows)


@pytest.mark.parametrize(
    ("text", "tokens"), [("abcdefg", 3), ("a b", 2), ("x=10;", 5), ("好好", 2), ("한", 3), ("a\n\n\nb", 3)]
)
def test_tokens_are_counted_on_the_safe_side(text: str, tokens: int) -> None:
    """A window that is too long would lose its tail to the server without a word."""
    assert http._reach(text, 0, tokens) == len(text)
    assert http._reach(text, 0, tokens - 1) < len(text)


def test_a_megabyte_without_a_space_is_cut_in_no_time() -> None:
    """BAD_INPUTS: one line of any length: bounded windows, bounded time."""
    begun = time.perf_counter()
    for text in ("a" * 1_000_000, " " * 1_000_000, "好" * 300_000):
        assert max(map(len, http._windows(text, 500))) <= 16 * 500
    assert time.perf_counter() - begun < 5


# ------------------------------------------------------------------------------------------- refusals


def test_one_text_that_is_refused_leaves_the_others_their_vectors(models: Models, both: Embedder) -> None:
    """FIELD_NOTES: one failing input fails the request. Issue 4: 400 on one input."""
    models.refuses = lambda text: "bad" in text
    texts = [f"text {number}" for number in range(20)]
    texts[7], texts[13] = "bad", "also bad"
    error = failure(lambda: both.embed_documents(texts))
    assert error.refused == (7, 13)
    assert "2 of 20" in str(error)
    assert "400" in str(error)
    assert "context length" in str(error)
    assert error.vectors is not None
    assert np.isnan(error.vectors[[7, 13]]).all()
    rest = [place for place in range(20) if place not in (7, 13)]
    np.testing.assert_allclose(error.vectors[rest], expected(*texts)[rest], atol=1e-6)


@pytest.mark.parametrize("code", [400, 413, 422])
def test_a_request_that_is_refused_is_made_again_in_halves(
    models: Models, both: Embedder, watch: Time, code: int
) -> None:
    """DESIGN §7: bisect on 400; without any wait."""
    models.next.append(server.status(code))
    texts = ["one", "two", "three"]
    np.testing.assert_allclose(both.embed_documents(texts), expected(*texts), atol=1e-6)
    assert models.inputs == [texts, ["dimension"], ["one"], ["two", "three"]]
    assert watch.slept == []


def test_a_text_that_is_too_long_for_the_server_is_cut_until_it_fits(models: Models, both: Embedder) -> None:
    """Over-long input gives 400 even with truncate."""
    models.refuses = lambda text: len(text) > 100
    text = "".join(f"word{number} " for number in range(60))
    (found,) = both.embed_documents([text])
    taken = [each for (each,) in models.inputs if len(each) <= 100 and each != "dimension"]
    assert "".join(taken) == text
    assert len(taken) > 4
    assert found @ expected(text)[0] > 0.9


def test_a_text_that_is_always_refused_is_given_up_soon(models: Models, make: Callable[..., Any]) -> None:
    """A text is cut down to 64 characters; when its first part is given up, so is the rest."""
    models.refuses = lambda text: "bad" in text
    error = failure(lambda: make(max_tokens=2000).embed_documents(["bad " * 500]))
    assert error.refused == (0,)
    assert [len(text) for (text,) in models.inputs if text != "dimension"] == [2000, 1000, 500, 248, 124, 60]


def test_a_server_that_refuses_everything_is_not_asked_for_every_text(models: Models, both: Embedder) -> None:
    """A chat model that cannot embed gives 400 to all: that is one error, with the server's own words."""
    models.always = server.status(400, '{"error": "this model does not support embeddings"}')
    error = failure(lambda: both.embed_documents(["text"] * 500))
    assert "does not support embeddings" in str(error)
    assert error.refused == ()
    assert len(models.asked) == 2


def test_a_question_that_is_refused_is_an_error(models: Models, both: Embedder) -> None:
    """BAD_INPUTS: a clear message, whatever the question."""
    models.refuses = lambda text: text == "bad"
    assert "question cannot be embedded" in str(failure(lambda: both.embed_query("bad")))


# --------------------------------------------------------------------------------------- wrong answers

BAD_NUMBERS: list[object] = [float("nan"), float("inf"), -float("inf"), None, "1.0", True, [1.0], 10**400, {}]


@pytest.mark.parametrize("bad", BAD_NUMBERS, ids=lambda bad: repr(bad)[:9])
def test_what_is_no_finite_number_is_no_vector(models: Models, both: Embedder, bad: object) -> None:
    """Issue 4: NaN. The other texts keep their vectors."""
    models.next.append(server.rows(lambda rows: [rows[0], [*rows[1][:-1], bad], rows[2]]))
    error = failure(lambda: both.embed_documents(["one", "two", "three"]))
    assert error.refused == (1,)
    assert "finite number" in str(error)
    assert error.vectors is not None
    np.testing.assert_allclose(error.vectors[[0, 2]], expected("one", "three"), atol=1e-6)


def test_a_zero_vector_is_no_vector(models: Models, both: Embedder) -> None:
    """A vector without a direction is near nothing and far from nothing."""
    models.always = server.rows(lambda rows: [[0] * DIMENSION for _ in rows])
    assert failure(lambda: both.embed_documents(["one"])).refused == (0,)
    assert "all zeros" in str(failure(lambda: both.embed_query("one")))


def test_whole_numbers_are_numbers(models: Models, both: Embedder) -> None:
    """JSON has one kind of number: 0 and 1 are as good as 0.0 and 1.0."""
    models.next.append(server.rows(lambda rows: [[int(2 * number) for number in row] for row in rows]))
    np.testing.assert_allclose(both.embed_documents(["one", "two"]), expected("one", "two"), atol=1e-6)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20).filter(any))
def test_any_finite_numbers_get_length_1(numbers: list[float]) -> None:
    """Very large and very small numbers are numbers too."""
    assert np.linalg.norm(np.asarray(http._unit(numbers), np.float64)) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("change", [lambda rows: rows[:-1], lambda rows: rows * 2, lambda rows: []])
def test_too_few_or_too_many_vectors_are_refused(models: Models, both: Embedder, change: Any) -> None:
    """A vector must never stand for another text."""
    models.next.append(server.rows(change))
    error = failure(lambda: both.embed_documents(["one", "two"]))
    assert re.search(r"vectors? for 2 texts", str(error))


def test_another_dimension_is_refused_with_the_command_that_helps(models: Models, both: Embedder) -> None:
    """BAD_INPUTS: embedding dimension changed → refused, with the command that re-embeds."""
    both.embed_query("one")
    models.dimension = 5
    error = failure(lambda: both.embed_documents(["one"]))
    assert f"expected vectors of {DIMENSION} numbers, got 5" in str(error)
    assert f"quire embed --model {both.name}" in str(error)
    assert both.dimension == DIMENSION


def test_vectors_of_two_dimensions_in_one_answer_are_refused(models: Models, both: Embedder) -> None:
    """Such an answer does not decide the dimension either."""
    models.next.append(server.rows(lambda rows: [rows[0][:4], rows[1]]))
    assert "expected vectors of 4 numbers" in str(failure(lambda: both.embed_documents(["one", "two"])))
    assert both.dimension == DIMENSION


PAGE = "<!doctype html>\n\t<title>Sign in\0</title>" + "<p>x</p>" * 100


@pytest.mark.parametrize(
    "body",
    [
        PAGE,
        "",
        "null",
        "[]",
        "7",
        '"embeddings"',
        '{"error": "?"}',
        '{"embeddings": null, "data": null}',
        '{"embeddings": {"0": 1}, "data": {"0": 1}}',
        '{"embeddings": [7], "data": [7]}',
        '{"embeddings": [[]], "data": [{"index": 0, "embedding": []}]}',
        '{"embeddings": ["abc"], "data": [{"index": 1, "embedding": [1]}]}',
        '{"embeddings": "a", "data": [{"embedding": [1]}]}',
        "[" * 100_000,
        '{"embeddings": [[1',
        "\ufeff{}",
    ],
    ids=lambda body: body[:20] or "nothing",
)
def test_an_answer_of_another_shape_is_shown(models: Models, both: Embedder, body: str) -> None:
    """Issue 4: HTML. The message has the URL, the status, the content type and how it begins."""
    models.next.append(server.said(body, Content_Type="text/html; charset=utf-8"))
    error = failure(lambda: both.embed_query("one"))
    for part in (models.url, "status 200", "text/html; charset=utf-8", "embed.url"):
        assert part in str(error)
    assert len(str(error)) < 300
    assert str(error).isprintable()
    assert len(models.asked) == 1


def test_a_page_is_shown_by_its_first_words(models: Models, both: Embedder) -> None:
    """BAD_INPUTS: HTML instead of JSON."""
    models.next.append(server.said(PAGE))
    assert "'<!doctype html> <title>Sign in </title><p>x</p>" in str(failure(lambda: both.dimension))


@pytest.mark.parametrize("code", [204, 301, 307, 405, 501])
def test_other_statuses_are_errors_and_redirects_are_not_followed(
    models: Models, both: Embedder, code: int
) -> None:
    """The key goes to no other server."""
    models.next.append(server.status(code, "" if code == 204 else "{}", Location=f"{models.url}/elsewhere"))
    assert f"status {code}" in str(failure(lambda: both.embed_query("one")))
    assert len(models.asked) == 1


def test_an_answer_without_end_is_refused_on_the_way(
    models: Models, both: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BAD_INPUTS: stopped at the cap, which is named."""
    monkeypatch.setattr(http, "MOST_BYTES", 5_000_000)
    models.next.append(server.huge)
    assert "more than 5,000,000 bytes" in str(failure(lambda: both.embed_query("one")))
    assert len(models.asked) == 1


# --------------------------------------------------------------------------------- models and keys


def test_a_model_that_is_not_there(models: Models, make: Callable[..., Any]) -> None:
    """Issue 4: 404 model."""
    models.always = server.status(404, '{"error": "model \\"m\\" not found, try pulling it first"}')
    assert "ollama pull m." in str(failure(lambda: make(Ollama).embed_query("one")))
    assert "embed.model" in str(failure(lambda: make(OpenAI).embed_query("one")))
    assert len(models.asked) == 2


@pytest.mark.parametrize("code", [401, 403])
def test_a_wrong_key(models: Models, both: Embedder, code: int) -> None:
    """BAD_INPUTS: 401, 403 → error, no retry."""
    models.always = server.status(code)
    error = failure(lambda: both.embed_documents(["one"] * 100))
    assert "embed.key or QUIRE_EMBED_KEY" in str(error)
    assert len(models.asked) == 1


@pytest.mark.parametrize("code", [200, 302, 400, 401, 404, 429, 500])
@pytest.mark.parametrize("shape", [Ollama, OpenAI])
def test_the_key_is_in_no_message(models: Models, make: Callable[..., Any], shape: Shape, code: int) -> None:
    """No error shows the key, even if the server says it; nor does the embedder."""
    models.always = server.echo(code)
    embedder = make(shape, key=KEY)
    errors = [failure(lambda: embedder.embed_documents(["one"])) for _ in range(2)]
    assert models.asked[0].headers["Authorization"] == f"Bearer {KEY}"
    for shown in (*map(str, errors), *map(repr, errors), repr(embedder)):
        assert KEY[:12] not in shown


def test_a_key_that_is_cut_off_is_not_shown_in_part(models: Models, make: Callable[..., Any]) -> None:
    """The key is taken out before a message is cut."""
    for before in (60, 4090):
        models.next.append(server.said("x" * 60 + " " * (before - 60) + KEY))
        error = failure(partial(make(key=KEY).embed_query, "one"))
        assert "xxx" in str(error)
        assert "sk-" not in str(error)


@pytest.mark.parametrize("key", ["a\nb", "schlüssel", "a\0"])
def test_a_key_that_cannot_be_sent_is_refused_unseen(key: str) -> None:
    """A header that cannot be sent would be shown by the client's own error."""
    with pytest.raises(SettingError) as caught:
        Ollama("", EmbedSettings(key=key))
    assert "embed.key" in str(caught.value)
    assert key not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    ["ftp://h", "file:/etc", "localhost:11434", "h", "http://", "http://h:99999", "http://h:0", "http://[::1",
     "http://h?a=1", "http://h#a", "http://h?", "http://u:secret@h", "https://secret@h/v1", "u:secret@h"],
)  # fmt: skip
def test_a_url_that_is_no_server_is_refused(url: str) -> None:
    """BAD_INPUTS: other schemes and credentials are refused, and not shown."""
    with pytest.raises(SettingError, match=r"embed\.url") as caught:
        OpenAI("", EmbedSettings(url=url))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", [f"http://{'a' * 64}.test", "http://a..b", "http://1.2.3.999", "http://a\tb"])
def test_a_url_that_no_name_server_takes_is_an_error_of_the_setting(url: str) -> None:
    """No error of a library gets out."""
    with Ollama("", EmbedSettings(url=url)) as embedder, pytest.raises(SettingError, match=r"embed\.url"):
        embedder.embed_query("one")


@pytest.mark.parametrize(
    "wrong", [{"timeout": 0}, {"timeout": float("nan")}, {"batch": 0}, {"batch": 2049}, {"parallel": 0},
              {"max_tokens": 10}, {"max_tokens": 400_000}, {"query_prefix": "x" * 129}]
)  # fmt: skip
def test_settings_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    """BAD_INPUTS: error that names the range."""
    with pytest.raises(SettingError, match=next(iter(wrong))):
        EmbedSettings(**wrong)


# ---------------------------------------------------------------------------------- servers that fail


@pytest.mark.parametrize("reply", [*map(server.status, (429, 500, 502, 503, 504)), server.reset])
def test_what_fails_once_is_tried_again(
    models: Models, both: Embedder, watch: Time, reply: server.Reply
) -> None:
    """SEEDS H: 3 retries (1, 2, 4 s)."""
    models.next += [reply, reply, reply]
    np.testing.assert_allclose(both.embed_query("one"), expected("one")[0], atol=1e-6)
    assert watch.slept == [1, 2, 4]


def test_what_fails_for_ever_is_given_up(models: Models, both: Embedder, watch: Time) -> None:
    """Issue 4: 500. The error says what was tried, and the cause."""
    models.always = server.status(500, '{"error": "out of memory"}')
    error = failure(lambda: both.embed_documents(["one"] * 100))
    assert "tried once, again after 1 s, again after 2 s, again after 4 s: status 500" in str(error)
    assert "out of memory" in str(error)
    assert error.refused == ()
    assert len(models.asked) == 4


def in_seconds(seconds: float) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


@pytest.mark.parametrize(
    ("asked", "low", "high"),
    [
        ("7", 7, 7),
        ("0", 1, 1),
        ("60", 60, 60),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 1, 1),
        ("soon", 1, 1),
        ("-5", 1, 1),
        ("nan", 1, 1),
    ],
)
def test_the_wait_that_is_asked_for_is_kept(
    models: Models, both: Embedder, watch: Time, asked: str, low: float, high: float
) -> None:
    """Issue 4: 429 with Retry-After, in seconds or as a date."""
    models.next.append(server.status(429, Retry_After=asked))
    both.embed_query("one")
    assert len(watch.slept) == 1
    assert low <= watch.slept[0] <= high


def test_the_wait_may_be_a_date(models: Models, both: Embedder, watch: Time) -> None:
    """Issue 4: 429 with Retry-After, in seconds or as a date."""
    models.next.append(server.status(503, Retry_After=in_seconds(30)))
    both.embed_query("one")
    assert 20 < watch.slept[0] <= 30


@pytest.mark.parametrize("asked", ["61", "9" * 5000, "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_a_wait_that_is_too_long_is_an_error(models: Models, both: Embedder, watch: Time, asked: str) -> None:
    """A server that asks for more than 60 s is given up at once."""
    models.always = server.status(429, Retry_After=asked)
    error = failure(lambda: both.embed_query("one"))
    assert f"Retry-After {asked[:20]}" in str(error)
    assert (len(models.asked), watch.slept) == (1, [])


@given(st.text(max_size=40) | st.from_regex(r"[A-Z][a-z]{2}, \d+ [A-Z][a-z]{2} \d+ \d+:\d+:\d+ \S*"))
def test_any_retry_after_is_some_number_of_seconds(said: str) -> None:
    """What a server says raises nothing."""
    assert not math.isnan(http._seconds(said))


def test_nobody_listens(watch: Time) -> None:
    """BAD_INPUTS: Ollama down."""
    with Ollama(
        "", EmbedSettings(url=f"http://127.0.0.1:{server.closed_port()}"), sleep=watch.sleep
    ) as embedder:
        error = failure(lambda: embedder.embed_query("one"))
    assert "refused" in str(error)
    assert "ollama serve" in str(error)
    assert watch.slept == [1, 2, 4]


@pytest.mark.parametrize("reply", [server.hang, server.drip])
def test_an_answer_that_does_not_come_in_time(
    models: Models, make: Callable[..., Any], watch: Time, reply: server.Reply
) -> None:
    """Issue 4: hang. BAD_INPUTS: slow drip → total deadline."""
    models.always = reply
    embedder, begun = make(timeout=0.15), time.perf_counter()
    error = failure(lambda: embedder.embed_query("one"))
    assert "no whole answer within 0.15 s" in str(error)
    assert watch.slept == [1, 2, 4]
    assert 0.6 <= time.perf_counter() - begun < 4


@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl makes the certificate")
@pytest.mark.parametrize("scheme", ["https", "HTTPS"])
def test_a_server_with_a_certificate_of_its_own_making_gets_no_text(
    tmp_path: Path, watch: Time, scheme: str
) -> None:
    """The key and the texts go only to the server that is named."""
    pem = tmp_path / "server.pem"
    make = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1"
    subprocess.run(
        ["openssl", *make.split(), "-keyout", pem, "-out", tmp_path / "cert"], check=True, capture_output=True
    )
    pem.write_bytes(pem.read_bytes() + (tmp_path / "cert").read_bytes())
    with serving(pem) as models:
        url = f"{scheme}://127.0.0.1:{models.port}/v1"
        with OpenAI("m", EmbedSettings(url=url, key=KEY), sleep=watch.sleep) as embedder:
            error = failure(lambda: embedder.embed_query("one"))
    assert "certificate" in str(error).lower()
    assert models.asked == []


# ----------------------------------------------------------------------------------------- the breaker


def test_a_server_that_failed_rests_then_is_tried_by_one(
    models: Models, make: Callable[..., Any], watch: Time
) -> None:
    """SEEDS H: circuit breaker: at once the same message for 30 s, then one request."""
    embedder = make(clock=watch.clock)
    models.always = server.status(503)
    cause = str(failure(lambda: embedder.embed_query("one"))).removeprefix("ollama/m: ")
    assert (
        str(failure(lambda: embedder.embed_query("two"))) == f"ollama/m: is resting for 30 s after: {cause}"
    )
    watch.now += 29.5
    assert "is resting for 1 s after" in str(failure(lambda: embedder.embed_documents(["two"] * 100)))
    assert len(models.asked) == 4

    watch.now += 0.5
    failure(lambda: embedder.embed_query("two"))
    assert len(models.asked) == 8
    assert "is resting for 30 s" in str(failure(lambda: embedder.embed_query("two")))
    assert len(models.asked) == 8

    watch.now += 30
    models.always = None
    assert len(embedder.embed_documents(["two"] * 1000)) == 1000
    assert embedder.embed_query("two").shape == (DIMENSION,)


def test_only_one_request_tries_a_server_that_rested(watch: Time) -> None:
    """While that one is under way, the others are told to wait."""
    breaker = http._Breaker(watch.clock)
    assert breaker.resting() == breaker.resting() == ""
    breaker.end("it is down")
    watch.now += 30
    assert breaker.resting() == ""
    assert "it is down" in breaker.resting()
    breaker.end()
    assert breaker.resting() == breaker.resting() == ""


def test_an_answer_of_any_kind_ends_the_rest(models: Models, make: Callable[..., Any], watch: Time) -> None:
    """A server that refuses a key is not down."""
    embedder = make(clock=watch.clock)
    models.next += [server.status(500)] * 4
    failure(lambda: embedder.embed_query("one"))
    watch.now += 30
    models.next.append(server.status(401))
    assert "embed.key" in str(failure(lambda: embedder.embed_query("one")))
    assert embedder.dimension == DIMENSION


@effort(max_examples=20)
@given(st.lists(st.text(max_size=200), max_size=20), st.integers(1, 8), st.integers(1, 4))
def test_any_texts_get_one_vector_each(texts: list[str], batch: int, parallel: int) -> None:
    """Whatever the texts and the batches, each text has the vector it has alone."""
    with serving() as models:
        settings = EmbedSettings(url=models.url, batch=batch, parallel=parallel, max_tokens=64)
        with Ollama("m", settings) as embedder:
            vectors = embedder.embed_documents(texts)
            assert vectors.shape == (len(texts), DIMENSION)
            for text, found in zip(texts, vectors, strict=True):
                np.testing.assert_allclose(embedder.embed_query(text), found, atol=1e-6)
