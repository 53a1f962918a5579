"""llms.txt to links and llms-full.txt to pages: every way they are written that is known, and any text."""

from __future__ import annotations

import re
import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.sources.web import llmstxt, urls
from quire.sources.web.full import urls_of
from quire.sources.web.llmstxt import FullPage, Link
from tests.markdowns import FULL_FILES, SHARED, markdown, needs_shared

LLMS = SHARED / "large_inputs" / "llms"
BASE = "https://example.com/docs/llms.txt"

# ---------------------------------------------------------------------------------------------- llms.txt


def links(text: str, base: str = BASE) -> list[tuple[str, str, str]]:
    return [(link.title, link.url, link.notes) for link in llmstxt.links(text, base)]


def test_an_index_as_the_standard_writes_it() -> None:
    """Title, sections, links with notes, and what is optional."""
    found = llmstxt.links(
        """# Water

> How water is
> moved about.

Some details, and [a plan](/plan.md) without a base.

## Docs

- [Pumps](https://example.com/pumps.md): how they work
- [Valves](https://example.com/valves.md)

## Optional

- [History](https://example.com/history.md): old things
"""
    )
    assert list(found) == [
        Link("Pumps", "https://example.com/pumps.md", "how they work", "Docs", False),
        Link("Valves", "https://example.com/valves.md", "", "Docs", False),
        Link("History", "https://example.com/history.md", "old things", "Optional", True),
    ]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("bullet", ["-", "*", "+", "1.", "2)", "   -", "      *", "\t-", ""])
def test_any_list_is_a_list(bullet: str, mark: str, newline: str) -> None:
    """BAD_INPUTS: BOM, CRLF, `*` bullets, prose between links."""
    text = f"{mark}# T\n\n## S\nSome prose.\n{bullet} [A](/a.md): one\nMore.\n\n{bullet} [B](/b.md): two"
    assert list(llmstxt.links(text.replace("\n", newline), BASE)) == [
        Link("A", "https://example.com/a.md", "one", "S", False),
        Link("B", "https://example.com/b.md", "two", "S", False),
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("- [A](https://e.org/x_(y)): n", ("A", "https://e.org/x_(y)", "n")),
        ("- [A](https://e.org/x(y(z))w)", ("A", "https://e.org/x(y(z))w", "")),
        ("- [A](https://e.org/x(y): n", ("A", "https://e.org/x(y", "n")),
        ("- [A](https://e.org/a b.md): n", ("A", "https://e.org/a%20b.md", "n")),
        ("- [A](<https://e.org/a b (c).md>): n", ("A", "https://e.org/a%20b%20(c).md", "n")),
        ('- [A](https://e.org/a "The title") - n', ("A", "https://e.org/a", "n")),
        ("- [A](https://e.org/a 'The (best) title')", ("A", "https://e.org/a", "")),
        ("- [A]( https://e.org/a ) – n", ("A", "https://e.org/a", "n")),
        ("- [A](https://e.org/a) — n: m", ("A", "https://e.org/a", "n: m")),
        ("- [A](https://e.org/a):n", ("A", "https://e.org/a", "n")),
        ("- [A](https://e.org/a)", ("A", "https://e.org/a", "")),
        ("- [A](https://e.org/a-b)-c", ("A", "https://e.org/a-b", "")),
        ("- [`a[0]` and *b*](https://e.org/a)", ("a[0] and b", "https://e.org/a", "")),
        ("- [![Logo](l.png) A](https://e.org/a)", ("Logo A", "https://e.org/a", "")),
        ("- **[A](https://e.org/a)**: n", ("A", "https://e.org/a", "")),
        ("- [](https://e.org/a)", ("https://e.org/a", "https://e.org/a", "")),
        ("- https://e.org/a", ("https://e.org/a", "https://e.org/a", "")),
        ("- <https://e.org/a>", ("https://e.org/a", "https://e.org/a", "")),
        ("- https://e.org/a: n", ("https://e.org/a", "https://e.org/a", "n")),
        ("- The A: https://e.org/a.", ("The A", "https://e.org/a", "")),
        ("- **The A** - https://e.org/a_(b)", ("The A", "https://e.org/a_(b)", "")),
        ("- as told there (https://e.org/a).", ("https://e.org/a", "https://e.org/a", "")),
        ("[A](https://e.org/a): n", ("A", "https://e.org/a", "n")),
        ("See [A](https://e.org/a#b) first.", ("A", "https://e.org/a", "")),
        ("[A](../a.md)", ("A", "https://example.com/a.md", "")),
        ("[A](a.md)", ("A", "https://example.com/docs/a.md", "")),
        ("[A](//e.org/a)", ("A", "https://e.org/a", "")),
        ("## [A](https://e.org/a)", ("A", "https://e.org/a", "")),
    ],
)
def test_any_link_is_a_link(line: str, expected: tuple[str, str, str]) -> None:
    """BAD_INPUTS: URLs with `)`, spaces, angle brackets and titles, bare URLs, relative ones."""
    assert links(f"# T\n\n{line}\n") == [expected]


