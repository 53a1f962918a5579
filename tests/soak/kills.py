"""SIGKILL at a random moment of everything that writes, and what is left then."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import quire.embed
from quire import doctor
from quire import embedding as batches
from quire.config import DEFAULT, override
from quire.ingest import apply
from quire.library import Library
from quire.stores import migrate
from tests import crash
from tests.schemas import execute, make_schema
from tests.soak import libraries
from tests.soak.children import BEGUN, Child, Tell, wait
from tests.soak.libraries import DOCS, NAME, begin, on_disk, same, texts
from tests.soak.rounds import LOST, SPANS, WRITES, Round, counted, home, require
from tests.web_server import Handler, site
from tests.words import WORDS

if TYPE_CHECKING:
    from quire.embed.base import Vectors

Work = Callable[[Tell], None]
Check = Callable[[list[str]], None]  # of what the work has told
Beside = Callable[[Round], None]  # what this process does meanwhile
_seconds: dict[str, float] = {}  # that each work takes when nobody kills it
WATCHED = override(WORDS, {"watch": {"debounce": 0.05, "poll": 0.1}})
PAGES = 12


def turn(one: Round) -> None:
    """Begin a piece of work, kill it, and check what is left."""
    job = JOBS[one.seed % len(JOBS)]
    work, check, *beside = job(one)
    usual = _seconds.get(job.__name__, 0.1)
    after = one.rng.uniform(0, usual)
    child = Child(work)
    child.wait_for(BEGUN)
    began = time.monotonic()
    for act in beside:
        act(one)
    while child.is_alive() and time.monotonic() < began + after:
        time.sleep(0.0005)
    if child.kill():
        one.faults += 1
        _seconds[job.__name__] = 1.1 * usual
    else:
        _seconds[job.__name__] = 0.9 * (time.monotonic() - began)
    check(child.told())


# -------------------------------------------------------------------------------- documents are written


def indexing(one: Round) -> tuple[Work, Check]:
    """A folder in which files were changed, renamed and deleted is added again."""
    path = begin(one, "files", libraries.with_files)
    folder, before = one.place / DOCS, texts(path)
    known = {
        address.partition(":")[2]: sha256(text.encode()).hexdigest()
        for address, text in before.items()
        if address.startswith(f"{DOCS}:")
    }
    crash.edit(folder, one.rng)

    def work(tell: Tell) -> None:
        apply._BATCH_FILES = 4
        with Library.open(path, config=WORDS) as library:
            write = library.store.write

            def telling(batch: Sequence[Any], *source: Any) -> list[bool]:
                replaced = write(batch, *source)
                tell(json.dumps({prepared.path: prepared.checksum for prepared in batch}))
                return replaced

            library.store.write = telling  # type: ignore[method-assign, assignment]
            tell(BEGUN)
            library.add(folder, prune=True)

    def check(told: list[str]) -> None:
        acknowledged = dict[str, str]()
        for line in told[1:]:
            acknowledged |= json.loads(line)
        with counted(WRITES):
            crash.check(path, folder, known | crash.by_name(acknowledged))
        with Library.open(path, config=WORDS) as library:
            library.add(folder, prune=True)
        same(texts(path), {k: v for k, v in before.items() if k not in _of(before, DOCS)} | on_disk(folder))

    return work, check


def _of(found: dict[str, str], collection: str) -> dict[str, str]:
    return {address: text for address, text in found.items() if address.startswith(f"{collection}:")}


def adding(one: Round) -> tuple[Work, Check]:
    """Texts and memories are added one by one."""
    path = begin(one, "memories", libraries.with_memories)
    before = texts(path)
    given = {f"content:new{n}.md": crash.document(f"new{n}", 3, one.rng) for n in range(12)}
    given |= {f"memory:fact{n}": f"The numbat number {n} hides." for n in range(12)}
    order = list(given)
    one.rng.shuffle(order)

    def work(tell: Tell) -> None:
        with Library.open(path, config=WORDS) as library:
            tell(BEGUN)
            for address in order:
                collection, _, name = address.partition(":")
                if collection == "memory":
                    library.remember(given[address], name=name)
                else:
                    library.add(content=given[address], path=name)
                tell(address)

    def check(told: list[str]) -> None:
        after = texts(path)
        same({k: v for k, v in after.items() if k in before}, before)
        require(set(told[1:]) <= after.keys(), WRITES, f"{set(told[1:]) - after.keys()}")
        same({k: v for k, v in after.items() if k not in before}, {k: given[k] for k in after if k in given})

    return work, check


def removing(one: Round) -> tuple[Work, Check]:
    """Documents are removed one by one, and a collection at the end."""
    path = begin(one, "memories", libraries.with_memories)
    before = texts(path)
    gone = one.rng.sample(sorted(_of(before, DOCS)), 12)

    def work(tell: Tell) -> None:
        with Library.open(path, config=WORDS) as library:
            tell(BEGUN)
            for address in gone:
                library.remove(address)
                tell(address)
            library.remove(collection="content")
            tell("content")

    def check(told: list[str]) -> None:
        after = texts(path)
        back = set(told) & after.keys() | (_of(after, "content").keys() if "content" in told else set())
        require(not back, WRITES, f"removed, and there again: {back}")
        never = [address for address in before if address not in gone and "content:" not in address]
        require(set(never) <= after.keys(), LOST, f"{set(never) - after.keys()}")
        require(len(_of(after, "content")) in (0, 3), LOST, "half a collection was removed")
        same(after, {address: before[address] for address in after})

    return work, check


def watching(one: Round) -> tuple[Work, Check, Beside]:
    """Files change while the library is watched."""
    path = begin(one, "files", libraries.with_files)
    folder, before = one.place / DOCS, texts(path)
    _seconds.setdefault("watching", 0.6)

    def work(tell: Tell) -> None:
        with Library.open(path, config=WATCHED) as library:
            library.watch(lambda change: tell(change.address), on_note=lambda note: tell(BEGUN))

    def beside(_: Round) -> None:
        time.sleep(one.rng.uniform(0, 0.1))
        crash.edit(folder, one.rng)

    def check(told: list[str]) -> None:
        _seconds["watching"] = 0.6
        crash.check(path, folder, {})
        with Library.open(path, config=WORDS) as library:
            library.refresh(prune=True)
        rest = {k: v for k, v in before.items() if k not in _of(before, DOCS)}
        same(texts(path), rest | on_disk(folder))

    return work, check, beside


# ------------------------------------------------------------------------------------ a library is made anew


def migrating(one: Round) -> tuple[Work, Check]:
    """A library of an older schema is opened."""
    number = one.rng.randrange(1, migrate.newest("sqlite"))

    def make(place: Path) -> None:
        libraries.with_memories(place)
        make_schema(str(place / NAME), number)
        execute(str(place / NAME), "UPDATE documents SET made_by = 'an older version'")

    path = begin(one, f"schema{number}", make)

    def work(tell: Tell) -> None:
        tell(BEGUN)
        with Library.open(path, config=WORDS) as library:
            library.refresh()

    def check(told: list[str]) -> None:
        texts(path)
        Child(work).end()
        after = texts(path)
        require(len(after) == libraries.FILES + 6, LOST, f"schema {number}: {len(after)} documents")
        same(_of(after, DOCS), on_disk(one.place / DOCS))

    return work, check


class Fake:
    """An embedder that makes a vector of the checksum of a text."""

    name, dimension, max_tokens = "fake", 8, 512

    def knows(self, text: str) -> bool:
        return True

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return np.array([self.embed_query(text) for text in texts])

    def embed_query(self, text: str) -> Vectors:
        numbers = np.frombuffer(sha256(text.encode()).digest()[:8], np.uint8).astype(np.float32) + 1
        return np.asarray(numbers / np.linalg.norm(numbers), np.float32)

    def close(self) -> None: ...


def embedding(one: Round) -> tuple[Work, Check]:
    """All chunks are embedded."""
    path = begin(one, "memories", libraries.with_memories)
    config, before = override(DEFAULT, {"embed": {"model": "ollama/fake"}}), texts(path)

    def work(tell: Tell) -> None:
        quire.embed.open_embedder = lambda *_: Fake()
        batches._BATCH = 4
        with Library.open(path, config=config) as library:
            tell(BEGUN)
            library.embed()

    def vectors(tell: Tell) -> None:
        work(lambda line: None)
        with Library.open(path, config=config) as library:
            counts = library.status()
            tell(f"{counts.chunks} {counts.embedded}")
            chunks = [chunk for row in library.documents() for chunk in library.chunks(row.address)]
            tell(str(sum(library.vector(chunk.id) is not None for chunk in chunks)))

    def check(told: list[str]) -> None:
        same(texts(path), before)
        counts, found = Child(vectors).end()
        require({*counts.split(), found} == {found}, LOST, f"vectors: {counts}, {found}")
        same(texts(path), before)

    return work, check


# ------------------------------------------------------------------------------------------------ a crawl


@cache
def _web() -> str:
    """The URL of a site, served by another process for as long as this one runs."""
    version = home() / "version"
    version.write_text("0")
    child = Child(_serve, lasting=True)
    child.wait_for(BEGUN)
    return child.told()[0]


def _serve(tell: Tell) -> None:
    def page(name: str, handler: Handler) -> None:
        body = f"# Page {name}\n\nversion{(home() / 'version').read_text()} of {name}. " + "Words. " * 50
        handler.answer(200, body.encode(), {"content_type": "text/markdown"})

    with site() as web:
        links = "".join(f"- [Page {n}](/p{n}.md)\n" for n in range(PAGES))
        web.page("/llms.txt", f"# Site\n\n## Pages\n\n{links}".encode(), content_type="text/plain")
        for number in range(PAGES):
            web.route(f"/p{number}.md", partial(page, str(number)))
        tell(web.url("/llms.txt"))
        tell(BEGUN)
        wait()


def crawling(one: Round) -> tuple[Work, Check]:
    """A site whose pages have changed is read again."""
    url = _web()
    config = override(WORDS, {"web": {"allow_hosts": ["127.0.0.1"], "retries": 0}})

    def make(place: Path) -> None:
        libraries.with_memories(place)
        with Library.open(place / NAME, config=config) as library:
            assert library.add(url).added == PAGES + 1

    (home() / "version").write_text("0")
    path = begin(one, "site", make)
    before = texts(path)
    (home() / "version").write_text(str(one.seed + 1))
    pages = {address for address, text in before.items() if "version0 of" in text}

    def read_again(tell: Tell) -> None:
        with Library.open(path, config=config) as library:
            tell(BEGUN)
            library.refresh()

    def check(told: list[str]) -> None:
        require(len(pages) == PAGES, LOST, f"{len(pages)} pages")
        versions = _versions(texts(path), pages)
        require(len(versions) == 1, LOST, f"pages of two crawls: {versions}")
        Child(read_again).end()
        after = texts(path)
        require(_versions(after, pages) == {f"version{one.seed + 1}"}, LOST, "the next crawl is not there")
        rest = before.keys() - pages
        same({k: v for k, v in after.items() if k in rest}, {k: before[k] for k in rest})

    return read_again, check


def _versions(found: dict[str, str], pages: set[str]) -> set[str]:
    require(pages <= found.keys(), LOST, f"{pages - found.keys()}")
    return {found[page].split()[3] for page in pages}


# --------------------------------------------------------------------------------------- files are replaced


def backing_up(one: Round) -> tuple[Work, Check]:
    """A backup is written."""
    path = begin(one, "memories", libraries.with_memories)
    backup, before = one.place / "backup.db", texts(path)

    def work(tell: Tell) -> None:
        with Library.open(path, config=WORDS) as library:
            tell(BEGUN)
            library.backup(backup)
            tell("done")

    def check(told: list[str]) -> None:
        same(texts(path), before)
        require(backup.exists() or "done" not in told, WRITES, "the backup is not there")
        if backup.exists():
            same(texts(backup), before)
        else:
            Child(work).end()

    return work, check


def restoring(one: Round) -> tuple[Work, Check]:
    """A backup is put in the place of a library."""
    path = begin(one, "memories", libraries.with_memories)
    backup, old = one.place / "backup.db", texts(path)
    shutil.copy(path, backup)
    with Library.open(backup, config=WORDS) as library:
        library.remove("content:text0.md")
        library.add(content="# Another\n\nAnother text.\n", path="another.md")
    new = texts(backup)

    def work(tell: Tell) -> None:
        tell(BEGUN)
        Library.restore(path, backup)
        tell("done")

    def check(told: list[str]) -> None:
        after = texts(path)
        same(after, new if "done" in told or "content:another.md" in after else old)
        same(texts(backup), new)
        Child(work).end()
        same(texts(path), new)

    return work, check


def repairing(one: Round) -> tuple[Work, Check]:
    """A library with two damaged documents is repaired: one is read again, one has no file."""
    path = begin(one, "memories", libraries.with_memories)
    good = texts(path)
    for name in ("part0/doc000.md", "text0.md"):
        damaged = "CAST(replace(CAST(source AS TEXT), 'o', 'x') AS BLOB)"
        execute(str(path), f"UPDATE documents SET source = {damaged} WHERE path = '{name}'")

    def work(tell: Tell) -> None:
        tell(BEGUN)
        doctor.repair(str(path), WORDS)
        tell("done")

    def check(told: list[str]) -> None:
        with counted(SPANS), Library.open(path, config=WORDS) as library:
            broken = {one.part for one in doctor.examine(library)}
        require(broken <= {"file", "document"}, LOST, f"{broken}")
        require(not broken or "done" not in told, WRITES, f"repaired, and still broken: {broken}")
        if broken:
            Child(work).end()
        else:
            with Library.open(path, config=WORDS) as library:
                library.refresh()
        same(texts(path), {k: v for k, v in good.items() if k != "content:text0.md"})

    return work, check


JOBS: tuple[Callable[[Round], Any], ...] = (
    indexing,
    adding,
    removing,
    watching,
    migrating,
    embedding,
    crawling,
    backing_up,
    restoring,
    repairing,
)
