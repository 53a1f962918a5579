"""Documents as safe HTML: nothing in them acts, and every block knows its lines."""

from __future__ import annotations

import re
import time
from collections import Counter
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import pairwise
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire import Document, Tree
from quire.context import safe
from quire.location import Places
from quire.surfaces.http import rendering
from quire.surfaces.http.destinations import LinkTargets, section_anchor
from quire.surfaces.http.markdown_html import Part, blocks_of
from quire.surfaces.http.rendering import rendered, sections_of
from tests import markdowns
from tests.markdowns import needs_shared

TAGS = set("a blockquote br code div em hr li ol p pre s span strong table tbody td th thead tr ul".split())
TAGS |= {f"h{level}" for level in range(1, 7)}
ATTRIBUTES = set("class data-end data-line data-place href id rel start target title".split())
BLOCKS = set("blockquote h1 h2 h3 h4 h5 h6 hr li ol p pre table tbody thead tr ul".split())
HREF = re.compile(r"#s-[^\s]*|/read\?address=[\w.~%-]+|https?://[^\s\"<>]+|mailto:[^\s\"<>]+", re.IGNORECASE)
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]"
)
VOID = ("br", "hr")


@dataclass
class Element:
    """An element of a page, and all text in it."""

    tag: str
    attrs: dict[str, str]
    above: Element | None
    text: str = ""

    @property
    def lines(self) -> tuple[int, int]:
        return int(self.attrs["data-line"]), int(self.attrs["data-end"])


@dataclass
class Reader(HTMLParser):
    """Reads HTML as a browser would, as far as what we write goes."""

    elements: list[Element] = field(default_factory=list)
    above: Element | None = None

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs}, self.above)
        self.elements.append(element)
        if tag not in VOID:
            self.above = element

    def handle_endtag(self, tag: str) -> None:
        assert self.above is not None
        assert self.above.tag == tag
        self.above = self.above.above

    def handle_data(self, data: str) -> None:
        above = self.above
        while above:
            above.text += data
            above = above.above

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(decl)

    def handle_pi(self, data: str) -> None:
        raise AssertionError(data)

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(data)


def tree_of(text: str, path: str = "a.md") -> Tree:
    return Tree(Document.from_text(text, path))


def html_of(text: str, path: str = "a.md", targets: dict[str, str] | None = None) -> str:
    return rendered(tree_of(text, path), None, targets or {})


def elements(html: str) -> list[Element]:
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert reader.above is None
    return reader.elements


def found(html: str, tag: str, kind: str | None = None) -> list[Element]:
    """The elements of a tag and a class; without the root's anchor."""
    return [e for e in elements(html) if e.tag == tag and kind in (None, e.attrs.get("class"))]


def check_inert(html: str) -> list[Element]:
    """Nothing in the HTML acts, loads or hides."""
    parts = elements(html)
    assert {part.tag for part in parts} <= TAGS
    assert {name for part in parts for name in part.attrs} <= ATTRIBUTES
    for part in parts:
        for name, value in part.attrs.items():
            assert name != "href" or HREF.fullmatch(value), value
            assert name != "id" or value.startswith("s-")
            assert name != "class" or re.fullmatch(r"[a-z0-9-]+", value)
        if "target" in part.attrs:
            assert (part.attrs["target"], part.attrs["rel"]) == ("_blank", "noopener noreferrer nofollow")
    assert not HIDDEN.search(html)
    return parts


# ------------------------------------------------------------------------------------------- hostile text

