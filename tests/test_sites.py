"""Sites without llms.txt: read by their sitemaps and links, against a real server on loopback.

Sites with llms.txt are tested in test_web.py, the pages of generators in test_generators.py.
"""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.errors import NotFound, Refused, SettingError, TransientError
from quire.ingest import pages as ingested
from quire.library import Library
from quire.sources.web import sitemap
from quire.sources.web.scope import Scope, is_twin, key_of
from quire.stores import SourceRow
from quire.surfaces import render
from tests.commands import run, user_settings
from tests.test_web import Versioned, counts, found, opened, publish, texts, told
from tests.web_server import Handler, Site, bomb, reply, site

CAP = 64_000_000


@pytest.fixture
def web() -> Iterator[Site]:
    with site() as web:
        yield web


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with opened(tmp_path) as library:
        yield library


def html(title: str, *links: str, head: str = "") -> bytes:
    """A page of a site: its links are in a menu."""
    menu = "".join(f'<a href="{link}">{link}</a> ' for link in links)
    body = f"<nav>{menu}</nav><main><h1 id='top'>{title}</h1><p>All about {title.lower()}.</p></main>"
    return (
        f"<!doctype html><html><head><title>{title}</title>{head}</head><body>{body}</body></html>".encode()
    )


def serve(web: Site, pages: dict[str, tuple[str, ...]]) -> str:
    """Serve pages under /docs/, each with its links; the URL of the first."""
    for path, links in pages.items():
        name = path.strip("/").rpartition("/")[2].removesuffix(".html") or "home"
        web.page(f"/docs/{path}", html(name.title(), *links), content_type="text/html")
    return web.url("/docs/")


def listing(*urls: str, lastmod: str = "") -> bytes:
    """A sitemap."""
    when = f"<lastmod>{lastmod}</lastmod>" if lastmod else ""
    entries = "".join(f"<url><loc>{url}</loc>{when}</url>" for url in urls)
    return f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>'.encode()


def index_of(*urls: str) -> bytes:
    """An index of sitemaps."""
    entries = "".join(f"<sitemap><loc>{url}</loc></sitemap>" for url in urls)
    return f"<sitemapindex>{entries}</sitemapindex>".encode()


def asked(web: Site, *, under: str = "/docs/") -> list[str]:
    """The pages that were asked for, without guesses of markdown twins and sitemaps."""
    others = (".md", "sitemap.xml", "robots.txt")
    return [path for path in web.paths() if path.startswith(under) and not path.endswith(others)]


# --------------------------------------------------------------------------------- what is named


def test_one_page_of_a_site_says_so(web: Site, library: Library) -> None:
    """Issue: `quire add https://docs.example.com/` says so when it takes one page of a site."""
    home = serve(web, {"": ("a.html", "b.html", "c.html", "index.html", "/elsewhere", "logo.png")})
    report = library.add(home)
    site = f"quire add --site {home}"
    assert report.warnings == [f"This is one page. It links to 3 more under {home}. To add them all: {site}"]
    web.page("/docs/", html("Other", "a.html", "b.html", "c.html"), content_type="text/html")
    assert library.refresh().warnings == []  # it was said once


@pytest.mark.parametrize("path", ["", "guide.html"])
def test_a_page_that_is_no_site_says_nothing(web: Site, library: Library, path: str) -> None:
    """A page with few links, and a page among others, are just pages."""
    links = ("a.html",) if not path else ("a.html", "b.html", "c.html", "d.html")
    serve(web, {path: links})
    assert library.add(web.url(f"/docs/{path}")).warnings == []


def test_a_site_is_its_first_page_and_what_is_under_its_path(web: Site, library: Library) -> None:
    """Issue: `--site` crawls by links under the same path."""
    home = serve(
        web,
        {
            "": (
                "a.html",
                "b/",
                "/other/x.html",
                "https://elsewhere.example/",
                "logo.png",
                "mailto:a@b.example",
            ),
            "a.html": ("deep/er.html", "./"),
            "b/": ("../a.html",),
            "deep/er.html": (),
        },
    )
    web.page("/other/x.html", html("X"), content_type="text/html")
    report = library.add(home, site=True)
    assert counts(report) == (4, 0, 0, 0, 0)
    assert sorted(texts(library)) == ["docs/a.html", "docs/b/index", "docs/deep/er.html", "docs/index"]
    assert "/other/x.html" not in web.paths()
    assert found(library, "er") == ["docs/deep/er.html"]
    (source,) = library.sources()
    assert (source.type, source.place, source.documents) == ("site", home, 4)


def test_a_site_is_remembered(web: Site, library: Library) -> None:
    """The library knows what was named: the URL alone, refresh and remove mean the site from then on."""
    home = serve(web, {"": ("a.html",), "a.html": ()})
    library.add(home)
    library.add(home, site=True)
    assert [(source.type, source.documents) for source in library.sources()] == [("site", 2)]
    serve(web, {"": ("a.html", "b.html"), "b.html": ()})
    assert counts(library.add(home))[0] == 1
    assert len(library.remove_source(home)) == 3
    assert library.documents() == []


def test_what_would_be_done_is_shown(web: Site, library: Library) -> None:
    """`--dry-run` follows a site as it follows everything else, and writes nothing."""
    home = serve(web, {"": ("a.html",), "a.html": ()})
    (plan,) = library.plan(home, site=True)
    assert [(item.action, item.path) for item in plan.items] == [
        ("add", "docs/a.html"),
        ("add", "docs/index"),
    ]
    assert library.sources() == []


