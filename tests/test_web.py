"""Pages and sites in a library, against a real server on loopback.

Fetching itself is tested in test_fetch.py, HTML in test_html.py, the files of llms.txt in test_llmstxt.py.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from quire import html, workers
from quire.config import Config, override
from quire.errors import LibraryError, NoResults, NotFound, Refused, TooLarge, TransientError
from quire.ingest import pages as ingested
from quire.ingest import spool
from quire.ingest.report import Report
from quire.library import Library
from quire.progress import Silent
from quire.sources import names
from quire.sources.web import PagePool, pool, reader
from quire.sources.web.response import Response
from quire.sources.web.urls import same_site
from quire.stores.sqlite import SqliteStore
from tests import postgres
from tests.crash import assert_whole
from tests.markdowns import FULL_FILES, SHARED, needs_shared
from tests.web_server import MIB, Handler, Site, reply, reset, site
from tests.words import WORDS

ROOT = Path(__file__).parents[1]
LLMS = SHARED / "large_inputs" / "llms"
GUIDE = b"# Guide\n\nWelcome.\n\n## Install\n\nUse the package manager.\n\n## Use\n\nRun it on zebras.\n"
HTML = b"""<!doctype html><html><head><title>Guide | Docs</title></head><body>
<nav><a href="/elsewhere">Elsewhere</a></nav>
<main><h1>Guide</h1><p>Welcome.</p><h2>Install</h2><p>Use the package manager.</p>
<pre><code class="language-sh">apt install quire</code></pre></main></body></html>"""


@pytest.fixture
def web() -> Iterator[Site]:
    with site() as web:
        yield web


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with opened(tmp_path) as library:
        yield library


def settings(**changes: Any) -> Config:
    """Words only, loopback allowed under two names, and no second tries, as those wait."""
    known = {"allow_hosts": ["127.0.0.1", "localhost"], "retries": 0}
    return override(WORDS, {"web": {**known, **changes}})


@contextmanager
def opened(place: Path, **changes: Any) -> Iterator[Library]:
    with Library.open(place / "library.db", create=True, config=settings(**changes)) as library:
        yield library


def index(*links: str) -> bytes:
    """An llms.txt."""
    return ("# Site\n\n" + "".join(f"- [{link}]({link})\n" for link in links)).encode()


def publish(web: Site, pages: dict[str, str], *, of: str = "/llms.txt") -> str:
    """Serve markdown pages and an llms.txt that names them; its URL."""
    for path, text in pages.items():
        web.page(path, text.encode(), content_type="text/markdown")
    return web.page(of, index(*pages))


class Versioned:
    """An answer that is 304 to whoever knows this version; what it answered is in `statuses`."""

    def __init__(self, content: bytes, **headers: str) -> None:
        self.content, self.headers = content, headers
        self.statuses: list[int] = []

    def __call__(self, handler: Handler) -> None:
        etag, day = handler.headers["If-None-Match"], handler.headers["If-Modified-Since"]
        name, known = ("etag", etag) if etag else ("last_modified", day)
        same = known is not None and known == self.headers.get(name)
        self.statuses.append(304 if same else 200)
        handler.answer(self.statuses[-1], b"" if same else self.content, self.headers)


def held(answer: Callable[[Handler], None], wait: Callable[[], object]) -> Callable[[Handler], None]:
    """The same answer, after a wait."""

    def late(handler: Handler) -> None:
        wait()
        answer(handler)

    return late


def texts(library: Library) -> dict[str, str]:
    """What can be found in the library, by path."""
    rows = [row for row in library.documents() if row.chunk_count or not row.path.startswith("llms-full")]
    return {row.path: library.source(row.address).decode() for row in rows}


def found(library: Library, query: str) -> list[str]:
    return [result.path for result in library.search(query).results]


def told(report: Report) -> str:
    """All that a report says went wrong or otherwise."""
    return " ".join([*report.warnings, *(f"{failed.source} {failed.reason}" for failed in report.failed)])


def counts(report: Report) -> tuple[int, int, int, int, int]:
    return report.added, report.updated, report.unchanged, report.removed, len(report.failed)


# ------------------------------------------------------------------------------------- a page


def test_a_markdown_page_is_found_read_and_outlined(web: Site, library: Library) -> None:
    """A URL is a source; its address is `host:path`, its bytes are kept as they came."""
    url = web.page("/docs/guide.md", GUIDE)
    assert counts(library.add(url)) == (1, 0, 0, 0, 0)
    (row,) = library.documents()
    assert (row.address, row.url, row.title) == ("127.0.0.1:docs/guide.md", url, "Guide")
    assert (row.kind, row.format, row.root) == ("document", "markdown", url)
    assert library.source(row.address) == GUIDE
    assert (
        library.read("127.0.0.1:docs/guide.md#install").text == "## Install\n\nUse the package manager.\n\n"
    )
    assert [section.title for section in library.toc(row.address).sections] == [
        "Guide",
        "Guide",
        "Install",
        "Use",
    ]
    (result,) = library.search("zebras").results
    assert (result.address, result.url, result.stale) == ("127.0.0.1:docs/guide.md#use", url, False)


def test_a_plain_text_page_is_text(web: Site, library: Library) -> None:
    """A hash in plain text is no heading."""
    library.add(web.page("/notes.txt", b"# not a heading\n\nokapis\n", content_type="text/plain"))
    (row,) = library.documents()
    assert (row.format, row.title, row.path) == ("text", "notes", "notes.txt")
    assert len(library.toc(row.address).sections) == 1
    assert found(library, "okapis") == ["notes.txt"]


def test_an_html_page_becomes_markdown(web: Site, library: Library) -> None:
    """Issue: headings, code with its language; menus left out; title and URL kept."""
    url = web.page("/guide", HTML, content_type="text/html")
    library.add(url)
    (row,) = library.documents()
    assert (row.path, row.url, row.title, row.format) == ("guide", url, "Guide", "markdown")
    assert "```sh\napt install quire\n```" in texts(library)["guide"]
    assert "Elsewhere" not in texts(library)["guide"]
    assert library.read("127.0.0.1:guide", "Install").text.startswith(
        "## Install\n\nUse the package manager."
    )
    assert [result.address for result in library.search("apt").results] == ["127.0.0.1:guide#install"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", "index"),
        ("/a/b/", "a/b/index"),
        ("/a%20b/%C3%BC.md", "a b/ü.md"),
        ("/search?q=x%20y", "search?q=x y"),
        ("/a.b/C", "a.b/C"),
        ("/c%23/d%3Ae.md", "c#/d:e.md"),
        ("/nul%00.md", "nul\0.md"),
    ],
)
def test_the_address_of_a_page_is_its_path(web: Site, library: Library, path: str, expected: str) -> None:
    """Issue: collection = domain; a document's address names it for people too."""
    web.page(path.partition("?")[0], GUIDE, content_type="text/markdown")
    library.add(web.url(path))
    assert [row.address for row in library.documents()] == [f"127.0.0.1:{expected}"]
    assert library.read(f"127.0.0.1:{expected}").text == GUIDE.decode()


def test_a_page_can_be_filed_under_another_collection(web: Site, library: Library) -> None:
    """Issue: collection = domain unless another is named."""
    library.add(web.page("/guide.md", GUIDE), collection="manual")
    assert library.read("manual:guide.md").text == GUIDE.decode()


def test_markdown_is_asked_for_first(web: Site, library: Library) -> None:
    """Issue: content negotiation."""
    library.add(web.page("/guide.md"))
    assert [kind.strip() for kind in web.asked[0].headers["accept"].split(",")][:2] == [
        "text/markdown",
        "text/html;q=0.8",
    ]


def test_a_guessed_encoding_is_recorded(web: Site, library: Library) -> None:
    """Issue: charset by BOM, header, meta, UTF-8, then a guess that is recorded."""
    report = library.add(web.page("/menu.md", "# Menü\n\ncafé\n".encode("latin-1")))
    assert report.warnings == ["menu.md: its encoding was guessed to be windows-1252"]
    assert texts(library) == {"menu.md": "# Menü\n\ncafé\n"}
    assert found(library, "café") == ["menu.md"]


def test_a_false_utf_16_is_seen_through(web: Site, library: Library, tmp_path: Path) -> None:
    """BAD_INPUTS: declared UTF-16 over UTF-8 bytes → seen through, warned; on the web and in files."""
    page = '<!doctype html><meta charset="utf-16"><title>Menü</title><h1>Menü</h1><p>café</p>'
    said = "it declares UTF-16, but is UTF-8"
    url = web.page("/menu.md", "# Menü\n\ncafé\n".encode(), content_type="text/markdown; charset=utf-16")
    assert library.add(url).warnings == [f"menu.md: {said}"]
    assert library.add(web.page("/page.html", page.encode())).warnings == [f"page.html: {said}"]
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "menu.html").write_text(page)
    assert library.add(tmp_path / "d").warnings == [f"menu.html: {said}"]
    assert [text for text in texts(library).values() if "café" not in text] == []


def test_a_page_in_utf_16_is_read(web: Site, library: Library) -> None:
    """BAD_INPUTS: UTF-16 with BOM → decoded."""
    assert library.add(web.page("/u.md", "# Ünï\n".encode("utf-16"))).warnings == []
    assert library.documents()[0].title == "Ünï"


