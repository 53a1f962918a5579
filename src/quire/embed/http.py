"""Texts to vectors by a server with the API of Ollama or of OpenAI.

Always: one vector of length 1 for each text, in order, as float32, all of one dimension; no part of a long
text is left out; every answer is checked before it is used; no message holds the key. One call has at most
`parallel` requests in flight. A request to a server that is down is retried; then the server gets a pause.
"""

from __future__ import annotations

import json
import math
import re
import shlex
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self
from urllib.parse import urlsplit

from quire.config import MOST_TOKENS, EmbedSettings
from quire.embed.base import unit
from quire.errors import EmbeddingError, SettingError
from quire.plural import counted
from quire.sentences import word_edge

if TYPE_CHECKING:
    import httpx2

    from quire.embed.base import Vectors

    Outcome = Vectors | str  # the vector of a text, or why it has none

WAITS = (1.0, 2.0, 4.0)  # seconds before each retry
LONGEST_WAIT = 60.0  # seconds; if a server asks for more, Quire gives up
REST = 30.0  # seconds without requests after giving up
MOST_BYTES = 64_000_000  # of one answer
SHORTEST = 64  # characters; a refused text is not cut smaller

_PASSING = frozenset({429, 500, 502, 503, 504})
_REFUSING = frozenset({400, 413, 422})

# Pieces that are seldom more than one token. In windows of 2,000 characters of the Kubernetes documents,
# WordPiece made more tokens than pieces in 0.1 %, and more than one token for four characters in 82 %.
_PIECE = re.compile(r"[A-Za-z]{1,3}|[^\sA-Za-z]|\s{2,16}")
_HANGUL = re.compile("[가-힣]")  # WordPiece spells out its letters, up to three
_MARKS = 2  # tokens that a model puts around a text


class _Passing(Exception):
    """A failure that a retry may fix."""

    def __init__(self, why: str, wait: float = 0.0) -> None:
        self.wait = wait  # seconds, as the server asks
        super().__init__(why)


class _Refused(Exception):
    """The server refuses these texts."""


class _Answer(NamedTuple):
    status: int
    type: str  # of its content
    retry_after: str
    body: bytes