def test_the_site_of_an_llms_txt_is_that(web: Site, library: Library) -> None:
    """An llms.txt that is named is read, with --site too; if there is none, the error names --site."""
    url = publish(web, {"/one.md": "# One\n\nZebras.\n"})
    library.add(url, site=True)
    assert sorted(texts(library)) == ["llms.txt", "one.md"]
    with pytest.raises(
        NotFound, match=f"To read it by its sitemap and links: quire add --site {web.url('/x/')}"
    ):
        library.add(web.url("/x/llms.txt"))


def test_a_folder_is_no_site(library: Library, tmp_path: Path) -> None:
    """An option that cannot mean anything is refused."""
    with pytest.raises(SettingError, match="is a file or folder"):
        library.add(str(tmp_path), site=True)


@pytest.mark.parametrize(
    ("named", "url", "expected"),
    [
        ("https://a.example/docs/", "https://a.example/docs/x", "https://a.example/docs/x"),
        ("https://a.example/docs/", "https://a.example/docsy", ""),
        ("https://a.example/docs", "https://a.example/docs/x", "https://a.example/docs/x"),
        ("https://a.example/docs", "https://a.example/doc", ""),
        ("https://a.example/docs/index.html", "https://a.example/docs/x", "https://a.example/docs/x"),
        ("https://a.example/en/3.12", "https://a.example/en/3.11/x", ""),
        ("https://a.example/", "http://a.example/x", "https://a.example/x"),
        ("https://a.example/", "https://b.a.example/x", ""),
        ("https://a.example/", "https://a.example:8443/x", ""),
        ("https://a.example/", "https://a.example/x?utm_source=y&b=1&gclid=2", "https://a.example/x?b=1"),
        ("https://a.example/", "https://a.example/x?utm_source=y", "https://a.example/x"),
        ("https://a.example/", "https://a.example/x.PNG", ""),
        ("https://a.example/", "https://a.example/../x", "https://a.example/x"),
        ("https://a.example/docs/", "https://a.example/docs/../x", ""),
        ("https://a.example/docs/", "https://a.example/docs/%2e%2e/x", ""),
        ("https://a.example/", "javascript:alert(1)", ""),
        ("https://a.example/", "https://user:secret@a.example/x", ""),
        ("https://a.example/", "http://[", ""),
    ],
)
def test_what_is_under_a_path(named: str, url: str, expected: str) -> None:
    """Only pages under the named path of the same host, without what only counts visitors."""
    assert Scope.of(named).page(url) == expected


def test_two_names_of_one_page() -> None:
    """`/`, `/index.html` and other spellings are one page; other versions and languages are not."""
    assert key_of("https://a.example/x/index.html") == key_of("https://a.example/x/")
    assert key_of("https://a.example/x/index.html") != key_of("https://a.example/index.html")
    assert is_twin("https://a.example/x?a=1", "https://a.example/x.html")
    assert is_twin("https://a.example/x/index.html", "https://a.example/x")
    assert not is_twin("https://a.example/latest/x", "https://a.example/stable/x")


# ------------------------------------------------------------------------------------- sitemaps


def packed(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


@pytest.mark.parametrize(
    "publish_list",
    [
        lambda web, urls: web.page("/docs/sitemap.xml", listing(*urls), content_type="application/xml"),
        lambda web, urls: web.page("/sitemap.xml", listing(*urls), content_type="text/xml"),
        lambda web, urls: (
            web.page("/robots.txt", f"Sitemap: {web.url('/maps/m.xml.gz')}\n".encode()),
            web.page("/maps/m.xml.gz", packed(listing(*urls)), content_type="application/x-gzip"),
        ),
        lambda web, urls: (
            web.page("/sitemap.xml", index_of(web.url("/1.xml"), web.url("/2.xml.gz"))),
            web.page("/1.xml", listing(*urls[:1])),
            web.page("/2.xml.gz", packed(listing(*urls[1:])), content_type="application/gzip"),
        ),
        lambda web, urls: (
            web.page("/robots.txt", f"Sitemap: {web.url('/list.txt')}\n".encode()),
            web.page("/list.txt", "\r\n".join(["\ufeff" + urls[0], "no URL", *urls[1:]]).encode()),
        ),
    ],
    ids=["beside", "root", "gzip", "index", "text"],
)
def test_pages_that_only_a_sitemap_lists_are_read(
    web: Site, library: Library, publish_list: Callable[[Site, list[str]], Any]
) -> None:
    """Issue: `--site` crawls by sitemap.xml (indexes, gzip), also by those that robots.txt names."""
    home = serve(web, {"": (), "a.html": (), "b.html": ("c.html",), "c.html": ()})
    web.page("/blog/x.html", html("X"), content_type="text/html")
    publish_list(web, [web.url("/docs/a.html"), web.url("/docs/b.html"), web.url("/blog/x.html")])
    report = library.add(home, site=True)
    assert (counts(report), told(report)) == ((4, 0, 0, 0, 0), "")
    assert sorted(texts(library)) == ["docs/a.html", "docs/b.html", "docs/c.html", "docs/index"]


def test_a_sitemap_that_says_a_page_is_newer_is_believed(web: Site, library: Library) -> None:
    """Issue: lastmod. It never leaves a request out; if it is newer, a cache in between is not believed."""
    old = Versioned(html("A"), content_type="text/html", last_modified="Mon, 02 Jan 2023 00:00:00 GMT")
    web.route("/docs/a.html", old)
    home = serve(web, {"": ()})
    web.page("/sitemap.xml", listing(web.url("/docs/a.html"), lastmod="2023-01-01"))
    library.add(home, site=True)
    library.refresh()
    web.page("/sitemap.xml", listing(web.url("/docs/a.html"), lastmod="2024-05-01T10:00:00+02:00"))
    library.refresh()
    assert old.statuses == [200, 304, 200]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-02-03", datetime(2026, 2, 3, tzinfo=UTC)),
        (" 2026-02-03T04:05Z ", datetime(2026, 2, 3, 4, 5, tzinfo=UTC)),
        ("2026-02-03T06:05:00.5+02:00", datetime(2026, 2, 3, 4, 5, 0, 500_000, tzinfo=UTC)),
        ("2026-02-03T04:05:06", datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)),
        ("2026-02-30", None),
        ("yesterday", None),
        ("2026", None),
    ],
)
def test_times_of_sitemaps(text: str, expected: datetime | None) -> None:
    """Dates as the protocol writes them; others are no time."""
    assert sitemap.time_of(text) == expected


