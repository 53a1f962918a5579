"""The numbers of the first document: sections of documents and sites."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import quire
from quire.address import without_part
from quire.errors import TransientError
from tests.acceptance.conftest import cli, config
from tests.schemas import execute, make_schema
from tests.web_server import Handler, Site, reply, reset, site

# Loopback may be asked, and nothing is asked a second time, as that waits.
WEB = {"web": {"allow_hosts": ["127.0.0.1"], "retries": 0}}
GUIDE = """\
Before all headings.

# Guide

Welcome.

## Install

Use the package manager.

### Linux

Type apt.

## Use

Run it.

### Linux

Run it there.
"""


@pytest.fixture
def web() -> Iterator[Site]:
    with site() as served:
        yield served


def words(tokens: int) -> str:
    """A paragraph of exactly so many tokens, four characters each."""
    return ("abc " * tokens)[: 4 * tokens - 2] + "\n\n"


def section(heading: str, tokens: int) -> str:
    """A heading and its text, of exactly so many tokens together."""
    return f"{heading}\n\n".ljust(4 * tokens - 2, "x") + "\n\n"


def paths(library: quire.Library, query: str, **filters: object) -> list[str]:
    """The paths of what a search finds."""
    return [result.path for result in library.search(query, **filters).results]  # type: ignore[arg-type]


def test_t1_a_document_has_its_id_collection_url_path_hash_and_times(
    library: quire.Library, web: Site
) -> None:
    """T1: A document has an id, a collection, a URL that is unique in it, a path, a hash and two times."""
    library.config = config(WEB)
    source = "\ufeff# Guide\r\n\r\nWelcome.\r\n".encode()
    url = web.page("/docs/guide.md", source, content_type="text/markdown")
    library.add(url, collection="a")
    library.add(url, collection="b")
    library.add(url, collection="a")
    first, other = library.documents("a")[0], library.documents("b")[0]
    assert len(library.documents()) == 2
    assert (first.collection, first.url, first.path) == ("a", url, "docs/guide.md")
    assert (other.collection, other.url, other.path) == ("b", url, "docs/guide.md")
    assert first.id != other.id
    assert library.document(first.id) == first
    assert first.checksum == hashlib.sha256(source).hexdigest()
    assert first.created_at == first.updated_at > 1_700_000_000_000
    web.page("/docs/guide.md", source + b"More.\r\n", content_type="text/markdown")
    library.add(url, collection="a")
    (changed,) = library.documents("a")
    assert (changed.id, changed.created_at) == (first.id, first.created_at)
    assert changed.updated_at > first.updated_at
    assert changed.checksum == hashlib.sha256(source + b"More.\r\n").hexdigest()


def test_t2_a_section_has_its_id_document_parent_heading_level_text_and_place(
    library: quire.Library,
) -> None:
    """T2: A section has an id, document, parent, heading, level, text, position and times, and is found."""
    library.add(content=GUIDE, path="guide.md", collection="docs")
    sections, document = library.sections("docs:guide.md"), library.document("docs:guide.md")
    assert document is not None
    heading_of = {section.id: section.heading for section in sections}
    assert len(heading_of) == 6
    assert [(s.position, s.level, s.heading, heading_of.get(s.parent_id or "")) for s in sections] == [
        (0, 0, None, None),
        (1, 1, "Guide", None),
        (2, 2, "Install", "Guide"),
        (3, 3, "Linux", "Install"),
        (4, 2, "Use", "Guide"),
        (5, 3, "Linux", "Use"),
    ]
    assert [section.parent_id is None for section in sections] == [True, *[False] * 5]
    assert "".join(section.text for section in sections) == GUIDE
    assert sections[2].text == "## Install\n\nUse the package manager.\n\n"
    for section, word in zip(sections, ("before", "welcome", "manager", "apt", "use", "there"), strict=True):
        assert library.read(section.id).address == section.address
        assert without_part(library.search(word).results[0].address) == section.address
        assert section.document_id == document.id
        assert (section.created_at, section.updated_at) == (document.created_at, document.updated_at)
    library.add(content=GUIDE.replace("apt", "dnf"), path="guide.md", collection="docs")
    changed = library.sections("docs:guide.md")
    assert [section.id for section in changed] == [section.id for section in sections]
    assert changed[3].created_at == sections[3].created_at < changed[3].updated_at
    assert library.search("dnf").results[0].address == changed[3].address


def test_t3_a_subtree_that_fits_is_one_chunk() -> None:
    """T3: A heading with all below it is one chunk if it has at most max_tokens, which is 8,000."""
    text = section("# A", 2000) + section("## B", 4000) + section("### C", 2000)
    (chunk,) = quire.chunk(text, "sections")
    assert (chunk.text, chunk.tokens, chunk.section.title) == (text, 8000, "A")
    assert len(quire.chunk(text + "x", "sections")) > 1


def test_t4_what_does_not_fit_is_split_at_its_topmost_headings() -> None:
    """T4: A heading with more below it than fits is split at its topmost headings, to any depth."""
    text = "".join(section(f"{'#' * level} Level {level}", 60) for level in range(1, 7))
    text += section("# Next", 50) + section("## Small", 40)
    chunks = quire.chunk(text, "sections", max_tokens=125)
    assert [(chunk.section.title, chunk.tokens) for chunk in chunks] == [
        ("Level 1", 60),
        ("Level 2", 60),
        ("Level 3", 60),
        ("Level 4", 60),
        ("Level 5", 120),
        ("Next", 90),
    ]
    assert "".join(chunk.text for chunk in chunks) == text
    chunks = quire.chunk("### Deep\n\n" + words(20) + "# Top\n\n" + words(20), "sections", max_tokens=30)
    assert [chunk.section.title for chunk in chunks] == ["Deep", "Top"]


def test_t5_the_worked_example() -> None:
    """T5: The example of the founding document yields exactly the sections that it draws."""
    text = (
        section("## Getting Started", 1000)
        + section("### Install", 1000)
        + section("## API Reference", 8000)
        + section("### Client", 1000)
        + section("#### Connect", 2000)
        + section("### Server", 1000)
        + section("#### Routes", 4000)
        + section("#### Middleware", 5000)
        + section("#### Handlers", 4000)
        + section("##### Request", 3000)
        + section("###### Headers", 5000)
        + section("##### Response", 8000)
    )
    chunks = quire.chunk(text, "sections")
    drawn = [(c.section.level, c.section.title, c.section.parent_id, c.tokens) for c in chunks]
    assert drawn == [
        (2, "Getting Started", "local:", 2000),
        (2, "API Reference", "local:", 8000),
        (3, "Client", "local:#api-reference", 3000),
        (3, "Server", "local:#api-reference", 1000),
        (4, "Routes", "local:#server", 4000),
        (4, "Middleware", "local:#server", 5000),
        (4, "Handlers", "local:#server", 4000),
        (5, "Request", "local:#handlers", 8000),
        (5, "Response", "local:#handlers", 8000),
    ]
    assert "".join(chunk.text for chunk in chunks) == text


def test_t6_text_over_the_limit_without_headings_breaks_the_invariant(library: quire.Library) -> None:
    """T6: Text over the limit with no heading to split at is an error by sections; the default splits it."""
    for text in ("# A\n\n" + words(9000), words(9000), "# A\n\n" + words(9000) + "## B\n\nb\n"):
        with pytest.raises(quire.BrokenInvariant, match=r"9,00\d tokens with no heading"):
            quire.chunk(text, "sections")
        chunks = quire.chunk(text)
        assert max(chunk.tokens for chunk in chunks) <= 800
        assert "".join(chunk.text for chunk in chunks) == text
    library.config = config({"chunk": {"strategy": "sections"}})
    with pytest.raises(quire.BrokenInvariant):
        library.add(content=words(9000), path="a.md")
    assert library.documents() == []


def test_t7_only_token_counts_decide_a_boundary() -> None:
    """T7: Only token counts decide where text is split: no model is asked, and words make no difference."""
    parts = [f"## Part {n:03}\n\nThe {'lamp' if n % 2 else 'boat'} number {n:03}.\n\n" for n in range(400)]
    text = "".join(parts)
    counted = config({"tokens": {"counter": "words"}})
    assert len(quire.chunk(text, "sections", config=counted, max_tokens=3600)) == 1  # nine words a part
    assert len(quire.chunk(text, "sections", config=counted, max_tokens=3599)) == 400
    same = text.replace("lamp", "xxxx").replace("boat", "zzzz").replace("number", "aaaaaa")
    unreachable = config({"embed": {"model": "ollama/none", "url": "http://127.0.0.1:9"}})
    for strategy, most in (("sections", 2000), ("auto", 800), ("windows", 768)):
        chunks = quire.chunk(text, strategy, max_tokens=most)
        other = quire.chunk(same, strategy, config=unreachable, max_tokens=most)
        assert [(c.start, c.end) for c in chunks] == [(c.start, c.end) for c in other]
        assert len(chunks) > 1


def test_t8_toc_is_the_heading_structure(library: quire.Library) -> None:
    """T8: The table of contents of a document is its headings as a tree, also if it fits in one chunk."""
    library.config = config({"chunk": {"strategy": "sections"}})
    library.add(content=GUIDE, path="guide.md", collection="docs")
    assert library.status().chunks == 1
    toc = library.toc("docs:guide.md")
    assert [(section.level, section.title) for section in toc.sections] == [
        (0, "Guide"),
        (1, "Guide"),
        (2, "Install"),
        (3, "Linux"),
        (2, "Use"),
        (3, "Linux"),
    ]
    guide = toc.children(toc.root)[0]
    assert [section.title for section in toc.children(guide)] == ["Install", "Use"]
    shown, _ = cli("toc", "docs:guide.md", "-L", library.url)
    assert [line.rpartition("  (")[0] for line in shown.splitlines()] == [
        "Guide",
        "  Install  #install",
        "    Linux  #linux",
        "  Use  #use",
        "    Linux  #linux-1",
    ]


def test_t9_get_returns_the_whole_document(library: quire.Library, web: Site) -> None:
    """T9: A document is read whole, every byte of it; an llms-full.txt too, at its own address."""
    library.config = config(WEB)
    source = "\ufeffBefore.\r\n\r\n# Ä\r\n\r\n## Empty\r\n\r\n## B\r\n\r\ntext".encode()
    library.add(content=GUIDE, path="guide.md", collection="docs")
    library.add(content=source, path="odd.md", collection="docs")
    assert library.read("docs:guide.md").text == GUIDE
    assert library.read("docs:odd.md").text.encode() == library.source("docs:odd.md") == source
    full = "".join(f"# {title}\n\nAll about {title}.\n\n" for title in ("Pumps", "Valves", "Ähren"))
    web.page("/llms-full.txt", full.encode())
    library.add(
        web.page("/llms.txt", b"# Site\n\n- [Pumps](/pumps)\n- [Valves](/valves)\n"), collection="full"
    )
    assert library.read("full:llms-full.txt").text == full
    assert library.source("full:llms-full.txt") == full.encode()
    assert sorted(paths(library, "valves", collection="full")) == ["llms-full.txt/Valves", "llms.txt"]


def test_t10_get_with_a_heading_returns_the_section_and_all_below_it(library: quire.Library) -> None:
    """T10: A heading's section is read with all below it, by slug, by heading text or by a path `A > B`."""
    library.add(content=GUIDE, path="guide.md", collection="docs")
    install = "## Install\n\nUse the package manager.\n\n### Linux\n\nType apt.\n\n"
    for name in ("install", "Install", "Guide > Install", "## Install"):
        assert library.read("docs:guide.md", name).text == install
    assert library.read("docs:guide.md#install").text == install
    twice = library.read("docs:guide.md", "Linux")
    assert (twice.text, twice.others) == ("### Linux\n\nType apt.\n\n", 1)
    assert "1 more of this name" in twice.notes[0]
    last = library.read("docs:guide.md", "Use > Linux")
    assert (last.text, last.others, last.address) == (
        "### Linux\n\nRun it there.\n",
        0,
        "docs:guide.md#linux-1",
    )


