"""The map of a library: how many neighbours it keeps, and how long it takes.

    python -m bench.map [--data FOLDER]

Each document has ten nearest others by the cosine of their vectors. Kept is the share of them that are among
its ten nearest on the map too. The first two principal components are the plainest picture to compare with.
The 10,000 documents are chunks of the Kubernetes and Rust documentation, each as a document of its own. Times
are processor time.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

from quire import projection, regions
from quire.config import DEFAULT, override
from quire.library import Library
from quire.projection import Floats, Rows
from quire.stores import active_model

SETS = ("docs_links_kubernetes", "docs_links_rust")
MANY = 10_000
INSTANT = override(DEFAULT, {"embed": {"model": "static"}})
T = TypeVar("T")


def timed(work: Callable[[], T]) -> tuple[T, float]:
    start = time.process_time()
    return work(), time.process_time() - start


def kept(places: Floats, truth: Rows) -> float:
    """The share of the ten nearest by meaning that are among the ten nearest of a picture."""
    shares = []
    for row, near in enumerate(truth[:, :10]):
        distances = np.square(places - places[row]).sum(axis=1)
        distances[row] = np.inf
        shares.append(len(set(np.argpartition(distances, 10)[:10]) & set(near)) / 10)
    return float(np.mean(shares))


def measured(name: str, library: Library) -> str:
    """A row of the table."""
    store, rows = library.store, library.documents()
    model = active_model(store.models(), instant=True)
    assert model is not None
    found, reading = timed(lambda: store.document_vectors(model, [row.seq for row in rows]))
    vectors = np.stack(list(found.values()))
    drawn, drawing = timed(lambda: projection.project(vectors))
    names = [(row.title, row.path) for row in rows if row.seq in found]
    _, naming = timed(lambda: regions.labels(drawn.places, names))
    _, whole = timed(library.map)
    shares = [kept(places, drawn.near.rows) for places in (drawn.places, projection.components(vectors))]
    times = " | ".join(f"{seconds:.2f} s" for seconds in (reading, drawing, naming, whole))
    return f"| {name} | {len(vectors):,} | {shares[0]:.3f} | {shares[1]:.3f} | {times} |"


def many(data: Path, folder: Path, library: Library) -> None:
    """A library whose documents are chunks of others."""
    texts: list[str] = []
    for name in SETS:
        with Library.open(":memory:", create=True, config=INSTANT) as other:
            other.add(data / name / "docs")
            texts += [chunk.text for row in other.documents() for chunk in other.chunks(row.address)]
    for number, text in enumerate(texts[-MANY:]):
        (folder / f"{number}.md").write_text(text, "utf-8")
    library.add(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("shared/eval"))
    data = parser.parse_args().data
    print("| documents | number | kept by the map | by two components | vectors | places | labels | all |")
    print("|---|---|---|---|---|---|---|---|")
    for name in SETS:
        with Library.open(":memory:", create=True, config=INSTANT) as library:
            library.add(data / name / "docs")
            print(measured(name, library), flush=True)
    opened = Library.open(":memory:", create=True, config=INSTANT)
    with tempfile.TemporaryDirectory() as folder, opened as library:
        many(data, Path(folder), library)
        print(measured("chunks of both", library))


if __name__ == "__main__":
    main()
