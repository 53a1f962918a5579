"""The files of the models that come with Quire, each compared with its SHA-256 before it is used."""

from __future__ import annotations

import hashlib
import os
from functools import cache
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any

from quire.errors import EmbeddingError

_FOLDER = Path(__file__).with_name("model")
SHA256 = {
    "cross.onnx": "85f2dc19d5515563070740e048c115d0d37b27adc0a77e278fa377293a6e4898",
    "deep.onnx": "27d810e436a9322e618342a0e803effd4d817e1e3aab0910cbfcb7ca739fa5e9",
    "static.npy": "28bbed2830c646ec2fcb3f5f51169bdde843cb10d22e582d160675a84855528f",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
}


@cache
def weights(name: str) -> Path:
    """The path of a file that comes with Quire. Raises EmbeddingError if it is not what was released."""
    path = _FOLDER / name
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as problem:
        raise EmbeddingError(name, f"{path} cannot be read: {problem.strerror}. {_AGAIN}") from None
    if found != SHA256[name]:
        raise EmbeddingError(name, f"{path} is damaged: its SHA-256 is {found[:12]}…. {_AGAIN}")
    return path


_AGAIN = "Install Quire again: pip install --force-reinstall --no-deps quire-docs"
_NO_TELEMETRY = ("ORT_DISABLE_TELEMETRY", "ORT_TELEMETRY_DISABLED")  # its names in newer and older versions
_importing = Lock()  # another thread would take the variables that are set for the user's own
NO_RUNTIME = "needs onnxruntime, which is not installed: pip install onnxruntime"


def session(model: str, path: Path) -> Any:
    """A model that onnxruntime runs. Raises EmbeddingError if it cannot, or is not installed."""
    try:
        onnxruntime = _runtime()
    except ImportError:
        raise EmbeddingError(model, NO_RUNTIME) from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # texts run side by side instead: less waiting
    options.enable_cpu_mem_arena = False  # it grows with the longest text and is never freed
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])
    except Exception as problem:  # onnxruntime's errors have no common class
        raise EmbeddingError(model, f"{path} cannot be run: {problem}") from None


def _runtime() -> Any:
    """Onnxruntime without its telemetry, which is on by default in its newer versions.

    It decides once, when it is imported, and would keep an id of the machine in the user's cache folder.
    """
    with _importing:
        before = {name: os.environ.get(name) for name in _NO_TELEMETRY}
        os.environ.update(dict.fromkeys(_NO_TELEMETRY, "1"))
        try:
            return import_module("onnxruntime")
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