def test_t11_search(library: quire.Library, web: Site) -> None:
    """T11: A search returns at most 10 sections of its collection, best first, with place and snippet."""
    library.config = config(WEB)
    long = f"# Animals\n\n## Far\n\n{'grass ' * 200}one okapi {'grass ' * 200}\n"
    url = web.page("/zoo/animals.md", long.encode(), content_type="text/markdown")
    library.add(url, collection="zoo")
    for other in ("aquarium", "zoo-2"):
        library.add(content="# Okapi okapi\n\nokapi okapi\n", path="a.md", collection=other)
    (result,) = library.search("okapi", collection="zoo").results
    assert (result.heading, result.url, result.path) == ("Far", url, "zoo/animals.md")
    assert result.breadcrumb == "> Animals › Far"
    assert library.read(result.chunk_ids[0]).address == result.address
    assert library.document(result.document_id) == library.documents("zoo")[0]
    shown = result.snippet.removeprefix("… ").removesuffix(" …").split()
    assert len(shown) == 50
    assert [result.snippet[a:b] for a, b in result.highlights] == ["okapi"]
    for n in range(12):
        text = f"# Page {n}\n\nA zebra{' zebra' * n} and a {'white' if n == 3 else 'black'} horse.\n"
        library.add(content=text, path=f"pages/{n}.md", collection="zoo")
    results = library.search("zebra", collection="zoo").results
    scores = [result.score for result in results]
    assert len(results) == 10
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > scores[-1]
    assert paths(library, "zebra white", limit=1) == ["pages/3.md"]
    assert paths(library, '"white horse"') == ["pages/3.md"]
    assert sorted(paths(library, "white OR okapi", collection="zoo")) == ["pages/3.md", "zoo/animals.md"]
    assert len(paths(library, "horse", limit=20)) == 12
    assert len(paths(library, "horse -white", limit=20)) == 11
    assert "pages/3.md" not in paths(library, "horse -white", limit=20)
    assert paths(library, "zebra", paths=["pages/7.md"]) == ["pages/7.md"]