LAUGHS = (
    b'<!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]><urlset><url><loc>&b;</loc></url></urlset>'
)
EXTERNAL = b'<!DOCTYPE u [<!ENTITY x SYSTEM "file:///etc/passwd">]><urlset><url><loc>&x;</loc></url></urlset>'


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (LAUGHS, "has a document type"),
        (EXTERNAL, "has a document type"),
        (b"<rss><channel/></rss>", "is no sitemap: it begins with <rss>"),
        (b"<urlset><url><loc>https://a.example/", "is not valid XML"),
        (packed(listing("https://a.example/"))[:-9], "ends in the middle"),
        (b"\x1f\x8bnothing", "is not valid gzip"),
        (bomb(100), "is over web.max_bytes"),
    ],
    ids=["laughs", "external", "rss", "cut", "half", "broken", "bomb"],
)
def test_a_bad_sitemap_is_left_and_the_site_is_read(
    web: Site, library: Library, content: bytes, why: str
) -> None:
    """BAD_INPUTS: entity expansion, external entities, gzip bombs: refused, said, and the links are read."""
    home = serve(web, {"": ("a.html",), "a.html": ()})
    web.page("/sitemap.xml", content, content_type="application/octet-stream")
    began = time.monotonic()
    report = library.add(home, site=True)
    assert counts(report)[0] == 2
    assert f"The sitemap {web.url('/sitemap.xml')} {why}" in told(report)
    assert time.monotonic() - began < 5


def test_a_site_that_answers_every_path_has_no_sitemap(web: Site, library: Library) -> None:
    """A web page where a sitemap was only guessed is none, and needs no note."""
    home = serve(web, {"": ("a.html",), "a.html": ()})
    web.page("/sitemap.xml", html("Not here"), content_type="text/html")
    assert told(library.add(home, site=True)) == ""


def test_a_sitemap_of_a_million_pages_is_bounded(web: Site, tmp_path: Path) -> None:
    """BAD_INPUTS: no more is read than the protocol allows, no more is asked for than max_pages."""
    home = serve(web, {"": ()})
    prefix = web.url("/docs/")
    web.page("/sitemap.xml", listing(*(f"{prefix}{number}" for number in range(1_000_000))))
    began = time.monotonic()
    with opened(tmp_path, max_pages=3, max_bytes=100_000_000) as library:
        report = library.add(home, site=True)
    assert time.monotonic() - began < 20
    assert len(asked(web)) == 3
    assert "lists more than 50,000 pages" in told(report)
    assert "or more pages are over web.max_pages = 3" in told(report)


def test_indexes_that_lead_back_and_to_other_sites_are_left(web: Site, library: Library) -> None:
    """A loop of indexes is read once; a sitemap or a page of another host is left."""
    home = serve(web, {"": (), "a.html": ()})
    web.page("/sitemap.xml", index_of(web.url("/again.xml"), "https://elsewhere.example/s.xml"))
    web.page("/again.xml", index_of(web.url("/sitemap.xml"), web.url("/pages.xml"), web.url("/again.xml")))
    web.page("/pages.xml", listing("https://elsewhere.example/docs/x", web.url("/docs/a.html")))
    report = library.add(home, site=True)
    assert sorted(texts(library)) == ["docs/a.html", "docs/index"]
    assert "https://elsewhere.example/s.xml is of another site" in told(report)
    assert [web.paths().count(path) for path in ("/sitemap.xml", "/again.xml", "/pages.xml")] == [1, 1, 1]


def test_many_and_deep_indexes_are_bounded(web: Site, library: Library) -> None:
    """No more than 100 sitemaps, no deeper than 3 indexes."""
    home = serve(web, {"": ()})
    web.page(
        "/sitemap.xml", index_of(*(web.url(f"/s{number}.xml") for number in range(300)), web.url("/d0.xml"))
    )
    report = library.add(home, site=True)
    assert sum(1 for path in web.paths() if path.startswith("/s")) <= 101
    assert "more than 100 sitemaps" in told(report)
    web.page("/sitemap.xml", index_of(web.url("/d0.xml")))
    for depth in range(6):
        web.page(f"/d{depth}.xml", index_of(web.url(f"/d{depth + 1}.xml")))
    web.asked.clear()
    assert "nested deeper" in told(library.refresh())
    assert "/d4.xml" not in web.paths()


