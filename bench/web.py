"""Reading a site from a local server, against a bare loop of httpx2, in one run on the same pages.

    pip install -e . markdown-it-py
    python -m bench.web [--pages 400] [--delay 0 50] [--data FOLDER] [--repeat N]

The pages are documents of the sets, in an order that a seed decides: as markdown, and as HTML in the frame
of a documentation site, with menus, a list of what is on the page and a footer. The server is a process of
its own; `--delay` is how many milliseconds it takes to answer, as servers that are far away do. All ask for
as many pages at once as Quire asks of one host:

bare httpx2          GET of every page, nothing done with it
quire Fetcher        the same, checked, capped, and told apart
quire Library.add    the site by its llms.txt: robots.txt, twins, pages, parsed, cut, analysed and written
again, unchanged     the same once more: the server answers 304

and what Library.add does besides fetching, each step by itself, one page after another:

to markdown          html.to_markdown of every page
prepare              markdown cut and analysed
write                all of it written, in one transaction

Embeddings are off. Each row is the best of its rounds; CPU is that of this process and of those that it
starts to read pages, and depends less on what else the machine does.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from bench.index import SEED, SETS
from quire import html
from quire.config import DEFAULT, Config, override
from quire.document import Document
from quire.ingest.prepare import prepare
from quire.library import Library
from quire.sources.web import Fetcher

CONFIG: Config = override(DEFAULT, {"embed": {"model": "none"}, "web": {"allow_hosts": ["127.0.0.1"]}})
AT_ONCE = min(CONFIG.web.per_host, CONFIG.web.concurrency)
SMALLEST, LARGEST = 2000, 60_000  # bytes of a document that is a page of its own
KINDS = {"markdown": "text/markdown", "HTML": "text/html"}
Pages = dict[str, bytes]  # by path


# ----------------------------------------------------------------------------------------- the pages


def documents(data: Path, count: int) -> list[tuple[str, str]]:
    """So many documents of the sets: a name and the markdown of each."""
    files = sorted(path for name in ("kubernetes", "rust") for path in data.glob(SETS[name]))
    files = [file for file in files if SMALLEST <= file.stat().st_size <= LARGEST]
    chosen = random.Random(SEED).sample(files, min(count, len(files)))
    return [(f"{number}-{file.stem}", file.read_text("utf-8")) for number, file in enumerate(chosen)]


def markdown_pages(texts: Iterable[tuple[str, str]]) -> Pages:
    return {f"/docs/{name}.md": text.encode() for name, text in texts}


def html_pages(texts: Iterable[tuple[str, str]]) -> Pages:
    """The documents as a documentation site shows them."""
    from markdown_it import MarkdownIt

    texts = list(texts)
    render = MarkdownIt("gfm-like", {"linkify": False}).render
    menu = "".join(f'<li><a href="/docs/{name}">{name}</a></li>' for name, _ in texts[:80])
    return {f"/docs/{name}": _framed(name, render(_body(text)), menu).encode() for name, text in texts}


def _body(text: str) -> str:
    """Markdown without its front matter."""
    return text[Document.from_text(text, "page.md").content_start :]


def _framed(title: str, body: str, menu: str) -> str:
    return f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title} | Docs</title>
<link rel="stylesheet" href="/main.css"><script>window.site = {{"theme": "dark"}};</script></head><body>
<header class="navbar"><a href="/">Docs</a><form><input name="q"></form></header>
<div class="container"><nav class="sidebar"><ul>{menu}</ul></nav>
<main class="content"><nav class="breadcrumb"><a href="/">Home</a> / <a href="/docs/">Docs</a></nav>
<article><h1>{title}</h1>{body}</article></main>
<aside class="toc"><ul>{menu[:2000].rpartition("<li>")[0]}</ul></aside></div>
<footer><p>Edit this page. © The authors.</p></footer><script src="/main.js"></script></body></html>"""


# ---------------------------------------------------------------------------------------- the server