def test_t12_a_site_is_its_llms_files_and_what_they_link(library: quire.Library, web: Site) -> None:
    """T12: A site is read from its llms.txt and the documents that this links, or from its llms-full.txt."""
    library.config = config(WEB)
    index = b"# Site\n\n## Docs\n\n- [Guide](/guide.md): the first\n- [API](docs/api.md)\n"
    web.page("/guide.md", GUIDE.encode(), content_type="text/markdown")
    web.page("/docs/api.md", b"# API\n\nCall the okapi.\n", content_type="text/markdown")
    library.add(web.page("/llms.txt", index))
    assert web.paths()[:2] == ["/llms.txt", "/llms-full.txt"]
    assert {row.path: row.url for row in library.documents("127.0.0.1")} == {
        "llms.txt": web.url("/llms.txt"),
        "guide.md": web.url("/guide.md"),
        "docs/api.md": web.url("/docs/api.md"),
    }
    assert library.source("127.0.0.1:llms.txt") == index
    assert library.source("127.0.0.1:guide.md") == GUIDE.encode()
    assert paths(library, "okapi") == ["docs/api.md"]
    with site() as second:
        urls = {title: second.url(f"/{title.lower()}") for title in ("Pumps", "Valves")}
        full = "".join(f"# {title}\nSource: {url}\n\nAll about {title}.\n\n" for title, url in urls.items())
        second.page("/llms-full.txt", full.encode())
        library.add(second.page("/llms.txt", b"- [Pumps](/pumps)\n- [Valves](/valves)\n"), collection="full")
        assert second.paths() == ["/llms.txt", "/llms-full.txt"]
    pages = {row.title: row for row in library.documents("full") if row.url in urls.values()}
    assert {title: row.url for title, row in pages.items()} == urls
    assert "".join(library.read(pages[title].address).text for title in urls) == full
    with pytest.raises(TransientError, match=r"https://docs\.example\.invalid/llms\.txt"):
        library.add("docs.example.invalid")