@given(st.binary(max_size=300), st.sampled_from([b"", b"<urlset>", b"<sitemapindex>", b"\x1f\x8b\x08\x00"]))
def test_any_bytes_are_a_sitemap_or_none(content: bytes, start: bytes) -> None:
    """Whatever comes in: entries, or BadSitemap."""
    try:
        read = sitemap.read_sitemap(start + content, CAP)
    except sitemap.BadSitemap:
        return
    assert all(entry.url and len(entry.url) <= 2048 for entry in read.entries)


@given(st.lists(st.integers(0, 10**9), max_size=20), st.booleans())
def test_a_sitemap_gives_what_was_put_in(numbers: list[int], is_packed: bool) -> None:
    """What a sitemap lists is read in its order, compressed or not."""
    urls = [f"https://a.example/{number}" for number in numbers]
    content = listing(*urls, lastmod="2026-01-02")
    read = sitemap.read_sitemap(packed(content) if is_packed else content, CAP)
    assert [entry.url for entry in read.entries] == urls
    assert not read.is_index
    assert {entry.modified for entry in read.entries} <= {datetime(2026, 1, 2, tzinfo=UTC)}


# --------------------------------------------------------------------------------------- limits


def calendar(handler: Handler) -> None:
    """A page that links to the next one, and that to the next."""
    number = int(handler.path.rpartition("=")[2] if "=" in handler.path else 0)
    links = [f"/docs/calendar?month={number + step}" for step in range(1, 6)]
    handler.answer(200, html(f"Month {number}", *links), {"content_type": "text/html"})


def test_endless_links_are_cut_and_said(web: Site, tmp_path: Path) -> None:
    """BAD_INPUTS: a site that makes links for ever: real pages first, then so many as are allowed."""
    home = serve(web, {"": ("calendar", "a.html"), "a.html": ("b.html",), "b.html": ()})
    web.route("/docs/calendar", calendar)
    with opened(tmp_path, max_pages=8) as library:
        report = library.add(home, site=True)
        assert {"docs/a.html", "docs/b.html", "docs/index"} <= set(texts(library))
        assert len(asked(web)) == 8
        assert "are over web.max_pages = 8. Raise [web] max_pages in quire.toml" in told(report)
        assert len(texts(library)) == 8
        web.page("/docs/", html("Home", "calendar"), content_type="text/html")
        assert library.refresh().removed == 0  # who knows what was cut off


def test_links_are_followed_as_deep_as_allowed(web: Site, tmp_path: Path) -> None:
    """The depth is a limit of its own, and what is deeper is said."""
    home = serve(web, {"": ("1.html",), "1.html": ("2.html",), "2.html": ("3.html",), "3.html": ()})
    with opened(tmp_path, site_depth=1) as library:
        report = library.add(home, site=True)
        assert sorted(texts(library)) == ["docs/1.html", "docs/2.html", "docs/index"]
        assert f"1 page is deeper than web.site_depth = 1 and not read, such as {home}3.html" in told(report)


def test_robots_noindex_and_nofollow_are_obeyed(web: Site, library: Library) -> None:
    """What robots.txt disallows is not asked for; what a meta element keeps out of indexes is not kept."""
    home = serve(web, {"": ("private/x.html", "hidden.html", "dead.html"), "seen.html": (), "lost.html": ()})
    web.page("/robots.txt", b"User-agent: *\nDisallow: /docs/private/\n")
    hide, stop = '<meta name="robots" content="noindex">', '<meta name="ROBOTS" content="index, NoFollow">'
    web.page("/docs/hidden.html", html("Hidden", "seen.html", head=hide), content_type="text/html")
    web.page("/docs/dead.html", html("Dead", "lost.html", head=stop), content_type="text/html")
    report = library.add(home, site=True)
    assert sorted(texts(library)) == ["docs/dead.html", "docs/index", "docs/seen.html"]
    assert "/docs/private/x.html" not in web.paths()
    assert "1 link was not followed: disallowed by robots.txt, such as" in told(report)
    assert "asks not to be indexed (noindex), such as" in told(report)
    assert counts(report)[4] == 0
    web.page("/robots.txt", b"User-agent: *\nDisallow: /\n")
    with pytest.raises(Refused, match="disallowed by robots"):
        library.add(web.url("/docs/"), site=True)


def test_names_of_one_page_are_one_document(web: Site, library: Library) -> None:
    """Canonical URLs, index.html, tracking parameters and redirects make no twins."""
    home = serve(
        web,
        {"": ("index.html", "a.html?utm_source=x", "a.html", "a.html?view=full", "moved", "b/index.html")},
    )
    own = f'<link rel="canonical" href="{web.url("/docs/a.html")}">'
    web.page("/docs/a.html", html("A", "b/", head=own), content_type="text/html")
    serve(web, {"index.html": (), "b/": (), "b/index.html": ()})
    web.redirect("/docs/moved", "/docs/a.html")
    library.add(home, site=True)
    assert sorted(texts(library)) == ["docs/a.html", "docs/b/index.html", "docs/index"]
    assert counts(library.refresh()) == (0, 0, 3, 0, 0)


@pytest.mark.parametrize("links", [("a", "b"), ("a/", "b"), ("a", "a/", "b"), ("a/", "a", "b")])
def test_a_canonical_url_that_redirects_to_its_page_is_one_document(
    web: Site, library: Library, links: tuple[str, ...]
) -> None:
    """A server that adds a slash, and pages that name themselves without it: read once, and for good."""
    home = serve(web, {"": links, "b": ()})
    web.redirect("/docs/a", "/docs/a/")
    own = f'<link rel="canonical" href="{web.url("/docs/a")}">'
    web.page("/docs/a/", html("A", head=own), content_type="text/html")
    assert counts(library.add(home, site=True)) == (3, 0, 0, 0, 0)
    for _ in range(2):
        library.refresh()
    assert len(library.documents()) == 3
    assert counts(library.refresh()) == (0, 0, 3, 0, 0)