class _Breaker:
    """Let every request through until one fails for good; from then on, one in REST seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._lock = clock, Lock()
        self._cause, self._until = "", 0.0
        self.is_answered = False  # whether the last finished request got an answer

    def resting(self) -> str:
        """Why no request may be sent now; empty if one may."""
        with self._lock:
            left = self._until - self._clock()
            if self._cause and left > 0:
                return f"is resting for {math.ceil(left)} s after: {self._cause}"
            self._until = self._clock() + REST
            return ""

    def end(self, cause: str = "") -> None:
        """Record that a request was answered, or why it was not."""
        with self._lock:
            self._cause, self._until, self.is_answered = cause, self._clock() + REST, not cause


class _Server(ABC):
    """What both APIs have in common."""

    shape: ClassVar[str]
    default_model: ClassVar[str]
    default_url: ClassVar[str]
    path: ClassVar[str]
    options: ClassVar[dict[str, object]] = {}
    when_down: ClassVar[str]
    when_unknown: ClassVar[str]

    def __init__(
        self,
        model: str,
        settings: EmbedSettings,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._model, self._settings = model or self.default_model, settings
        self._key = _checked_key(settings.key)
        self._url = _checked_url(settings.url or self.default_url) + self.path
        self._sleep, self._clock, self._breaker = sleep, clock, _Breaker(clock)
        self._lock, self._learning = Lock(), Lock()
        self._dimension = 0  # until the first answer
        self._client: httpx2.Client | None = None
        self.name = f"{self.shape}/{self._model}"
        self.max_tokens = settings.max_tokens

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            if self._client:
                self._client.close()
            self._client = None

    @property
    def dimension(self) -> int:
        """The dimension of its vectors, known from the first answer."""
        with self._learning:
            if not self._dimension:
                try:
                    self._ask(["dimension"])
                except _Refused as refusal:
                    raise self._error(f"refuses every text. Is it a model that embeds? {refusal}") from None
        return self._dimension

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """A vector for each text.

        Raises EmbeddingError; if some texts are refused, it has their places and the vectors of the others.
        """
        import numpy as np

        outcomes = self._embed(texts, self._settings.document_prefix)
        vectors = np.full((len(texts), self.dimension), np.nan, np.float32)
        refused: dict[int, str] = {}
        for place, outcome in enumerate(outcomes):
            if isinstance(outcome, str):
                refused[place] = outcome
            else:
                vectors[place] = outcome
        if refused:
            first, why = next(iter(refused.items()))
            problem = (
                f"{len(refused):,} of {counted(len(texts), 'text')} cannot be embedded. At {first}: {why}"
            )
            raise EmbeddingError(self.name, problem, tuple(refused), vectors)
        return vectors

    def knows(self, text: str) -> bool:  # noqa: ARG002
        """True: nobody can tell which languages a model behind HTTP knows."""
        return True

    def embed_query(self, text: str) -> Vectors:
        """The vector of a question, as a 1-D array."""
        (outcome,) = self._embed([text], self._settings.query_prefix)
        if isinstance(outcome, str):
            raise self._error(f"the question cannot be embedded. {outcome}")
        return outcome

    def _embed(self, texts: Sequence[str], prefix: str) -> list[Outcome]:
        """The outcome for each text."""
        room = self.max_tokens - _MARKS - sum(map(_tokens, _PIECE.findall(prefix)))
        windows = [_windows(text, room) for text in texts]
        parts = list(chain.from_iterable(windows))
        size = min(self._settings.batch, MOST_TOKENS // self.max_tokens)
        outcomes = self._take_all([parts[at : at + size] for at in range(0, len(parts), size)], prefix)
        return [_mean(each, list(islice(outcomes, len(each)))) for each in windows]

    def _take_all(self, batches: list[list[str]], prefix: str) -> Iterator[Outcome]:
        from concurrent.futures import ThreadPoolExecutor

        def take(batch: list[str]) -> list[Outcome]:
            return self._take(batch, prefix)

        # A server that may be down gets one request first; and waiting for one answer needs no thread.
        alone = 1 if len(batches) == 1 or not self._breaker.is_answered else 0
        with ThreadPoolExecutor(self._parallel) as pool:
            return chain.from_iterable([*map(take, batches[:alone]), *pool.map(take, batches[alone:])])

    @property
    def _parallel(self) -> int:
        """The most requests in flight."""
        return self._settings.parallel

    def _take(self, texts: list[str], prefix: str) -> list[Outcome]:
        """The outcome for each part. A refused batch is halved; a refused text is cut in halves."""
        try:
            return self._ask([prefix + text for text in texts])
        except _Refused as refusal:
            _ = self.dimension  # raises if the server refuses even that
            if len(texts) == 1 and len(texts[0]) <= SHORTEST:
                return [str(refusal)]
        if len(texts) > 1:
            half = len(texts) // 2
            return self._take(texts[:half], prefix) + self._take(texts[half:], prefix)
        middle = word_edge(texts[0], 0, len(texts[0]) // 2)
        halves = [texts[0][:middle], texts[0][middle:]]
        outcomes = self._take(halves[:1], prefix)
        if not isinstance(outcomes[0], str):
            outcomes += self._take(halves[1:], prefix)
        return [_mean(halves, outcomes)]

    def _ask(self, texts: list[str]) -> list[Outcome]:
        """The result of one request for each text. Raises _Refused."""
        answer = self._answer([text or " " for text in texts])  # OpenAI takes no empty text
        self._check_status(answer)
        try:
            rows = self._rows(json.loads(answer.body, parse_int=float))  # a number of 400 digits is infinite
            if not all(isinstance(row, list) and row for row in rows):
                raise TypeError
        except (LookupError, TypeError, ValueError, RecursionError):
            raise self._strange(answer) from None
        if len(rows) != len(texts):
            raise self._error(
                f"{self._url} gave {counted(len(rows), 'vector')} for {counted(len(texts), 'text')}."
            )
        self._check_dimension(rows)
        return [_unit(row) for row in rows]

    @abstractmethod
    def _rows(self, answer: Any) -> list[Any]:
        """The vectors in an answer, in order; raises LookupError, TypeError or ValueError if it has none."""

    def _check_status(self, answer: _Answer) -> None:
        said = f"{self._url} gave {self._told(answer)}"
        if answer.status in _REFUSING:
            raise _Refused(said)
        if answer.status in (401, 403):
            raise self._error(f"the key is wrong or missing. Set embed.key or QUIRE_EMBED_KEY. {said}")
        if answer.status == 404:
            raise self._error(f"model not found. {self.when_unknown.format(model=self._model)}. {said}")
        if answer.status != 200:
            raise self._strange(answer)

    def _check_dimension(self, rows: list[list[Any]]) -> None:
        with self._lock:
            expected = self._dimension or len(rows[0])
            wrong = [len(row) for row in rows if len(row) != expected]
            if not wrong:
                self._dimension = expected
        if wrong:
            raise self._error(
                f"expected vectors of {expected:,} numbers, got {wrong[0]:,}: the model is not what it was. "
                f"Embed everything again with: quire embed --model {shlex.quote(self.name)}"
            )

    def _answer(self, texts: list[str]) -> _Answer:
        """The answer to one request, with retries while they may help."""
        if resting := self._breaker.resting():
            raise self._error(resting)
        waited: list[float] = []
        while True:
            try:
                answer = self._post(texts)
                self._breaker.end()
                return answer
            except _Passing as failure:
                wait = max(WAITS[len(waited)], failure.wait) if len(waited) < len(WAITS) else math.inf
                if wait > LONGEST_WAIT:
                    raise self._given_up(failure, waited) from None
            self._sleep(wait)
            waited.append(wait)

    def _given_up(self, failure: _Passing, waited: list[float]) -> EmbeddingError:
        waits = "".join(f", again after {wait:.0f} s" for wait in waited)
        cause = f"{self._url} cannot be used: tried once{waits}: {failure}. {self.when_down}"
        self._breaker.end(cause)
        return self._error(cause)

    def _post(self, texts: list[str]) -> _Answer:
        """One request. Raises _Passing."""
        import httpx2

        content = json.dumps({"model": self._model, "input": texts, **self.options})
        deadline = self._clock() + self._settings.timeout
        try:
            with self._connections().stream("POST", self._url, content=content) as response:
                answer = self._read(response, deadline)
        except httpx2.TimeoutException:
            raise _Passing(f"no whole answer within {self._settings.timeout:g} s") from None
        except httpx2.RequestError as problem:
            raise _Passing(str(problem) or type(problem).__name__) from None
        except (httpx2.InvalidURL, UnicodeError):
            raise SettingError("embed.url", f"there can be no server at {self._url}") from None
        if answer.status in _PASSING:
            raise _Passing(self._told(answer), _seconds(answer.retry_after))
        return answer

    def _connections(self) -> httpx2.Client:
        import httpx2

        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        with self._lock:
            if not self._client:
                self._client = httpx2.Client(
                    headers=headers,
                    timeout=self._settings.timeout,
                    follow_redirects=False,
                    trust_env=False,
                    verify=not self._url.startswith("http:"),  # loading certificates takes 30 ms
                )
            return self._client

    def _read(self, response: httpx2.Response, deadline: float) -> _Answer:
        import httpx2

        body, headers = bytearray(), response.headers
        for part in response.iter_bytes():
            body += part
            if len(body) > MOST_BYTES:
                raise self._error(f"{self._url} gave more than {MOST_BYTES:,} bytes. Lower embed.batch.")
            if self._clock() > deadline:  # the client's own timeout restarts with every part
                raise httpx2.ReadTimeout("")
        kind, wait = headers.get("content-type", "no content type"), headers.get("retry-after", "")
        return _Answer(response.status_code, kind, wait, bytes(body))

    def _error(self, problem: str) -> EmbeddingError:
        return EmbeddingError(self.name, problem)

    def _strange(self, answer: _Answer) -> EmbeddingError:
        return self._error(f"{self._url} gave no vectors but {self._told(answer)}. Check embed.url.")

    def _told(self, answer: _Answer) -> str:
        wait = f"Retry-After {answer.retry_after}, " if answer.retry_after else ""
        about = self._shown(f"{wait}{answer.type}".encode())
        return f"status {answer.status}, {about}, {self._shown(answer.body)!r}"

    def _shown(self, said: bytes) -> str:
        """The first printable characters of a server's answer, without the key that it may hold."""
        if self._key:
            said = said.replace(self._key.encode(), b"(key)")
        text = said[:4096].decode("utf-8", "replace")
        return " ".join("".join(char if char.isprintable() else " " for char in text).split())[:80]