def test_t13_a_network_failure_is_a_transient_error(library: quire.Library, web: Site) -> None:
    """T13: A network that fails is a TransientError, for a page and for a site, and nothing is lost."""
    library.config = config(WEB)
    page = web.page("/guide.md", GUIDE.encode(), content_type="text/markdown")
    index = web.page("/llms.txt", b"# Site\n\n- [Guide](/guide.md)\n")
    library.add(index)
    before = library.documents()
    failures: list[Callable[[Handler], None]] = [reply(500), reply(503), reply(429), reset]
    for answer in failures:
        for path in ("/guide.md", "/llms.txt", "/llms-full.txt"):
            web.route(path, answer)
        for url in (page, index):
            with pytest.raises(TransientError):
                library.add(url)
    with site() as gone:
        dead = gone.url("/llms.txt")
    with pytest.raises(TransientError):
        library.add(dead)
    assert library.documents() == before
    web.page("/guide.md", status=404)
    with pytest.raises(quire.SourceError) as missing:
        library.add(page)
    assert not isinstance(missing.value, TransientError)


def test_t14_what_was_not_ingested_is_told_from_no_match(library: quire.Library) -> None:
    """T14: What was never added is NoResults from reading and from searching; no match is an empty answer."""
    with pytest.raises(quire.NoResults, match="The library is empty"):
        library.search("zebra")
    library.add(content=GUIDE, path="guide.md", collection="docs")
    with pytest.raises(quire.NoResults, match=r"No collection 'example\.com'"):
        library.search("apt", collection="example.com")
    for missing in ("example.com:guide.md", "docs:missing.md"):
        for ask in (library.read, library.toc, library.source):
            with pytest.raises(quire.NoResults, match="No document"):
                ask(missing)
    with pytest.raises(quire.NoResults, match="No heading"):
        library.read("docs:guide.md", "Missing")
    assert library.search("zebra", collection="docs").results == ()