def test_a_canonical_url_of_another_version_is_not_followed(web: Site, library: Library) -> None:
    """Versions under one path are just pages, though each names the newest as the canonical one."""
    home = serve(web, {"": ("1/a.html", "2/a.html")})
    for version in (1, 2):
        own = f'<link rel="canonical" href="{web.url("/docs/2/a.html")}">'
        web.page(f"/docs/{version}/a.html", html(f"A{version}", head=own), content_type="text/html")
    library.add(home, site=True)
    assert sorted(texts(library)) == ["docs/1/a.html", "docs/2/a.html", "docs/index"]


def test_redirects_out_of_the_path_are_left(web: Site, library: Library) -> None:
    """A link that leads out of the path is not part of the site."""
    home = serve(web, {"": ("out.html", "a.html"), "a.html": ()})
    web.redirect("/docs/out.html", "/login")
    web.page("/login", html("Login"), content_type="text/html")
    report = library.add(home, site=True)
    assert sorted(texts(library)) == ["docs/a.html", "docs/index"]
    assert f"1 link was not followed: outside {home}, such as {home}out.html" in told(report)


def test_a_first_page_that_leads_elsewhere_names_the_path(web: Site, library: Library) -> None:
    """`/docs/` that leads to `/en/latest/` means the pages there; another site is refused."""
    web.redirect("/docs/", "/en/latest/")
    web.page("/en/latest/", html("Home", "a.html"), content_type="text/html")
    web.page("/en/latest/a.html", html("A"), content_type="text/html")
    report = library.add(web.url("/docs/"), site=True)
    assert sorted(texts(library)) == ["en/latest/a.html", "en/latest/index"]
    assert f"so the pages under {web.url('/en/latest/')} were read" in told(report)
    assert counts(library.refresh()) == (0, 0, 2, 0, 0)
    web.redirect("/away/", f"http://localhost:{web.port}/")
    web.page("/", html("Away"), content_type="text/html")
    with pytest.raises(Refused, match="leads to another site"):
        library.add(web.url("/away/"), site=True)


def test_files_and_broken_links_do_not_fail_a_site(web: Site, library: Library) -> None:
    """A site's own broken links are counted, not failures: they do not change the exit code."""
    home = serve(web, {"": ("gone.html", "download", "a.html"), "a.html": ()})
    web.page("/docs/download", b"\0\1\2", content_type="application/zip")
    report = library.add(home, site=True)
    assert counts(report) == (2, 0, 0, 0, 0)
    assert f"1 link was not followed: no such page, or not shown, such as {home}gone.html" in told(report)
    assert f"1 link was not followed: not text, such as {home}download" in told(report)


def test_a_site_that_is_not_there_is_a_clear_error(web: Site, library: Library) -> None:
    """Nothing is made of nothing."""
    with pytest.raises(NotFound, match="404"):
        library.add(web.url("/docs/"), site=True)
    web.page("/down/", b"", status=503)
    with pytest.raises(TransientError):
        library.add(web.url("/down/"), site=True)
    assert library.sources() == []


# ------------------------------------------------------------------------------------ refreshing


def versioned(web: Site, pages: dict[str, tuple[str, ...]]) -> dict[str, Versioned]:
    """Pages with etags, each with its links."""
    made = {}
    for path, links in pages.items():
        content = html(path.title() or "Home", *links)
        made[path] = Versioned(content, content_type="text/html", etag=f'"{hash(content)}"')
        web.route(f"/docs/{path}", made[path])
    return made


def test_an_unchanged_site_is_not_sent_again(web: Site, library: Library) -> None:
    """Every page is asked whether it has changed; nothing is sent or written again."""
    pages = versioned(web, {"": ("a.html",), "a.html": ("b.html",), "b.html": ()})
    library.add(web.url("/docs/"), site=True)
    assert counts(library.refresh()) == (0, 0, 3, 0, 0)
    assert {path: page.statuses for path, page in pages.items()} == {path: [200, 304] for path in pages}


def test_pages_behind_unchanged_pages_stay_and_new_ones_are_found(web: Site, library: Library) -> None:
    """A page that only an unchanged page links is still linked; a page that lost its last link goes."""
    pages = {
        "": ("a.html", "d.html"),
        "a.html": ("b.html",),
        "b.html": ("c.html",),
        "c.html": (),
        "d.html": (),
    }
    made = versioned(web, pages)
    library.add(web.url("/docs/"), site=True)
    versioned(web, {"": ("a.html", "new.html"), "new.html": ()})
    report = library.refresh()
    assert counts(report) == (1, 0, 4, 1, 0)
    assert sorted(texts(library)) == [
        f"docs/{name}" for name in ("a.html", "b.html", "c.html", "index", "new.html")
    ]
    assert made["b.html"].statuses == [200, 304, 200]  # its links were needed once


def test_a_site_whose_links_are_gone_is_kept(web: Site, library: Library) -> None:
    """If half of the pages have no link any more, the site may just have changed how it makes links."""
    home = serve(web, {"": ("a.html", "b.html", "c.html"), "a.html": (), "b.html": (), "c.html": ()})
    library.add(home, site=True)
    serve(web, {"": ()})
    report = library.refresh()
    assert (report.removed, len(library.documents())) == (0, 4)
    assert "3 documents that may be gone were kept: half of the pages or more have no link" in told(report)
    assert library.refresh(prune=True).removed == 3


