"""Changed bytes in copies of a library or of its log, and whether what is read of them is true.

Undetected damage is a read of something that nobody wrote, from a library that `quire doctor` finds sound.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TypeVar

from quire import doctor
from quire.errors import NoResults, QuireError
from quire.library import Library
from tests import crash
from tests.soak import libraries
from tests.soak.children import Child, Tell, wait
from tests.soak.libraries import NAME, begin
from tests.soak.rounds import UNDETECTED, Round, require
from tests.words import WORDS

T = TypeVar("T")

PAGE = 4096
QUERIES = ("topic003 part", "okapi night", "gathers leaves", "büchlein", '"hands each one"')
READY = "ready"


@dataclass(frozen=True)
class Truth:
    """What may be read: the versions of each document, and which are there in any case."""

    texts: dict[str, list[str]]
    titles: dict[str, list[str]]
    always: frozenset[str]


def turn(one: Round) -> None:
    """Damage a copy, ask it everything, and compare what it says with what is true."""
    path = begin(one, "logged", _with_log)
    truth = _truth(one.place / "truth.json")
    files = [path, path, path.with_name(f"{NAME}-wal")] if one.seed % 2 else [path]
    if len(files) == 1:
        path.with_name(f"{NAME}-wal").unlink()  # a library that was closed
    target = one.rng.choice(files)
    data = bytearray(target.read_bytes())
    one.rng.choice(WAYS)(data, one.rng)
    target.write_bytes(data)
    one.faults += 1
    _examine(path, truth)


def _examine(path: Path, truth: Truth) -> None:
    """Ask a library everything. Only errors of Quire are expected."""
    try:
        with Library.open(path, config=WORDS) as library:
            wrong = list(_wrong(library, truth))
            if wrong:
                require(doctor.examine(library), UNDETECTED, "; ".join(wrong))
            library.store.check()
    except QuireError as problem:
        if isinstance(problem, NoResults):  # a library, or something in it, is not there
            require(_is_found(path), UNDETECTED, str(problem))


def _is_found(path: Path) -> bool:
    """Whether the doctor finds something wrong."""
    try:
        with Library.open(path, config=WORDS) as library:
            return bool(doctor.examine(library))
    except QuireError:
        return True


# ------------------------------------------------------------------------------------- what is read of it


def _wrong(library: Library, truth: Truth) -> Iterable[str]:
    """What a library says that is not true; errors of Quire about a document are true."""
    listed = _said(library.documents) or []
    found = {row.address for row in listed}
    if listed:
        yield from (f"{address} is not listed" for address in sorted(truth.always - found))
    for row in listed:
        yield from _wrong_document(library, row.address, truth)
        if row.title not in truth.titles.get(row.address, [row.title]):
            yield f"{row.address} has the title {row.title!r}"
    for query in QUERIES:
        answer = _said(library.search, query)
        for result in answer.results if answer else ():
            yield from _wrong_part(library, result.address, result.start, result.end, truth)
    if (counts := _said(library.status)) and listed and counts.documents != len(listed):
        yield f"{counts.documents} counted and {len(listed)} listed"


def _said(ask: Callable[..., T], *args: str) -> T | None:
    """An answer; None if it is an error of Quire."""
    try:
        return ask(*args)
    except QuireError:
        return None


def _wrong_document(library: Library, address: str, truth: Truth) -> Iterable[str]:
    if address not in truth.texts:
        yield f"{address} is listed"
        return
    read = _said(library.read, address)
    if read and read.text not in truth.texts[address]:
        yield f"{address} has another text"
    source = _said(library.source, address)
    if source and source.decode("utf-8", "replace") not in truth.texts[address]:
        yield f"{address} has another source"
    for section in _said(library.sections, address) or ():
        yield from _wrong_span(section.address, section.text, section.start, section.end, truth)
    for chunk in _said(library.chunks, address) or ():
        yield from _wrong_span(chunk.address, chunk.text, chunk.start, chunk.end, truth, address)
    tree = _said(library.toc, address)
    if tree and tree.document.text not in truth.texts[address]:
        yield f"{address} has another table of contents"


def _wrong_part(library: Library, address: str, start: int, end: int, truth: Truth) -> Iterable[str]:
    read = _said(library.read, address)
    if read:
        yield from _wrong_span(address, read.text, read.start, read.end, truth)
    elif address.partition("#")[0] not in truth.texts:
        yield f"{address} is found"


def _wrong_span(
    address: str, text: str, start: int, end: int, truth: Truth, document: str = ""
) -> Iterable[str]:
    versions = truth.texts.get(document or address.partition("#")[0], ())
    if not any(version[start:end] == text for version in versions):
        yield f"{address} has another text at {start}"


# --------------------------------------------------------------------------------------- what is damaged


def _bytes(number: int) -> Callable[[bytearray, Random], None]:
    def change(data: bytearray, rng: Random) -> None:
        start = rng.randrange(len(data))
        end = min(len(data), start + number)
        data[start:end] = rng.randbytes(end - start)

    return change


def _place(data: bytearray, rng: Random) -> int:
    return PAGE * rng.randrange(max(1, len(data) // PAGE))


def _whole_page(data: bytearray, rng: Random) -> None:
    start = _place(data, rng)
    data[start : start + PAGE] = rng.randbytes(len(data[start : start + PAGE]))


def _zeroed_page(data: bytearray, rng: Random) -> None:
    start = _place(data, rng)
    data[start : start + PAGE] = bytes(len(data[start : start + PAGE]))


def _truncated(data: bytearray, rng: Random) -> None:
    del data[rng.randrange(len(data)) :]


def _swapped_pages(data: bytearray, rng: Random) -> None:
    one, other = _place(data, rng), _place(data, rng)
    data[one : one + PAGE], data[other : other + PAGE] = data[other : other + PAGE], data[one : one + PAGE]


def _one_bit(data: bytearray, rng: Random) -> None:
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _in_a_text(data: bytearray, rng: Random) -> None:
    """Another letter in the text of a document, where it is stored."""
    places = [found.start() for found in re.finditer(rb"gathers|leaves|okapi", data)]
    if places:
        data[rng.choice(places)] ^= 1


WAYS = (
    _in_a_text,
    _one_bit,
    _bytes(1),
    _bytes(4),
    _bytes(64),
    _whole_page,
    _zeroed_page,
    _truncated,
    _swapped_pages,
)


# ------------------------------------------------------------------------------------ what it is made of


def _with_log(place: Path) -> None:
    """A library whose log has changes: new documents, and new versions of old ones."""
    libraries.with_memories(place)
    child = Child(lambda tell: _log(place, tell))
    child.wait_for(READY)
    copy = place / "copy"
    copy.mkdir()
    for name in (NAME, f"{NAME}-wal"):
        shutil.copy(place / name, copy / name)
    child.kill()
    for name in (NAME, f"{NAME}-wal"):
        shutil.move(copy / name, place / name)
    (place / f"{NAME}-shm").unlink(missing_ok=True)
    copy.rmdir()


def _log(place: Path, tell: Tell) -> None:
    """Write while another reads, so that all stays in the log; note what may be read."""
    path = place / NAME
    with (
        Library.open(path, config=WORDS) as library,
        closing(sqlite3.connect(path, isolation_level=None)) as reader,
    ):
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM documents").fetchone()
        before, titles = _all(library), {row.address: [row.title] for row in library.documents()}
        library.add(content="# Text 1\n\nAnother version of it.\n", path="text1.md")
        for number in range(4):
            library.add(content=crash.document(f"log{number}", 3, Random(number)), path=f"log{number}.md")
        after = _all(library)
        noted = {address: [before.get(address), after[address]] for address in after}
        for row in library.documents():
            titles.setdefault(row.address, []).append(row.title)
        (place / "truth.json").write_text(json.dumps([noted, titles]))
        tell(READY)
        wait()


def _all(library: Library) -> dict[str, str]:
    return {row.address: library.read(row.address).text for row in library.documents()}


def _truth(noted: Path) -> Truth:
    found, titles = json.loads(noted.read_text())
    versions = {address: [text for text in both if text] for address, both in found.items()}
    return Truth(versions, titles, frozenset(name for name in versions if not name.startswith("content:log")))