def test_t15_a_large_llms_full_is_ingested_whole(library: quire.Library, web: Site) -> None:
    """T15: An llms-full.txt of 1.1 MB is stored whole, its last paragraph is found, and failures are told."""
    library.config = config(WEB)
    lines = [" ".join(f"word{n + m}" for m in range(10)) for n in range(0, 111_000, 10)]
    large = "# Large\n\n" + "\n".join(lines) + "\n\n"
    full = large + "# Last\n\nThe okapi stands last.\n"
    assert len(large) > 1_100_000
    web.page("/llms-full.txt", full.encode())
    report = library.add(web.page("/llms.txt", b"# Site\n\n- [Large](/large)\n- [Last](/last)\n"))
    assert (report.failed, report.warnings) == ([], [])
    sources = {row.path: library.source(row.address).decode() for row in library.documents()}
    assert sources["llms-full.txt/Large"] + sources["llms-full.txt/Last"] == full
    for words in ("okapi stands last", "word110999", "word54321"):
        (result, *_) = library.search(words).results
        assert words.split()[0] in library.read(result.address).text
    library.config = config({"web": {**WEB["web"], "max_bytes": 1_000_000}})
    report = library.add(web.url("/llms.txt"))
    assert "web.max_bytes = 1,000,000" in " ".join(report.warnings)
    assert [failed.source for failed in report.failed] == [web.url("/large"), web.url("/last")]


def test_t16_a_library_of_an_older_schema_is_upgraded(library_url: str, tmp_path: Path) -> None:
    """T16: A library of an older version is brought up to date when it is opened; one of a newer is left."""
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "guide.md").write_text(GUIDE)
    with quire.Library.open(library_url, create=True, config=config()) as library:
        library.add(folder)
        before = library.documents()
    make_schema(library_url, 1)
    with quire.Library.open(library_url, config=config()) as library:
        assert library.documents() == before
        assert library.source("docs:guide.md").decode() == GUIDE
        (result,) = library.search("apt").results
        assert library.read(result.chunk_ids[0]).address == "docs:guide.md#linux"
        assert (library.refresh().updated, library.status().chunks) == (0, 6)
    other = config({"chunk": {"strategy": "sections"}})
    with quire.Library.open(library_url, config=other) as library:
        assert (library.refresh().updated, library.status().chunks) == (1, 1)
        assert library.documents()[0].id == before[0].id
    newer = "INSERT INTO quire.migrations VALUES (999, now())"
    execute(library_url, newer if library_url.startswith("postgres") else "PRAGMA user_version = 999")
    with pytest.raises(quire.LibraryError, match="newer Quire"):
        quire.Library.open(library_url, config=config())