class Ollama(_Server):
    """A model of an Ollama server."""

    shape, default_model = "ollama", "mxbai-embed-large"
    default_url, path = "http://localhost:11434", "/api/embed"
    options: ClassVar[dict[str, object]] = {"truncate": False}  # it answers 400, and we cut the text
    when_down = "Is it running? Start it with: ollama serve"
    when_unknown = "Fetch it with: ollama pull {model}"

    @property
    def _parallel(self) -> int:
        return self._settings.ollama_parallel or self._settings.parallel

    def _rows(self, answer: Any) -> list[Any]:
        return list(answer["embeddings"])


class OpenAI(_Server):
    """A model of OpenAI, or of any server with its API."""

    shape, default_model = "openai", "text-embedding-3-small"
    default_url, path = "https://api.openai.com/v1", "/embeddings"
    when_down = "Check the network and embed.url, or try again later"
    when_unknown = "There is no {model} there: check embed.model and embed.url"

    def _rows(self, answer: Any) -> list[Any]:
        items = sorted(answer["data"], key=lambda item: item["index"])
        if [item["index"] for item in items] != list(range(len(items))):
            raise ValueError
        return [item["embedding"] for item in items]


def _checked_url(url: str) -> str:
    """A URL without a trailing slash. No message shows a wrong URL: it may hold a password."""
    try:
        parts = urlsplit(url)
        is_server = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_server = False
    if not is_server or "?" in url or "#" in url:
        raise SettingError("embed.url", "must be the address of a server, such as http://localhost:11434")
    if "@" in parts.netloc:
        raise SettingError("embed.url", "holds a user name or password. Use embed.key or QUIRE_EMBED_KEY")
    return url.rstrip("/")