HOSTILE = [
    "<script>alert(1)</script>",
    "<SCRIPT SRC=//evil.example/x.js></SCRIPT>",
    "<scr<script>ipt>alert(1)</scr</script>ipt>",
    "<img src=x onerror=alert(1)>",
    "![x](http://evil.example/track.png)",
    "![x](javascript:alert(1))",
    "![x](data:image/svg+xml;base64,PHN2Zz4=)",
    '![x" onerror="alert(1)](x "y")',
    "![<img src=x>](y)",
    "<svg onload=alert(1)><animate></svg>",
    "<svg><style><img src=x onerror=alert(1)></style></svg>",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
    "<iframe src=javascript:alert(1)></iframe>",
    "<object data=x></object><embed src=x><applet></applet>",
    "<form action=/api/remove><input name=a><button>go</button></form>",
    "<meta http-equiv=refresh content='0;url=http://evil.example'>",
    "<link rel=stylesheet href=//evil.example/x.css><base href=//evil.example/>",
    "<style>body{background:url(//evil.example)}</style>",
    "<a href='javascript:alert(1)' onclick=alert(1)>x</a>",
    "<template><script>alert(1)</script></template><noscript><p title='</noscript><img src=x>'>",
    "<!--><img src=x onerror=alert(1)>-->",
    "<![CDATA[<script>alert(1)</script>]]>",
    "<?php echo 1 ?>",
    "<div id=s-a style='position:fixed'>x</div>",
    "<video src=x autoplay><audio src=x><source srcset=x>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java&#115;cript:alert(1))",
    "[x](&#x6A;avascript:alert(1))",
    "[x](<java\tscript:alert(1)>)",
    "[x](<  javascript:alert(1)>)",
    "[x](<\x01javascript:alert(1)>)",
    "[x](javascript&colon;alert(1))",
    "[x](%6aavascript:alert(1))",
    "[x](vbscript:msgbox(1)) [x](data:text/html,<script>alert(1)</script>) [x](file:///etc/passwd)",
    "[x](blob:abc) [x](about:blank) [x](view-source:x) [x](intent://x) [x](tel:1) [x](ftp://x)",
    "[x](//evil.example) [x](\\\\evil.example) [x](/api/remove) [x](/read?address=a) [x](?a=b)",
    "<javascript:alert(1)> <data:text/html,x> <http://a.example/\"onmouseover=alert(1)>",
    "[x]: javascript:alert(1)\n\n[x] [y][x] ![z][x]",
    '[x](http://a.example "onmouseover=alert(1)") [x](http://a.example/"onclick="alert(1))',
    "[x](http://a.example/<script>) [x](http://[::1) [x](http://%) [x](https://\u202egnp.exe)",
    "[a](http://a.example [b](javascript:alert(1)))",
    "```\"><script>alert(1)</script>\n</code></pre><script>alert(1)</script>\n```",
    "```js onclick=alert(1)\nx\n```",
    "```../../<x>&\u202e\nx\n```",
    "~~~' onload='alert(1)\nx\n~~~",
    "# <img src=x onerror=alert(1)> {#x\" onclick=\"alert(1)}",
    "# A {#constructor}\n\nx\n\n# B {#__proto__}\n\ny",
    "| <script>x</script> | b |\n|:---\"|---|\n| <img src=x> | ` ` |",
    "| a |\n|:-:|\n| </td></table><script>alert(1)</script> |",
    "1000000000. x\n\n-1. y\n\n007. z",
    "---\ntitle: <script>alert(1)</script>\n---\nx",
    "---\ntitle: '</pre><img src=x onerror=alert(1)>'\n---\n",
    "[[Note|<img src=x onerror=alert(1)>]] [[<script>]] ![[javascript:alert(1)]]",
    "[[javascript:alert(1)]] [[Note\"onclick=\"alert(1)|x]]",
    "a\u202eb\u200bc\u2066d\U000e0041e\ufefff\x1b[31mg\x07h\u2028i\x85j\x9bk",
    "`\u202e` \n\n```\n\u200b\x1b[2J\n```\n\n    \u2067code",
    "&#x202e; &#8203; &#xE0041; &#0; &#27; &lt;script&gt; &#60;img src=x&#62;",
    "[\u202ex](http://a.example/\u202e) ![\u200b](x) [x](team\u200b.md)",
    "\\<script>alert(1)\\</script>",
    "<xmp><plaintext><listing><title><textarea><select><option><frameset><frame>",
    "{{ constructor.constructor('alert(1)')() }} ${alert(1)} <%= 1 %>",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("path", ["a.md", "a.rst", "a.adoc", "a.org", "a.csv", "a.txt"])
def test_nothing_in_a_document_acts(text: str, path: str) -> None:
    """BAD_INPUTS: markdown with scripts, remote images and javascript links is inert on the web page."""
    targets = {"Note": "local:no\"te'<.md", "team.md": "local:team.md"}
    check_inert(html_of(text, path, targets))
    check_inert(html_of(f"> {text}\n\n- {text}\n", path, targets))


@pytest.mark.parametrize("text", HOSTILE)
def test_the_second_wall_stands_alone(text: str) -> None:
    """BAD_INPUTS: HTML that a mistake of ours let through would not act either."""
    check_inert(safe(rendering._cleaner().clean(text)))


NASTY = (
    "< > \" ' & &#x202e; &lt; script img svg style src=x onerror= onclick= javascript: data: http://".split()
)
NASTY += (
    "// / </ /> <!-- --> <![CDATA[ ]]> <? %3C [ ] ( ) ![ [[ ]] ]( | --- ``` ~~~ ` * _ ~~ # - 1. >".split()
)
NASTY += "\\ {# } : =".split()
NASTY += [
    " ",
    "\n",
    "\n\n",
    "\t",
    "    ",
    "\r",
    "\r\n",
    "\0",
    "\x1b",
    "\u202e",
    "\u200b",
    "\ufeff",
    "\U000e0041",
    "é",
    "文",
]


@given(
    st.lists(st.sampled_from(NASTY), max_size=40).map("".join),
    st.sampled_from(["a.md", "a.rst", "a.csv", "a.txt"]),
    st.booleans(),
)
def test_no_mixture_of_signs_acts(text: str, path: str, known: bool) -> None:
    """BAD_INPUTS: what a document says is shown, whatever its signs are."""
    tree = tree_of(text, path)
    html = rendered(tree, None, {"http://": "local:b.md", "x": "local:c.md"} if known else {})
    ids = Counter(part.attrs["id"] for part in check_inert(html) if "id" in part.attrs)
    assert ids == Counter(map(section_anchor, tree.sections))


@given(st.text(max_size=60))
def test_any_text_is_shown_safely(text: str) -> None:
    """BAD_INPUTS: zero-width, bidirectional and tag characters are made visible."""
    check_inert(html_of(text))
    check_inert(html_of(f"[x]({text}) [[{text}]] <{text}>"))


def test_raw_html_is_shown_as_text() -> None:
    """BAD_INPUTS: a script is read, and does not run."""
    html = html_of("Say <b>hi</b>.\n\n<div>\nx\n</div>\n\n<!-- a note -->\n")
    assert [part.text for part in found(html, "p")] == [
        "Say <b>hi</b>.",
        "<div>\nx\n</div>",
        "<!-- a note -->",
    ]


def test_hidden_characters_are_written_as_their_codes() -> None:
    """BAD_INPUTS: text cannot pretend to be something else, in entities and in code either."""
    html = html_of("a\u202eb &#x200b;\n\n`\u2066`\n")
    assert [part.text for part in found(html, "p")] == [r"a\u{202e}b \u{200b}", r"\u{2066}"]


def test_pictures_are_replaced_by_their_texts() -> None:
    """API: images are never loaded."""
    html = html_of("![A *good* one](x.png) ![](y.png) [![logo](z.png)](https://a.example)\n")
    assert [part.text for part in found(html, "span", "picture")] == ["A good one", "picture", "logo"]
    assert found(html, "a")[0].text == "logo"


def test_code_keeps_its_language_in_plain_letters() -> None:
    """API: only a to z, digits and hyphens come into a class."""
    html = html_of("```Objective-C title=x\nint a < b;\n```\n\n```C++\nx\n```\n\n```+\ny\n```\n\n    z\n")
    code = found(html, "code")
    assert [part.attrs.get("class") for part in code] == ["language-objective-c", "language-c", None, None]
    assert [part.text for part in code] == ["int a < b;\n", "x\n", "y\n", "z\n"]


def test_tables_and_struck_text_look_as_on_github() -> None:
    """API: tables and strikethrough are laid out; alignment is a class, as the page allows no styles."""
    html = html_of("| a | b |\n|:-:|--:|\n| ~~1~~ | 2 |\n")
    assert [(part.text, part.attrs["class"]) for part in found(html, "td")] == [
        ("1", "center"),
        ("2", "right"),
    ]
    assert found(html, "s")[0].text == "1"


# ------------------------------------------------------------------------------------------- lines


def test_blocks_have_their_lines() -> None:
    """API: every block has its first and last source line."""
    html = html_of("---\ntitle: T\n---\n\n# A\n\none\ntwo\n\n- x\n\n- y\n  - z\n\n\n```\n\n```\n> q\n")
    blocks = [(part.tag, *part.lines) for part in elements(html) if part.tag in BLOCKS]
    lists = [("ul", 10, 13), ("li", 10, 10), ("p", 10, 10), ("li", 12, 13), ("p", 12, 12)]
    lists += [("ul", 13, 13), ("li", 13, 13)]
    first = [("pre", 1, 3), ("h1", 5, 5), ("p", 7, 8)]
    assert blocks == [*first, *lists, ("pre", 16, 18), ("blockquote", 19, 19), ("p", 19, 19)]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_are_counted_as_the_document_counts_them(end: str) -> None:
    """BAD_INPUTS: CRLF and lone CR: lines counted right."""
    html = html_of(f"# A{end}{end}one{end}two{end}{end}```{end}x{end}```{end}")
    assert [(part.tag, *part.lines) for part in elements(html) if part.tag in BLOCKS] == [
        ("h1", 1, 1),
        ("p", 3, 4),
        ("pre", 6, 8),
    ]
    assert found(html, "pre")[0].text == "x\n"


@given(markdowns.markdown())
def test_every_line_is_in_a_block_that_says_so(text: str) -> None:
    """API: the lines of blocks are those of the document, whatever its line ends are."""
    tree = tree_of(text)
    parts = check_inert(rendered(tree, None, {}))
    source = re.split("\r\n|\r|\n", text.removeprefix("\ufeff"))
    blocks = [part for part in parts if part.tag in BLOCKS]
    for block in blocks:
        first, last = block.lines
        assert 1 <= first <= last <= len(source)
        above = block.above
        assert above is None or above.lines[0] <= first <= last <= above.lines[1]
        if block.tag in ("p", "h1", "h2", "h3") and block.text.split():
            words = block.text.split()
            assert words[0] in source[first - 1]
            assert words[-1] in source[last - 1] or block.tag != "p"
    top = [block.lines for block in blocks if block.above is None]
    assert all(one[1] < other[0] for one, other in pairwise(top))
    covered = {line for first, last in top for line in range(first, last + 1)}
    written = {at for at, line in enumerate(source, 1) if line.strip() and not line.startswith("[a]:")}
    assert written <= covered


# ------------------------------------------------------------------------------------------- anchors


def check_anchors(tree: Tree) -> None:
    """The anchor of each section is in the HTML once, at its heading."""
    parts = [part for part in elements(rendered(tree, None, {})) if "id" in part.attrs]
    assert [part.attrs["id"] for part in parts] == [section_anchor(section) for section in tree.sections]
    starts = [tree.names.lines[section.start] for section in tree.sections[1:]]
    assert [part.lines[0] for part in parts[1:]] == starts


@given(markdowns.markdown())
def test_every_section_has_its_anchor(text: str) -> None:
    """API: headings have the section's anchor as their id."""
    check_anchors(tree_of(text))


@needs_shared
@pytest.mark.parametrize("name", ["docs_links_kubernetes", "docs_links_rust"])
def test_every_section_of_real_documents_has_its_anchor(name: str) -> None:
    """API: the page links to every section."""
    files = sorted((markdowns.SHARED / name).rglob("*.md"))
    assert files
    for file in files:
        check_anchors(Tree(Document.from_bytes(file.read_bytes(), file.name)))


def test_headings_in_quotes_and_lists_have_no_anchor() -> None:
    """R1: only top-level headings open sections; one without text under it opens none."""
    html = html_of("# A\n\n> # B\n\n- # C\n\n# D\n")
    ids = {part.text: part.attrs.get("id") for part in found(html, "h1")}
    assert ids == {"A": "s-a", "B": None, "C": None, "D": None}


def test_an_explicit_anchor_is_not_shown() -> None:
    """API: `{#name}` names a section, as in its title."""
    assert '<h1 id="s-setup" data-line="1" data-end="1">Set up <em>it</em></h1>' in html_of(
        "# Set up *it* {#setup}\n\nx\n"
    )


def test_a_heading_that_only_the_tree_sees_has_its_anchor() -> None:
    """API: the tree decides what a section is."""
    check_anchors(tree_of("a\x0b\n# B\n\nx\n\n<style>\n</pre>\n# C\n\ny\n"))
    part = Part("- no\n- heading", 7, 2, "A <b>", "s-a")
    (shown,) = blocks_of([part], LinkTargets(tree_of(""), {}))
    assert shown == (7, 8, '<h2 id="s-a" data-line="7" data-end="8">A &lt;b&gt;</h2>\n')


def test_nothing_is_lost_in_deep_nesting() -> None:
    """API: what is nested too deep is shown as it was written, and other parts are laid out."""
    html = html_of(f"# A\n\n{'> ' * 200}deep\n\nmore\n\n# B\n\n*fine*\n")
    assert "deep\n\nmore" in found(html, "pre", "source")[0].text
    assert found(html, "pre", "source")[0].lines == (3, 5)
    assert len(found(html, "p", "note")) == 1
    assert found(html, "em")[0].text == "fine"


def test_thirty_levels_of_quotes_are_laid_out() -> None:
    """Issue: a limit of 20 would lose headings without a word."""
    html = html_of(f"{'> ' * 30}# deep\n")
    assert found(html, "h1")[0].text == "deep"


def test_sections_are_listed_in_order() -> None:
    """API: address, title, depth, anchor, lines and tokens of each section."""
    listed = sections_of(tree_of("---\ntitle: T\n---\n# A\n\nx\n\n## B\u202e\n\ny\n"), {0: 9, 1: 6, 2: 3})
    assert [tuple(one.values()) for one in listed] == [
        ("local:a.md", "T", 0, "s-", 1, 10, 9),
        ("local:a.md#a", "A", 1, "s-a", 4, 10, 6),
        ("local:a.md#b", "B\\u{202e}", 2, "s-b", 8, 10, 3),
    ]
    keys = ["address", "title", "depth", "anchor", "start_line", "end_line", "tokens"]
    assert list(listed[0]) == keys


# ------------------------------------------------------------------------------------------- places


def placed(text: str, unit: str, *starts: int) -> list[str]:
    """The places and blocks of a document, in order."""
    parts = check_inert(rendered(tree_of(text), Places(unit, starts), {}))
    return [part.attrs.get("data-place") or part.text for part in parts if part.tag in ("div", "p", "pre")]


def test_a_place_is_told_before_the_block_in_which_it_starts() -> None:
    """API: pages, slides, cells and chapters are marked."""
    assert placed("one\n\ntwo\n\nthree\n", "page", 0, 5) == ["page 1", "one", "page 2", "two", "three"]
    assert placed("one\n\ntwo\nthree\n", "slide", 0, 9) == ["slide 1", "one", "slide 2", "two\nthree"]


def test_places_in_one_block_are_told_together() -> None:
    """API: `page 12–13`; pages after the last block are told at the end."""
    assert placed("one\ntwo\n\nthree\n", "page", 0, 4, 9, 15, 15) == [
        "page 1–2",
        "one\ntwo",
        "page 3",
        "three",
        "page 4–5",
    ]


def test_anchors_and_rows_are_not_told() -> None:
    """API: what people do not know by its number is not marked."""
    assert rendered(tree_of("a\n"), Places("anchor", (0,), ("x",)), {}) == html_of("a\n")
    assert placed("a\n", "row", 0) == ["a"]


def test_a_long_document_has_its_places_too() -> None:
    """API: a book that cannot be laid out still shows its pages."""
    text = f"{'*' * 300_000}\n\ntwo\nthree\n"
    first, told, *others = placed(text, "page", 0, 300_002, 300_006)
    assert (first, told[:13]) == ("page 1", "This document")
    assert others == ["*" * 300_000, "page 2", "two", "page 3", "three"]


# ------------------------------------------------------------------------------------------- links


def hrefs(text: str, targets: dict[str, str] | None = None) -> list[tuple[str, str]]:
    return [(part.text, part.attrs["href"]) for part in found(html_of(text, "a.md", targets), "a")]


def test_a_link_to_the_library_opens_its_reader() -> None:
    """API: links between documents are /read?address=…"""
    targets = {"team.md#x": "local:team.md#x", "ä b.md": "local:ä b&.md", "https://a.example/": "web:a"}
    (one, other, third) = hrefs("[a](team.md#x) [b](%C3%A4%20b.md) <https://a.example/>", targets)
    assert one == ("a", "/read?address=local%3Ateam.md%23x")
    assert parse_qs(urlsplit(other[1]).query) == {"address": ["local:ä b&.md"]}
    assert third[1] == "/read?address=web%3Aa"


def test_a_link_out_opens_a_new_page_that_learns_nothing() -> None:
    """API: rel and target of links out."""
    html = html_of("[a](https://a.example/x?y=1&z=2) <me@a.example> [c](HTTP://b.example)")
    assert [part.attrs["href"] for part in found(html, "a")] == [
        "https://a.example/x?y=1&z=2",
        "mailto:me@a.example",
        "HTTP://b.example",
    ]
    assert html.count('target="_blank" rel="noopener noreferrer nofollow"') == 3


def test_a_link_inside_the_document_leads_to_the_section() -> None:
    """API: `#slug` and names of headings lead to anchors."""
    text = "# Set up\n\n[a](#set-up) [b](#Größe) [c](#two) [d](#) [e](#top) [f](<#Set up>) [[#Größe]]\n\n"
    text += "# Größe\n\nx\n\n# One {#two}\n\ny\n"
    leads = [lead for _, lead in hrefs(text)]
    assert leads == ["#s-set-up", "#s-gre", "#s-two", "#s-", "#s-", "#s-set-up", "#s-gre"]
    assert hrefs("# A\n\n[x](#gone)\n", {"#gone": "local:a.md#a"}) == [("x", "#s-a")]


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("javascript:alert(1)", "Quire does not open javascript: links."),
        ("data:text/html,x", "Quire does not open data: links."),
        ("file:///etc/passwd", "Quire does not open file: links."),
        ("other.md", "The library has no document at this link."),
        ("#gone", "This document has no heading of this name."),
        ("#!!", "This document has no heading of this name."),
        ("#文", "This document has no heading of this name."),
        ("<>", "This link has no destination."),
        ("//a.example", "The library has no document at this link."),
    ],
)
def test_a_link_that_opens_nothing_says_why(written: str, why: str) -> None:
    """API: everything else is plain text."""
    html = html_of(f"# Heading\n\n[x *y*]({written}) z\n")
    (dead,) = found(html, "span", "dead")
    assert (dead.text, dead.attrs["title"]) == ("x y", why)
    assert found(html, "a") == []


