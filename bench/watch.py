"""Watching a folder: how soon a change is found, what a moved-in tree costs, and what idling does.

    pip install -e .
    python -m bench.watch [--files 10000] [--tree 20000] [--changes 30] [--idle 60] [--place FOLDER]

`quire watch` runs as people run it, in a process of its own, with its default settings but without a model
(the row "while it embeds" has the included one). Another process searches for a word that was never there
before, again and again, from the change on until it is found:

save      a file is written in place             replace   a file beside it is renamed over it
add       a new file                             rename    until the document has its new path
delete    until the document is gone             tree      a folder of many files is moved in

Idle is processor time of the watching process, by the system's count, while nothing changes.
The goals: a change is found within 1.5 s; idling takes less than 0.5 % of a core; no file is lost.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from quire.config import DEFAULT, override
from quire.library import Library
from quire.stores import Filters

WORDS = override(DEFAULT, {"embed": {"model": "none"}})
GOAL_SECONDS, GOAL_IDLE = 1.5, 0.5
TEXT = "When the river rises, the lower path is closed and walkers take the bridge. " * 6
_numbers = count()  # of words that were never there before
_CLOCK = os.sysconf("SC_CLK_TCK")


def fill(folder: Path, files: int, start: int = 0) -> None:
    """Write small documents, a hundred in each folder."""
    for number in range(start, start + files):
        path = folder / f"part{number // 100:03}" / f"doc{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Document {number}\n\n{TEXT}\n\n## Notes\n\nIts number is number{number}.\n")


@contextmanager
def watching(library: Path, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """The process that watches, once it has compared everything."""
    started = [sys.executable, "-m", "quire", "watch", "-L", str(library)]
    with subprocess.Popen(
        started,
        env=os.environ | {"QUIRE_EMBED_MODEL": "none"} | variables,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr
        while "Watching" not in (line := process.stderr.readline()):
            assert line, "it has ended"
        try:
            yield process
        finally:
            process.terminate()


def until(is_so: Callable[[], bool], seconds: float = 600) -> float:
    """Seconds until something is so."""
    began = time.perf_counter()
    while not is_so():
        assert time.perf_counter() - began < seconds, "it never happened"
        time.sleep(0.01)
    return time.perf_counter() - began


class Changes:
    """Makes changes in a folder, and waits until a reader of the library sees them."""

    def __init__(self, folder: Path, library: Library) -> None:
        self.folder, self.library = folder, library
        self.files, self.random = sorted(folder.rglob("*.md")), random.Random(8)

    def _text(self) -> tuple[str, str]:
        word = f"marker{next(_numbers)}"
        return word, f"# Changed\n\n{TEXT}\n\n## Notes\n\nThe word is {word}.\n"

    def _found(self, word: str) -> float:
        """Seconds until a word is found. It is looked up in the index: a search for nothing takes long."""
        took = until(lambda: bool(self.library.store.term_counts([word])))
        began = time.perf_counter()
        assert self.library.search(word, mode="keyword").results[0].match, word
        return took + time.perf_counter() - began

    def _path(self, file: Path) -> str:
        return file.relative_to(self.folder).as_posix()

    def _is_there(self, file: Path) -> bool:
        return self.library.store.document(self.folder.name, self._path(file)) is not None

    def save(self) -> float:
        word, text = self._text()
        self.random.choice(self.files).write_text(text)
        return self._found(word)

    def replace(self) -> float:
        word, text = self._text()
        file = self.random.choice(self.files)
        part = file.with_name(f".{file.name}.part")
        part.write_text(text)
        part.replace(file)
        return self._found(word)

    def add(self) -> float:
        word, text = self._text()
        (self.random.choice(self.files).parent / f"{word}.md").write_text(text)
        return self._found(word)

    def rename(self) -> float:
        file = self.files.pop(self.random.randrange(len(self.files)))
        new = file.with_name(f"new-{file.name}")
        file.rename(new)
        self.files.append(new)
        return until(lambda: self._is_there(new))

    def delete(self) -> float:
        file = self.files.pop(self.random.randrange(len(self.files)))
        file.unlink()
        return until(lambda: not self._is_there(file))


def show(what: str, took: list[float]) -> bool:
    """Print a row; whether the goal is kept."""
    took = sorted(took)
    high = took[min(len(took) - 1, round(0.95 * len(took)))]
    print(
        f"| {what} | {len(took)} | {statistics.median(took):.2f} | {high:.2f} | {took[-1]:.2f} |", flush=True
    )
    return took[-1] <= GOAL_SECONDS


def latencies(folder: Path, url: Path, changes: int) -> bool:
    """Print how soon changes are found; whether the goal is kept."""
    kept = True
    with watching(url), Library.open(url, config=WORDS) as library:
        made = Changes(folder, library)
        for kind in (made.save, made.replace, made.add, made.rename, made.delete):
            kept &= show(kind.__name__, [kind() for _ in range(changes)])
    return kept


def while_it_embeds(folder: Path, url: Path, changes: int) -> None:
    """Print how soon changes are found while the same process embeds all chunks."""
    with watching(url, QUIRE_EMBED_MODEL="deep"), Library.open(url, config=WORDS) as library:
        until(lambda: bool(library.store.models()))
        made = Changes(folder, library)
        took = [made.save() for _ in range(changes)]
        counts = library.status()
        show(f"save, while it embeds ({counts.embedded:,} of {counts.chunks:,} at the end)", took)


def moved_in(folder: Path, url: Path, files: int, place: Path) -> None:
    """Print how long a tree takes that is moved into the folder, and whether all of it is there."""
    tree = place / "tree"
    fill(tree, files)
    with watching(url), Library.open(url, config=WORDS) as library:
        began, inside = time.perf_counter(), Filters(folder.name, paths=("tree/",))
        tree.rename(folder / "tree")
        until(lambda: len(library.documents()) > 0 and len(library.store.documents(inside)) > 0)
        first = time.perf_counter() - began
        until(lambda: library.status().collections[folder.name] >= files and _all(library, inside, files))
        print(
            f"\n{files:,} files in a moved-in tree: the first are found after {first:.1f} s, all after"
            f" {time.perf_counter() - began:.1f} s; {len(library.store.documents(inside)):,} documents"
        )


def _all(library: Library, inside: Filters, files: int) -> bool:
    time.sleep(0.5)  # counting them takes time that the watching process needs
    return len(library.store.documents(inside)) == files


def idle(url: Path, seconds: float) -> bool:
    """Print what watching and waiting cost while nothing changes; whether the goal is kept."""
    print("\n| process | processor time, % of a core | memory, MB |\n|---|---|---|")
    with watching(url) as first:
        second = subprocess.Popen(
            [sys.executable, "-m", "quire", "watch", "-L", str(url)], stderr=subprocess.DEVNULL
        )
        time.sleep(5)
        processes = {"watching": first.pid, "waiting for it": second.pid}
        before = {name: _spent(process) for name, process in processes.items()}
        time.sleep(seconds)
        shares = {name: 100 * (_spent(pid) - before[name]) / seconds for name, pid in processes.items()}
        for name, process in processes.items():
            print(f"| {name} | {shares[name]:.2f} | {_memory(process):.0f} |")
        second.terminate()
        second.wait()
    return max(shares.values()) < GOAL_IDLE


def _spent(process: int) -> float:
    """Seconds of processor time of a process."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _CLOCK


def _memory(process: int) -> float:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1000 for line in lines if line.startswith("VmRSS"))


def main() -> None:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--tree", type=int, default=20_000)
    parser.add_argument("--changes", type=int, default=30)
    parser.add_argument("--idle", type=float, default=60, help="seconds")
    parser.add_argument("--place", type=Path, help="a folder for the files, by default a temporary one")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.place) as made:
        place = Path(made)
        folder, url = place / "docs", place / "library.db"
        fill(folder, args.files)
        with Library.open(url, create=True, config=WORDS) as library:
            library.add(folder)
        load = os.getloadavg()[0]
        print(f"{args.files:,} files; {os.cpu_count()} cores, load {load:.1f}\n")
        print("| change | times | median s | 95 % s | longest s |\n|---|---|---|---|---|")
        kept = latencies(folder, url, args.changes)
        while_it_embeds(folder, url, args.changes)
        kept &= idle(url, args.idle)
        moved_in(folder, url, args.tree, place)
        print(f"\nthe goals: {'kept' if kept else 'MISSED'}")


if __name__ == "__main__":
    main()
