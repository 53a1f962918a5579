"""A library under fire: indexing in a process that can be killed, and what must hold after it was.

    python -m tests.crash LIBRARY FOLDER    index, printing what each batch acknowledges

Always: what was printed, or once seen in the library, is there afterwards or has been replaced by
what its file holds now; every document is whole, and no term of another version is in the index.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import astuple
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

from quire.config import DEFAULT
from quire.document import Document, text_of
from quire.errors import QuireError
from quire.ingest.prepare import prepare
from quire.library import Library
from quire.stores import MAX_CHUNKS, ChunkRow, DocumentRow, Prepared, SourceRow
from quire.stores.sqlite import SqliteStore, orders, segments
from quire.stores.sqlite.postings import IndexTables
from quire.stores.sqlite.segments import ChunkTerms, Segment
from tests.words import WORDS

BATCH = 8  # small, so that a kill finds something half done
KILLS = 10  # of one library, before it is let finish
ROOT = Path(__file__).parents[1]
_MOVED = ".moved"
_WORDS = "quire gathers leaves büchlein of paper その and hands each one to whoever asked first".split()


# --------------------------------------------------------------------------------- the process that dies


def index(library: str, folder: str) -> None:
    """Index a folder in small batches, printing the checksums of each batch once it is written."""
    from quire.ingest import apply

    apply._BATCH_FILES = BATCH
    with Library.open(library, create=True, config=WORDS) as opened:
        opened.store.write = _acknowledging(opened.store.write)  # type: ignore[method-assign]
        opened.add(folder, prune=True)


def _acknowledging(write: Callable[..., list[bool]]) -> Callable[..., list[bool]]:
    def wrapped(batch: Sequence[Prepared], *source: SourceRow) -> list[bool]:
        replaced = write(batch, *source)
        print(json.dumps({prepared.path: prepared.checksum for prepared in batch}), flush=True)
        return replaced

    return wrapped


# ----------------------------------------------------------------------------------------- the documents


def grow(folder: Path, count: int, rng: Random) -> Path:
    """A folder of small markdown files, every section holding the file's own word."""
    for number in range(count):
        place = folder / f"part{number % 7}" / f"doc{number:03}.md"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(document(f"topic{number:03}", rng.randrange(1, 6), rng), "utf-8")
    return folder


def document(word: str, sections: int, rng: Random) -> str:
    """Markdown with a title and so many sections, each holding a word."""
    bodies = [f"## Part {i}\n\n{word} {' '.join(rng.choices(_WORDS, k=30))}.\n" for i in range(sections)]
    return "\n".join([f"# About {word}\n", *bodies])