@pytest.mark.parametrize(
    "line",
    [
        "- [A](mailto:a@e.org)",
        "- [A](javascript:alert(1))",
        "- [A](ftp://e.org/a)",
        "- [A](file:///etc/passwd)",
        "- [A](#here)",
        "- [A](http://[)",
        "- [A](https://)",
        "- [A]()",
        "- [A](",
        "- [A]",
        "- ![A](https://e.org/a.png)",
        "Bare in prose: https://e.org/a",
        "```\n- [A](https://e.org/a)\n```",
        "- x\n\n  ~~~\n  [A](https://e.org/a)\n  ~~~",
        "<!--\n- [A](https://e.org/a)\n-->",
    ],
)
def test_what_is_no_document_on_the_web_is_left_out(line: str) -> None:
    """Only http and https; links inside code fences do not count."""
    assert links(f"# T\n\n{line}\n\n- [B](https://e.org/b)\n") == [("B", "https://e.org/b", "")]


def test_a_relative_link_without_a_base_leads_nowhere() -> None:
    """URLs are absolute."""
    assert links("- [A](/a.md)\n- [B](https://e.org/b)", "") == [("B", "https://e.org/b", "")]


def test_a_link_counts_once_where_it_stands_first() -> None:
    """Links are deduplicated, in order."""
    text = "- [B](/b)\n- [A](/a)\n- [B again](/b#x)\n- [A](https://example.com/a)\n"
    assert links(text) == [("B", "https://example.com/b", ""), ("A", "https://example.com/a", "")]


def test_two_links_in_one_line_have_notes_of_their_own() -> None:
    """Notes end where the next link begins."""
    assert links("- [A](/a): one, [B](/b) - two") == [
        ("A", "https://example.com/a", "one,"),
        ("B", "https://example.com/b", "two"),
    ]


def test_sections_are_the_headings_above_whatever_their_level() -> None:
    """No H1, several H1s, headings under "Optional", one of the same level after it."""
    text = """[0](/0)
## OPTIONAL
[1](/1)
### Deeper
[2](/2)
## After
[3](/3)
# One
[4](/4)
# Two
[5](/5)
"""
    assert [(link.title, link.section, link.optional) for link in llmstxt.links(text, BASE)] == [
        ("0", "", False),
        ("1", "OPTIONAL", True),
        ("2", "Deeper", True),
        ("3", "After", False),
        ("4", "One", False),
        ("5", "Two", False),
    ]