def test_pages_that_fail_keep_their_old_version(web: Site, library: Library) -> None:
    """What cannot be reached stays, and so does what it may link to; the rest is brought up to date."""
    home = serve(web, {"": ("a.html", "b.html"), "a.html": ("c.html",), "b.html": (), "c.html": ()})
    library.add(home, site=True)
    web.page("/docs/a.html", b"", status=503)
    web.page("/docs/b.html", html("Bees"), content_type="text/html")
    report = library.refresh()
    assert counts(report) == (0, 1, 2, 0, 1)
    assert sorted(texts(library)) == ["docs/a.html", "docs/b.html", "docs/c.html", "docs/index"]
    assert "1 document that may be gone was kept" in told(report)
    assert found(library, "bees") == ["docs/b.html"]


@pytest.mark.parametrize("status", [404, 410])
def test_a_linked_page_that_is_gone_goes_with_prune(web: Site, library: Library, status: int) -> None:
    """Issue: a page that is gone by its server's word goes with `--prune`, as a file does."""
    home = serve(web, {"": ("a.html", "b.html"), "a.html": (), "b.html": ()})
    library.add(home, site=True)
    web.page("/docs/a.html", b"gone", status=status)
    report = library.refresh()
    assert counts(report) == (0, 0, 2, 0, 1)
    assert f"{home}a.html the server answered {status}" in told(report)
    missing = library.check()
    assert [row.path for row in missing.missing] == ["docs/a.html"]
    assert not missing  # a refresh would keep it
    (plan,) = library.plan(prune=True)
    assert [(i.action, i.path, i.reason) for i in plan.items] == [
        ("remove", "docs/a.html", "the server has no such page")
    ]
    assert counts(library.refresh(prune=True)) == (0, 0, 2, 1, 0)
    assert sorted(texts(library)) == ["docs/b.html", "docs/index"]


def test_a_page_of_an_llms_txt_that_is_gone_goes_with_prune(web: Site, library: Library) -> None:
    """The same for the pages that an llms.txt links."""
    url = publish(web, {"/a.md": "# A\n", "/b.md": "# B\n"})
    library.add(url)
    web.page("/a.md", b"gone", status=410)
    assert counts(library.refresh()) == (0, 0, 2, 0, 1)
    assert counts(library.refresh(prune=True)) == (0, 0, 2, 1, 0)
    assert sorted(texts(library)) == ["b.md", "llms.txt"]


def test_an_unlinked_page_that_is_gone_is_named_when_others_fail(web: Site, tmp_path: Path) -> None:
    """A page held before is asked for, if the crawl cannot tell whether something still links it."""
    with opened(tmp_path, max_depth=2) as library:
        for path, links in {"/a.html": ("/deep.html",), "/deep.html": ()}.items():
            web.page(path, html(path.strip("/"), *links), content_type="text/html")
        library.add(
            publish(web, {"/b.md": "# B\n"})
            and web.page("/llms.txt", b"# S\n\n- [a](/a.html)\n- [b](/b.md)\n")
        )
        web.page("/a.html", b"", status=503)
        web.page("/deep.html", b"", status=404)
        report = library.refresh()
        assert f"{web.url('/deep.html')} the server answered 404" in told(report)
        assert "1 document that may be gone was kept" in told(report)
        assert library.refresh(prune=True).removed == 1
        assert sorted(texts(library)) == ["a.html", "b.md", "llms.txt"]


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("answer", [reply(403), reply(200, html("404 Not Found"), content_type="text/html")])
def test_a_page_that_is_only_not_shown_stays(
    web: Site, library: Library, answer: Callable[[Handler], None], whole: bool
) -> None:
    """Only 404 and 410 are the server's word: a page behind a login, or one that says so itself, stays."""
    home = serve(web, {"": ("a.html",), "a.html": ()})
    library.add(home if whole else web.url("/docs/a.html"), site=whole)
    web.route("/docs/a.html", answer)
    report = library.refresh(prune=True)
    assert (report.removed, len(report.failed)) == (0, 1)
    assert "docs/a.html" in texts(library)


def test_a_site_whose_first_page_is_gone_is_pruned_page_by_page(web: Site, library: Library) -> None:
    """The pages that are still there stay."""
    home = serve(web, {"": ("a.html", "b.html"), "a.html": ("b.html",), "b.html": ()})
    library.add(home, site=True)
    for path in ("/docs/", "/docs/a.html"):
        web.page(path, b"", status=404)
    assert library.refresh().removed == 0
    library.refresh(prune=True)
    assert "docs/a.html" not in texts(library)
    assert "docs/b.html" in texts(library)


def test_a_page_removed_by_a_person_stays_removed(web: Site, library: Library) -> None:
    """As for folders: a refresh does not bring it back. Patterns narrow a site, too."""
    home = serve(web, {"": ("a.html", "b.html", "c.html"), "a.html": (), "b.html": (), "c.html": ()})
    library.add(home, site=True, exclude=["c.html"])
    library.remove("127.0.0.1:docs/a.html")
    library.refresh()
    assert sorted(texts(library)) == ["docs/b.html", "docs/index"]


# --------------------------------------------------------------------------------------- anchors


