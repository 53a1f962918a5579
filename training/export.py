"""Trained weights to the files that Quire loads.

    pip install numpy onnx
    python -m training.export deep   deep.npz   deep.onnx      vectors of texts
    python -m training.export cross  cross6.npz cross.onnx     a score of a question and a passage in one row
    python -m training.export static table.npy  static.npy     a scale and int8 numbers for each word piece

The graphs are those of scripts/make_minilm.py: matrices stay the int8 numbers that training used.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper
from scripts.make_minilm import FUSED, Graph


def tensors_of(path: Path) -> dict[str, np.ndarray]:
    """The weights of a packed file, by the names of the original."""
    packed = dict(np.load(path))
    found = {
        name: value.astype(np.float32) * packed.get(f"{name}.scale", 1)
        for name, value in packed.items()
        if not name.endswith(".scale")
    }
    found["embeddings.position_embeddings.weight"] = found.pop("embeddings.places")
    found["embeddings.token_type_embeddings.weight"] = np.zeros((2, 384), np.float32)
    return found


def graph_of(tensors: dict[str, np.ndarray], name: str) -> onnx.ModelProto:
    """Ids of word pieces in; out comes the mean of what they became, or what the head makes of it."""
    graph, scores = Graph(tensors), "head.weight" in tensors
    found = graph.words()
    layers = {name.split(".")[2] for name in tensors if name.startswith("encoder.layer.")}
    for number in range(len(layers)):
        found = graph.layer(number, found)
    mean = graph.add("ReduceMean", found, axes=[1], keepdims=0)
    if scores:
        head = (
            graph.constant("head", tensors["head.weight"].T),
            graph.constant("head.bias", tensors["head.bias"]),
        )
        mean = graph.add("Add", graph.add("MatMul", mean, head[0]), head[1])
    result = "scores" if scores else "vectors"
    graph.nodes.append(helper.make_node("Identity", [mean], [result]))
    ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["texts", "length"])
    out = helper.make_tensor_value_info(result, TensorProto.FLOAT, ["texts", 1 if scores else 384])
    made = helper.make_graph(graph.nodes, name, [ids], [out], graph.constants)
    versions = [helper.make_opsetid("", 17), helper.make_opsetid(FUSED, 1)]
    return helper.make_model(made, opset_imports=versions, ir_version=8, producer_name="quire")


def main() -> None:
    what, source, target = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    if what == "static":
        table = np.load(source).astype(np.float32)
        scales = np.maximum(np.abs(table).max(1, keepdims=True), 1e-9) / 127
        rows = np.rint(table / scales).astype(np.int8)
        np.save(target, np.hstack([scales.astype("<f4").view(np.uint8), rows.view(np.uint8)]))
    else:
        onnx.save(graph_of(tensors_of(source), f"quire {what} int8"), target)


if __name__ == "__main__":
    main()