def test_wikilinks_are_links_if_the_library_has_the_note() -> None:
    """API: Obsidian's links are drawn as links, else as text."""
    targets = {"Note": "local:Note.md", "Note#A b": "local:Note.md#a-b"}
    text = "[[Note]] [[ Note |said *so*]] ![[Note#A b]] [[Gone]] `[[Note]]`\n\n"
    text += "| a |\n|---|\n| [[Note\\|cell]] |\n"
    assert hrefs(text, targets) == [
        ("Note", "/read?address=local%3ANote.md"),
        ("said *so*", "/read?address=local%3ANote.md"),
        ("Note#A b", "/read?address=local%3ANote.md%23a-b"),
        ("cell", "/read?address=local%3ANote.md"),
    ]
    html = html_of(text, "a.md", targets)
    assert "[[Gone]]" in html
    assert "<code>[[Note]]</code>" in html


def test_links_never_stand_in_links() -> None:
    """API: the HTML is well formed."""
    html = html_of("[a [[Note]] b](https://a.example)", "a.md", {"Note": "local:n.md"})
    assert all(part.above is None or part.above.tag != "a" for part in found(html, "a"))


def test_a_link_may_be_defined_in_another_section() -> None:
    """CommonMark: definitions hold for the whole document; the first one counts."""
    text = "# A\n\n[x][r]\n\n# B\n\n[r]: https://a.example\n[r]: https://b.example\n"
    assert hrefs(text) == [("x", "https://a.example")]


