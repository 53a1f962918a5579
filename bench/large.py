"""Large documents and large libraries: memory and processor time, each in a process of its own.

    python -m bench.large [document passages status list refresh optimize cold …] [--size 50] [--files 10000]

The texts are the pages of `docs`, in which a seed replaces some words in every copy.

document   how much more memory `quire add` of one file takes than of a small one: the peaks of all processes
passages   20 passages of that document, as one answer reads them
status     `quire status`, and with --check
list       `quire list`, in time and memory
refresh    `quire add` of a folder again with one file changed, and of one in which all files have a new time
optimize   what deleting half of a library and `quire optimize` leave of its file
cold       `quire search` against `python -c "import sqlite3"`: the least processor time of 20 runs

Seconds are of the processor, of all processes that a command starts; the smallest of a few runs.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent.parent / "docs"
SEED, SALT = 20, 0.05  # the share of words that are others in a copy
PART = 6000  # bytes of a file in the folder, about
_WORD = re.compile(r"([^\W\d_]{3,})")
MB = 1_000_000


def texts() -> Iterator[str]:
    """Sections of the pages, without end; each is a little different from all others."""
    pages = [page.read_text() for page in sorted(DOCS.glob("*.md"))]
    parts = [_WORD.split(part) for page in pages for part in re.split(r"\n(?=## )", page)]
    words = [word for pieces in parts for word in pieces[1::2]]
    draw, number = random.Random(SEED), 0
    while True:
        for pieces in parts:
            changed, places = pieces[:], range(1, len(pieces), 2)
            for place in draw.sample(places, round(SALT * len(places))):
                changed[place] = draw.choice(words)
            number += 1
            title, _, rest = "".join(changed).partition("\n")
            yield f"{title} {number}\n{rest}\n"


def make_document(path: Path, size: int) -> None:
    """Write one document of at least so many bytes."""
    with path.open("w") as file:
        parts = texts()
        while file.tell() < size:
            file.write(next(parts))


def make_folder(folder: Path, files: int) -> None:
    """Write a folder of small documents."""
    parts = texts()
    for number in range(files):
        text = ""
        while len(text) < PART:
            text += next(parts)
        path = folder / f"{number // 100:03}" / f"{number % 100:02}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Page {number}\n\n{text}")


def run(*command: str) -> tuple[float, int]:
    """Processor seconds and peak bytes of a command: its own peak and that of its largest worker."""
    code = (
        "import os, resource, sys; sys.argv = ['quire', *sys.argv[1:]]\n"
        "from quire.surfaces.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "sys.stdout.flush()\n"
        "a, b = (resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))\n"
        "t = a.ru_utime + a.ru_stime + b.ru_utime + b.ru_stime\n"
        "os.write(2, f'\\nused {t} {a.ru_maxrss + b.ru_maxrss}'.encode())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False
    )
    told = done.stderr.decode().rpartition("\nused ")[2].split()
    if len(told) != 2:
        raise SystemExit(done.stderr.decode())
    return float(told[0]), int(told[1]) * 1024


def least(runs: int, work: Callable[[], tuple[float, int]]) -> tuple[float, int]:
    """The least time of some runs, and the memory of that one."""
    return min(work() for _ in range(runs))


# ------------------------------------------------------------------------------------------ parts


def document(place: Path, args: Any) -> None:
    small, large = place / "small.md", place / "large.md"
    make_document(small, 10_000)
    make_document(large, args.size * MB)
    size = large.stat().st_size
    for meaning in ("none", "static"):
        os.environ["QUIRE_EMBED_MODEL"] = meaning
        _, least_peak = run("add", str(small), "-L", str(place / f"small-{meaning}.db"))
        seconds, peak = run("add", str(large), "-L", str(place / f"large-{meaning}.db"))
        more = peak - least_peak
        print(
            f"document of {size / MB:.0f} MB, embed.model = {meaning}: {more / MB:.0f} MB more than a small"
            f" one, {more / size:.1f} x its size, {seconds:.1f} s"
        )


def library(place: Path, files: int) -> Path:
    """A library of a folder, made once."""
    folder, path = place / f"folder-{files}", place / f"folder-{files}.db"
    if not path.exists():
        os.environ["QUIRE_EMBED_MODEL"] = "static"
        make_folder(folder, files)
        seconds, _ = run("add", str(folder), "-L", str(path), "-c", "bench", "--no-embed")
        print(f"{files:,} files added in {seconds:.1f} s, {path.stat().st_size / MB:.0f} MB")
    return path


def passages(place: Path, args: Any) -> None:
    from quire.library import Library

    path = place / "large-none.db"
    if not path.exists():
        document(place, args)
    with Library.open(path) as opened:
        store, size = opened.store, args.size * MB
        row = opened.documents()[0].seq
        best = 9.0
        for _ in range(5):
            started = time.process_time()
            with store.reading():
                for at in range(0, size - 5000, size // 20):
                    store.passage(row, at, at + 5000)
            best = min(best, time.process_time() - started)
    print(f"20 passages of a document of {args.size} MB: {best * 1000:.1f} ms")


def status(place: Path, args: Any) -> None:
    path = library(place, args.files)
    for options in ((), ("--check",)):
        seconds, _ = least(3, partial(run, "status", *options, "-L", str(path)))
        print(f"status {' '.join(options)}: {seconds:.2f} s")


def list_(place: Path, args: Any) -> None:
    path = library(place, args.files)
    _, small = run("list", "-L", str(library(place, 50)))
    for options in ((), ("--json",)):
        seconds, peak = least(3, partial(run, "list", *options, "-L", str(path)))
        print(f"list {' '.join(options)}: {seconds:.2f} s, {(peak - small) / MB:.1f} MB more than 50 files")


def refresh(place: Path, args: Any) -> None:
    path, folder = library(place, args.files), place / f"folder-{args.files}"
    changed = folder / "000" / "00.md"

    def again() -> tuple[float, int]:
        changed.write_text(f"{changed.read_text()}\nmore\n")
        return run("add", str(folder), "-L", str(path), "-c", "bench", "--no-embed")

    def touched() -> tuple[float, int]:
        for file in folder.rglob("*.md"):
            os.utime(file)
        return run("add", str(folder), "-L", str(path), "-c", "bench", "--no-embed")

    again()
    print(f"one of {args.files:,} files changed: {least(5, again)[0]:.3f} s")
    print(f"{args.files:,} files with another time: {least(2, touched)[0]:.3f} s")


def optimize(place: Path, args: Any) -> None:
    path, copy = library(place, args.files), place / "half.db"
    copy.write_bytes(path.read_bytes())
    before = copy.stat().st_size
    half = [f"--path={number:03}/*" for number in range(args.files // 200)]
    run("remove", "-c", "bench", *half, "-L", str(copy))
    after = copy.stat().st_size
    seconds, _ = run("optimize", "-L", str(copy))
    print(
        f"{before / MB:.0f} MB; half deleted: {after / MB:.0f} MB; after optimize:"
        f" {copy.stat().st_size / MB:.0f} MB, {seconds:.1f} s"
    )


def cold(place: Path, args: Any) -> None:
    path = library(place, 50)
    os.environ["QUIRE_EMBED_MODEL"] = "none"
    search = [sys.executable, "-m", "quire", "search", "embedding model", "-L", str(path)]
    contenders = {
        "import sqlite3": [sys.executable, "-c", "import sqlite3"],
        "quire --version": [sys.executable, "-m", "quire", "--version"],
        "quire search, words": search,
        "quire search, meaning": search,
    }
    best: dict[str, float] = {}
    for _ in range(args.runs):
        for name, command in contenders.items():
            model = "static" if name.endswith("meaning") else "none"
            best[name] = min(best.get(name, 9.0), _seconds(command, model))
    base = best["import sqlite3"]
    for name, seconds in best.items():
        print(f"{name}: {seconds * 1000:.0f} ms, {(seconds - base) * 1000:.0f} more than import sqlite3")


def _seconds(command: list[str], model: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = os.environ | {"QUIRE_EMBED_MODEL": model}
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


PARTS = {
    "document": document,
    "passages": passages,
    "status": status,
    "list": list_,
    "refresh": refresh,
    "optimize": optimize,
    "cold": cold,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all, if none is named")
    parser.add_argument("--size", type=int, default=50, help="MB of the one document")
    parser.add_argument("--files", type=int, default=10_000, help="in the folder")
    parser.add_argument("--runs", type=int, default=20, help="of a cold search")
    parser.add_argument("--place", type=Path, help="where to keep documents and libraries for another run")
    args = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # modules are compiled once, as they are at home
    with tempfile.TemporaryDirectory() as folder:
        place = args.place or Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        os.environ["PYTHONPYCACHEPREFIX"] = str(place / "compiled")
        for name in args.parts or PARTS:
            PARTS[name](place, args)


if __name__ == "__main__":
    main()
