"""Train the models on one GPU, from the bundled weights and the data that prepare.py gathers.

    python -m training.train deep   --data training/data --out training/data/out
    python -m training.train static --data training/data --out training/data/out
    python -m training.train cross  --data training/data --out training/data/out

deep    the bundled BERT, tuned with pairs: other passages of a batch are negatives, and one of the same page;
        a share of the loss keeps its similarities near the original's, so that nothing is forgotten
static  a vector for each word piece, summed: learned from the pairs and from the similarities of deep
cross   reads a question and a passage together: learned from passages that deep takes for near

Each prints its figures on the sets of dev.pkl.xz, and on pairs of repositories that are left out of training.
"""

from __future__ import annotations

import argparse
import json
import lzma
import math
import pickle
import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from training import judge
from training.bert import Bert, batch_of, ids_of, tensors_of, word_pieces

MODEL = Path(__file__).parents[1] / "src" / "quire" / "embed" / "model"
START = Path("training/data/start/model.onnx")  # scripts/make_minilm.py makes it
HELD_OUT = (  # repositories to judge by
    *("docker/docs", "reactjs/react.dev", "sourcegraph/handbook", "openstax/osbooks-physics"),
    *("argoproj/argo-cd", "the-turing-way/the-turing-way"),
)
QUERY, PASSAGE, CHUNK = 64, 192, 256  # tokens
TEMPERATURE = 0.05
WITHOUT_TRAIL = ("heading", "title")  # kinds whose query repeats the trail


def rows_of(path: Path) -> list[Any]:
    with lzma.open(path, "rt", encoding="utf-8") as file:
        return list(map(json.loads, file))


class Data:
    """Pairs as ids of word pieces."""

    def __init__(self, folder: Path, pieces: Any) -> None:
        rows = rows_of(folder / "sections.jsonl.xz")
        self.place = {row[0]: at for at, row in enumerate(rows)}
        self.repo = [row[1] for row in rows]
        self.with_trail = ids_of(pieces, [f"{row[3]}\n{row[4]}" for row in rows], PASSAGE)
        self.bare = ids_of(pieces, [row[4] for row in rows], PASSAGE)
        pages: dict[int, list[int]] = {}
        for at, row in enumerate(rows):
            pages.setdefault(row[2], []).append(at)
        self.beside = [pages[row[2]] for row in rows]
        pairs = rows_of(folder / "pairs.jsonl.xz")
        pairs = [pair for pair in pairs if pair[1] in self.place]
        self.queries = ids_of(pieces, [pair[0] for pair in pairs], QUERY)
        self.section = [self.place[pair[1]] for pair in pairs]
        self.kind = [pair[2] for pair in pairs]
        held = [self.repo[section] in HELD_OUT for section in self.section]
        self.train = [at for at, out in enumerate(held) if not out]
        self.left = [at for at, out in enumerate(held) if out and self.kind[at] in ("link", "question")]
        with lzma.open(folder / "dev.pkl.xz") as file:
            self.dev = pickle.load(file)  # prepare.py wrote it
        self.dev.pop("chroma_chunking", None)  # its answers are parts of chunks
        for dev in self.dev.values():
            _name_alike(dev)
            dev["ids"] = ids_of(pieces, dev["texts"], CHUNK)
            dev["asked"] = ids_of(pieces, [question["text"] for question in dev["questions"]], QUERY)

    def passages(self, pairs: list[int], chance: random.Random) -> list[tuple[bool, int]]:
        """What pairs lead to, and another passage of each page: whether without its trail, and its number.

        A passage has no trail where that would tell too much.
        """
        bare = [self.kind[pair] in WITHOUT_TRAIL for pair in pairs]
        right = [self.section[pair] for pair in pairs]
        return list(zip(bare * 2, right + [self._near(one, chance) for one in right], strict=True))

    def _near(self, own: int, chance: random.Random) -> int:
        others = [one for one in self.beside[own] if one != own]
        return chance.choice(others) if others else chance.randrange(len(self.bare))

    def text(self, place: tuple[bool, int]) -> list[int]:
        return (self.bare if place[0] else self.with_trail)[place[1]]