# ------------------------------------------------------------------------------------------- formats


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.rst", "Title\n=====\n\nIntro <b>.\n\nPart\n----\n\n.. note:: x\n"),
        ("a.adoc", "= Title\n\nIntro <b>.\n\n== Part\n\nNOTE: x\n"),
        ("a.org", "* Title\n\nIntro <b>.\n\n** Part\n\n#+NOTE: x\n"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_other_formats_show_headings_and_sources(path: str, text: str, end: str) -> None:
    """API: for each section a heading with its anchor, then its own text as it was written."""
    tree = tree_of(text.replace("\n", end), path)
    html = rendered(tree, None, {})
    check_anchors(tree)
    assert [part.text for part in elements(html) if re.fullmatch("h[12]", part.tag)] == ["Title", "Part"]
    shown = found(html, "pre", "source")
    assert shown[0].text == "Intro <b>."
    lines = text.split("\n")
    assert [lines[part.lines[0] - 1] for part in shown] == [part.text for part in shown]


def test_plain_text_is_shown_as_it_was_written() -> None:
    """API: a long text comes in blocks that the page can scroll to."""
    text = "\n".join(f"line {number}" for number in range(1, 251))
    shown = found(html_of(text, "a.log"), "pre", "source")
    assert [part.lines for part in shown] == [(1, 100), (101, 200), (201, 250)]
    assert "\n".join(part.text for part in shown) == text


def test_csv_is_a_table() -> None:
    """API: CSV as a real table, with the lines of its rows."""
    html = html_of('name;note\nA;"x, <b>\n""y"""\nB;z\n', "a.csv")
    assert [part.text for part in found(html, "th")] == ["name", "note"]
    assert [part.text for part in found(html, "td")] == ["A", 'x, <b>\n"y"', "B", "z"]
    assert [part.lines for part in found(html, "tr")] == [(1, 1), (2, 3), (4, 4)]


def test_a_long_table_goes_on_as_text() -> None:
    """API: the rows of a table have a limit, and the page says so."""
    html = html_of("a,b\n" + "1,2\n" * 1200, "a.csv")
    assert len(found(html, "tr")) == 1000
    assert found(html, "p", "note")[0].text.startswith("The first 1,000 of 1,201 rows")
    assert [part.lines for part in found(html, "pre")] == [(1001, 1100), (1101, 1200), (1201, 1201)]


def test_a_wide_table_is_text() -> None:
    """API: so have its columns."""
    html = html_of("a," * 200 + "\n" + "1," * 200 + "\n", "a.csv")
    assert found(html, "table") == []
    assert found(html, "pre", "source")[0].lines == (1, 2)


def test_front_matter_is_shown_apart() -> None:
    """API: front matter is not markdown."""
    html = html_of("\ufeff---\r\ntitle: <T>\r\n---\r\n# A\r\n\r\nx\r\n")
    assert found(html, "pre", "front-matter")[0].text == "---\ntitle: <T>\n---"
    assert found(html, "pre", "front-matter")[0].lines == (1, 3)
    assert found(html, "h1")[0].lines == (4, 4)


@pytest.mark.parametrize("path", ["a.md", "a.csv", "a.rst", "a.txt"])
@pytest.mark.parametrize("text", ["", "\ufeff", "\n", " \n\n", "\r"])
def test_an_empty_document_is_an_anchor(path: str, text: str) -> None:
    """BAD_INPUTS: an empty file is a document."""
    assert [(part.tag, part.attrs) for part in check_inert(html_of(text, path)) if part.tag == "span"] == [
        ("span", {"id": "s-"})
    ]


# ------------------------------------------------------------------------------------------- sizes

LARGE = {
    "1 MB of *": "*" * 1_000_000,
    "300 KB of >": ">" * 300_000,
    "20,000 >": ">" * 20_000,
    "50,000 nested brackets": "[" * 25_000 + "]" * 25_000,
    "50,000 open brackets": "[" * 50_000,
    "100,000 headings": "".join(f"# h{number}\n\nx\n\n" for number in range(100_000)),
    "100,000 same headings": "# a\n" * 100_000,
    "one line of 10 MB": "word " * 2_000_000,
    "pictures in pictures": "![" * 5000 + "x" + "](a)" * 5000,
    "open pictures": "![" * 35_000,
    "many wide tables": ("|" + "a|" * 200 + "\n|" + "-|" * 200 + "\n" + "|a\n" * 330 + "\n") * 100,
    "deep lists": "".join(" " * (2 * (number % 400)) + "- a\n" for number in range(5000)),
    "a heading of 1 MB": f"{'a ' * 500_000}\n===\n\nx\n",
    "short rows": "|a|b|\n|-|-|\n" + "|c|d|\n" * 62_000,
    "emphasis": "*a* " * 120_000,
    "backticks": "".join("`" * (number % 700 + 1) + "a" for number in range(700)),
    "2 MB of ]": "]" * 1_999_999,
}


@pytest.mark.parametrize("text", LARGE.values(), ids=LARGE)
def test_a_large_document_takes_bounded_time(text: str) -> None:
    """BAD_INPUTS: 1 MB of `*`, 300 KB of `>`, 50,000 brackets, 100,000 headings, a line of 10 MB: linear."""
    tree = tree_of(text)
    _ = tree.names.slugs
    started = time.process_time()
    html = rendered(tree, None, {})
    assert time.process_time() - started < 10  # a few seconds on a free machine
    assert html.count(' id="') == len(tree.sections)


@pytest.mark.parametrize("path", ["a.csv", "a.rst", "a.txt"])
@pytest.mark.parametrize("text", ["," * 3_000_000, "x\n" * 300_000, '"' * 1_000_000, "a\n=\n" * 50_000])
def test_large_documents_of_other_formats_take_bounded_time(path: str, text: str) -> None:
    """BAD_INPUTS: bounded time for every format."""
    tree = tree_of(text, path)
    started = time.process_time()
    rendered(tree, None, {})
    assert time.process_time() - started < 10


def test_a_document_that_is_not_laid_out_says_so() -> None:
    """API: the reader learns why a document is shown as it was written; its sections have their anchors."""
    html = html_of(f"# A\n\nx\n\n# B\n\n{'*' * 300_000}\n")
    assert found(html, "p", "note")[0].text.startswith("This document is too long")
    assert [part.attrs["id"] for part in found(html, "h1")] == ["s-a", "s-b"]
    assert [part.lines for part in found(html, "pre", "source")] == [(3, 3), (7, 7)]