def test_a_page_can_be_added_while_an_event_loop_runs(web: Site, library: Library) -> None:
    """DESIGN §9: the library is synchronous; notebooks and servers call it from a running loop."""
    url = web.page("/guide.md", GUIDE)

    async def notebook() -> Report:
        return library.add(url)

    assert counts(asyncio.run(notebook())) == (1, 0, 0, 0, 0)


# ------------------------------------------------------------------------------------- twins

ALTERNATE = b'<link rel="alternate" type="text/markdown" href="%s">'
LINK = '<{}>; rel="alternate"; type="text/markdown"'


@pytest.mark.parametrize(
    ("page", "twin", "head", "link"),
    [
        ("/guide", "/raw/g.md", ALTERNATE % b"/raw/g.md", ""),
        ("/guide", "/raw/g.md", b"", LINK.format("/raw/g.md")),
        ("/guide", "/guide.md", b"", ""),
        ("/guide.html", "/guide.html.md", b"", ""),
        ("/guide.html", "/guide.md", b"", ""),
        ("/guide/", "/guide/index.html.md", b"", ""),
        ("/guide/", "/guide.md", b"", ""),
        ("/", "/index.html.md", b"", ""),
    ],
)
def test_the_markdown_twin_of_a_page_is_taken(
    web: Site, library: Library, page: str, twin: str, head: bytes, link: str
) -> None:
    """Issue: `rel="alternate"` in HTML and in a Link header, `page.md`, `index.html.md`."""
    body = HTML.replace(b"<head>", b"<head>" + head)
    headers = {"content_type": "text/html", **({"link": link} if link else {})}
    url = web.route(page, reply(200, body, **headers))
    web.page(twin, GUIDE, content_type="text/markdown")
    library.add(url)
    (row,) = library.documents()
    assert (row.url, row.title, library.source(row.address)) == (url, "Guide", GUIDE)


def other_site(web: Site, path: str) -> str:
    """The same server under a name that is another site."""
    return f"http://localhost:{web.port}{path}"


def no_twin_elsewhere(web: Site) -> bytes:
    return ALTERNATE % other_site(web, "/raw.md").encode()


def no_twin_behind_a_redirect(web: Site) -> bytes:
    web.redirect("/moved.md", other_site(web, "/raw.md"))
    return ALTERNATE % b"/moved.md"


def no_twin_in_html(web: Site) -> bytes:
    web.page("/soft.md", HTML, content_type="text/html")
    return ALTERNATE % b"/soft.md"


def no_twin_but_an_error(web: Site) -> bytes:
    web.page("/broken.md", status=500)
    return ALTERNATE % b"/broken.md"


@pytest.mark.parametrize(
    "head", [no_twin_elsewhere, no_twin_behind_a_redirect, no_twin_in_html, no_twin_but_an_error]
)
def test_what_is_no_twin_is_left(web: Site, library: Library, head: Callable[[Site], bytes]) -> None:
    """Issue: same site, also after a redirect; what is not markdown or not there is no twin."""
    web.page("/raw.md", b"# Stranger\n")
    body = HTML.replace(b"<head>", b"<head>" + head(web))
    library.add(web.page("/guide", body, content_type="text/html"))
    assert "package manager" in texts(library)["guide"]
    assert library.documents()[0].title == "Guide"


def html_site(web: Site, count: int) -> str:
    paths = [f"/page{number}" for number in range(count)]
    for path in paths:
        web.page(path, HTML.replace(b"Welcome", path.encode()), content_type="text/html")
    return web.page("/llms.txt", index(*paths))


def test_twins_are_not_guessed_for_ever(web: Site, tmp_path: Path) -> None:
    """Issue: three guesses that miss, and no more are made."""
    url = html_site(web, 8)
    with opened(tmp_path, concurrency=1) as library:
        assert library.add(url).added == 9
    assert [path for path in web.paths() if path.endswith(".md")] == ["/page0.md", "/page1.md", "/page2.md"]


def test_few_twins_are_guessed_when_pages_are_read_at_once(web: Site, library: Library) -> None:
    """Issue: guesses that miss cost a request each; those under way are all that is added."""
    assert library.add(html_site(web, 40)).added == 41
    guesses = [path for path in web.paths() if path.endswith(".md")]
    assert len(guesses) <= 3 + library.config.web.concurrency


# ------------------------------------------------------------------------------ again and again


@pytest.mark.parametrize(
    "validators",
    [{"etag": '"1"'}, {"last_modified": "Mon, 02 Nov 2026 10:00:00 GMT"}, {}],
    ids=["etag", "last-modified", "neither"],
)
def test_an_unchanged_page_costs_no_work(web: Site, library: Library, validators: dict[str, str]) -> None:
    """Same document, same updated_at, no work; what the server can say is not sent again."""
    page = Versioned(GUIDE, **validators)
    url = web.route("/guide.md", page)
    library.add(url)
    before, generation = library.documents(), library.store.generation()
    assert counts(library.add(url)) == (0, 0, 1, 0, 0)
    assert library.documents() == before
    assert page.statuses == [200, 304 if validators else 200]
    assert web.paths() == ["/guide.md"] * 2
    assert library.store.generation() == generation


def test_a_changed_page_keeps_its_identity(web: Site, library: Library) -> None:
    """Same id and created_at, later updated_at, chunks replaced."""
    url = web.route("/guide.md", Versioned(GUIDE, etag='"1"'))
    library.add(url)
    (old,) = library.documents()
    changed = Versioned(GUIDE.replace(b"zebras", b"okapis"), etag='"2"')
    web.route("/guide.md", changed)
    assert counts(library.add(url)) == (0, 1, 0, 0, 0)
    (new,) = library.documents()
    assert (new.id, new.created_at) == (old.id, old.created_at)
    assert new.updated_at > old.updated_at
    assert found(library, "okapis") == ["guide.md"]
    assert found(library, "zebras") == []
    assert counts(library.add(url)) == (0, 0, 1, 0, 0)
    assert changed.statuses == [200, 304]


def test_unchanged_pages_of_a_site_are_not_sent_again(web: Site, library: Library) -> None:
    """One request for each, and 304 is the answer."""
    pages = {f"/{name}.md": Versioned(f"# {name}\n".encode(), etag=f'"{name}"') for name in "abcde"}
    for path, page in pages.items():
        web.route(path, page)
    url = web.page("/llms.txt", index(*pages))
    library.add(url)
    before = library.documents()
    assert counts(library.add(url)) == (0, 0, 6, 0, 0)
    assert library.documents() == before
    assert [page.statuses for page in pages.values()] == [[200, 304]] * 5


def test_the_same_page_in_another_spelling_is_the_same_document(web: Site, library: Library) -> None:
    """D ruling: re-ingesting the same URL updates it."""
    library.add(web.page("/guide.md", GUIDE))
    again = f"HTTP://127.0.0.1:{web.port}/x/../guide.md#install"
    assert counts(library.add(again)) == (0, 0, 1, 0, 0)


def test_a_new_etag_of_the_same_content_is_learnt(web: Site, library: Library) -> None:
    """After a server has renewed its etags, what has not changed is still not sent again and again."""
    url = web.route("/guide.md", Versioned(GUIDE, etag='"1"'))
    library.add(url)
    renewed = Versioned(GUIDE, etag='"2"')
    web.route("/guide.md", renewed)
    assert [library.add(url).unchanged for _ in range(2)] == [1, 1]
    assert renewed.statuses == [200, 304]


def test_a_changed_twin_is_seen(web: Site, library: Library) -> None:
    """The page says 304, but its document is the twin, and that has changed."""
    day = "Mon, 02 Nov 2026 10:00:00 GMT"
    url = web.route("/guide", Versioned(HTML, last_modified=day, content_type="text/html"))
    web.route("/guide.md", Versioned(GUIDE, last_modified=day))
    library.add(url)
    later = "Tue, 03 Nov 2026 10:00:00 GMT"
    web.route("/guide.md", Versioned(GUIDE.replace(b"zebras", b"okapis"), last_modified=later))
    library.add(url)
    assert found(library, "okapis") == ["guide"]


def test_other_chunk_settings_cut_a_page_anew(web: Site, tmp_path: Path) -> None:
    """Unchanged means text and settings."""
    url = web.route("/guide.md", Versioned(GUIDE, etag='"1"'))
    with opened(tmp_path) as library:
        library.add(url)
    other = override(settings(), {"chunk": {"strategy": "nodes"}})
    with Library.open(tmp_path / "library.db", config=other) as library:
        assert counts(library.add(url)) == (0, 1, 0, 0, 0)
        assert counts(library.add(url)) == (0, 0, 1, 0, 0)