@needs_shared
@pytest.mark.parametrize("name", ["genaiscript", "langwatch", "litellm", "mistral", "wormhole"])
def test_every_link_of_a_real_index_is_found(name: str) -> None:
    """Real files, their links counted by a plain expression."""
    text = (LLMS / f"{name}-llms.txt").read_text("utf-8")
    found = {link.url for link in llmstxt.links(text)}
    assert {url.partition("#")[0] for url in re.findall(r"\]\((https?://[^)\s]+)\)", text)} <= found


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"- [Page {n}](https://e.org/{n}): notes on {n}\n" for n in range(10_000)),
        "[" * 1_000_000,
        "[](" * 300_000,
        "[a](" * 250_000 + ")" * 1000,
        "[x[a](b)" * 100_000,
        "- " + "https://e.org/ " * 60_000,
        "- " + "a: " * 300_000,
        "[a]((((((" * 100_000,
        "> " * 300_000,
    ],
    ids=lambda text: text[:12],
)
def test_an_index_is_read_in_linear_time(text: str) -> None:
    """BAD_INPUTS: 10,000 links; nothing a stranger writes takes long."""
    start = time.process_time()
    for _ in llmstxt.links(text, BASE):
        pass
    assert time.process_time() - start < 20


@given(
    st.one_of(st.text(), markdown(), st.lists(st.sampled_from("[]()<>!`-# \n\\ahttps://e.o\"'")).map("".join))
)
def test_any_text_is_an_index(text: str) -> None:
    """BAD_INPUTS: every link is on the web and given once."""
    found = [link.url for link in llmstxt.links(text, BASE)]
    assert len(set(found)) == len(found)
    assert all(re.match(r"https?://[^/]", url) for url in found)


def many_links(count: int) -> str:
    return "".join(f"- [Page {n}](https://e.org/{n}): notes on {n}\n" for n in range(count))


def test_links_are_given_one_by_one() -> None:
    """Issue: an llms.txt of 10⁶ links took 723 MB. Now it takes some copies of its text."""
    text = many_links(5_000)
    tracemalloc.start()
    try:
        assert sum(1 for _ in llmstxt.links(text, BASE)) == 5_000
        assert tracemalloc.get_traced_memory()[1] < 6 * len(text)
    finally:
        tracemalloc.stop()


