"""A BERT on this machine: `deep`, the model that comes with Quire, or another in a folder.

Input: texts. Output: vectors of length 1. Always: a text has the same vector whatever else is embedded,
because each text is run alone: the int8 model picks its scales by its input. A text that is too long for
the model is run in windows; its vector is their mean.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quire.config import EmbedSettings
from quire.embed.base import DEEP, loaded_once
from quire.embed.language import is_english
from quire.embed.weights import session, weights
from quire.embed.wordpiece import WordPiece, is_cased
from quire.errors import EmbeddingError

if TYPE_CHECKING:
    from quire.embed.base import Vectors

_DIMENSION = 384
_MAX_TOKENS = 256
_SAMPLED = 1 << 20  # bytes at each end of the weights: reading all would take longer than a search


def weights_digest(model: Path, vocabulary: Path) -> str:
    """Eight digits that change with a model: its words, its size, and the ends of its weights."""
    found = hashlib.blake2b(vocabulary.read_bytes(), digest_size=4)
    with model.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        for place in (0, max(0, size - _SAMPLED)):
            file.seek(place)
            found.update(file.read(_SAMPLED))
    found.update(str(size).encode())
    return found.hexdigest()


class Bert:
    """A BERT model: Quire's own, or `model.onnx` and `vocab.txt` in a folder."""

    def __init__(self, settings: EmbedSettings, folder: str | None = None) -> None:
        self.settings, self._folder = settings, Path(folder or "")
        if folder is None:
            self.name = DEEP
            return
        self.name = f"folder/{Path(folder).resolve()}"
        model, vocabulary = self._files
        self.name += f"@{weights_digest(model, vocabulary)}"  # other weights, another model

    @loaded_once
    def _files(self) -> tuple[Path, Path]:
        """The weights and the vocabulary."""
        if self.name == DEEP:
            return weights("deep.onnx"), weights("vocab.txt")
        vocabulary = self._folder / "vocab.txt"
        for name in ("model.onnx", "onnx/model.onnx"):
            if (model := self._folder / name).is_file() and vocabulary.is_file():
                return model, vocabulary
        raise EmbeddingError(self.name, "the folder must hold model.onnx (or onnx/model.onnx) and vocab.txt")

    @loaded_once
    def dimension(self) -> int:
        """The dimension of its vectors."""
        return _DIMENSION if self.name == DEEP else len(self.embed_query("dimension"))

    @loaded_once
    def max_tokens(self) -> int:
        """The most tokens that the model reads at once."""
        said = self._said("sentence_bert_config.json").get("max_seq_length", _MAX_TOKENS)
        if not isinstance(said, int) or said < 8:
            raise EmbeddingError(self.name, f"sentence_bert_config.json: max_seq_length cannot be {said!r}")
        return said

    def _said(self, name: str) -> dict[str, Any]:
        """The content of a JSON file in the folder; empty if there is none."""
        if self.name == DEEP:
            return {}
        try:
            said = json.loads((self._folder / name).read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return said if isinstance(said, dict) else {}

    @loaded_once
    def _takes_first(self) -> bool:
        """Whether the vector of a text is that of its first token (CLS pooling), not the mean of all."""
        return bool(self._said("1_Pooling/config.json").get("pooling_mode_cls_token", False))

    @loaded_once
    def _words(self) -> WordPiece:
        try:
            pieces = self._files[1].read_text("utf-8").splitlines()
            lowers = self._said("tokenizer_config.json").get("do_lower_case", not is_cased(pieces))
            return WordPiece(pieces, cased=not lowers)
        except UnicodeDecodeError:
            raise EmbeddingError(self.name, "vocab.txt is not UTF-8: it is not of a BERT model") from None
        except KeyError as missing:
            raise EmbeddingError(
                self.name, f"vocab.txt has no {missing}: it is not of a BERT model"
            ) from None

    @loaded_once
    def _session(self) -> Any:
        return session(self.name, self._files[0])

    @loaded_once
    def _is_english(self) -> bool:
        """Whether the model has the vocabulary of English BERT models; any other may know more languages."""
        return self.name == DEEP or self._words.ids.keys() == Bert(self.settings)._words.ids.keys()

    def knows(self, text: str) -> bool:
        """Whether the model knows the language of a question."""
        return not self._is_english or is_english(text, self._words.ids)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """A vector for each text."""
        import numpy as np

        if not texts:
            return np.empty((0, self.dimension), np.float32)
        _ = self._session, self._words  # loaded once, before threads use them
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            return np.stack(list(pool.map(self._embed, (self.settings.document_prefix + t for t in texts))))

    def embed_query(self, text: str) -> Vectors:
        """The vector of a question."""
        return self._embed(self.settings.query_prefix + text)

    def _embed(self, text: str) -> Vectors:
        import numpy as np

        pieces, size = self._words.pieces(text), self.max_tokens - 2
        windows = [pieces[at : at + size] for at in range(0, len(pieces), size)] or [[]]
        found = sum(max(1, len(window)) * self._run(window) for window in windows)
        return np.asarray(found / np.linalg.norm(found), np.float32)

    def _run(self, pieces: list[int]) -> Any:
        import numpy as np

        ids = np.array([[self._words.first, *pieces, self._words.last]])
        known = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        try:
            wanted = {one.name: known[one.name] for one in self._session.get_inputs()}
            found = self._session.run(None, wanted)[0][0]
        except Exception as problem:  # onnxruntime's errors have no common class
            raise EmbeddingError(self.name, f"{self._files[0]} cannot be run: {problem}") from None
        if found.ndim == 1:
            return found
        return found[0] if self._takes_first else found.mean(axis=0)

    def close(self) -> None:
        """Close the model."""
        self.__dict__.pop("_session", None)