def test_content_wins_over_a_path_and_a_path_over_a_url(
    web: Site, library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Source precedence content > path > url."""
    library.add(web.page("/guide.md"), content="# Content\n", path="given.md")
    assert web.asked == []
    (tmp_path / "example.com").mkdir()
    (tmp_path / "example.com" / "a.md").write_text("# From the folder\n")
    (tmp_path / "notes.md").write_text("# From the file\n")  # .md is also a domain
    monkeypatch.chdir(tmp_path)
    library.add("example.com", "notes.md", collection="here")
    assert {row.title for row in library.documents()} == {"Content", "From the folder", "From the file"}


def test_two_pages_whose_paths_are_the_same_are_two_documents(web: Site, library: Library) -> None:
    """A URL is unique in its collection, and what is added does not take another's place."""
    urls = [web.page(path, f"# At {path}\n".encode(), content_type="text/markdown") for path in ("/a", "/a/")]
    for url in urls:
        library.add(url)
    assert {row.url: row.title for row in library.documents()} == {urls[0]: "At /a", urls[1]: "At /a/"}
    assert library.add(*urls).unchanged == 2


def test_pages_of_two_hosts_in_one_collection_are_two_documents(web: Site, library: Library) -> None:
    """Nothing that was added is lost when a page of another host has the same path."""
    with site() as other:
        urls = [web.page("/guide.md", GUIDE), other.page("/guide.md", b"# Other guide\n")]
        for url in urls:
            library.add(url, collection="manual")
        assert {row.url: row.title for row in library.documents()} == {
            urls[0]: "Guide",
            urls[1]: "Other guide",
        }


def test_a_page_does_not_take_the_place_of_a_file(web: Site, library: Library, tmp_path: Path) -> None:
    """BAD_INPUTS: nothing may lose an earlier good version; two files of one path are refused likewise."""
    folder = tmp_path / "manual"
    folder.mkdir()
    (folder / "guide.md").write_text("# From the file\n")
    library.add(folder)
    report = library.add(web.page("/guide.md", GUIDE), collection="manual")
    titles = {row.title for row in library.documents()}
    assert "From the file" in titles
    assert report.failed or "Guide" in titles


def test_a_page_of_a_site_can_also_be_added_by_itself(web: Site, library: Library) -> None:
    """What was added in two ways is not written again and again, nor asked for where it is not."""
    url = publish(web, {"/a.md": "# A\n", "/b.md": "# B\n"})
    library.add(url)
    library.add(web.url("/a.md"))
    before = library.documents()
    report = library.refresh()
    assert (report.updated, report.removed, report.failed) == (0, 0, [])
    assert library.documents() == before
    assert set(web.paths()) == {"/llms.txt", "/llms-full.txt", "/robots.txt", "/a.md", "/b.md"}


def test_the_home_page_of_a_site_stays_when_the_site_is_added(web: Site, library: Library) -> None:
    """BAD_INPUTS: nothing may lose an earlier good version."""
    library.add(web.page("/", b"# Home\n", content_type="text/markdown"))
    assert library.add(publish(web, {"/a.md": "# A\n"})).removed == 0
    assert library.refresh().removed == 0
    assert "Home" in {row.title for row in library.documents()}


# -------------------------------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("source", "url", "whole"),
    [
        ("https://example.com/guide", True, False),
        ("https://example.com/", True, False),
        ("https://example.com/llms.txt", True, True),
        ("https://example.com/docs/llms-full.txt?x=1", True, True),
        ("file:///etc/passwd", True, False),
        ("example.com", False, True),
        ("docs.example.co.uk/", False, True),
        ("./docs", False, False),
        ("docs", False, False),
        ("docs/guide.md", False, False),
        ("C:\\docs", False, False),
        ("../example.com", False, False),
        ("127.0.0.1", False, False),
    ],
)
def test_what_is_a_url_and_what_is_a_site(source: str, url: bool, whole: bool) -> None:
    """`quire add example.com`, or the URL of any llms.txt."""
    assert (names.is_url(source), names.is_site(source)) == (url, whole)


@pytest.mark.parametrize(
    ("url", "other", "expected"),
    [
        ("https://example.com/a", "http://example.com/b", True),
        ("https://docs.example.com/", "https://www.example.com/", True),
        ("https://example.com/", "https://example.org/", False),
        ("https://a.github.io/", "https://b.github.io/", False),
        ("https://a.github.io/", "https://a.github.io/x", True),
        ("https://github.io/", "https://a.github.io/", False),
        ("https://a.co.uk/", "https://b.co.uk/", False),
        ("https://docs.a.co.uk/", "https://a.co.uk/", True),
        ("https://a.vercel.app/", "https://b.vercel.app/", False),
        ("https://EXAMPLE.com./", "https://docs.example.com/", True),
        ("https://bücher.example/", "https://www.xn--bcher-kva.example/", True),
        ("https://notexample.com/", "https://example.com/", False),
        ("http://10.0.0.1/", "http://10.0.0.1:8080/", True),
        ("http://10.0.0.1/", "http://11.0.0.1/", False),
        ("http://[2606:4700::1]/", "http://[2606:4700::2]/", False),
        ("http://localhost/", "http://localhost:8000/", True),
        ("http://localhost/", "http://127.0.0.1/", False),
        ("https://com/", "https://com/", True),
    ],
)
def test_the_same_site_is_the_same_name_that_can_be_bought(url: str, other: str, expected: bool) -> None:
    """Issue: same site = registrable domain."""
    assert same_site(url, other) is same_site(other, url) is expected


# -------------------------------------------------------------------------------------- a site


def test_a_site_is_its_llms_txt_and_what_that_links(web: Site, library: Library) -> None:
    """The index is kept as a document, and each page it links is one; collection = domain."""
    url = publish(web, {"/a.md": "# A\n\naardvarks\n", "/docs/b.md": "# B\n\nbadgers\n"})
    assert counts(library.add(url)) == (3, 0, 0, 0, 0)
    assert [row.address for row in library.documents("127.0.0.1")] == [
        "127.0.0.1:a.md",
        "127.0.0.1:docs/b.md",
        "127.0.0.1:llms.txt",
    ]
    assert library.source("127.0.0.1:llms.txt") == index("/a.md", "/docs/b.md")
    (result,) = library.search("badgers").results
    assert (result.address, result.url) == ("127.0.0.1:docs/b.md#b", web.url("/docs/b.md"))
    assert web.paths()[:2] == ["/llms.txt", "/llms-full.txt"]


def test_an_llms_txt_below_the_root_has_its_own_home(web: Site, library: Library) -> None:
    """Any llms.txt URL; relative links count from it."""
    web.page("/docs/v2/a.md", b"# A\n")
    library.add(web.page("/docs/v2/llms.txt", index("a.md")))
    assert web.paths()[:2] == ["/docs/v2/llms.txt", "/docs/v2/llms-full.txt"]
    assert sorted(texts(library)) == ["docs/v2/a.md", "docs/v2/llms.txt"]


def test_the_url_of_llms_full_names_the_same_site(web: Site, library: Library) -> None:
    """The site is the same, whichever of its two files is named."""
    url = publish(web, {"/a.md": "# A\n"})
    library.add(url)
    assert library.add(web.url("/llms-full.txt")).unchanged == 2


FULL = "".join(
    f"# {name}\nSource: http://127.0.0.1/{name.lower()}\n\nAll about {name}.\n\n"
    for name in ("Pumps", "Valves")
)


def test_a_whole_llms_full_becomes_its_pages(web: Site, library: Library) -> None:
    """Each page is a document with its own URL, and nothing is crawled."""
    web.page("/llms-full.txt", FULL.encode())
    report = library.add(web.page("/llms.txt", index("/pumps", "/valves")))
    assert (report.added, report.failed, report.warnings) == (4, [], [])
    assert web.paths() == ["/llms.txt", "/llms-full.txt"]
    pages = {row.title: row for row in library.documents() if not row.path.startswith("llms")}
    assert {title: row.url for title, row in pages.items()} == {
        "Pumps": "http://127.0.0.1/pumps",
        "Valves": "http://127.0.0.1/valves",
    }
    assert "".join(library.read(pages[title].address).text for title in ("Pumps", "Valves")) == FULL
    assert library.read(f"{pages['Pumps'].collection}:llms-full.txt").text == FULL
    assert library.add(web.url("/llms.txt")).unchanged == 4


def test_an_llms_full_that_is_not_whole_is_left_for_the_links(web: Site, library: Library) -> None:
    """Take it or the links; what was done is said."""
    web.page("/llms-full.txt", b"# Only one\n\nOne page of many.\n")
    report = library.add(publish(web, {f"/{name}.md": f"# {name}\n" for name in "abc"}))
    assert sorted(texts(library)) == ["a.md", "b.md", "c.md", "llms.txt"]
    assert report.warnings == ["llms-full.txt has 1 page for 3 links, so the links were read instead."]


def test_an_llms_full_without_an_llms_txt_is_enough(web: Site, library: Library) -> None:
    """FULL alone."""
    web.page("/llms-full.txt", FULL.encode())
    assert library.add(web.url("/llms.txt")).added == 3
    assert {row.title for row in library.documents() if row.chunk_count} == {"Pumps", "Valves"}


def test_pages_of_an_llms_full_that_have_the_same_name_are_all_kept(web: Site, library: Library) -> None:
    """Nothing is lost silently."""
    full = b"# Notes\n\none\n\n# Notes\n\ntwo\n\n# Notes 2\n\nthree\n\n# Notes\n\nfour\n"
    web.page("/llms-full.txt", full)
    assert library.add(web.url("/llms.txt")).added == 5
    assert sorted(texts(library).values(), key=full.decode().index) == [
        "# Notes\n\none\n\n",
        "# Notes\n\ntwo\n\n",
        "# Notes 2\n\nthree\n\n",
        "# Notes\n\nfour\n",
    ]
    assert library.add(web.url("/llms.txt")).unchanged == 5


