"""Hostile input for everything that reads what strangers wrote: markdown, queries, llms.txt, HTML, headers.

Random bytes, real documents with changes, and pieces of syntax in any order. Always: no error but a
QuireError; spans are exact and join to the source; time does not grow out of proportion.
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random

from quire import front_matter, html, query
from quire.config import override
from quire.errors import QuireError
from quire.library import Library
from quire.sources.web import fetch, llmstxt
from tests import crash, test_invariants
from tests.markdowns import SHARED
from tests.soak.children import BEGUN, Child, Tell
from tests.soak.rounds import SLOW, SPANS, Round, counted, home, require
from tests.words import WORDS

INPUTS = 20  # in a round
LONGEST = 60_000  # characters
BASE = "https://example.org/docs/"
_SECONDS, _EACH = 2.0, 200e-6  # for an input, and for each of its characters
MARKS = (
    "#¦# A\n¦## ¦\n¦\n\n¦```\n¦~~~¦> ¦- ¦1. ¦    ¦\t¦| a ¦|---¦***¦==¦---\n¦[a](b)¦[¦](¦![¦<!--¦-->¦"
    "<div>¦</div>¦<pre>¦`¦\\¦&amp;¦&#0;¦a¦word ¦é¦🙂¦文档。¦\u2028¦\ufeff¦\r¦\r\n¦\x00¦\x1b[0m¦\u202e¦"
    "{#id}¦$$¦<x"
).split("¦")
FRONT = (
    "---\n¦+++\n¦title: x\n¦title = 'x'\n¦tags: [a, b]\n¦&a ¦*a¦!!python/object ¦<<: *a\n¦- ¦: ¦{¦}¦"
    "[¦]¦\"¦'¦|\n¦  ¦2020-01-01¦0x¦~¦\t¦a.b.c = 1\n¦[[a]]\n"
).split("¦")
TAGS = (
    "<p>¦</p>¦<h1>¦<h2>A¦<table>¦<tr><td>¦<ul><li>¦<pre><code>¦<script>¦</script>¦<a ¦href='x'>¦"
    "<img src=¦<!--¦-->¦<![CDATA[¦<article>¦<main>¦<div class='¦'>¦&lt;¦&#x;¦<br/>¦<svg>¦<math>¦"
    '<template>¦<base href=//>¦word ¦<¦>¦=¦"¦\x00¦é¦<body>¦</html>'
).split("¦")
ASKED = (
    "\"¦'¦(¦)¦OR ¦AND ¦NOT ¦-¦+¦*¦:¦tag:¦collection:¦path:¦^¦NEAR(¦~2¦a¦okapi ¦sleep¦ ¦\x00¦é¦检索¦🙂¦"
    "\\¦%¦_¦;--¦“¦”¦\ud800¦0¦..¦/¦--force "
).split("¦")
LINKS = MARKS + (
    "- [A](https://e.org/a)¦: notes¦(/b)¦https://e.org/¦//¦javascript:¦## Optional\n¦# FILE: ¦"
    "Source: https://e.org\n¦url: /x\n¦<http://¦mailto:¦[a]: b\n¦%zz¦http://[::1¦://¦@¦:99999"
).split("¦")
HEADERS = (
    "Content-Type¦ETag¦Retry-After¦Last-Modified¦Link¦Content-Length¦Content-Encoding¦Location¦"
    "Transfer-Encoding¦Set-Cookie¦Refresh¦X¦¦Content-Location¦Connection¦Date¦Vary"
).split("¦")
VALUES = (
    'text/html¦; charset=¦utf-8¦utf-16¦x-none¦idna¦hex¦rot13¦unicode_escape¦"¦W/¦-1¦0¦'
    "99999999999999999999¦Wed, 21 Oct 2015 07:28:00 GMT¦Mon, 99 Foo¦chunked¦gzip¦br¦deflate¦é¦a¦"
    "<b.md>; rel=alternate; type=text/markdown¦//¦http://¦127.0.0.1:1¦,¦;¦=¦\t¦\x00¦\x7f¦1e9"
).split("¦")
STATUSES = ("200 OK¦304 Not Modified¦301 Moved¦404 No¦429 Slow¦503 Busy¦206 Part¦999 ?¦0 X¦abc").split("¦")


def turn(one: Round) -> None:
    """Some inputs for one reader."""
    name = tuple(TARGETS)[one.seed % len(TARGETS)]
    for _ in range(INPUTS):
        tokens, read = TARGETS[name]
        given, one.faults = _given(one.rng, tokens), one.faults + 1
        began = time.process_time()
        try:
            with counted(SPANS):
                _read(read, given)
        except Exception as problem:
            problem.add_note(f"{name}: {given[:2000]!r}")
            raise
        took = time.process_time() - began
        allowed = _SECONDS + _EACH * len(given)
        require(
            not one.is_long or took < allowed,
            SLOW,
            f"{name}: {took:.1f} s for {len(given):,}: {given[:200]!r}",
        )


def _read(read: Callable[[bytes], None], given: bytes) -> None:
    with suppress(QuireError):
        read(given)


# --------------------------------------------------------------------------------------------- the input


def _given(rng: Random, tokens: list[str]) -> bytes:
    """Random bytes, a changed real document, or pieces of syntax."""
    way = rng.random()
    if way < 0.15:
        return rng.randbytes(rng.randrange(2000))
    if way < 0.5:
        return _changed(rng.choice(_documents()), rng, tokens)
    return _pieces(rng, tokens).encode("utf-8", "surrogatepass")


def _pieces(rng: Random, tokens: list[str]) -> str:
    """Tokens in any order, some of them very often."""
    some = rng.choices(tokens, k=rng.randrange(1, 60))
    often = [token * (rng.randrange(1, 2000) if rng.random() < 0.05 else 1) for token in some]
    return ("".join(often) * (rng.randrange(1, 100) if rng.random() < 0.2 else 1))[:LONGEST]


def _changed(data: bytes, rng: Random, tokens: list[str]) -> bytes:
    found = bytearray(data)
    for _ in range(rng.randrange(1, 8)):
        start = rng.randrange(len(found) + 1)
        end = min(len(found), start + rng.randrange(200))
        new = (
            rng.randbytes(rng.randrange(5)),
            found[start:end] * rng.randrange(4),
            rng.choice(tokens).encode("utf-8", "surrogatepass"),
            found[end : end + 50] + found[start:end],
        )
        found[start:end] = rng.choice(new)
    return bytes(found[:LONGEST])


@cache
def _documents() -> list[bytes]:
    """Real documents: those beside the checkout, else those in it."""
    places = (SHARED / "docs_links_rust" / "docs", Path(__file__).parents[2] / "docs")
    place = next(place for place in places if place.is_dir())
    return [file.read_bytes()[:LONGEST] for file in sorted(place.rglob("*.md"))[:60]]


def _text(given: bytes) -> str:
    return given.decode("utf-8", "replace")


# ------------------------------------------------------------------------------------------- the readers


def _read_markdown(given: bytes) -> None:
    test_invariants.check(given, "a.md")


def _read_plain(given: bytes) -> None:
    for path in ("a.rst", "a.txt"):
        test_invariants.check(given, path)


def _read_front_matter(given: bytes) -> None:
    text = _text(given)
    front_matter.read_yaml(text)
    front_matter.read_toml(text)
    for mark in (b"---\n", b"+++\n"):
        test_invariants.check(mark + given + b"\n" + mark + b"# A\n\ntext\n", "a.md")


def _read_index(given: bytes) -> None:
    text = _text(given)
    found = [link.url for link in llmstxt.links(text, BASE)]
    assert len(set(found)) == len(found)
    assert all(re.match(r"https?://[^/]", url) for url in found)
    pages = llmstxt.pages(text)
    assert "".join(text[page.start : page.end] for page in pages) == text


def _read_html(given: bytes) -> None:
    article = html.to_markdown(_text(given), BASE)
    test_invariants.check(article.text, "a.md")


def _ask(given: bytes) -> None:
    text = given.decode("utf-8", "surrogatepass" if given.isascii() else "replace")
    query.parse(text, may_be_empty=True)
    library = _library()
    for result in library.search(text).results:
        read = library.read(result.address)
        source = library.source(result.address)
        assert source.decode()[read.start : read.end] == read.text


@cache
def _library() -> Library:
    library = Library.open(":memory:", create=True, config=WORDS)
    for number in range(10):
        library.add(content=crash.document(f"okapi sleep{number}", 3, Random(number)), path=f"{number}.md")
    return library


def _fetch(given: bytes) -> None:
    """A server answers with these headers."""
    rng = Random(given)
    lines = [f"HTTP/1.1 {rng.choice(STATUSES)}".encode()]
    for _ in range(rng.randrange(6)):
        value = "".join(rng.choices(VALUES, k=rng.randrange(1, 4))).encode("utf-8")
        lines.append(rng.choice(HEADERS).encode() + b": " + (value if rng.random() < 0.8 else given[:60]))
        fetch._retry_after(value.decode("latin-1"))
    (home() / "answer").write_bytes(b"\r\n".join([*lines, b"", given[:500]]))
    with Library.open(":memory:", create=True, config=_WEB) as library:
        library.add(f"http://127.0.0.1:{_port()}/page.md")
        for row in library.documents():
            library.read(row.address)


_WEB = override(WORDS, {"web": {"allow_hosts": ["127.0.0.1"], "retries": 0, "deadline": 2.0}})


@cache
def _port() -> int:
    """Of a server in another process, which answers with the bytes in a file."""
    child = Child(_serve, lasting=True)
    child.wait_for(BEGUN)
    return int(child.told()[0])


def _serve(tell: Tell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        tell(str(server.getsockname()[1]))
        tell(BEGUN)
        for connection in _connections(server):
            connection.settimeout(1)
            connection.recv(65536)
            connection.sendall((home() / "answer").read_bytes())


def _connections(server: socket.socket) -> Iterator[socket.socket]:
    while True:
        connection, _ = server.accept()
        try:
            with connection:
                yield connection
        except OSError:  # it has gone
            continue


TARGETS: dict[str, tuple[list[str], Callable[[bytes], None]]] = {
    "markdown": (MARKS, _read_markdown),
    "plain text": (MARKS, _read_plain),
    "front matter": (FRONT, _read_front_matter),
    "llms.txt": (LINKS, _read_index),
    "HTML": (TAGS, _read_html),
    "queries": (ASKED, _ask),
    "headers": (VALUES, _fetch),
}
