"""Pages of real documentation generators become the text that their authors wrote, with its anchors.

tests/fixtures/sites/README.md says which generator made each page, and how.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire import Tree, html
from quire.document import Document

PAGES = Path(__file__).parent / "fixtures" / "sites"
GUIDES = (
    *("sphinx-alabaster", "sphinx-classic", "sphinx-furo", "sphinx-pydata", "sphinx-rtd", "sphinx-book"),
    *("mkdocs", "mkdocs-readthedocs", "mkdocs-material", "docusaurus", "vitepress", "honkit", "mdbook"),
)
REFERENCES = ("javadoc", "javadoc-21", "rustdoc")
FENCE = """\
```python
def fence(length: int) -> str:
    if length < 1:
        raise ValueError("too short")
    return "=" * length
```
"""
# What stands around the text: menus, links to other chapters, buttons, and what belongs to a search.
FURNITURE = re.compile(
    r"¶|Lions$|^Start$|Edit this page|Edit on|Suggest an edit|Copy|Previous|Next|Toggle|Skip|On this page"
    r"|Contents|View page source|Built with|Powered by|Made with|results matching|Zebra keepers|Search"
    r"|Navigation|Expand description|\[Source\]|Keyboard shortcuts|\bTree\b|github\.com/example",
    re.MULTILINE,
)


def article(name: str) -> html.Article:
    page = (PAGES / name / "page.html").read_text(encoding="utf-8")
    return html.to_markdown(page, "https://zebra.example/guide.html")


def headings(name: str) -> list[str]:
    """The headings that a library makes sections of."""
    found = Tree(Document.from_text(article(name).text, format="markdown")).sections
    return [section.title for section in found if section.heading >= 0]


def anchored(found: html.Article) -> dict[str, str]:
    """The line that each anchor leads to."""
    return {id: found.text[at:].partition("\n")[0] for at, id in found.anchors}


@pytest.mark.parametrize("name", GUIDES)
def test_a_guide_keeps_its_headings_in_order(name: str) -> None:
    """Issue: the main content, in order, under the headings that it has on the page."""
    assert headings(name) == ["Keeping zebras", "Installing the fence", "Options", "Feeding"]
    text = article(name).text
    parts = ("A zebra needs grass", "def fence", "A fence keeps lions out", "how high it is", "for more")
    assert [text.index(part) for part in parts] == sorted(text.index(part) for part in parts)


@pytest.mark.parametrize("name", GUIDES)
def test_code_keeps_its_text_and_language(name: str) -> None:
    """Issue: code blocks exactly, with their language, also where lines are numbered in a table."""
    assert FENCE in article(name).text


@pytest.mark.parametrize("name", [*GUIDES, *REFERENCES])
def test_what_stands_around_the_text_is_left_out(name: str) -> None:
    """Issue: no navigation, edit links, buttons, permalink signs or line numbers."""
    text = article(name).text
    assert FURNITURE.findall(text) == []
    assert not re.search(r"^\s*\d+\s*$", text, re.MULTILINE)


@pytest.mark.parametrize("name", GUIDES)
def test_a_heading_has_the_anchor_of_the_page(name: str) -> None:
    """Issue: anchors as on the page. Docusaurus gives the first heading none."""
    found = anchored(article(name))
    assert found["installing-the-fence"] == "## Installing the fence"
    assert (found["options"], found["feeding"]) == ("### Options", "## Feeding")
    assert found.get("keeping-zebras") == (None if name == "docusaurus" else "# Keeping zebras")


@pytest.mark.parametrize("name", [*GUIDES, *REFERENCES])
def test_every_anchor_is_an_id_on_the_page_and_leads_to_a_line(name: str) -> None:
    """The invariant beside the examples: offsets are starts of lines, ids exist, and they are in order."""
    found = article(name)
    page = (PAGES / name / "page.html").read_text(encoding="utf-8")
    ids = {unescaped(id) for id in re.findall(r"\bid=\"([^\"]+)\"", page)}
    assert found.anchors
    assert [at for at, _ in found.anchors] == sorted(at for at, _ in found.anchors)
    for at, id in found.anchors:
        assert at == 0 or found.text[at - 1] == "\n"
        assert id in ids


def unescaped(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


@pytest.mark.parametrize("name", [name for name in GUIDES if name.startswith("sphinx")])
def test_sphinx_definitions_have_anchors(name: str) -> None:
    """Issue: each definition that has an id, as Sphinx uses for functions, options and terms."""
    found = anchored(article(name))
    assert found["zebra.feed"] == "`zebra.feed(grass: str, *, amount: int = 3) → None`"
    assert found["zebra.Herd.count"] == "`count(at: int = 0) → int`"
    assert (found["cmdoption-height"], found["term-herd"]) == ("`--height <metres>`", "**herd**")


@pytest.mark.parametrize("name", [name for name in GUIDES if name not in ("honkit", "mdbook")])
def test_an_admonition_is_a_quote_with_a_title(name: str) -> None:
    """Issue: admonitions as readable text."""
    assert re.search(
        r"^> \*\*(?:Note|TIP|tip)\*\*\n>\n> A fence keeps lions out\.\n", article(name).text, re.M
    )


def test_two_admonitions_are_two_quotes() -> None:
    """A note that follows another does not become part of its last sentence."""
    assert "lions out.\n\n> **Warning**\n>\n> Never feed lions." in article("sphinx-rtd").text


@pytest.mark.parametrize("name", ["mkdocs-material", "mkdocs", "docusaurus", "vitepress"])
def test_each_panel_of_tabs_has_its_label(name: str) -> None:
    """Issue: tabs. A text shows all panels, each under its label."""
    text = article(name).text
    assert "**Shell**\n\n```sh\nzebra feed --amount 3\n```\n" in text
    assert '**Python**\n\n```python\nzebra.feed("grass", amount=3)\n```\n' in text


def test_lines_that_a_book_hides_are_left_out() -> None:
    """mdBook hides the lines of a Rust example that only make it complete."""
    assert "```rust\nlet herd = zebra::Herd { size: 3 };\n```" in article("mdbook").text


@pytest.mark.parametrize("name", ["javadoc", "javadoc-21"])
def test_a_class_of_javadoc(name: str) -> None:
    """Issue: javadoc 17 and 21: sections, signatures as code, tables of members, anchors of methods."""
    found = article(name)
    titles = headings(name)
    assert titles[:2] == ["Class Herd<T>", "Installing the fence"]
    assert titles[-2 if name == "javadoc-21" else -3 :][:2] == ["Method Details", "count"]
    assert "| `int` | `count(int hour)` | Counts the zebras at an hour. |" in found.text
    assert "`public class Herd<T> extends Object`\n" in found.text
    assert "if (herd.count(8) < 3) {\n" in found.text
    assert anchored(found)["count(int)"] == "### count"
    assert "### count\n\n`public int count(int hour)`\n\nCounts the zebras at an hour." in found.text


def test_a_struct_of_rustdoc() -> None:
    """Issue: rustdoc: signatures as code without links, examples with their language, anchors of members."""
    found = article("rustdoc")
    lines = anchored(found)
    assert headings("rustdoc")[:3] == ["Struct Herd", "Installing the fence", "Fields"]
    assert "```rust\nlet herd = zebra::Herd { size: 3 };\nif herd.count(8) < 3 {\n" in found.text
    assert "```rust\npub struct Herd {\n    pub size: usize,\n}\n```" in found.text
    assert lines["method.count"] == "#### `pub fn count(&self, hour: u8) -> usize`"
    assert lines["structfield.size"] == "`size: usize`"
    assert lines["impl-Clone-for-Herd"] == "### `impl Clone for Herd`"


_TITLES = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"]), max_size=30)


@given(
    st.lists(
        st.tuples(
            st.integers(1, 6),
            _TITLES,
            st.booleans(),
            st.sampled_from(["", "<p>x</p>", "text", "<pre>y</pre>"]),
        ),
        max_size=8,
    )
)
def test_anchors_change_no_text(parts: list[tuple[int, str, bool, str]]) -> None:
    """A page with ids has the same text as without, and each of its anchors leads to its own heading."""

    def page(ids: bool) -> str:
        made = []
        for number, (level, title, has_id, after) in enumerate(parts):
            id = f' id="n{number}"' if ids and has_id and title.strip() else ""
            shown = title.replace("&", "&amp;").replace("<", "&lt;")
            made.append(f"<h{level}{id}>{shown}</h{level}>{after}")
        return f"<main>{''.join(made)}</main>"

    found = html.to_markdown(page(ids=True))
    assert found.text == html.to_markdown(page(ids=False)).text
    for at, id in found.anchors:
        level = parts[int(id[1:])][0]
        assert found.text[at:].startswith("#" * level + " ")


def test_an_id_around_a_heading_is_its_anchor_only_if_it_begins_there() -> None:
    """A section's id leads to its first heading, and to no later one."""
    found = html.to_markdown(
        '<main><div id="far"><p>Text.</p><h2>One</h2></div><div id="near"><a id="old"></a><h2>Two</h2>'
        '</div><section id="s"><div><h3>Three</h3></div><h3>Four</h3></section></main>'
    )
    assert anchored(found) == {"old": "## Two", "s": "### Three"}


def test_a_permalink_names_the_anchor_of_its_heading() -> None:
    """Where several ids lead to a heading, the one that the page offers to readers counts."""
    page = (
        '<main><section id="new"><span id="older"></span><h2>A<a class="headerlink" href="#new">¶</a></h2>x'
    )
    assert html.to_markdown(page).anchors == ((0, "new"),)