def nothing_there(web: Site) -> None:
    """Leave every path a 404."""


def a_page_for_everything(web: Site) -> None:
    for path in ("/llms.txt", "/llms-full.txt"):
        web.page(path, HTML, content_type="text/html")


@pytest.mark.parametrize("serve", [nothing_there, a_page_for_everything])
def test_a_site_that_says_nothing_of_itself_is_a_clear_error(
    web: Site, library: Library, serve: Callable[[Site], None]
) -> None:
    """Issue: nothing at all there → a clear error, also where a server has a page for every path."""
    serve(web)
    with pytest.raises(
        NotFound, match=r"has neither llms\.txt nor llms-full\.txt\. .*: quire add --site http"
    ):
        library.add(web.url("/llms.txt"))
    assert library.documents() == []


def test_only_pages_of_the_same_site_are_read(web: Site, library: Library) -> None:
    """Issue: same site by default; the others are left and counted."""
    elsewhere = [other_site(web, "/x.md"), other_site(web, "/y.md")]
    web.page("/a.md")
    report = library.add(web.page("/llms.txt", index("/a.md", *elsewhere)))
    assert sorted(texts(library)) == ["a.md", "llms.txt"]
    assert report.warnings == ["2 links lead to other sites: not followed."]
    assert report.failed == []
    assert not {"/x.md", "/y.md"} & set(web.paths())


def test_a_page_that_leads_to_another_site_is_refused(web: Site, library: Library) -> None:
    """Issue: same site, re-checked where a redirect leads."""
    web.page("/stranger.md", b"# Stranger\n")
    web.redirect("/away.md", other_site(web, "/stranger.md"))
    web.page("/new.md", b"# New\n")
    web.redirect("/old.md", "/new.md")
    report = library.add(web.page("/llms.txt", index("/away.md", "/old.md")))
    assert [failed.source for failed in report.failed] == [web.url("/away.md")]
    assert "leads to another site" in report.failed[0].reason
    assert sorted(texts(library)) == ["llms.txt", "old.md"]


@pytest.mark.parametrize(
    ("page", "again"),
    [
        ("/a.md", "/a.md#install"),
        ("/a.md", "/x/../a.md"),
        ("/a.md", "./a.md"),
        ("/a.md", "HTTP://LocalHost:{port}/a.md"),
        ("/%C3%BC.md", "/ü.md"),
    ],
)
def test_two_links_to_one_page_are_one_document(web: Site, library: Library, page: str, again: str) -> None:
    """Issue: each page a document, however often and in whatever spelling it is linked."""
    web.page(page, b"# A\n")
    web.page("/llms.txt", index(page, again.format(port=web.port)))
    assert library.add(other_site(web, "/llms.txt")).added == 2
    assert web.paths().count(page) == 1


def test_what_a_site_says_is_followed_by_one_bar(web: Site, library: Library) -> None:
    """Issue: a progress bar with pages done, failed, left."""
    seen: list[tuple[Any, ...]] = []

    class Watcher(Silent):
        def begin(self, work: str, total: int, unit: str) -> None:
            seen.append((work, total, unit))

        def advance(self, amount: int, failed: int = 0) -> None:
            seen.append((amount, failed))

    publish(web, {"/a.md": "# A\n", "/b.md": "# B\n"})
    library.add(web.page("/llms.txt", index("/a.md", "/b.md", "/gone.md")), progress=Watcher())
    assert seen[0] == ("reading 127.0.0.1", 3, "pages")
    assert sorted(seen[1:]) == [(1, 0), (1, 0), (1, 1)]


# ------------------------------------------------------------------------------------- bounds


def test_no_more_pages_are_read_than_allowed(web: Site, tmp_path: Path) -> None:
    """Issue, BAD_INPUTS: 10,000 links → capped, by a setting that is named; what is left is said."""
    for number in range(10_000):
        web.routes[f"/{number}.md"] = reply(200, b"# A\n")
    url = web.page("/llms.txt", index(*(f"/{number}.md" for number in range(10_000))))
    start = time.process_time()
    with opened(tmp_path, max_pages=20) as library:
        report = library.add(url)
        assert len(library.documents()) == 21
    assert time.process_time() - start < 5
    (failed,) = report.failed
    assert failed.source == "llms.txt"
    assert failed.reason.startswith("9,980 pages are over web.max_pages = 20. Raise [web] max_pages")
    assert web.paths().count("/19.md") == 1
    assert "/20.md" not in web.paths()


def test_pages_of_an_llms_full_are_capped_too(web: Site, tmp_path: Path) -> None:
    """Issue: bounded count."""
    web.page("/llms-full.txt", FULL.encode())
    with opened(tmp_path, max_pages=1) as library:
        report = library.add(web.url("/llms.txt"))
    assert (report.added, len(report.failed)) == (2, 1)  # the page, and the file as a whole
    assert "web.max_pages = 1" in report.failed[0].reason


def linked(web: Site, depth: int, **validators: str) -> str:
    """A chain of HTML pages, each linking to the next; its llms.txt names the first."""
    for number in range(depth):
        body = HTML.replace(b"/elsewhere", f"/step{number + 1}".encode())
        body = body.replace(b"Guide</h1>", f"Step {number}</h1>".encode())
        headers = {"content_type": "text/html", **validators}
        web.route(f"/step{number}", Versioned(body, **headers) if validators else reply(200, body, **headers))
    return web.page("/llms.txt", index("/step0"))


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_links_are_followed_as_deep_as_allowed(web: Site, tmp_path: Path, depth: int) -> None:
    """Issue: bounded depth; 1 is what llms.txt names."""
    url = linked(web, 6)
    with opened(tmp_path, max_depth=depth) as library:
        library.add(url)
        assert sorted(texts(library)) == ["llms.txt", *(f"step{number}" for number in range(depth))]


def test_links_of_markdown_pages_are_followed_too(web: Site, tmp_path: Path) -> None:
    """Issue: bounded depth; a page is a page, whatever it is written in."""
    web.page("/b.md", b"# B\n")
    with opened(tmp_path, max_depth=2) as library:
        library.add(publish(web, {"/a.md": "# A\n\nSee [b](/b.md).\n"}))
        assert sorted(texts(library)) == ["a.md", "b.md", "llms.txt"]


def test_pages_behind_an_unchanged_page_stay(web: Site, tmp_path: Path) -> None:
    """A page that has not changed still links to what it linked to."""
    url = linked(web, 2, etag='"1"')
    with opened(tmp_path, max_depth=2) as library:
        library.add(url)
        before = library.documents()
        report = library.add(url)
        assert report.removed == 0
        assert library.documents() == before


def test_pages_behind_a_page_that_fails_stay(web: Site, tmp_path: Path) -> None:
    """BAD_INPUTS: a failure may not lose an earlier good version, not even of another page."""
    url = linked(web, 2)
    with opened(tmp_path, max_depth=2) as library:
        library.add(url)
        before = library.documents()
        web.page("/step0", status=503)
        assert library.add(url).removed == 0
        assert library.documents() == before


@pytest.mark.parametrize(
    ("per_host", "concurrency", "most"), [(2, 8, 2), (8, 3, 3), (1, 8, 1)], ids=["host", "all", "one"]
)
def test_a_host_is_asked_for_a_few_pages_at_once(
    web: Site, tmp_path: Path, per_host: int, concurrency: int, most: int
) -> None:
    """Issue: per-host concurrency."""
    paths = [f"/{number}.md" for number in range(10)]
    for path in paths:
        web.route(path, held(reply(200, b"# A\n"), lambda: time.sleep(0.04)))
    url = web.page("/llms.txt", index(*paths))
    with opened(tmp_path, per_host=per_host, concurrency=concurrency) as library:
        assert library.add(url).added == 11
    assert web.most_at_once == most


# -------------------------------------------------------------------------------------- robots


def test_pages_that_are_not_for_robots_are_left(web: Site, library: Library) -> None:
    """Issue: robots.txt, with * and $; what is left is listed."""
    web.page("/robots.txt", b"User-agent: *\nDisallow: /private/\nDisallow: /*.txt$\nAllow: /private/ok.md\n")
    pages = {path: f"# {path}\n" for path in ("/a.md", "/private/b.md", "/private/ok.md", "/c.txt")}
    report = library.add(publish(web, pages))
    assert sorted(texts(library)) == ["a.md", "llms.txt", "private/ok.md"]
    assert {failed.source for failed in report.failed} == {web.url("/private/b.md"), web.url("/c.txt")}
    assert {failed.reason for failed in report.failed} == {"disallowed by robots.txt"}
    assert not {"/private/b.md", "/c.txt"} & set(web.paths())


@pytest.mark.parametrize(
    ("status", "body", "added"),
    [
        (404, b"Disallow: /", 3),
        (403, b"", 3),
        (500, b"", 1),
        (503, b"", 1),
        (200, b"User-agent: other\nDisallow: /\n", 3),
        (200, b"User-agent: quire\nDisallow: /\n", 1),
        (200, HTML, 3),
        (200, b"\xff\xfe\x00 rubbish \x00", 3),
    ],
)
def test_what_a_robots_txt_means(web: Site, library: Library, status: int, body: bytes, added: int) -> None:
    """FIELD_NOTES: 4xx allow, 5xx disallow; rules for others are not ours."""
    web.page("/robots.txt", body, status=status)
    assert library.add(publish(web, {"/a.md": "# A\n", "/b.md": "# B\n"})).added == added