def test_plain_links_need_no_parser_of_urls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue: an llms.txt of 10⁶ links took 55 s; most of that was to join and parse URLs."""
    parsed, parse = list[str](), urls._parsed

    def counted(url: str) -> urls.Target:
        parsed.append(url)
        return parse(url)

    monkeypatch.setattr(llmstxt, "_absolute", None)
    monkeypatch.setattr(urls, "_parsed", counted)
    urls._origin.cache_clear()
    found = [str(urls.target_of(link.url)) for link in llmstxt.links(many_links(500) + "- [R](/r)", BASE)]
    assert found == [*(f"https://e.org/{n}" for n in range(500)), "https://example.com/r"]
    assert parsed == ["https://e.org", "https://example.com"]


@given(
    st.lists(st.sampled_from(["/", "a", "B.md", ".", "..", "-", "~", "_", "?", "#", "%41", ":"]), min_size=1)
)
def test_plain_links_mean_what_a_parser_reads(pieces: list[str]) -> None:
    """Without the parser of URLs, links lead to the same places."""
    target = "".join(pieces)
    for base in (BASE, "https://e.org", "http://127.0.0.1:80/x", ""):
        assert llmstxt._resolver(base)(target) in (llmstxt._absolute(base, target), "")
        assert bool(llmstxt._resolver(base)(target)) == (llmstxt._absolute(base, target) not in ("", base))
    url = f"https://e.org:8443/{target}"
    assert urls.target_of(url) == urls._parsed(url)


# ------------------------------------------------------------------------------------------ llms-full.txt


def pages(text: str) -> list[FullPage]:
    found = llmstxt.pages(text)
    assert "".join(text[page.start : page.end] for page in found) == text
    assert all(page.start < page.end for page in found)
    return found


def told(text: str) -> list[tuple[str, str | None]]:
    return [(page.title, page.url) for page in pages(text)]


@needs_shared
@pytest.mark.parametrize(
    ("name", "separator", "before"),
    FULL_FILES,
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_the_pages_of_real_files_are_as_many_as_their_separators(
    name: str, separator: str, before: int, newline: str
) -> None:
    """What the file itself says, counted by a plain expression."""
    text = (LLMS / f"{name}-llms-full.txt").read_bytes().decode()
    code = r"(?ms)^(`{3,})[^`\n]*\n.*?^\1`*[ \t]*$" if name == "genaiscript" else "(?!)"
    expected = len(re.findall(separator, re.sub(code, "", text), re.MULTILINE)) + before
    text = text.replace("\n", newline)
    start = time.process_time()
    found = pages(text)
    assert time.process_time() - start < 2
    assert len(found) == expected
    assert all(page.title for page in found)
    if name in ("litellm", "mistral", "wormhole"):
        assert all(page.url for page in found[before:])


KINDS = {
    "Mintlify": "# {title}\nSource: {url}\n\nText of {title}.\n\n",
    "Mintlify, one line apart": "# {title}\n\nSource: {url}\n\nText.\n\n# Inner\n\n",
    "title in brackets": "[{title}]\nSource: {url}\n\nText.\n\n\n",
    "URL": "# {title}\nURL: {url}\n\nText.\n\n",
    "url": "## {title}\nurl: {url}\nText.\n",
    "bold": "# {title}\n\n**Source:** <{url}>\n\nText.\n\n",
    "quoted": "# {title}\n> Source: {url}\n\nText.\n\n",
    "Source URL": "# {title}\nSource URL: {url}\n\nText.\n\n",
    "address first": "URL: {url}\n\n# {title}\n\nText.\n\n## More\n\n",
    "address after a rule": "---\nURL: {url}\n# {title}\n\nText.\n\n",
    "page tag": "<page>\n---\ntitle: {title}\nsource_url:\n  html: {url}\n---\n\n# Head\n\n</page>\n\n",
    "doc tag": '<doc title="{title}" url="{url}">\nText.\n# Inner\n</doc>\n',
    "document tag": '<document index="1">\n<source>{url}</source>\n\n# {title}\n\nText.\n</document>\n',
    "front matter": "---\ntitle: {title}\nurl: {url}\ntags:\n  - a\n---\n\nText.\n\n## More\n\n",
    "front matter after a rule": "---\nurl: {url}\n---\n\n# {title}\n\nText.\n\n---\n\n",
    "front matter, quoted": "---\ntitle: \"{title}\"\nsource: '{url}'\n---\n# Head\n\nText.\n",
    "markers": "Doc-Content: {url}\n--- BEGIN CONTENT ---\n---\ntitle: {title}\n---\n# H\n--- END ---\n\n",
    "skip link": "## {title}\n[Skip to main content]({url}#__skip)\n\n# Head\n\nText.\n\n",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("before", ["", "\ufeff", "\n \n", "Welcome to the docs.\n\n"])
def test_every_kind_of_separator_is_known(kind: str, newline: str, before: str) -> None:
    """Mintlify, Fern, GitBook, VitePress, Cloudflare, Firecrawl and others, each in its own way."""
    wanted = [
        ("Pumps", "https://e.org/pumps"),
        ("Valves", "https://e.org/valves"),
        ("Pumps", "https://e.org/p2"),
    ]
    text = before + "".join(KINDS[kind].format(title=title, url=url) for title, url in wanted)
    found = told(text.replace("\n", newline))
    if before.startswith("Welcome"):
        assert found.pop(0) == ("Welcome to the docs.", None)
    assert found == wanted


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# A\na\n# B\nb\n# A\nc\n", ["A", "B", "A"]),
        ("A\n===\na\n\nB\n===\nb\n", ["A", "B"]),
        ("# FILE: ./a.mdx\n\nText\n---\n# FILE: b/c.md\n---\ntitle: C\n---\n# D\n", ["./a.mdx", "C"]),
        ("## File: a.md\nText\n## File: b.md\n# B\n", ["a.md", "B"]),
        ("====\nFILE: a.md\n====\nText\n=====\nFILE: b.md\n=====\nMore\n", ["a.md", "b.md"]),
        ("===== a.md =====\nText\n===== b.md =====\n# B\n", ["a.md", "B"]),
        ("--- a.md ---\nText\n--- b/c.md ---\nMore\n", ["a.md", "b/c.md"]),
        ('<file path="a.md">\nText\n</file>\n<file path="b.md">\n\n# B\n</file>\n', ["a.md", "B"]),
        ("<|firecrawl-page-1-lllmstxt|>\n## A\na\n<|firecrawl-page-2-lllmstxt|>\n# B\nb\n", ["A", "B"]),
        ("# A\nURL: /docs/a\nSource: https://e.org/a.md\n\na\n# B\nURL: /docs/b\nb\n", ["A", "B"]),
        ("---\ndescription: x\n---\n\n# A\na\n# B\nb\n---\ndescription: y\n---\n# C\nc\n", ["A", "B", "C"]),
        ("<SYSTEM>All docs</SYSTEM>\n\n# A\n> a\n# B\n> b\n", ["<SYSTEM>All docs</SYSTEM>", "A", "B"]),
    ],
)
def test_pages_without_an_address(text: str, expected: list[str]) -> None:
    """File names, page markers, and headings of level 1 alone."""
    assert [page.title for page in pages(text)] == expected


def test_front_matter_belongs_to_the_page_it_stands_before() -> None:
    """A page begins at its separator."""
    text = "# A\na\n\n---\ndescription: y\n---\n\n# B\nb\n"
    assert [text[page.start :][:9] for page in pages(text)] == ["# A\na\n\n--", "---\ndescr"]


def test_an_address_from_the_root_of_the_site_is_given_as_it_is() -> None:
    """Fumadocs and VitePress write paths."""
    assert told("# A\nURL: /docs/a\n\na\n\n# B\nURL: /docs/b\n\nb\n") == [("A", "/docs/a"), ("B", "/docs/b")]
    assert told("---\nurl: /a.md\n---\n# A\n\n---\nurl: /b.md\n---\n# B\n") == [
        ("A", "/a.md"),
        ("B", "/b.md"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "just text",
        "# One heading\n\ntext\n\n## Two\n",
        "# A\n\n```\n# B\n# C\n```\n",
        "---\ntitle: A\n---\n\ntext\n\n---\n\nmore\n",
        " \n",
        "# A\nSource: https://e.org/a\n\ntext\n",
        "# A\n\nSome quote.\n\nSource: https://e.org/quoted\n\nAnother.\nSource: https://e.org/other\n",
        "# A\n\n## References\n\nSource: https://e.org/quoted\n",
    ],
)
def test_a_file_without_separators_is_one_page(text: str) -> None:
    """Nothing is split that is not separate."""
    assert len(pages(text)) == 1


def test_an_empty_file_has_no_pages() -> None:
    """BAD_INPUTS: empty."""
    assert pages("") == []


def test_a_separator_inside_a_fence_is_code() -> None:
    """`#` inside code fences is no heading, and an example of a separator is none."""
    example = "```md\n# X\nSource: https://e.org/x\n```\n"
    text = f"# A\nSource: https://e.org/a\n\n{example}\n{example}\n# B\nSource: https://e.org/b\n\n{example}"
    assert told(text) == [("A", "https://e.org/a"), ("B", "https://e.org/b")]


def test_a_fence_that_is_never_closed_hides_only_its_own_page() -> None:
    """Users' trackers: unbalanced fences."""
    page = "# {0}\nSource: https://e.org/{0}\n\n" + "Text. " * 1000 + "\n\n```\n"
    assert [title for title, _ in told("".join(map(page.format, "ABCDE")))] == list("ABCDE")