def _name_alike(dev: dict[str, Any]) -> None:
    """Give the documents of spans and answers the same names: those of answers may begin with a folder."""
    names = {span[0] for span in dev["spans"]}
    for question in dev["questions"]:
        for part in ("gold", "exclude"):
            question[part] = [
                (name if name in names else name.partition("/")[2], start, end)
                for name, start, end in question[part]
            ]


@torch.no_grad()
def embedded(model: nn.Module, rows: list[list[int]], size: int = 1024) -> Tensor:
    """The vectors of rows of ids."""
    order = sorted(range(len(rows)), key=lambda at: len(rows[at]))
    starts = range(0, len(order), size)
    with torch.autocast("cuda", torch.bfloat16):
        batches = (batch_of([rows[at] for at in order[start : start + size]]) for start in starts)
        found = [model(batch).float() for batch in batches]
    back = torch.empty(len(order), dtype=torch.long)
    back[torch.tensor(order)] = torch.arange(len(order))
    return torch.cat(found)[back.to(found[0].device)]


def held_out(model: nn.Module, data: Data) -> float:
    """Mean reciprocal rank of the right section among those of its repository."""
    ranks: list[float] = []
    for repo in HELD_OUT:
        sections = [at for at, name in enumerate(data.repo) if name == repo]
        pairs = [pair for pair in data.left if data.repo[data.section[pair]] == repo][:2000]
        if not pairs:
            continue
        passages = embedded(model, [data.with_trail[at] for at in sections])
        queries = embedded(model, [data.queries[pair] for pair in pairs])
        row = {at: number for number, at in enumerate(sections)}
        right = torch.tensor([row[data.section[pair]] for pair in pairs], device=passages.device)
        scores = queries @ passages.T
        ahead = (scores > scores.gather(1, right[:, None])).sum(1)
        ranks.append(float((1 / (1 + ahead)).mean()))
    return float(np.mean(ranks))


def figures(
    model: nn.Module, data: Data, weights: tuple[float, ...] = (1.0, 1.5, 2.0, 3.0)
) -> dict[str, Any]:
    """How good a model is on each set: by meaning alone, and in hybrid search with some weights."""
    model.eval()
    found: dict[str, Any] = {"held out": round(held_out(model, data), 4)}
    for name, dev in data.dev.items():
        cosines = (embedded(model, dev["asked"]) @ embedded(model, dev["ids"]).T).cpu().numpy()
        alone = judge.hybrid(dev, cosines, 1.0, 0.0)
        found[name] = [round(one, 4) for one in (alone, *(judge.hybrid(dev, cosines, w) for w in weights))]
    found["mean"] = np.mean([found[name] for name in data.dev], axis=0).round(4).tolist()
    model.train()
    return found


def say(what: str, found: dict[str, Any], started: float) -> None:
    print(f"{time.time() - started:6.0f} s  {what}  {json.dumps(found)}", flush=True)


def losses(scores: Tensor, old: Tensor, sections: Tensor) -> tuple[Tensor, Tensor]:
    """How far scores are from the right ones, and from older ones. The right passages come first."""
    same = sections[:, None] == sections[None, :]
    wide = torch.cat([same, torch.zeros_like(same)], 1)
    wrong = contrast(scores, wide) + contrast(scores[:, : len(scores)].T, same)
    moved = functional.kl_div(
        functional.log_softmax(scores / TEMPERATURE, -1),
        functional.softmax(old / TEMPERATURE, -1),
        reduction="batchmean",
    )
    return wrong / 2, moved


def contrast(scores: Tensor, same: Tensor) -> Tensor:
    """The loss of rows whose right column is on the diagonal; others with the same section do not count."""
    rows = torch.arange(len(scores), device=scores.device)
    masked = scores.masked_fill(same, -1e4)
    masked[rows, rows] = scores[rows, rows]
    return functional.cross_entropy(masked / TEMPERATURE, rows)


