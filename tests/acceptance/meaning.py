"""A server of vectors that tell which words a text has: texts with a word in common are alike in meaning."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Barrier, BrokenBarrierError
from typing import Any

import quire
from quire.config import override
from tests.models_server import Handler, Models, fine, serving

FAINT = 0.01  # so that a text with none of the words has a vector too


def vector(text: str, words: tuple[str, ...], dimension: int = 0) -> list[float]:
    """How often each word is in a text."""
    row = [float(text.lower().count(word)) for word in words]
    return [*row, FAINT, *[0.0] * (dimension - len(row) - 1)]


@contextmanager
def knowing(*words: str, dimension: int = 0) -> Iterator[Models]:
    """A server of a model that knows some words."""
    with serving() as models:

        def answer(handler: Handler, texts: list[str]) -> None:
            handler.send_rows([vector(text, words, dimension) for text in texts])

        models.always = answer
        yield models


def config(models: Models, changes: Mapping[str, Any] | None = None) -> quire.Config:
    """Settings that use such a server, as an Ollama."""
    asked = override(quire.Config(), {"embed": {"model": "ollama/words", "url": models.url}})
    return override(asked, changes or {})


@contextmanager
def answering_together(number: int) -> Iterator[Models]:
    """A server that answers when so many requests are there. If they come one by one, it answers none."""
    barrier = Barrier(number)

    def answer(handler: Handler, texts: list[str]) -> None:
        try:
            barrier.wait(timeout=5)
        except BrokenBarrierError:
            handler.send(500, b"alone")
        else:
            fine(handler, texts)

    with serving() as models:
        models.always, models.next = answer, deque([fine])  # the first asks for the dimension
        models.pause = 0.02  # so that one request too many would be seen
        yield models