def test_a_few_separators_among_many_headings_are_content() -> None:
    """One kind of separator for a file: the one that the most places agree on."""
    text = "".join(f"# Page {n}\n\ntext\n\n" for n in range(40))
    odd = "# Odd\nSource: https://e.org/odd\n\n# Odd two\nSource: https://e.org/odd\n\n"
    assert len(pages(text + odd)) == 42


@pytest.mark.parametrize(
    "text",
    [
        "x" * 50_000_000,
        "# A\nSource: https://e.org/a\n" + "y" * 20_000_000 + "\n# B\nSource: https://e.org/b\n",
        "# A\nSource: https://e.org/a\n" * 40_000,
        "```\n# A\nSource: https://e.org/a\n" * 10_000,
        "---\ntitle: a\n" * 50_000,
        "---\n" * 100_000,
        "====\n" * 60_000,
        "\n" * 3_000_000,
        "<page " * 200_000,
        "# " * 500_000,
    ],
    ids=lambda text: f"{text[:12]!r} {len(text)}",
)
def test_a_full_file_is_split_in_linear_time(text: str) -> None:
    """BAD_INPUTS: one line of 50 MB, and what a stranger may write."""
    start = time.process_time()
    llmstxt.pages(text)
    assert time.process_time() - start < 40  # quadratic time would be hours