def edit(folder: Path, rng: Random) -> None:
    """Change a third of the files, rename two and delete one."""
    files = sorted(folder.rglob("*.md"))
    for file in rng.sample(files, len(files) // 3):
        lines = file.read_bytes().splitlines(keepends=True)
        kept = lines[: rng.randrange(len(lines) // 2, len(lines) + 1)]
        words = " ".join(rng.choices(_WORDS, k=20))
        file.write_bytes(b"".join(kept) + f"\n## Edit {rng.random()}\n\n{words}\n".encode())
    lost, *renamed = rng.sample([file for file in files if _MOVED not in file.name], 3)
    lost.unlink()
    for file in renamed:
        file.rename(file.with_name(f"{file.stem}{_MOVED}{file.suffix}"))


def _name(path: str) -> str:
    """What a file is called before and after it is renamed."""
    return path.replace(_MOVED, "")


def by_name(checksums: dict[str, str]) -> dict[str, str]:
    """The same by what each file is called before and after it is renamed."""
    return {_name(path): checksum for path, checksum in checksums.items()}


def _on_disk(folder: Path) -> dict[str, str]:
    files = folder.rglob("*.md")
    return {f.relative_to(folder).as_posix(): sha256(f.read_bytes()).hexdigest() for f in files}


# --------------------------------------------------------------------------------------------- the kills


def campaign(place: Path, folder: Path, kills: int, rng: Random) -> int:
    """Kill so many runs on one library, check after each, and let it finish; how many died at work."""
    library, known, at_work = place / "library.db", dict[str, str](), 0
    for _ in range(kills):
        killed, acknowledged = strike(library, folder, rng)
        at_work += killed
        known |= by_name(acknowledged)
        known = check(library, folder, known)
        edit(folder, rng)
    with Library.open(library, create=True, config=WORDS) as opened:
        assert not opened.add(folder, prune=True).failed
    check(library, folder, known)
    with Library.open(library, config=WORDS) as opened:
        assert {row.path: row.checksum for row in opened.documents()} == _on_disk(folder)
    return at_work


def strike(library: Path, folder: Path, rng: Random) -> tuple[bool, dict[str, str]]:
    """Start indexing and kill it; whether it was still at work, and what it had acknowledged."""
    log, story = library.with_suffix(".log"), library.with_suffix(".err")
    goal = rng.randrange(max(1, len(_on_disk(folder)) // 3 // BATCH))
    delay = rng.uniform(0, 0.02 if goal else 0.6)  # a goal of 0 is for a start that fails
    with log.open("wb") as out, story.open("wb") as err:
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.crash", library, folder],
            stdout=out,
            stderr=err,
            cwd=ROOT,
            start_new_session=True,
        )
        while child.poll() is None and log.read_bytes().count(b"\n") < goal:
            time.sleep(0.001)
        time.sleep(delay)
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
    code = child.wait()
    assert code in (0, -signal.SIGKILL), story.read_text("utf-8")
    return code != 0, _acknowledged(log.read_bytes())


def _acknowledged(log: bytes) -> dict[str, str]:
    """The last checksum of each path. A line that was cut short does not count."""
    found: dict[str, str] = {}
    for line in log.split(b"\n")[:-1]:
        found |= json.loads(line)
    return found


# ------------------------------------------------------------------------------------ what must hold then


def check(library: Path, folder: Path, known: dict[str, str]) -> dict[str, str]:
    """Check a library against what is known to have been in it; what is in it now, by name."""
    with Library.open(library, create=True, config=WORDS) as opened:
        store, rows = opened.store, opened.documents()
        assert isinstance(store, SqliteStore)
        assert store.check() == []
        assert_whole(store, rows)
    held: dict[str, set[str]] = {}
    for row in rows:
        held.setdefault(_name(row.path), set()).add(row.checksum)
    on_disk = by_name(_on_disk(folder))
    for name, checksum in known.items():
        if name in on_disk:  # else pruning may have come to it
            assert held.get(name, set()) & {checksum, on_disk[name]}, f"{name} is lost"
    return {_name(row.path): row.checksum for row in rows}


def assert_whole(store: SqliteStore, rows: Sequence[DocumentRow]) -> None:
    """Sources, spans, sections and terms are those of one version of each document."""
    numbered = list[ChunkTerms]()
    for row in sorted(rows, key=lambda row: row.seq):
        words = _assert_document(store, row)
        numbered += [(row.seq * MAX_CHUNKS + index, *three) for index, three in enumerate(words)]
    assert _instances(store.db) == _fresh(numbered), "terms are not those of the chunks"


def _assert_document(store: SqliteStore, row: DocumentRow) -> tuple[tuple[str, str, str], ...]:
    """One document is whole; the terms that its chunks must have."""
    source = store.source(row.seq)
    assert sha256(source).hexdigest() == row.checksum, row.path
    chunks = list(
        store.chunks(range(row.seq * MAX_CHUNKS, (row.seq + 1) * MAX_CHUNKS)[: row.chunk_count]).values()
    )
    assert len(chunks) == row.chunk_count, row.path
    sections = store.sections(row.seq)
    text = text_of(source)
    assert "".join(text[section.start : section.own_end] for section in sections) == text, row.path
    _assert_spans(source, text, chunks)
    again = prepare(Document.from_bytes(source, row.path, collection=row.collection), DEFAULT)
    assert [astuple(chunk)[2:] for chunk in chunks] == list(again.chunks), row.path
    assert [astuple(section)[1:] for section in sections] == list(again.sections), row.path
    return tuple(again.words)


def _assert_spans(source: bytes, text: str, chunks: Sequence[ChunkRow]) -> None:
    for chunk in chunks:
        assert 0 <= chunk.start < chunk.end <= len(text)
        assert text[chunk.start : chunk.end].encode() == source[chunk.byte_start : chunk.byte_end]


def _instances(db: sqlite3.Connection) -> tuple[dict[tuple[str, int], int], dict[int, bytes]]:
    """How much each chunk of an index has each term, and the order of its terms."""
    found: dict[tuple[str, int], int] = {}
    for (id,) in db.execute("SELECT id FROM word_segments").fetchall():
        reader = IndexTables(db)
        found |= _weights(reader.read(id), reader.left_of(id))
    return found, dict(db.execute("SELECT chunk, codes FROM word_orders").fetchall())


def _fresh(rows: Sequence[ChunkTerms]) -> tuple[dict[tuple[str, int], int], dict[int, bytes]]:
    weights = _weights(segments.build(rows), None) if rows else {}
    return weights, {row[0]: orders.coded(*row[1:]) for row in rows}


def _weights(segment: Segment, left: Any) -> dict[tuple[str, int], int]:
    terms, keys = segments._decoded(segment.blocks)
    places = keys >> 8 & 0xFFFF
    rows = zip((keys >> 24).tolist(), places.tolist(), (keys & 0xFF).tolist(), strict=True)
    chunks = segment.chunks.tolist()
    return {(terms[term], chunks[place]): w for term, place, w in rows if left is None or left[place]}


# ----------------------------------------------------------------------------------------- as a program


def main(args: Sequence[str]) -> int:
    """Index; an error is one line on stderr."""
    try:
        index(*args)
    except QuireError as error:
        print(f"quire: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
