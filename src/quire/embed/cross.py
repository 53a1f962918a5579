"""The cross-encoder that comes with Quire: it reads a question and a passage together.

Input: a question and passages. Output: a logit for each passage, larger if it answers better. Always: a
passage has the same logit whatever else is read, because each is run alone: the int8 model picks its scales
by its input. Of a long passage only the beginning is read.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

from quire.embed.language import is_english
from quire.embed.wordpiece import WordPiece
from quire.errors import EmbeddingError

SHA256 = "85f2dc19d5515563070740e048c115d0d37b27adc0a77e278fa377293a6e4898"  # of the weights
_NAME = "cross-encoder"
_QUESTION = 64  # tokens of a question, its marks included
_ROW = 160  # tokens of a question and a passage: with 224, as in training, it takes half as long again


class CrossEncoder:
    """The model and its vocabulary. Making one loads nothing; its first use does."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or Path(str(files("quire.embed").joinpath("model")))
        self._last: tuple[str, dict[str, float]] = "", {}  # a question and logits: answers are made in pages

    @cached_property
    def _words(self) -> WordPiece:
        return WordPiece((self._folder / "vocab.txt").read_text("utf-8").splitlines())

    @cached_property
    def _session(self) -> Any:
        try:
            import onnxruntime
        except ImportError:
            needs = "Reading results again needs onnxruntime: pip install onnxruntime"
            raise EmbeddingError(_NAME, needs) from None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # passages run side by side instead: less waiting
        options.enable_cpu_mem_arena = False  # it grows with the longest passage and is never freed
        options.log_severity_level = 3
        return onnxruntime.InferenceSession(self._weights(), options, ["CPUExecutionProvider"])

    def _weights(self) -> bytes:
        """The weights. Raises EmbeddingError if they are not those that Quire came with."""
        path = self._folder / "cross.onnx"
        try:
            found = path.read_bytes()
        except OSError as problem:
            raise EmbeddingError(_NAME, f"{path}: {problem.strerror}. Install Quire again") from None
        if hashlib.sha256(found).hexdigest() != SHA256:
            raise EmbeddingError(_NAME, f"{path} is not the file that Quire came with. Install Quire again")
        return found

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