class _Answers(asyncio.Protocol):
    """Answers GET from memory, 304 to whoever knows the etag, after a delay."""

    def __init__(self, pages: dict[bytes, tuple[bytes, bytes]], delay: float) -> None:
        self.pages, self.delay = pages, delay
        self.waiting = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport

    def data_received(self, data: bytes) -> None:
        *requests, self.waiting = (self.waiting + data).split(b"\r\n\r\n")
        for request in requests:
            answer = self._answer(request)
            if self.delay:
                asyncio.get_running_loop().call_later(self.delay, self.transport.write, answer)
            else:
                self.transport.write(answer)

    def _answer(self, request: bytes) -> bytes:
        etag, answer = self.pages.get(request.split(b" ", 2)[1], (b"", b""))
        if etag and b"If-None-Match: " + etag in request:
            return b"HTTP/1.1 304 Not Modified\r\nETag: %s\r\n\r\n" % etag
        return answer or b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


def _serve(pages: Pages, kind: str, delay: float, port: Connection) -> None:
    """Serve pages and an llms.txt that names them until the process is ended."""
    index = "# Site\n\n" + "".join(f"- [{path}]({path})\n" for path in pages)
    ready = {path.encode(): _ready(path, content, kind) for path, content in pages.items()}
    ready[b"/llms.txt"] = _ready("/llms.txt", index.encode(), "text/plain")

    async def run() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Answers(ready, delay), "127.0.0.1", 0)
        port.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


def _ready(path: str, content: bytes, kind: str) -> tuple[bytes, bytes]:
    etag = f'"{path}"'.encode()
    head = f"Content-Type: {kind}; charset=utf-8\r\nContent-Length: {len(content)}\r\n".encode()
    return etag, b"HTTP/1.1 200 OK\r\nETag: %s\r\n%s\r\n%s" % (etag, head, content)


class Server:
    """A site in a process of its own, while the block runs."""

    def __init__(self, pages: Pages, kind: str, delay: float) -> None:
        self.here, there = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=_serve, args=(pages, kind, delay, there), daemon=True)

    def __enter__(self) -> str:
        self.process.start()
        return f"http://127.0.0.1:{self.here.recv()}"

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.join()


# ------------------------------------------------------------------------------------ the contenders


@dataclass(frozen=True)
class Task:
    """A site to be read."""

    url: str
    pages: Pages
    place: Path

    def library(self) -> Library:
        return Library.open(self.place / "library.db", create=True, config=CONFIG)


async def _each(task: Task, get: Callable[[str], Any]) -> None:
    """Get every page, so many at once."""
    waiting = iter(task.pages)

    async def work() -> None:
        for path in waiting:
            await get(task.url + path)

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))


def bare(task: Task) -> None:
    from httpx2 import AsyncClient

    async def run() -> None:
        async with AsyncClient(trust_env=False) as client:
            await _each(task, client.get)

    asyncio.run(run())


def fetcher(task: Task) -> None:
    async def run() -> None:
        async with Fetcher(CONFIG.web) as fetcher:
            await _each(task, fetcher.get)

    asyncio.run(run())


def add(task: Task) -> None:
    with task.library() as library:
        report = library.add(f"{task.url}/llms.txt")
    if report.failed or report.added + report.unchanged != len(task.pages) + 1:
        raise RuntimeError(f"not all pages were read: {report.failed[:3]}")


CONTENDERS: dict[str, Callable[[Task], None]] = {
    "bare httpx2": bare,
    "quire Fetcher": fetcher,
    "quire Library.add": add,
    "again, unchanged": add,
}


class Row(NamedTuple):
    """One line of the table."""

    name: str
    seconds: float
    cpu: float  # seconds of the processor, server not included