def tuned(data: Data, weights: Path, started: float, **given: Any) -> Bert:
    """The bundled model, tuned."""
    seed, epochs, rate, keep, size = (given[name] for name in ("seed", "epochs", "rate", "keep", "size"))
    torch.manual_seed(seed)
    chance = random.Random(seed)
    tensors = tensors_of(weights)
    model = Bert(rounds=given["rounds"]).take(tensors).cuda().train()
    original = Bert(rounds=False).take(tensors).cuda().eval()
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01, fused=True)
    steps = epochs * (len(data.train) // size)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: min(1.0, (step + 1) / (0.06 * steps)) * 0.5 * (1 + math.cos(math.pi * step / steps)),
    )
    step = 0
    for _ in range(epochs):
        order = chance.sample(data.train, len(data.train))
        for start in range(0, len(order) - size + 1, size):
            pairs = order[start : start + size]
            asked = batch_of([data.queries[pair] for pair in pairs])
            passages = batch_of([data.text(place) for place in data.passages(pairs, chance)])
            sections = torch.tensor([data.section[pair] for pair in pairs], device="cuda")
            with torch.autocast("cuda", torch.bfloat16):
                q, p = model(asked), model(passages)
                with torch.no_grad():
                    asked_before, before = original(asked), original(passages)
            wrong, moved = losses(q @ p.T, asked_before @ before.T, sections)
            (wrong + keep * moved).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            schedule.step()
            step += 1
            if step % 100 == 0:
                shown = f"wrong {wrong.item():.3f} moved {moved.item():.3f}"
                print(f"{time.time() - started:6.0f} s  step {step}/{steps} {shown}", flush=True)
    return model


def averaged(models: list[Bert]) -> Bert:
    """The mean of the weights of models that began alike."""
    made = Bert(len(models[0].layers)).cuda()
    states = [model.state_dict() for model in models]
    made.load_state_dict({name: torch.stack([state[name] for state in states]).mean(0) for name in states[0]})
    return made


def deep(data: Data, options: argparse.Namespace, started: float) -> None:
    original = Bert(rounds=False).take(tensors_of(options.weights)).cuda()
    say("before", figures(original, data), started)
    models, best = list[Bert](), 0.0
    for given in json.loads(options.runs):
        models.append(tuned(data, options.weights, started, **given))
        best = keep_better(models[-1], data, best, options.out, json.dumps(given), started)
    if len(models) > 1:
        keep_better(averaged(models), data, best, options.out, f"mean of {len(models)}", started)


def keep_better(model: Bert, data: Data, best: float, out: Path, what: str, started: float) -> float:
    """Judge a model, and save it if it is the best so far; returns the best figure."""
    found = figures(model, data)
    say(f"tuned {what}", found, started)
    if found["mean"][2] <= best:
        return best
    torch.save(model.tensors(), out / "deep.pt")
    return float(found["mean"][2])


class Static(nn.Module):
    """A vector for each word piece, with a weight; a text is their sum."""

    def __init__(self, table: Tensor, weights: Tensor) -> None:
        super().__init__()
        self.table, self.weights = nn.Parameter(table), nn.Parameter(weights)

    def forward(self, ids: Tensor) -> Tensor:
        there = (ids != 0) & (ids != 101) & (ids != 102)
        weights = self.weights[ids].exp() * there
        found = functional.embedding_bag(ids, self.table, per_sample_weights=weights, mode="sum")
        return functional.normalize(found, dim=-1, eps=1e-6)

    def whole(self) -> Tensor:
        return self.table.detach().float() * self.weights.detach().float().exp()[:, None]


def teacher_of(options: argparse.Namespace) -> tuple[Bert, dict[str, Tensor]]:
    if options.weights.suffix == ".pt":
        tensors = {name: value.float() for name, value in torch.load(options.weights).items()}
    else:
        tensors = tensors_of(options.weights)
    return Bert().take(tensors).cuda().eval(), tensors


