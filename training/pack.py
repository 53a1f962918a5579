"""Weights as they will be stored: matrices as int8 with a scale for each row.

python -m training.pack deep.pt deep.npz
"""

from __future__ import annotations

import sys

import numpy as np
import torch


def main() -> None:
    packed: dict[str, np.ndarray] = {}
    for name, value in torch.load(sys.argv[1]).items():
        whole = value.float().numpy()
        if whole.ndim == 2 and len(whole) > 1 and name != "embeddings.places":
            widest = 127 if "word_embeddings" in name else 63
            scales = np.maximum(np.abs(whole).max(1, keepdims=True), 1e-9) / widest
            packed[name], packed[f"{name}.scale"] = np.rint(whole / scales).astype(np.int8), scales
        else:
            packed[name] = whole
    np.savez(sys.argv[2], **packed)


if __name__ == "__main__":
    main()