def test_robots_txt_is_asked_for_once(web: Site, library: Library) -> None:
    """Issue: per-host limits: a server is not asked the same thing again and again."""
    web.route("/robots.txt", held(reply(404), lambda: time.sleep(0.05)))
    library.add(publish(web, {f"/{number}.md": "# A\n" for number in range(12)}))
    assert web.paths().count("/robots.txt") == 1


def test_a_twin_that_is_not_for_robots_is_left(web: Site, library: Library) -> None:
    """Issue: robots.txt holds for every page that a crawl reads."""
    web.page("/robots.txt", b"User-agent: *\nDisallow: /*.md$\n")
    web.page("/guide", HTML, content_type="text/html")
    web.page("/guide.md", GUIDE)
    library.add(web.page("/llms.txt", index("/guide")))
    assert "/guide.md" not in web.paths()


def test_one_page_that_a_person_names_is_read_whatever_robots_txt_says(web: Site, library: Library) -> None:
    """robots.txt is for crawls."""
    web.page("/robots.txt", b"User-agent: *\nDisallow: /\n")
    assert library.add(web.page("/guide.md", GUIDE)).added == 1


# ------------------------------------------------------------------------------- what goes wrong


def test_pages_that_fail_keep_their_old_version_while_the_rest_is_swapped_in(
    web: Site, library: Library
) -> None:
    """Issue, BAD_INPUTS: 404, 5xx, content type and resets are listed; nothing good is lost."""
    kinds = ("good", "missing", "broken", "picture", "reset")
    url = publish(web, {f"/{name}.md": f"# Old {name}\n" for name in kinds})
    library.add(url)
    web.page("/good.md", b"# New good\n")
    web.page("/missing.md", status=404)
    web.page("/broken.md", status=500)
    web.page("/picture.md", b"\x89PNG", content_type="image/png")
    web.route("/reset.md", reset)
    report = library.add(url)
    assert counts(report) == (0, 1, 1, 0, 4)
    reasons = {failed.source.rpartition("/")[2]: failed.reason for failed in report.failed}
    assert "404" in reasons["missing.md"]
    assert "500" in reasons["broken.md"]
    assert "image/png" in reasons["picture.md"]
    assert "cannot be fetched" in reasons["reset.md"]
    kept = {f"{name}.md": f"# Old {name}\n" for name in kinds[1:]}
    assert texts(library) == {"good.md": "# New good\n", "llms.txt": texts(library)["llms.txt"], **kept}
    for name in kinds[1:]:
        web.page(f"/{name}.md", f"# New {name}\n".encode())
    assert counts(library.add(url)) == (0, 4, 2, 0, 0)


def test_pages_that_a_site_no_longer_links_vanish(web: Site, library: Library) -> None:
    """Issue: a crawl is a generation."""
    url = publish(web, {"/a.md": "# A\n", "/b.md": "# B\n\nbadgers\n"})
    library.add(url)
    publish(web, {"/a.md": "# A\n", "/c.md": "# C\n"})
    assert counts(library.add(url)) == (1, 1, 1, 1, 0)
    assert sorted(texts(library)) == ["a.md", "c.md", "llms.txt"]
    assert found(library, "badgers") == []
    assert library.store.check() == []


def test_an_llms_txt_that_is_suddenly_empty_removes_nothing(web: Site, library: Library) -> None:
    """BAD_INPUTS: as with a folder that is suddenly empty, nothing may lose an earlier good version."""
    url = publish(web, {"/a.md": "# A\n", "/b.md": "# B\n"})
    library.add(url)
    web.page("/llms.txt", b"")
    assert library.add(url).removed == 0
    assert {"a.md", "b.md"} <= set(texts(library))


def test_pages_added_by_themselves_stay_when_a_site_is_read_again(web: Site, library: Library) -> None:
    """Issue: a generation replaces its own pages only."""
    url = publish(web, {"/a.md": "# A\n"})
    library.add(url, web.page("/alone.md", b"# Alone\n"))
    library.add(url)
    assert sorted(texts(library)) == ["a.md", "alone.md", "llms.txt"]


def test_a_page_that_fails_keeps_its_place(web: Site, library: Library) -> None:
    """BAD_INPUTS: an earlier good version is not overwritten by a page whose path would be the same."""
    pages = {"/a": "# At a\n", "/a/": "# At a slash\n"}
    url = publish(web, pages)
    library.add(url)
    before = {row.url: (row.path, row.title) for row in library.documents()}
    kept = next(path for path in pages if before[web.url(path)][0] == "a")
    (changed,) = set(pages) - {kept}
    web.page(kept, status=503)
    web.page(changed, b"# Changed\n", content_type="text/markdown")
    library.add(url)
    after = {row.url: (row.path, row.title) for row in library.documents()}
    assert after[web.url(kept)] == before[web.url(kept)]
    assert after[web.url(changed)] == (before[web.url(changed)][0], "Changed")
    assert len(after) == len(library.documents()) == 3


def test_a_page_whose_path_is_shared_has_the_same_address_everywhere(web: Site, tmp_path: Path) -> None:
    """Invariant 6: the same input gives the same ids, whichever answer comes first."""
    pages = {"/a": "# At a\n", "/a/": "# At a slash\n"}
    found: list[dict[str | None, str]] = []
    for slow in pages:
        url = publish(web, pages)
        web.route(slow, held(web.routes[slow], lambda: time.sleep(0.2)))
        with Library.open(tmp_path / f"{len(found)}.db", create=True, config=settings()) as library:
            library.add(url)
            found.append({row.url: row.path for row in library.documents()})
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "title", ["Page not found", "404 Not Found", "Page Not Found | Docs", "404", "Not found"]
)
def test_a_soft_404_keeps_the_old_copy_and_is_told_of(web: Site, library: Library, title: str) -> None:
    """BAD_INPUTS: soft 404 → old copy kept, warned."""
    web.page("/guide", HTML, content_type="text/html")
    url = web.page("/llms.txt", index("/guide"))
    library.add(url)
    old = texts(library)
    soft = f"<!doctype html><title>{title}</title><main><h1>{title}</h1><p>Sorry.</p></main>"
    web.page("/guide", soft.encode(), content_type="text/html")
    report = library.add(url)
    assert texts(library) == old
    (failed,) = report.failed
    assert failed.source == web.url("/guide")
    assert "though its status is 200" in failed.reason
    with pytest.raises(NotFound, match="though its status is 200"):
        library.add(web.url("/guide"))
    assert texts(library) == old


def test_a_long_page_about_404_is_a_page(web: Site, library: Library) -> None:
    """BAD_INPUTS: soft 404 is told from a page that is about it."""
    body = HTML.replace(b"Guide", b"404 Not Found").replace(b"Welcome.", b"What servers mean by it. " * 100)
    assert library.add(web.page("/404", body, content_type="text/html")).added == 1


def dead() -> str:
    """The address of a server that has just gone."""
    with site() as gone:
        return gone.host


@pytest.mark.parametrize("path", ["/guide.md", "/llms.txt"])
def test_a_network_failure_is_transient(library: Library, path: str) -> None:
    """Network failure → TransientError."""
    with pytest.raises(TransientError, match="cannot be fetched"):
        library.add(f"http://{dead()}{path}")


@pytest.mark.parametrize("path", ["/guide.md", "/llms.txt"])
@pytest.mark.parametrize("answer", [reply(500), reply(429), reset], ids=["500", "429", "reset"])
def test_a_failing_server_is_transient_and_the_old_copy_stays(
    web: Site, library: Library, path: str, answer: Callable[[Handler], None]
) -> None:
    """BAD_INPUTS: 429, 5xx, reset → TransientError, and nothing is lost."""
    publish(web, {"/guide.md": "# Guide\n"})
    library.add(web.url(path))
    before = library.documents()
    for asked in ("/guide.md", "/llms.txt", "/llms-full.txt"):
        web.route(asked, answer)
    with pytest.raises(TransientError):
        library.add(web.url(path))
    assert library.documents() == before


@pytest.mark.parametrize("status", [404, 401, 403, 410])
def test_a_page_that_is_not_there_is_not_transient(web: Site, library: Library, status: int) -> None:
    """BAD_INPUTS: 404, 401, 403 → error, no retry."""
    with pytest.raises(NotFound, match=f"{status}"):
        library.add(web.page("/guide.md", status=status))
    assert web.paths() == ["/guide.md"]


@pytest.mark.parametrize(
    ("source", "match"),
    [
        ("file:///etc/passwd", "is not an http or https URL"),
        ("ftp://example.com/a.md", "is not an http or https URL"),
        ("http://user:secret@example.com/", "holds a user name or password"),
        ("http://127.0.0.1/llms.txt", "is not at a public address"),
        ("http://169.254.169.254/latest", "is not at a public address"),
        ("http://2130706433/", "is not a URL|not at a public address"),
        ("https://example.com:8443/", "names port 8443"),
    ],
)
def test_urls_that_are_refused(tmp_path: Path, source: str, match: str) -> None:
    """BAD_INPUTS: refused before anything is sent, by page and by site, without the password."""
    with Library.open(tmp_path / "library.db", create=True, config=WORDS) as library:
        with pytest.raises(Refused, match=match) as caught:
            library.add(source)
        assert "secret" not in str(caught.value)
        assert library.documents() == []