def _checked_key(key: str) -> str:
    key = key.strip()
    if not (key.isascii() and key.isprintable()):
        raise SettingError("embed.key", "holds characters that cannot be sent. Copy it again")
    return key


def _seconds(retry_after: str) -> float:
    """How long a server asks to wait; 0 if it does not say."""
    from datetime import UTC, datetime
    from email.utils import parsedate_to_datetime

    if re.fullmatch(r"[0-9]+", retry_after):
        return float(retry_after)
    try:
        return (parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds()
    except (TypeError, ValueError):
        return 0.0


def _windows(text: str, room: int) -> list[str]:
    """A text in parts of a limited number of tokens, cut between words if possible; they join to the text."""
    windows, start = [], 0
    while (reach := _reach(text, start, room)) < len(text):
        end = word_edge(text, start, reach)
        windows.append(text[start:end])
        start = end
    return [*windows, text[start:]]


def _reach(text: str, start: int, room: int) -> int:
    for piece in _PIECE.finditer(text, start):
        room -= _tokens(piece[0])
        if room < 0:
            return piece.start()
    return len(text)


def _tokens(piece: str) -> int:
    return 3 if _HANGUL.match(piece) else 1


def _mean(texts: Sequence[str], outcomes: list[Outcome]) -> Outcome:
    """The vector of a text from those of its parts, each weighted by its length."""
    import numpy as np

    for outcome in outcomes:
        if isinstance(outcome, str) or len(outcomes) == 1:
            return outcome
    return _unit(np.average(np.array(outcomes), axis=0, weights=[len(text) for text in texts]))


def _unit(numbers: Sequence[Any] | Vectors) -> Outcome:
    """Numbers as a vector of length 1."""
    vector = unit(numbers) if all(isinstance(number, float) for number in numbers) else None
    if vector is None:
        return "Its vector is all zeros, or holds something that is not a finite number."
    return vector