def test_anchors_of_a_page_reach_what_is_written(web: Site, library: Library) -> None:
    """Each heading's id and offset come with the page, exact in the text that is stored."""
    page = "<main><h1 id='top'>Äpfel</h1><p>Zwölf.</p><h2 id='rot'>Rote</h2><p>Sauer.</p></main>"
    url = web.page("/a.html", page.encode(), content_type="text/html; charset=utf-8")
    source = SourceRow("page", url, url, "c", "document")
    (prepared,) = ingested.look_at_pages(library.store, source, library.config).new
    text = prepared.source.decode()
    assert prepared.places
    found = zip(prepared.places.starts, prepared.places.names, strict=True)
    assert [(id, text[at:].partition("\n")[0]) for at, id in found] == [
        ("top", "# Äpfel"),
        ("rot", "## Rote"),
    ]


# ----------------------------------------------------------------------------------- real things

MANUAL = {
    "index": "Zebra manual\n============\n\nSee `keeping zebras <guide.html>`_ and `lions <lions.html>`_.\n",
    "guide": "Keeping zebras\n==============\n\nGrass.\n\nFences\n------\n\n::\n\n zebra fence --high\n",
    "lions": "Lions\n=====\n\nThey are kept elsewhere.\n",
}


def written_by_docutils(folder: Path) -> None:
    core = pytest.importorskip("docutils.core", reason="docutils is not installed")
    for name, text in MANUAL.items():
        made = core.publish_string(text, writer="html5", settings_overrides={"embed_stylesheet": False})
        (folder / f"{name}.html").write_bytes(made)


def written_by_sphinx(folder: Path) -> None:
    build = pytest.importorskip("sphinx.cmd.build", reason="Sphinx is not installed")
    source = folder.parent / "source"
    source.mkdir()
    (source / "conf.py").write_text('project = "Zebra"\nhtml_theme = "alabaster"\n')
    contents = "\n.. toctree::\n\n   guide\n   lions\n"
    for name, text in MANUAL.items():
        (source / f"{name}.rst").write_text(text + contents * (name == "index"))
    assert build.build_main(["-q", "-b", "html", str(source), str(folder)]) == 0


def written_by_mkdocs(folder: Path) -> None:
    commands = pytest.importorskip("mkdocs.commands.build", reason="MkDocs is not installed")
    config = pytest.importorskip("mkdocs.config")
    source = folder.parent / "docs"
    source.mkdir()
    (source / "index.md").write_text("# Zebra manual\n\nWelcome.\n")
    (source / "guide.md").write_text(
        "# Keeping zebras\n\nThey need grass.\n\n## Fences\n\n    zebra fence --high\n"
    )
    (source / "lions.md").write_text("# Lions\n\nThey are kept elsewhere.\n")
    settings = folder.parent / "mkdocs.yml"
    settings.write_text(
        f"site_name: Zebra\ndocs_dir: {source}\nsite_dir: {folder}\nuse_directory_urls: false\n"
    )
    commands.build(config.load_config(str(settings)))


@pytest.mark.parametrize("generate", [written_by_docutils, written_by_sphinx, written_by_mkdocs])
def test_a_site_of_a_real_generator_is_crawled(
    web: Site, tmp_path: Path, generate: Callable[[Path], None]
) -> None:
    """Issue: a local site generator in the tests; `quire add --site` end to end, from the command line."""
    folder = tmp_path / "made"
    folder.mkdir()
    generate(folder)
    for file in folder.rglob("*.html"):
        path = f"/docs/{file.relative_to(folder).as_posix()}"
        web.page(path, file.read_bytes(), content_type="text/html; charset=utf-8")
    web.page("/docs/", (folder / "index.html").read_bytes(), content_type="text/html; charset=utf-8")
    user_settings(tmp_path, '[web]\nallow_hosts = ["127.0.0.1"]\nretries = 0\n')
    out, _ = run(tmp_path, "add", "--site", web.url("/docs/"))
    assert "0 updated, 0 unchanged" in out
    assert run(tmp_path, "search", "grass")[0].startswith("  1. 127.0.0.1:docs/guide.html#keeping-zebras")
    assert "zebra fence --high" in run(tmp_path, "read", "127.0.0.1:docs/guide.html#fences")[0]
    assert run(tmp_path, "sources")[0].splitlines()[0].startswith(web.url("/docs/"))
    (folder / "lions.html").unlink()
    del web.routes["/docs/lions.html"]
    run(tmp_path, "refresh", code=3)
    assert "1 removed" in run(tmp_path, "refresh", "--prune")[0]
    assert "lions" not in run(tmp_path, "list")[0]


def test_the_command_line_names_the_site_option(web: Site, tmp_path: Path) -> None:
    """A person who adds one page of a site reads how to add them all."""
    user_settings(tmp_path, '[web]\nallow_hosts = ["127.0.0.1"]\nretries = 0\n')
    home = serve(web, {"": ("a.html", "b.html", "c.html")})
    assert f"quire add --site {home}" in run(tmp_path, "add", home)[1]
    assert (
        "is a file or folder. Sites are on the web"
        in run(tmp_path, "add", "--site", str(tmp_path), code=2)[1]
    )