@pytest.mark.parametrize(
    "link", ["http://user:secret@127.0.0.1/", "http://127.0.0.1:99999/", "http://127.1/", "http://exa$mple/"]
)
def test_a_link_that_is_refused_does_not_end_a_crawl(web: Site, library: Library, link: str) -> None:
    """Issue: what is wrong with a page is a warning, not an abort."""
    web.page("/a.md")
    report = library.add(web.page("/llms.txt", index(link, "/a.md")))
    assert sorted(texts(library)) == ["a.md", "llms.txt"]
    assert "secret" not in told(report)


def test_a_link_that_is_refused_does_not_end_a_deeper_crawl(web: Site, tmp_path: Path) -> None:
    """Issue: what is wrong with a page is a warning, not an abort."""
    web.page("/a", HTML.replace(b"/elsewhere", b"http://user:secret@127.0.0.1/"), content_type="text/html")
    with opened(tmp_path, max_depth=2) as library:
        library.add(web.page("/llms.txt", index("/a")))
        assert sorted(texts(library)) == ["a", "llms.txt"]


def test_a_page_of_an_llms_full_whose_address_is_none_is_kept(web: Site, library: Library) -> None:
    """Nothing is lost, whatever stands behind `Source:`."""
    full = FULL.replace("http://127.0.0.1/valves", "http://[valves")
    web.page("/llms-full.txt", full.encode())
    library.add(web.url("/llms.txt"))
    assert sorted("".join(texts(library).values())) == sorted(full)


def test_what_is_not_there_is_told_from_what_does_not_match(web: Site, library: Library) -> None:
    """Collection or document not ingested → NoResults, from get and from search."""
    library.add(web.page("/guide.md", GUIDE))
    with pytest.raises(NoResults, match=r"Did you mean '127\.0\.0\.1:guide\.md'"):
        library.read("127.0.0.1:guides.md")
    with pytest.raises(NoResults, match=r"No collection 'example\.com'"):
        library.search("zebras", collection="example.com")
    assert library.search("xyzzy", collection="127.0.0.1").results == ()


def test_an_llms_txt_that_fails_for_a_while_keeps_its_document(web: Site, library: Library) -> None:
    """Issue: failed pages keep their old version and are listed; the index is one of them."""
    web.page("/llms-full.txt", FULL.encode())
    url = web.page("/llms.txt", index("/pumps"))
    library.add(url)
    web.page("/llms.txt", status=503)
    report = library.add(url)
    assert "llms.txt" in texts(library)
    assert "503" in told(report)


def test_an_llms_full_that_fails_for_a_while_keeps_its_pages(web: Site, library: Library) -> None:
    """BAD_INPUTS: nothing may lose an earlier good version."""
    web.page("/llms-full.txt", FULL.encode())
    url = web.page("/llms.txt", b"# Site\n\nSee llms-full.txt.\n")
    library.add(url)
    web.page("/llms-full.txt", status=503)
    report = library.add(url)
    assert report.removed == 0
    assert {row.title for row in library.documents()} == {"Site", "Pumps", "Valves"}
    assert "503" in told(report)


# ---------------------------------------------------------------------------- old or new, never a mix


def generation(web: Site, name: str, count: int = 12) -> str:
    """Serve a site whose every page is of one generation."""
    return publish(web, {f"/page{number}.md": f"# Generation {name}\n\n{name}\n" for number in range(count)})


def kinds_of(library: Library) -> set[str]:
    return {row.title for row in library.documents() if row.path != "llms.txt"}


def test_readers_see_the_old_site_or_the_new_one(web: Site, tmp_path: Path) -> None:
    """Invariant 4, issue: a crawl is swapped in atomically."""
    url = generation(web, "one")
    seen: list[set[str]] = []
    done = threading.Event()

    def read() -> None:
        with opened(tmp_path) as library:
            while not done.is_set():
                seen.append(kinds_of(library))
                seen.append({result.title for result in library.search("generation", limit=20).results})

    with opened(tmp_path) as library:
        library.add(url)
        reader = threading.Thread(target=read)
        reader.start()
        try:
            for name in ("two", "three", "four", "five"):
                generation(web, name)
                assert library.add(url).updated == 12
        finally:
            done.set()
            reader.join()
    seen = [titles - {"Site"} for titles in seen]
    assert {len(titles) for titles in seen} == {1}, "a mix"
    assert len(set(map(frozenset, seen))) > 1


def test_a_server_that_goes_in_the_middle_loses_nothing(web: Site, library: Library) -> None:
    """Issue: failed pages keep their old version and are listed; the rest is new and whole."""
    url = generation(web, "old")
    library.add(url)
    generation(web, "new")
    left = threading.Semaphore(5)

    def going(answer: Callable[[Handler], None]) -> Callable[[Handler], None]:
        return lambda handler: (answer if left.acquire(blocking=False) else reset)(handler)

    for path, answer in list(web.routes.items()):
        if path.startswith("/page"):
            web.route(path, going(answer))
    report = library.add(url)
    assert (report.updated, report.unchanged, report.removed, len(report.failed)) == (5, 1, 0, 7)
    titles = [row.title for row in library.documents() if row.path != "llms.txt"]
    assert (titles.count("Generation new"), titles.count("Generation old")) == (5, 7)
    assert isinstance(library.store, SqliteStore)
    assert_whole(library.store, library.documents())


CRAWL = """
import sys
from quire.library import Library
from tests.test_web import settings

with Library.open(sys.argv[1], config=settings()) as library:
    library.add(sys.argv[2])
"""


@pytest.mark.parametrize("asked", [1, 6, 15], ids=["at the start", "in the middle", "at the end"])
def test_a_crawl_that_is_killed_leaves_the_old_generation_whole(
    web: Site, tmp_path: Path, asked: int
) -> None:
    """Invariant 5, issue: `kill -9` at any moment; the next crawl goes through."""
    url = generation(web, "old")
    with opened(tmp_path) as library:
        library.add(url)
    generation(web, "new")
    killed = threading.Event()
    for path, answer in list(web.routes.items()):
        web.route(path, held(answer, lambda: len(web.asked) <= asked or killed.wait(30)))
    del web.asked[:]
    command = [sys.executable, "-c", CRAWL, str(tmp_path / "library.db"), url]
    with subprocess.Popen(command, cwd=ROOT) as child:
        while child.poll() is None and len(web.asked) < asked:
            time.sleep(0.001)
        child.kill()
    killed.set()
    with opened(tmp_path) as library:
        assert kinds_of(library) in ({"Generation old"}, {"Generation new"})
        assert kinds_of(library) == {"Generation old"} or asked == 15
        assert len(library.documents()) == 13
        assert library.store.check() == []
        assert isinstance(library.store, SqliteStore)
        assert_whole(library.store, library.documents())
        library.add(url)
        assert kinds_of(library) == {"Generation new"}


# --------------------------------------------------------------------------------------- large ones


@needs_shared
@pytest.mark.parametrize(
    ("name", "separator", "before"),
    FULL_FILES,
)
def test_real_sites_become_their_pages(
    web: Site, library: Library, name: str, separator: str, before: int
) -> None:
    """As many pages as separators, counted by a plain expression, and every byte of them."""
    full = (LLMS / f"{name}-llms-full.txt").read_bytes()
    code = r"(?ms)^(`{3,})[^`\n]*\n.*?^\1`*[ \t]*$" if name == "genaiscript" else "(?!)"
    expected = len(re.findall(separator, re.sub(code, "", full.decode()), re.MULTILINE)) + before
    web.page("/llms-full.txt", full)
    report = library.add(web.page("/llms.txt", (LLMS / f"{name}-llms.txt").read_bytes()))
    assert (report.added, report.failed) == (expected + 2, [])  # and both files
    assert report.seconds < 30
    rows = [row for row in library.documents() if row.path not in ("llms.txt", "llms-full.txt")]
    pages = [library.source(row.address) for row in rows]
    assert sum(map(len, pages)) == len(full)
    assert library.source(f"{rows[0].collection}:llms-full.txt") == full
    assert all(page in full for page in pages)
    assert library.store.check() == []
    assert library.add(web.url("/llms.txt")).unchanged == expected + 2


def test_the_last_paragraph_of_a_large_llms_full_is_found(web: Site, library: Library) -> None:
    """1.1 MB ingests whole."""
    page = "# Page {0}\nSource: /page{0}\n\n" + "Water runs through the pipes of the house. " * 250 + "\n\n"
    full = "".join(page.format(number) for number in range(103)) + "The very last words are about okapis.\n"
    assert len(full) > 1_100_000
    web.page("/llms-full.txt", full.encode())
    assert library.add(web.url("/llms.txt")).added == 104
    assert library.source(f"{library.documents()[0].collection}:llms-full.txt") == full.encode()
    assert found(library, "okapis") == ["page102"]