def test_pages_of_one_name_are_numbered_in_linear_time() -> None:
    """Issue: 16,000 pages without names of their own took quadratic time."""
    start = time.process_time()
    found = urls_of([FullPage("Page", None, 0, 1)] * 40_000, BASE, set())
    assert time.process_time() - start < 20  # it took minutes
    assert found[:2] == [f"{BASE}#Page", f"{BASE}#Page-2"]
    assert len(set(found)) == 40_000


PIECE = st.sampled_from(
    [
        *(template.format(title="T", url="https://e.org/t") for template in KINDS.values()),
        *(
            "# H\n",
            "```\n",
            "~~~\n",
            "---\n",
            "====\n",
            "text\n",
            "\n",
            "url: /x\n",
            "Source: https://e.org/s\n",
        ),
        *("\ufeff", "\0", "<!--\n", "<pre>\n", "- ", "  ", "title: x\n"),
    ]
)


@given(st.one_of(st.text(), markdown(), st.lists(PIECE, max_size=12).map("".join)))
def test_pages_always_join_to_the_text(text: str) -> None:
    """Invariant: the spans are disjoint, in order, and join to the whole text."""
    assert bool(pages(text)) == bool(text)


@given(st.lists(PIECE, max_size=12).map("".join), st.sampled_from(["\r\n", "\r"]))
def test_line_ends_do_not_matter(text: str, newline: str) -> None:
    """BAD_INPUTS: CRLF and lone CR."""
    other = text.replace("\n", newline)
    assert [(p.title, p.url) for p in pages(text)] == [(p.title, p.url) for p in pages(other)]


WIDE = st.sampled_from(
    ["🦊", "日本", "é", "—", "\u3000", "\xa0", "\u2028", "<日>\n", "<→\n", "# 日本 🦊\n", "**🦊**\n"]
)


@given(st.one_of(st.text(), st.lists(PIECE | WIDE, max_size=14).map("".join)))
def test_a_narrow_text_has_the_same_pages(text: str) -> None:
    """Issue: memory bounded. One byte stands for a character of any script, and nothing else changes."""
    text = text.lstrip("\ufeff")
    narrow = llmstxt.narrow(text).decode("latin-1")
    assert len(narrow) == len(text)
    asked: list[int] = []

    def read(start: int, end: int) -> str:
        asked.append(start)
        return text[start:end]

    assert llmstxt.pages(narrow, read) == pages(text)
    assert asked == sorted(asked)


@needs_shared
@pytest.mark.parametrize("name", ["langwatch", "litellm", "mistral", "wormhole", "genaiscript"])
def test_a_real_file_has_the_same_pages_when_narrow(name: str) -> None:
    """Issue: all that real files hold, in their own scripts."""
    text = (SHARED / "large_inputs" / "llms" / f"{name}-llms-full.txt").read_text("utf-8")
    narrow = llmstxt.narrow(text).decode("latin-1")
    assert llmstxt.pages(narrow, lambda start, end: text[start:end]) == pages(text)