def test_results_of_a_page_link_to_the_anchor_of_their_heading(
    web: Site, library: Library, tmp_path: Path
) -> None:
    """Issue: results in text name the URL with its anchor; saved pages have theirs, too."""
    page = "<main><h1 id='top'>Äpfel</h1><p>Zwölf.</p><h2 id='rot und süß'>Rote</h2><p>Sauer.</p></main>"
    url = web.page("/a.html", page.encode(), content_type="text/html; charset=utf-8")
    library.add(url)
    (found,) = library.search("sauer").results
    assert (found.location, found.link) == (None, f"{url}#rot%20und%20s%C3%BC%C3%9F")
    assert f"{url}#rot" in "\n".join(render.result_lines(1, found))
    saved = tmp_path / "saved.html"
    saved.write_text(page, "utf-8")
    library.add(saved)
    found = library.search("sauer", collection=tmp_path.name).results[0]
    assert found.link == f"{saved.as_uri()}#rot%20und%20s%C3%BC%C3%9F"


# ------------------------------------------------------------------------------- links that are needed


def tagged(web: Site, path: str, content: bytes) -> Versioned:
    """A page with an etag under /docs/, which is not sent again to whoever has it."""
    page = Versioned(content, content_type="text/html", etag=f'"{hash(content)}"')
    web.route(f"/docs/{path}", page)
    return page


def test_a_page_that_becomes_a_site_brings_what_it_links(web: Site, library: Library) -> None:
    """Issue: `quire add URL`, then the advised `quire add --site URL`: the links of the page are needed."""
    home = tagged(web, "", html("Home", "a.html", "b.html", "c.html"))
    for name in "abc":
        tagged(web, f"{name}.html", html(name.upper(), "./"))
    tagged(web, "d.html", html("D", "./"))
    web.page("/docs/sitemap.xml", listing(web.url("/docs/d.html")))
    library.add(web.url("/docs/"))
    assert counts(library.add(web.url("/docs/"), site=True)) == (4, 0, 1, 0, 0)
    assert counts(library.refresh()) == (0, 0, 5, 0, 0)
    assert home.statuses == [200, 200, 304]  # the site holds it now
    tagged(web, "c.html", html("C", "e.html"))
    tagged(web, "e.html", html("E"))
    assert counts(library.refresh()) == (1, 0, 5, 0, 0)


@pytest.mark.parametrize("cut", [False, True])
def test_what_a_crawl_did_not_reach_comes_later(tmp_path: Path, web: Site, cut: bool) -> None:
    """Pages that failed once, or were over the limit, come as soon as they can, though no page changed."""
    home = tagged(web, "", html("Home", "a.html", "b.html"))
    tagged(web, "a.html", html("A"))
    web.page("/docs/b.html", b"", status=200 if cut else 503)
    if cut:
        tagged(web, "b.html", html("B"))
    with opened(tmp_path, max_pages=2 if cut else 1000) as library:
        assert counts(library.add(web.url("/docs/"), site=True)) == (2, 0, 0, 0, 1)
    tagged(web, "b.html", html("B"))
    with opened(tmp_path) as library:
        assert counts(library.refresh()) == (1, 0, 2, 0, 0)
        assert counts(library.refresh()) == (0, 0, 3, 0, 0)
    assert home.statuses == [200, 200, 304]


def test_a_page_that_fails_does_not_cost_a_whole_download(web: Site, library: Library) -> None:
    """A page of the library that fails is asked for again; the links of the others are known."""
    home = tagged(web, "", html("Home", "a.html"))
    tagged(web, "a.html", html("A"))
    library.add(web.url("/docs/"), site=True)
    web.page("/docs/a.html", b"", status=503)
    for _ in range(2):
        assert counts(library.refresh())[-1] == 1
    assert home.statuses == [200, 304, 304]


# ------------------------------------------------------------------------------- what to do about it


@pytest.mark.parametrize("by_index", [False, True])
def test_a_page_that_is_gone_says_how_to_remove_it(web: Site, library: Library, by_index: bool) -> None:
    """Issue: nobody typed the URL of a page that a site links. `--prune` is what removes it."""
    serve(web, {"": ("a.html",), "a.html": ()})
    web.page("/docs/llms.txt", b"# Docs\n\n- [a](a.html)\n- [b](b.html)\n")
    report = library.add(web.url("/docs/llms.txt" if by_index else "/docs/"), site=not by_index)
    assert [failed.reason for failed in report.failed] == ["the server answered 404 Not Found"] * by_index
    web.page("/docs/a.html", b"", status=410)
    (failed, *_) = library.refresh().failed
    how = "Its document stays. To remove it: quire refresh --prune"
    assert failed.reason == f"the server answered 410 Gone. {how}"


@pytest.mark.parametrize("whole", [False, True])
def test_a_source_that_is_gone_says_how_to_remove_it(web: Site, library: Library, whole: bool) -> None:
    """Issue: after `--prune` a source without documents is left, and the message says how to remove that."""
    home = serve(web, {"": ()})
    with pytest.raises(NotFound, match=r"Check the URL$"):
        library.add(web.url("/typed/"), site=whole)
    library.add(home, site=whole)
    web.page("/docs/", b"", status=404)
    assert "quire refresh --prune" in library.refresh().failed[0].reason
    assert library.refresh(prune=True).removed == 1
    assert f"quire sources remove {home}" in library.refresh().failed[0].reason
    library.remove_source(home)
    assert library.refresh().failed == []


def test_a_broken_link_of_an_llms_txt_does_not_cost_a_whole_download(web: Site, library: Library) -> None:
    """An llms.txt is always sent, so that the pages that it links need not be."""
    page = Versioned(b"# A\n", content_type="text/markdown", etag='"1"')
    web.route("/a.md", page)
    library.add(web.page("/llms.txt", b"# Site\n\n- [a](/a.md)\n- [b](/b.md)\n"))
    assert counts(library.refresh()) == (0, 0, 2, 0, 1)
    assert page.statuses == [200, 304]