def endless(mebibytes: int, **headers: str) -> Callable[[Handler], None]:
    """So much text, made while it is sent; without a length it ends with the connection."""

    def answer(handler: Handler) -> None:
        handler.send_response(200)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.close_connection = True
        piece = (b"# Page\n\n" + b"word " * 6).ljust(64, b".") * 16384
        for _ in range(mebibytes):
            handler.wfile.write(piece)

    return answer


def outcome(library: Library, url: str) -> str:
    """What adding says: all that failed and was noted, or the error."""
    try:
        return told(library.add(url))
    except TooLarge as problem:
        return problem.reason


@pytest.mark.parametrize("headers", [{}, {"content_length": str(200 * MIB)}], ids=["streamed", "announced"])
@pytest.mark.parametrize("with_index", [True, False], ids=["with llms.txt", "alone"])
def test_an_llms_full_over_the_cap_is_refused_with_its_name(
    web: Site, tmp_path: Path, headers: dict[str, str], with_index: bool
) -> None:
    """Issue: 200 MB is refused with the cap's name, in bounded memory; nothing fails silently."""
    web.route("/llms-full.txt", endless(200, **headers))
    url = publish(web, {"/a.md": "# A\n"}) if with_index else web.url("/llms.txt")
    with opened(tmp_path, max_bytes=8 * MIB) as library:
        tracemalloc.start()
        try:
            said = outcome(library, url)
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert peak < 48 * MIB
        assert "web.max_bytes = 8,388,608" in said
        assert sorted(texts(library)) == (["a.md", "llms.txt"] if with_index else [])


INGEST = """
import resource, sys
from quire.library import Library
from tests.test_web import settings

peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
with Library.open(sys.argv[1], create=True, config=settings()) as library:
    library.add(sys.argv[2])
    before = peak()
    seconds = library.add(sys.argv[3]).seconds
    print(peak() - before, seconds)
"""