def measure(pages: Pages, kind: str, delay: float, repeat: int) -> list[Row]:
    """Every contender, one after another in each round: a busy minute is busy for all."""
    rounds: dict[str, list[Row]] = {name: [] for name in CONTENDERS}
    with Server(pages, kind, delay) as url:
        for _ in range(repeat):
            with tempfile.TemporaryDirectory() as folder:
                for name, contender in CONTENDERS.items():
                    rounds[name].append(_timed(name, contender, Task(url, pages, Path(folder))))
    return list(map(_best, rounds.values()))


def _timed(name: str, work: Callable[..., object], *args: object) -> Row:
    start, cpu = time.perf_counter(), _cpu()
    work(*args)
    return Row(name, time.perf_counter() - start, _cpu() - cpu)


def _cpu() -> float:
    """Seconds of the processor that this process has taken, and those it started that have ended."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def _best(rows: list[Row]) -> Row:
    return Row(rows[0].name, min(row.seconds for row in rows), min(row.cpu for row in rows))


def steps(pages: Pages, kind: str, repeat: int) -> list[Row]:
    """What there is to do with the pages besides fetching them."""
    rounds = [_steps(pages, kind) for _ in range(repeat)]
    return [_best(list(rows)) for rows in zip(*rounds, strict=True)]


def _steps(pages: Pages, kind: str) -> list[Row]:
    texts = {path: content.decode() for path, content in pages.items()}
    rows = []
    if kind == "text/html":
        found: dict[str, str] = {}
        rows.append(_timed("to markdown", lambda: found.update(_converted(texts))))
        texts = found
    prepared: list[Any] = []
    rows.append(_timed("prepare", lambda: prepared.extend(_prepared(texts))))
    with tempfile.TemporaryDirectory() as folder, Task("", pages, Path(folder)).library() as library:
        rows.append(_timed("write", library.store.write, prepared))
    return rows


def _converted(texts: dict[str, str]) -> dict[str, str]:
    return {path: html.to_markdown(text, f"https://e.org{path}").text for path, text in texts.items()}


def _prepared(texts: dict[str, str]) -> list[Any]:
    make = Document.from_text
    return [prepare(make(text, path, format="markdown"), CONFIG) for path, text in texts.items()]


# ---------------------------------------------------------------------------------------- the table


def show(title: str, pages: Pages, rows: list[Row]) -> None:
    """A table, with the time of each against the bare loop."""
    size = sum(map(len, pages.values()))
    print(f"\n{title}: {len(pages):,} pages, {size / 1e6:.1f} MB, {AT_ONCE} at once\n")
    print("| what | seconds | pages/s | × time of bare httpx2 | CPU ms a page | × CPU of bare httpx2 |")
    print("|---" * 6 + "|")
    for name, seconds, cpu in rows:
        speed = f"{seconds:.2f} | {len(pages) / seconds:,.0f} | {seconds / rows[0].seconds:.2f}"
        print(f"| {name} | {speed} | {1000 * cpu / len(pages):.2f} | {cpu / rows[0].cpu:.2f} |", flush=True)


def main() -> None:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    beside = Path(__file__).parents[2] / "shared" / "eval"
    parser.add_argument("--pages", type=int, default=400, help="at most web.max_pages")
    parser.add_argument("--delay", type=int, nargs="+", default=[0, 50], help="milliseconds to an answer")
    parser.add_argument("--data", type=Path, default=beside, help="the folder with the document sets")
    parser.add_argument("--repeat", type=int, default=3, help="rounds; the best one counts")
    args = parser.parse_args()
    texts = documents(args.data, args.pages)
    if not texts:
        parser.error(f"no document sets in {args.data}; name their folder with --data")
    sets = {"markdown": markdown_pages(texts), "HTML": html_pages(texts)}
    for name, pages in sets.items():
        alone = steps(pages, KINDS[name], args.repeat)
        for delay in args.delay:
            rows = measure(pages, KINDS[name], delay / 1000, args.repeat)
            show(f"{name}, answers after {delay} ms", pages, rows + alone)


if __name__ == "__main__":
    main()
