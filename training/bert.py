"""The bundled BERT as a PyTorch module, read from its int8 weights, and its word pieces."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from tokenizers import BertWordPieceTokenizer
from torch import Tensor, nn
from torch.nn import functional

WIDTH, HEADS, LAYERS, LENGTH, EPSILON = 384, 12, 6, 256, 1e-12
PARTS = ("query", "key", "value")


def tensors_of(model: Path) -> dict[str, Tensor]:
    """The weights of an int8 model that scripts/make_minilm.py wrote, by the names of the original."""
    stored = {one.name: numpy_helper.to_array(one) for one in onnx.load(model).graph.initializer}
    found: dict[str, np.ndarray] = {
        "embeddings.word_embeddings.weight": stored["words"].astype(np.float32) * stored["words.scale"],
        "embeddings.places": stored["places"],
    }
    for name, value in stored.items():
        if name.endswith(".int8"):
            base = name.removesuffix(".int8")
            whole = (value.astype(np.float32) * stored[f"{base}.scale"]).T
            if base.endswith(".attention"):
                for part, some in zip(PARTS, np.split(whole, 3), strict=True):
                    found[f"{base}.self.{part}.weight"] = some
                biases = np.split(stored[f"{base.removesuffix('.attention')}.bias"], 3)
                for part, bias in zip(PARTS, biases, strict=True):
                    found[f"{base}.self.{part}.bias"] = bias
            else:
                found[f"{base}.weight"] = whole
        elif name.endswith((".dense.bias", "LayerNorm.weight", "LayerNorm.bias")):
            found[name] = value
    return {name: torch.tensor(np.ascontiguousarray(value)) for name, value in found.items()}


def rounded(weight: Tensor, widest: int) -> Tensor:
    """A matrix as its int8 form will be, a scale for each row; gradients pass as if it were not rounded."""
    scales = weight.detach().abs().amax(1, keepdim=True).clamp_min(1e-9) / widest
    return weight + (torch.round(weight / scales) * scales - weight).detach()


class Rounded(nn.Linear):
    """A dense layer whose matrix is used as its int8 form will be."""

    def forward(self, state: Tensor) -> Tensor:
        return functional.linear(state, rounded(self.weight, 63), self.bias)


class Layer(nn.Module):
    """One layer of the encoder."""

    def __init__(self, dense: type[nn.Linear]) -> None:
        super().__init__()
        self.query, self.key, self.value = (dense(WIDTH, WIDTH) for _ in PARTS)
        self.attended, self.first = dense(WIDTH, WIDTH), nn.LayerNorm(WIDTH, EPSILON)
        self.wide, self.narrow = dense(WIDTH, 4 * WIDTH), dense(4 * WIDTH, WIDTH)
        self.second = nn.LayerNorm(WIDTH, EPSILON)

    def forward(self, state: Tensor, mask: Tensor) -> Tensor:
        heads = (
            part(state).unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        found = functional.scaled_dot_product_attention(*heads, attn_mask=mask)
        state = self.first(state + self.attended(found.transpose(1, 2).flatten(2)))
        return self.second(state + self.narrow(functional.gelu(self.wide(state), approximate="tanh")))


# Our names of the parts of a layer, and the original's.
_NAMES = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "attended": "attention.output.dense",
    "first": "attention.output.LayerNorm",
    "wide": "intermediate.dense",
    "narrow": "output.dense",
    "second": "output.LayerNorm",
}


class Bert(nn.Module):
    """The encoder. Its output is a vector of length 1 for each text, or a score with a head."""

    def __init__(self, layers: int = LAYERS, *, scores: bool = False, rounds: bool = True) -> None:
        super().__init__()
        self.rounds = rounds
        self.words = nn.Embedding(30522, WIDTH)
        self.places = nn.Parameter(torch.zeros(LENGTH, WIDTH))
        self.norm = nn.LayerNorm(WIDTH, EPSILON)
        self.layers = nn.ModuleList(Layer(Rounded if rounds else nn.Linear) for _ in range(layers))
        self.head = nn.Linear(WIDTH, 1) if scores else None

    def forward(self, ids: Tensor) -> Tensor:
        """Texts as rows of ids, filled up with 0."""
        there = ids != 0
        words = rounded(self.words.weight, 127) if self.rounds else self.words.weight
        state = self.norm(functional.embedding(ids, words) + self.places[: ids.shape[1]])
        for layer in self.layers:
            state = layer(state, there[:, None, None, :])
        kept = there[:, :, None].to(state.dtype)
        mean = (state * kept).sum(1) / kept.sum(1)
        if self.head is not None:
            return self.head(mean).squeeze(-1)
        return functional.normalize(mean.float(), dim=-1)

    def _pairs(self, of: list[int]) -> dict[str, str]:
        """Our names of weights and the original's, where layer n of ours is layer of[n] of it."""
        pairs = {"words.weight": "embeddings.word_embeddings.weight", "places": "embeddings.places"}
        pairs |= {f"norm.{part}": f"embeddings.LayerNorm.{part}" for part in ("weight", "bias")}
        for ours, theirs in enumerate(of):
            for name, original in _NAMES.items():
                for part in ("weight", "bias"):
                    pairs[f"layers.{ours}.{name}.{part}"] = f"encoder.layer.{theirs}.{original}.{part}"
        return pairs

    def take(self, tensors: dict[str, Tensor], of: list[int] | None = None) -> Bert:
        """Take over weights, of some layers."""
        of = of or list(range(len(self.layers)))
        state = {ours: tensors[theirs] for ours, theirs in self._pairs(of).items()}
        self.load_state_dict(state, strict=False)
        return self

    def tensors(self) -> dict[str, Tensor]:
        """The weights, by the names of the original."""
        state = {name: value.detach().float().cpu() for name, value in self.state_dict().items()}
        found = {theirs: state[ours] for ours, theirs in self._pairs(list(range(len(self.layers)))).items()}
        return found | {name: state[name] for name in ("head.weight", "head.bias") if name in state}


def word_pieces(vocabulary: Path) -> BertWordPieceTokenizer:
    return BertWordPieceTokenizer(str(vocabulary), lowercase=True)


def ids_of(pieces: BertWordPieceTokenizer, texts: list[str], length: int) -> list[list[int]]:
    """Texts as ids, with [CLS] and [SEP], cut to a length."""
    found = []
    for start in range(0, len(texts), 10_000):
        some = pieces.encode_batch(texts[start : start + 10_000], add_special_tokens=False)
        found += [[101, *one.ids[: length - 2], 102] for one in some]
    return found


def batch_of(rows: list[list[int]], device: str = "cuda") -> Tensor:
    """Rows of ids, filled up with 0 to a multiple of eight."""
    longest = -(-max(map(len, rows)) // 8) * 8
    made = np.zeros((len(rows), longest), np.int64)
    for at, row in enumerate(rows):
        made[at, : len(row)] = row
    return torch.tensor(made).to(device, non_blocking=True)