@needs_shared
@pytest.mark.parametrize(("times", "factor"), [(1, 10), (4, 7)])
def test_a_large_llms_full_takes_seconds_and_a_few_times_its_size(
    web: Site, tmp_path: Path, times: int, factor: int
) -> None:
    """Issue: the 3.2 MB file becomes pages in seconds, memory bounded by a few times its size.

    It has emoji, with which a text takes four bytes for each character, and so does every copy of it.
    """
    full = (LLMS / "langwatch-llms-full.txt").read_bytes() * times
    small = publish(web, {"/a.md": "# A\n"}, of="/small/llms.txt")
    web.page("/llms-full.txt", full)
    command = [sys.executable, "-c", INGEST, str(tmp_path / "library.db"), small, web.url("/llms.txt")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    memory, seconds = map(float, done.stdout.split())
    assert seconds < 60
    assert memory < factor * len(full)


MANY = "".join(f"# Page {number}\nSource: /page{number}\n\nNew text.\n\n" for number in range(20)).encode()


@pytest.mark.parametrize("whole", [True, False], ids=["llms-full", "crawl"])
def test_pages_that_cannot_wait_anywhere_are_a_clear_error_and_change_nothing(
    web: Site, library: Library, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, whole: bool
) -> None:
    """Issue: a crawl is swapped in at the end; where there is no room for it until then, nothing is lost."""
    url = generation(web, "old", 20)
    library.add(url)
    before = texts(library)
    generation(web, "new", 20)
    if whole:
        web.page("/llms-full.txt", MANY)
    monkeypatch.setattr(spool, "_IN_MEMORY", 2000)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(LibraryError, match=r"gone: cannot keep pages .*nothing was written: .*TMPDIR"):
        library.add(url)
    assert texts(library) == before
    monkeypatch.undo()
    library.add(url)
    assert texts(library) != before


@postgres.needs_postgres
def test_a_site_is_swapped_in_on_postgresql_as_on_sqlite(
    web: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages wait in a file until all are read; then they are written in one transaction, some replaced."""
    monkeypatch.setattr(spool, "_IN_MEMORY", 2000)
    url = postgres.borrow()
    with opened(tmp_path) as one, Library.open(url, create=True, config=settings()) as other:
        expected = ((41, 0, 0, 0, 0), (260, 31, 0, 10, 0), (0, 1, 280, 10, 0))
        for pages, said in zip((range(40), range(10, 300), range(20, 300)), expected, strict=True):
            text = "The first." if len(pages) == 40 else "The second."
            full = "".join(f"# Page {n}\nSource: /{n}\n\n{text}\n\n" for n in pages)
            source = web.page("/llms-full.txt", full.encode())
            reports = [library.add(source) for library in (one, other)]
            assert [counts(report) for report in reports] == [said, said]
            assert reports[1].chunks == reports[0].chunks == said[0] + said[1] - 1  # not of the whole file
            assert texts(other) == texts(one)
            assert len(texts(other)) == len(pages)
        assert other.store.check() == []
    postgres.give_back(url)


# ------------------------------------------------------------------------------ processes that read


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first page on, processes read."""
    ready = PagePool._ready

    async def waited(pages: PagePool, size: int) -> workers.Workers | None:
        await ready(pages, size)
        assert pages._workers is not None
        pages._workers.result()
        return await ready(pages, size)

    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(pool, "_MANY", 0)
    monkeypatch.setattr(pool, "_LONG", 0.0)
    monkeypatch.setattr(PagePool, "_ready", waited)
    monkeypatch.setenv("ADDED_BY", str(os.getpid()))


def end_reader_of(content: bytes | str) -> None:
    """End the process, which must not be that of the test, if a page is the fatal one."""
    assert os.environ["ADDED_BY"] != str(os.getpid())
    if (b"fatal" if isinstance(content, bytes) else "fatal") in content:  # type: ignore[operator]
        os.kill(os.getpid(), signal.SIGKILL)


def fatal_article(response: Response, links: bool) -> html.Article:
    end_reader_of(response.content)
    return reader._article(response, links)


def fatal_packed(job: ingested._PageJob) -> bytes | None:
    end_reader_of(job.page.content)
    return ingested._packed(job)


@pytest.mark.parametrize("step", ["conversion", "preparation"])
def test_a_page_that_ends_its_reader_fails_alone(
    web: Site, library: Library, processes: None, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Issue: failed pages keep their old version and are listed; the crawl goes on."""
    pages = [f"/page{number}" for number in range(12)]
    url = web.page("/llms.txt", index(*pages))
    for page in pages:
        web.page(page, HTML.replace(b"Welcome", f"Page {page}".encode()))
    assert counts(library.add(url)) == (13, 0, 0, 0, 0)
    old = library.source("127.0.0.1:page7")
    for page in pages:
        web.page(page, HTML.replace(b"Welcome", b"fatal" if page == "/page7" else b"Changed"))
    if step == "conversion":
        monkeypatch.setattr(reader, "_article", fatal_article)
    else:
        monkeypatch.setattr(ingested, "_packed", fatal_packed)
    report = library.add(url)
    assert counts(report) == (0, 11, 1, 0, 1)
    assert report.failed[0].source.endswith("/page7")
    assert "ended" in report.failed[0].reason
    assert library.source("127.0.0.1:page7") == old
    assert b"Changed" in library.source("127.0.0.1:page8")


def test_a_page_that_takes_too_long_fails_alone(web: Site, library: Library) -> None:
    """Issue: a document is prepared within limits, and a hostile one costs itself only."""
    library.config = override(library.config, {"ingest": {"max_seconds": 0.5}})
    slow = web.page("/slow", b"`" * 1_500_000, content_type="text/plain")
    url = web.page("/llms.txt", index("/slow", "/quick"))
    web.page("/quick", b"# Quick", content_type="text/markdown")
    report = library.add(url)
    assert [(failed.source, "took longer" in failed.reason) for failed in report.failed] == [(slow, True)]
    assert sorted(texts(library)) == ["llms.txt", "quick"]


def test_processes_and_a_thread_read_the_same(
    web: Site, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Of a crawl and of an llms-full.txt, warnings and failures included."""
    web.page("/a", HTML)
    web.page("/b", "Prix: 5 €".encode("windows-1252"), content_type="text/plain")
    web.page("/c", b"a\n" + b"b" * 9000 + b"\0", content_type="text/plain")
    crawled, web_full = web.page("/llms.txt", index("/a", "/b", "/c")), web.page("/full/llms-full.txt", MANY)
    answers = []
    for name in ("thread", "processes"):
        if name == "processes":
            request.getfixturevalue(name)
        (tmp_path / name).mkdir()
        with opened(tmp_path / name) as library:
            reports = [library.add(crawled), library.add(web_full, collection="full")]
            answers.append((texts(library), [(counts(report), told(report)) for report in reports]))
    assert answers[0] == answers[1]
    assert answers[0][1][0][0] == (3, 0, 0, 0, 1)


def test_a_small_site_starts_no_process(web: Site, library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few pages are read before a process would have started."""
    monkeypatch.setattr(pool, "_workers", lambda: pytest.fail("a process was started"))
    assert library.add(generation(web, "small", 10)).added == 11


def test_where_no_process_starts_pages_are_read_all_the_same(
    web: Site, library: Library, processes: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in the indexing of folders: with a warning, not with a failure of every page."""
    monkeypatch.setattr(workers, "_START", "raise SystemExit(1)")
    assert counts(library.add(generation(web, "alone", 20))) == (21, 0, 0, 0, 0)


# ------------------------------------------------------------------------------ refresh and check


def test_check_tells_changed_from_missing_and_both_from_failing(web: Site, library: Library) -> None:
    """Covers URLs; a page that cannot be asked is neither."""
    kinds = ("same", "changed", "missing", "failing")
    for name in kinds:
        library.add(web.page(f"/{name}.md", f"# {name}\n".encode()))
    library.add(content="# Content of its own\n", path="own.md")
    before = library.documents()
    web.page("/changed.md", b"# changed indeed\n")
    web.page("/missing.md", status=404)
    web.page("/failing.md", status=500)
    changes = library.check()
    assert [row.path for row in changes.changed] == ["changed.md"]
    assert [row.path for row in changes.missing] == ["missing.md"]
    assert library.documents() == before


def test_check_of_a_site(web: Site, library: Library) -> None:
    """Changed pages, pages that are linked no more; a failing one is neither, and nothing is written."""
    url = publish(web, {f"/{name}.md": f"# {name}\n" for name in ("same", "changed", "unlinked", "failing")})
    library.add(url)
    before = library.documents()
    publish(web, {f"/{name}.md": f"# {name}\n" for name in ("same", "changed", "failing", "new")})
    web.page("/changed.md", b"# changed indeed\n")
    web.page("/failing.md", status=500)
    changes = library.check()
    assert {row.path for row in changes.changed} == {"changed.md", "llms.txt"}
    assert {row.path for row in changes.missing} == {"unlinked.md"}
    assert library.documents() == before
    assert library.check("elsewhere") == type(changes)((), ())


def test_check_names_a_page_of_a_site_that_its_server_has_no_more(web: Site, library: Library) -> None:
    """Missing is missing, whether a page was added by itself or with its site."""
    library.add(publish(web, {"/a.md": "# A\n", "/b.md": "# B\n"}))
    web.page("/b.md", status=404)
    assert [row.path for row in library.check().missing] == ["b.md"]


def test_check_of_a_site_that_is_down_or_gone(web: Site, library: Library) -> None:
    """Missing only if the server says so."""
    url = publish(web, {"/a.md": "# A\n"})
    library.add(url)
    web.page("/llms.txt", status=503)
    changes = library.check()
    assert (changes.changed, changes.missing) == ((), ())
    web.page("/llms.txt", status=404)
    assert [row.path for row in library.check().missing] == ["a.md", "llms.txt"]


def test_check_is_about_pages_not_about_settings(web: Site, tmp_path: Path) -> None:
    """A page is changed when its text is, as with files."""
    url = publish(web, {"/a.md": "# A\n"})
    with opened(tmp_path) as library:
        library.add(url, web.page("/b.md", b"# B\n"))
    other = override(settings(), {"chunk": {"strategy": "nodes"}})
    with Library.open(tmp_path / "library.db", config=other) as library:
        assert library.check().changed == ()


def test_refresh_brings_pages_sites_and_folders_up_to_date(
    web: Site, library: Library, tmp_path: Path
) -> None:
    """Issue: `quire refresh` for all that was added."""
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "file.md").write_text("# File\n")
    url = publish(web, {"/a.md": "# A\n", "/b.md": "# B\n"})
    library.add(folder, url, web.page("/alone.md", b"# Alone\n"))
    library.add(web.url("/alone.md"), collection="other")
    assert counts(library.refresh()) == (0, 0, 6, 0, 0)
    (folder / "file.md").write_text("# File, new\n")
    web.page("/alone.md", b"# Alone, new\n")
    publish(web, {"/a.md": "# A, new\n", "/c.md": "# C\n"})
    assert counts(library.refresh()) == (1, 5, 0, 1, 0)
    titles = {row.title for row in library.documents()}
    assert titles == {"File, new", "Alone, new", "A, new", "C", "Site"}


def test_refresh_goes_on_after_a_page_that_fails(web: Site, library: Library) -> None:
    """BAD_INPUTS: report, go on; the old version stays."""
    library.add(web.page("/a.md", b"# A\n"), web.page("/b.md", b"# B\n"), web.page("/c.md", b"# C\n"))
    web.page("/a.md", status=500)
    web.page("/b.md", status=404)
    web.page("/c.md", b"# C, new\n")
    report = library.refresh()
    assert counts(report) == (0, 1, 0, 0, 2)
    assert [failed.source for failed in report.failed] == [web.url("/a.md"), web.url("/b.md")]
    assert texts(library) == {"a.md": "# A\n", "b.md": "# B\n", "c.md": "# C, new\n"}


def test_refresh_of_a_site_known_by_its_llms_full_alone(web: Site, library: Library) -> None:
    """Issue: refresh for sites, also where one page is all there is."""
    web.page("/llms-full.txt", f"# Only\nSource: {web.url('/')}\n\nOne.\n".encode())
    library.add(web.url("/llms.txt"))
    web.page("/llms-full.txt", f"# Only\nSource: {web.url('/')}\n\nTwo.\n".encode())
    assert counts(library.refresh()) == (0, 2, 0, 0, 0)
    assert "Two." in next(iter(texts(library).values()))


# ---------------------------------------------------------------------------------- local web pages


def test_html_files_of_a_folder_are_read_as_markdown(library: Library, tmp_path: Path) -> None:
    """DESIGN §8: .html in folders; found, outlined, and unchanged the second time."""
    folder = tmp_path / "pages"
    folder.mkdir()
    (folder / "guide.html").write_bytes(HTML)
    (folder / "old.htm").write_bytes(HTML.replace(b"package manager", b"okapis"))
    assert counts(library.add(folder)) == (2, 0, 0, 0, 0)
    (result,) = library.search("okapis").results
    assert (result.address, result.stale) == ("pages:old.htm#install", False)
    assert [s.title for s in library.toc("pages:guide.html").sections] == ["Guide", "Guide", "Install"]
    assert library.read("pages:guide.html#install").text.startswith("## Install\n\nUse the package manager.")
    assert "Elsewhere" not in texts(library)["guide.html"]
    before = library.documents()
    assert counts(library.add(folder)) == (0, 0, 2, 0, 0)
    assert library.documents() == before
    assert library.check().changed == ()
    os.utime(folder / "old.htm", ns=(1, 1))
    assert library.check().changed == ()
    (folder / "old.htm").write_bytes(HTML.replace(b"package manager", b"zebras"))
    assert [row.path for row in library.check().changed] == ["old.htm"]


def test_a_page_and_what_redirects_to_it_are_one_document(web: Site, library: Library) -> None:
    """Issue: two links to one page; the one that only leads there is no document of its own."""
    web.page("/new.md", b"# New\n")
    web.redirect("/old.md", "/new.md")
    library.add(web.page("/llms.txt", index("/old.md", "/new.md")))
    assert sorted(texts(library)) == ["llms.txt", "new.md"]
    assert library.refresh().unchanged == 2


def test_a_page_that_moved_to_one_that_fails_stays(web: Site, library: Library) -> None:
    """Issue: failed pages keep their old version, also where they have moved."""
    library.add(publish(web, {"/old.md": "# Old\n", "/x.md": "# x\n"}))
    web.pages("/new.md", reply(503))
    web.redirect("/old.md", "/new.md")
    web.page("/llms.txt", index("/old.md", "/new.md", "/x.md"))
    assert library.refresh().removed == 0
    assert "old.md" in texts(library)


def test_pages_over_the_cap_stay(web: Site, tmp_path: Path) -> None:
    """Nothing is ever lost: a lower cap reads fewer pages and removes none."""
    url = publish(web, {f"/{name}.md": "# A\n" for name in "abc"})
    with opened(tmp_path) as library:
        library.add(url)
    with opened(tmp_path, max_pages=1) as library:
        assert library.refresh().removed == 0
        assert len(library.documents()) == 4


@pytest.mark.parametrize("source", ["example.com", "example.com/llms.txt", "example.com/docs/llms-full.txt"])
def test_a_site_is_named_without_its_scheme(source: str) -> None:
    """Issue: `quire add example.com`, or any llms.txt URL."""
    assert names.is_site(source)


@pytest.mark.parametrize("source", ["docs/llms.txt", "http://[x", "example.com/a.md"])
def test_what_names_no_site(source: str) -> None:
    """A file of that name, a URL that is none, a page."""
    assert not names.is_site(source)


def test_different_pages_have_different_paths() -> None:
    """Issue: url unique per collection; which page is read first makes no difference."""
    urls = [f"https://e.org/{path}" for path in ("", "index", "a", "a/", "a/index", "a?b", "a%3Fb")]
    urls += ["http://e.org/a", "https://f.org/b", "http://f.org/b", "https://e.org:8443/a"]
    assert len({names.path_of(url, "https://e.org/llms.txt") for url in urls}) == len(urls)


def test_a_local_page_is_read_in_its_own_charset(library: Library, tmp_path: Path) -> None:
    """Issue: charset by meta."""
    folder = tmp_path / "pages"
    folder.mkdir()
    page = '<meta charset="iso-8859-1"><title>x</title><main><h1>T</h1><p>café</p></main>'
    (folder / "a.html").write_bytes(page.encode("latin-1"))
    library.add(folder)
    assert "café" in texts(library)["a.html"]