def static(data: Data, options: argparse.Namespace, started: float) -> None:
    teacher, _ = teacher_of(options)
    say("teacher", figures(teacher, data), started)
    pieces = embedded(teacher, [[101, piece, 102] for piece in range(30522)])
    asked = embedded(teacher, data.queries, 4096).half()
    known = torch.stack([embedded(teacher, data.with_trail, 4096), embedded(teacher, data.bare, 4096)]).half()
    print(f"{time.time() - started:6.0f} s  embedded", flush=True)
    counts = np.ones(30522)
    for row in data.with_trail:
        counts[list(set(row))] += 1
    share = torch.tensor(counts / len(data.with_trail)).float().cuda()
    centred = pieces - pieces.mean(0)
    _, _, basis = torch.linalg.svd(centred, full_matrices=False)
    best = 0.0
    for given in json.loads(options.runs):
        torch.manual_seed(given["seed"])
        chance = random.Random(given["seed"])
        table = functional.normalize(centred @ basis[: given["width"]].T, dim=-1)
        model = Static(table.clone(), torch.log(0.003 / (0.003 + share))).cuda()
        optimizer = torch.optim.Adam(model.parameters(), lr=given["rate"])
        size, steps = given["size"], given["epochs"] * (len(data.train) // given["size"])
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        for _ in range(given["epochs"]):
            order = chance.sample(data.train, len(data.train))
            for start in range(0, len(order) - size + 1, size):
                pairs = order[start : start + size]
                places = data.passages(pairs, chance)
                questions = batch_of([data.queries[pair] for pair in pairs])
                passages = batch_of([data.text(place) for place in places])
                sections = torch.tensor([data.section[pair] for pair in pairs], device="cuda")
                rows = torch.tensor(places, device="cuda").long().T
                old = asked[pairs].float() @ known[rows[0], rows[1]].float().T
                scores = model(questions) @ model(passages).T
                wrong, moved = losses(scores, old, sections)
                (wrong + given["keep"] * moved).backward()
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
                schedule.step()
        found = figures(model, data)
        say(f"static {json.dumps(given)}", found, started)
        if max(found["mean"]) > best:
            best = max(found["mean"])
            np.save(options.out / "table.npy", model.whole().half().cpu().numpy())


@torch.no_grad()
def mined(data: Data, teacher: Bert, queries: int, chance: random.Random) -> list[tuple[int, list[int]]]:
    """Pairs, each with sections that the teacher takes for near."""
    some = [pair for pair in data.train if data.kind[pair] in ("link", "question", "anchor")]
    rest = [pair for pair in data.train if data.kind[pair] in ("heading", "title")]
    pairs = chance.sample(some, min(len(some), 2 * queries // 3))
    pairs += chance.sample(rest, queries - len(pairs))
    chance.shuffle(pairs)
    passages = embedded(teacher, data.with_trail)
    asked = embedded(teacher, [data.queries[pair] for pair in pairs])
    found = []
    for start in range(0, len(pairs), 4096):
        nearest = (asked[start : start + 4096] @ passages.T).topk(60).indices.cpu().tolist()
        for pair, near in zip(pairs[start : start + 4096], nearest, strict=True):
            others = [one for one in near[2:] if one != data.section[pair]]
            found.append((pair, chance.sample(others, 7)))
    return found


def both(query: list[int], passage: list[int], length: int) -> list[int]:
    """A question and a passage in one row."""
    return [*[*query, *passage[1:]][: length - 1], 102]


@torch.no_grad()
def reread(model: Bert, data: Data, teacher: Bert, weight: float, length: int) -> dict[str, Any]:
    """How good hybrid search is when its ten best are read again, with some weights of the logit."""
    model.eval()
    found: dict[str, Any] = {}
    for name, dev in data.dev.items():
        cosines = (embedded(teacher, dev["asked"]) @ embedded(teacher, dev["ids"]).T).cpu().numpy()
        orders = [judge.ranked(q, cosines[at], weight) for at, q in enumerate(dev["questions"])]
        rows = [
            both(dev["asked"][at], dev["ids"][one], length)
            for at, order in enumerate(orders)
            for one in order[:20]
        ]
        logits = embedded(model, rows).cpu().numpy()
        figures, place = [], 0
        for share in (0.0, 0.05, 0.1, 0.2):
            each, place = [], 0
            for at, question in enumerate(dev["questions"]):
                head = orders[at][:20]
                logit = logits[place : place + len(head)]
                place += len(head)
                base = _scores(question, cosines[at], weight)
                again = {one: base[one] + share * float(g) for one, g in zip(head, logit, strict=True)}
                head.sort(key=lambda one, again=again: -again[one])
                each.append(judge.judged(dev, question, head + orders[at][20:]))
            figures.append(round(float(np.mean(each)), 4))
        found[name] = figures
    found["mean"] = np.mean([found[name] for name in data.dev], axis=0).round(4).tolist()
    model.train()
    return found


def _scores(question: dict[str, Any], cosines: np.ndarray, weight: float) -> dict[int, float]:
    best = max((score for _, score in question["words"]), default=1.0) or 1.0
    words = {chunk: score / best for chunk, score in question["words"]}

    class Scores(dict[int, float]):
        def __missing__(self, chunk: int) -> float:
            near = weight * float(cosines[chunk]) if cosines[chunk] >= judge.MIN_COSINE else 0.0
            return words.get(chunk, 0.0) + near

    return Scores()


def cross(data: Data, options: argparse.Namespace, started: float) -> None:
    (teacher, tensors), chance = teacher_of(options), random.Random(1)
    lists = mined(data, teacher, options.queries, chance)
    print(f"{time.time() - started:6.0f} s  mined {len(lists)}", flush=True)
    best = None
    for given in json.loads(options.runs):
        torch.manual_seed(given["seed"])
        layers = given["layers"]
        model = Bert(len(layers), scores=True).take(tensors, layers).cuda().train()
        optimizer = torch.optim.AdamW(model.parameters(), lr=given["rate"], weight_decay=0.01, fused=True)
        size, steps = given["size"], len(lists) // given["size"]
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda at, of=steps: min(1.0, (at + 1) / (0.06 * of)) * (1 - at / (of + 1))
        )
        for start in range(0, len(lists) - size + 1, size):
            rows = []
            for pair, others in lists[start : start + size]:
                texts = data.bare if data.kind[pair] in WITHOUT_TRAIL else data.with_trail
                rows += [
                    both(data.queries[pair], texts[one], given["length"])
                    for one in (data.section[pair], *others)
                ]
            with torch.autocast("cuda", torch.bfloat16):
                scores = model(batch_of(rows)).float().reshape(-1, 8)
            loss = functional.cross_entropy(scores, torch.zeros(len(scores), dtype=torch.long, device="cuda"))
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            schedule.step()
            if start // size % 200 == 0:
                print(
                    f"{time.time() - started:6.0f} s  step {start // size}/{steps} loss {loss.item():.3f}",
                    flush=True,
                )
        found = reread(model, data, teacher, options.weight, given["length"])
        say(f"cross {json.dumps(given)}", found, started)
        torch.save(model.tensors(), options.out / f"cross{len(layers)}.pt")
        if best is None or max(found["mean"]) > best[0]:
            best = max(found["mean"]), given
    print(f"best {best}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("deep", "static", "cross"))
    parser.add_argument("--data", type=Path, default=Path("training/data"))
    parser.add_argument("--out", type=Path, default=Path("training/data/out"))
    parser.add_argument("--runs", default="", help="JSON: a list of the settings of each run")
    parser.add_argument("--weights", type=Path, default=START, help="of the model to begin with")
    parser.add_argument("--queries", type=int, default=100_000, help="of the cross-encoder")
    parser.add_argument("--sample", type=int, default=0, help="train with so many pairs; to try it out")
    parser.add_argument(
        "--weight", type=float, default=1.5, help="of the cosine, when the best are read again"
    )
    options = parser.parse_args()
    options.runs = options.runs or RUNS[options.what]
    options.out.mkdir(parents=True, exist_ok=True)
    started = time.time()
    torch.set_float32_matmul_precision("highest")
    data = Data(options.data, word_pieces(MODEL / "vocab.txt"))
    data.train = data.train[: options.sample or None]
    print(
        f"{time.time() - started:6.0f} s  {len(data.train):,} pairs, {len(data.left):,} held out", flush=True
    )
    {"deep": deep, "static": static, "cross": cross}[options.what](data, options, started)


RUNS = {
    "deep": json.dumps(
        [
            {"seed": seed, "epochs": 2, "rate": 5e-5, "keep": 0.4, "size": 1024, "rounds": True}
            for seed in (1, 2)
        ]
    ),
    "static": json.dumps([{"seed": 1, "epochs": 4, "rate": 5e-3, "keep": 1.0, "size": 2048, "width": 256}]),
    "cross": json.dumps(
        [{"seed": 1, "rate": 5e-5, "size": 128, "length": 224, "layers": [0, 1, 2, 3, 4, 5]}]
    ),
}


if __name__ == "__main__":
    main()
