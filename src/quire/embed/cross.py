"""The cross-encoder that comes with Quire: it reads a question and a passage together.

Input: a question and passages. Output: a logit for each passage, larger if it answers better. Always: a
passage has the same logit whatever else is read, because each is run alone: the int8 model picks its scales
by its input. Of a long passage only the beginning is read.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from quire.embed.base import loaded_once
from quire.embed.language import is_english
from quire.embed.weights import session, weights
from quire.embed.wordpiece import WordPiece

_NAME = "cross-encoder"  # in messages
_QUESTION = 64  # tokens of a question, its marks included
_ROW = 160  # tokens of a question and a passage: with 224, as in training, it takes half as long again


class CrossEncoder:
    """The model and its vocabulary. Making one loads nothing; its first use does."""

    def __init__(self) -> None:
        self._last: tuple[str, dict[str, float]] = "", {}  # a question and logits: answers are made in pages

    @loaded_once
    def _words(self) -> WordPiece:
        return WordPiece(weights("vocab.txt").read_text("utf-8").splitlines())

    @loaded_once
    def _session(self) -> Any:
        return session(_NAME, weights("cross.onnx"))

    def knows(self, text: str) -> bool:
        """Whether the model knows the language of a question."""
        return is_english(text, self._words.ids)

    def logits(self, question: str, passages: Sequence[str]) -> list[float]:
        """How well each passage answers a question. Raises EmbeddingError if the model cannot be used."""
        _ = self._session  # loaded once, before threads use it
        asked, known = self._last
        known = known if asked == question else {}
        new = [text for text in dict.fromkeys(passages) if text not in known]
        rows = [self._row(question, text) for text in new]
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            read = pool.map(self._run, rows)
            known = known | dict(zip(new, read, strict=True))
        self._last = question, known
        return [known[text] for text in passages]

    def _row(self, question: str, passage: str) -> list[int]:
        """A question and a passage in one row, as in training."""
        words = self._words
        asked = [words.first, *words.pieces(question)[: _QUESTION - 2], words.last]
        return [*[*asked, *words.pieces(passage), words.last][: _ROW - 1], words.last]

    def _run(self, row: list[int]) -> float:
        import numpy as np

        return float(self._session.run(None, {"input_ids": np.array([row])})[0][0, 0])

    def close(self) -> None:
        """Close the model."""
        self.__dict__.pop("_session", None)
