"""Web pages to markdown: what is kept, what is left out, and what no page can break."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire import html, markdown

URL = "https://example.com/docs/guide/page.html"


def text(page: str) -> str:
    return html.to_markdown(page, URL).text


PROSE = "<p>" + "The pump moves water from the lower tank to the upper one. " * 8 + "</p>"


# ---------------------------------------------------------------------------------------- the main part


@pytest.mark.parametrize(
    "around",
    [
        "<main>{}</main>",
        '<div role="main">{}</div>',
        "<div><article>{}</article></div>",
        '<div id="content">{}</div>',
        '<div class="wrapper content">{}</div>',
        '<div class="markdown-body">{}</div>',
        '<div class="theme-doc-markdown markdown">{}</div>',
        '<div class="md-content">{}</div>',
        '<div class="rst-content">{}</div>',
        '<div class="bd-article">{}</div>',
        '<div id="main-content">{}</div>',
        '<div class="vp-doc">{}</div>',
        '<div class="td-content">{}</div>',
        '<div id="content-area">{}</div>',
        '<div class="contentContainer">{}</div>',
    ],
)
def test_only_the_main_part_of_a_page_is_kept(around: str) -> None:
    """Issue: html-to-markdown behind a main-content selector."""
    main = around.format(f"<h1>Pumps</h1>{PROSE}")
    page = f"<body><div class='promo'>Join the webinar</div>{main}<div>Made with care</div></body>"
    shown = text(page)
    assert shown.startswith("# Pumps\n\nThe pump moves water")
    assert "webinar" not in shown
    assert "care" not in shown


def test_a_container_with_little_of_the_text_is_not_the_main_part() -> None:
    """A container is chosen only if it holds most of the text."""
    page = f"<article>A teaser.</article><div>{PROSE}</div>"
    assert "A teaser." in text(page)
    assert "upper one" in text(page)


def test_of_several_articles_their_parent_is_the_main_part() -> None:
    """A list of posts is one page."""
    posts = "".join(f"<article><h2>Post {n}</h2>{PROSE}</article>" for n in range(3))
    shown = text(f"<div>Our sponsors</div><div><div id='posts'>{posts}</div></div>")
    assert re.findall("## (.*)", shown) == ["Post 0", "Post 1", "Post 2"]
    assert "sponsors" not in shown


def test_menus_do_not_weigh_against_the_main_part() -> None:
    """A page with more links than text still has its text found."""
    menu = "".join(f"<div><a href='/p{n}'>Chapter number {n} of the manual</a></div>" for n in range(100))
    assert text(f"<div>{menu}</div><article><h1>Pumps</h1>{PROSE}</article>").startswith("# Pumps")


@pytest.mark.parametrize(
    "furniture",
    [
        "<nav>GONE</nav>",
        "<header>GONE</header>",
        "<header><h1><a href='/'>GONE</a></h1></header>",
        "<footer>GONE</footer>",
        "<aside>GONE</aside>",
        "<div role='navigation'>GONE</div>",
        "<div role='banner'>GONE</div>",
        "<div role='contentinfo'>GONE</div>",
        "<div role='complementary'>GONE</div>",
        "<div role='search'>GONE</div>",
        "<div id='cookie-banner'>GONE</div>",
        "<div class='cc cookieconsent'>GONE</div>",
        "<a href='https://github.com/x/edit/y.md'>Edit this page</a>",
        "<div class='theme-edit-this-page'>GONE</div>",
        "<ul class='wy-breadcrumbs'><li>GONE</li></ul>",
        "<div class='breadcrumbs_x1z'>GONE</div>",
        "<div class='pagination-nav'>GONE</div>",
        "<p>Next: <a rel='next' href='b.html'>GONE</a>, Previous: <a rel='prev' href='a.html'>GONE</a></p>",
        "<div class='toc'>GONE</div>",
        "<div id='table-of-contents'>GONE</div>",
        "<ul><li><a href='#a'>GONE</a></li><li><a href='#b'>b</a><ul><li><a href='#c'>c</a></li></ul></ul>",
        "<div class='sphinxsidebar'>GONE</div>",
    ],
)
def test_furniture_is_left_out(furniture: str) -> None:
    """Without a container the body is the main part, less its menus, banners and footers."""
    shown = text(f"<body>{furniture}<h1>Pumps</h1>{PROSE}</body>")
    assert shown.startswith("# Pumps\n\nThe pump")
    assert "GONE" not in shown
    assert "Edit" not in shown
    assert "Next" not in shown


def test_furniture_inside_the_main_part_is_left_out() -> None:
    """Sphinx, MkDocs and Docusaurus put menus, edit links and page steps inside their main element."""
    page = f"""<main><nav class="theme-doc-breadcrumbs">Home</nav><article>
      <header><h1>Pumps</h1></header>{PROSE}
      <footer><a href="edit">Edit this page</a> Last updated on Monday</footer></article>
      <div class="toc">On this page</div>
      <nav class="pagination-nav"><a rel="next" href="b">Valves</a></nav></main>"""
    assert text(page) == f"# Pumps\n\n{PROSE[3:-4].strip()}\n"


def test_a_page_that_is_all_furniture_is_shown_whole() -> None:
    """Some text beats none."""
    assert text("<nav><a href='/a'>Start</a></nav>") == "[Start](https://example.com/a)\n"


def test_the_title_in_a_header_without_a_container_is_kept() -> None:
    """Headings intact: pandoc writes the title into a header."""
    assert text(f"<header id='title-block-header'><h1>Pumps</h1></header>{PROSE}").startswith("# Pumps")


@pytest.mark.parametrize(
    "wrapper",
    [
        "<div class='sidebar'>{}</div>",
        "<div class='row no-gutter'>{}</div>",
        "<div class='note'>{}</div>",
        "<div class='snippet-clipboard-content'>{}</div>",
    ],
)
def test_a_name_that_misleads_does_not_hide_the_page(wrapper: str) -> None:
    """Names of classes are guesses; what holds the title of the page is no furniture."""
    assert text(wrapper.format(f"<h1>Pumps</h1>{PROSE}")).startswith("# Pumps\n\nThe pump")


def test_code_in_a_box_with_a_copy_button_is_kept() -> None:
    """Code intact."""
    box = "<div class='copy-code-box'><pre>a</pre><div class='copy-code'>Copy</div></div>"
    assert text(f"<main>{box}</main>") == "```\na\n```\n"


def test_a_link_to_the_source_inside_a_sentence_is_kept() -> None:
    """Only what stands by itself is furniture."""
    sentence = "<p>You can <a href='/s'>view the source</a> of all.</p>"
    assert text(sentence) == "You can [view the source](https://example.com/s) of all.\n"


# ------------------------------------------------------------------------------------ what is never kept


@pytest.mark.parametrize(
    "hidden",
    [
        "<script>GONE</script>",
        "<SCRIPT type='x'>if (a < b) GONE('</p>')</SCRIPT >",
        "<style>GONE</style>",
        "<noscript>GONE</noscript>",
        "<template>GONE</template>",
        "<svg><title>GONE</title><text>GONE</text></svg>",
        "<iframe>GONE</iframe>",
        "<textarea>GONE</textarea>",
        "<select><option>GONE</select>",
        "<button>GONE</button>",
        "<input value='GONE'>",
        "<!-- GONE -->",
        "<!-- <p>GONE</p> --!>",
        "<?php GONE ?>",
        "<p hidden>GONE</p>",
        "<div aria-hidden='true'><p>GONE</p></div>",
        "<p style='color:red; Display : none'>GONE</p>",
        "<p style='visibility:hidden'>GONE</p>",
        "<span class='sr-only'>GONE</span>",
        "<a class='skip-link' href='#x'>GONE</a>",
        "<div class='copy-button'>GONE</div>",
        "<video>GONE</video>",
        "<dialog>GONE</dialog>",
    ],
)
def test_what_a_reader_cannot_see_is_dropped(hidden: str) -> None:
    """Issue: hidden elements and comments dropped."""
    assert text(f"<main><p>before</p>{hidden}<p>after</p></main>") == "before\n\nafter\n"


def test_a_panel_behind_a_tab_is_kept() -> None:
    """A reader opens it with a click; it often holds the code for another language."""
    panel = "<div role='tabpanel' hidden><pre><code class='language-js'>let x</code></pre></div>"
    assert text(f"<main><p>a</p>{panel}</main>") == "a\n\n```js\nlet x\n```\n"


@pytest.mark.parametrize(
    "heading",
    [
        "<h2 id=x>Valves<a class='headerlink' href='#x' title='Link'>¶</a></h2>",
        "<h2 id=x>Valves<a class='hash-link' href='#x' aria-label='Direct link'>\u200b</a></h2>",
        "<h2 id=x><a class='anchor' href='#x'><svg></svg></a>Valves</h2>",
        "<h2 id=x>Valves <a href='#x'>#</a></h2>",
        "<h2 id=x>Valves <a class='header-anchor' href='#x'>Permalink to Valves</a></h2>",
        "<h2 id=x><a class='header' href='#x'>Valves</a></h2>",
        "<h2><a class='anchor-link' href='#x'>Valves</a></h2>",
        "<h2><a class='doc-anchor' href='#x'>§</a>Valves</h2>",
        "<div><h2>Valves</h2><a class='sl-anchor-link' href='#x'>Section titled Valves</a></div>",
        "<h2><button aria-expanded='false'>Valves</button></h2>",
        "<h2>Valves<button>Copy item path</button></h2>",
    ],
)
def test_a_heading_has_no_link_to_itself(heading: str) -> None:
    """Headings intact, without permalinks and buttons."""
    assert text(f"<main><p>a</p>{heading}<p>b</p></main>") == "a\n\n## Valves\n\nb\n"


# ------------------------------------------------------------------------------------------ code


@pytest.mark.parametrize(
    "code",
    [
        "<pre><code class='language-python'>{}</code></pre>",
        "<pre class='lang-python'>{}</pre>",
        "<pre><code class='hljs python'>{}</code></pre>",
        "<pre data-lang='python'><code>{}</code></pre>",
        "<pre language='python'><code>{}</code></pre>",
        "<div class='highlight-python x'><div class='highlight'><pre><span></span>{}</pre></div></div>",
        "<div class='highlight highlight-source-python'><pre>{}</pre></div>",
        "<div class='language-python'><span class='lang'>python</span><pre><code>{}</code></pre></div>",
        "<figure data-language='python'><figcaption></figcaption><pre>{}</pre></figure>",
        "<div class='sourceCode'><pre class='sourceCode python'><code>{}</code></pre></div>",
    ],
)
def test_code_keeps_its_language(code: str) -> None:
    """Issue: code with its language, as every common generator marks it."""
    written = "<span class=k>def</span> f(a, *b):\n\n    return a &lt; 1 &amp;&amp; `x` # _not_ **this**\n"
    expected = "def f(a, *b):\n\n    return a < 1 && `x` # _not_ **this**"
    assert text(f"<main><p>a</p>{code.format(written)}</main>") == f"a\n\n```python\n{expected}\n```\n"


@pytest.mark.parametrize("name", ["language-none", "highlight-default", "language-text", "lang-", "x"])
def test_code_without_a_language_has_none(name: str) -> None:
    """Names that mean no language are not languages."""
    assert text(f"<div class='{name}'><pre>x</pre></div>") == "```\nx\n```\n"


@pytest.mark.parametrize(
    "lines",
    [
        "<code><span class='line'>a</span>\n<span class='line'></span>\n<span class='line'>  b</span></code>",
        "<code><span class='token-line'>a<br></span><span><br></span><span>  b<br></span></code>",
        "<code><div class='ec-line'><div>a</div></div><div><div>\n</div></div><div>  b</div></code>",
        "<div>a</div><div></div><div>  b</div>",
        "<table><tr><td class='hljs-ln-numbers'>1<td>a<tr><td>\n<tr><td class='blob-num'>3<td>  b</table>",
        "<span class='linenos'>1</span>a\n<span class='lnt'>2</span>\n<span class='line-number'>3</span>  b",
    ],
)
def test_every_line_of_code_is_a_line(lines: str) -> None:
    """Issue: code intact, however its lines are marked, without their numbers."""
    assert text(f"<pre>{lines}</pre>") == "```\na\n\n  b\n```\n"


@pytest.mark.parametrize(
    "table",
    [
        "<table class='highlighttable'><tr><td class='linenos'><div><pre>1\n2</pre></div></td>"
        "<td class='code'><pre>a\n  b\n</pre></td></tr></table>",
        "<table class='lntable'><tr><td class='lntd'><pre><span class='lnt'>1\n</span>"
        "<span class='lnt'>2\n</span></pre><td class='lntd'><pre>a\n  b</pre></table>",
    ],
)
def test_a_table_of_line_numbers_is_a_fence(table: str) -> None:
    """Line-number gutters are dropped."""
    assert text(f"<p>x</p><div class='language-go'>{table}</div>") == "x\n\n```go\na\n  b\n```\n"


def test_a_fence_is_longer_than_any_in_the_code() -> None:
    """Code is never cut short by what it holds."""
    assert text("<pre>````\n# a\n````</pre>") == "`````\n````\n# a\n````\n`````\n"


CODE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\ufdd0\ufdd1")).filter(
    lambda code: code.strip() and code == code.strip("\n")
)


@given(CODE, st.sampled_from(["{}", "<ul><li>x{}</li></ul>", "<blockquote>{}</blockquote>"]))
def test_code_stands_in_its_fence_verbatim(code: str, around: str) -> None:
    """Invariant: what the page shows as code is what the fence holds."""
    escaped = code.replace("&", "&amp;").replace("<", "&lt;")
    shown = text("<main>" + around.format(f"<pre><code>{escaped}</code></pre>") + "</main>")
    if around == "{}":
        fence, _, rest = shown.partition("\n")
        assert rest == f"{code}\n{fence}\n"
    else:
        lines = [
            line[2:] if line.startswith(("> ", "  ")) else line.removeprefix(">")
            for line in shown.split("\n")
        ]
        assert code in "\n".join(lines)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\ufdd0\ufdd1"), min_size=1))
def test_inline_code_is_never_escaped(code: str) -> None:
    """Invariant: code in a line stands there as written, white space folded."""
    escaped = code.replace("&", "&amp;").replace("<", "&lt;")
    assert " ".join(code.split()) in text(f"<p>Use <code>{escaped}</code> now</p>")


# ------------------------------------------------------------------------------------------ links


def test_links_and_images_are_absolute() -> None:
    """Issue: links made absolute."""
    page = """<p><a href="../api/x.html#y">API</a> <a href="/top">top</a> <a href="#here">here</a>
      <a href="//cdn.example.org/z">cdn</a> <img src="img/flow.png" alt="Flow of water"></p>"""
    assert text(page) == (
        "[API](https://example.com/docs/api/x.html#y) [top](https://example.com/top) "
        "[here](https://example.com/docs/guide/page.html#here) [cdn](https://cdn.example.org/z) "
        "![Flow of water](https://example.com/docs/guide/img/flow.png)\n"
    )


def test_a_base_element_is_what_links_are_relative_to() -> None:
    """HTML: <base href>."""
    page = "<base href='/v2/'><base href='/v3/'><a href='x'>x</a>"
    article = html.to_markdown(page, URL)
    assert article.text == "[x](https://example.com/v2/x)\n"
    assert article.links == ("https://example.com/v2/x",)


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        " JavaScript:alert(1)",
        "java\nscript:alert(1)",
        "&#106;avascript:alert(1)",
        "\x01javascript:alert(1)",
        "data:text/html,x",
        "vbscript:x",
        "view-source:javascript:x",
        "http://[",
    ],
)
@pytest.mark.parametrize("url", [URL, ""])
def test_a_link_that_runs_a_script_is_only_its_text(address: str, url: str) -> None:
    """BAD_INPUTS: `javascript:` links are inert."""
    article = html.to_markdown(f"<base href='{address}'><p>Press <a href='{address}'>here</a>.</p>", url)
    assert article.text == "Press here.\n"
    assert article.links == ()


def test_a_link_around_a_heading_is_put_inside_it() -> None:
    """Headings intact: cards are links around headings."""
    card = "<a href='/pumps'><div><h3>Pumps</h3><p>All about them.</p></div></a>"
    assert text(f"<main>{card}</main>") == "### [Pumps](https://example.com/pumps)\n\nAll about them.\n"


def test_a_link_that_shows_nothing_is_left_out() -> None:
    """An icon is no text."""
    assert text("<p>a<a href='/x'><svg></svg></a>b <a href='/y'> </a></p>") == "ab\n"


@pytest.mark.parametrize(
    "image",
    [
        "<img src='a.png'>",
        "<img src='a.png' alt=' '>",
        "<img src='a.png' alt='image'>",
        "<img src='a.png' alt='a_b.png'>",
        "<img src='data:image/png;base64,AAAA' alt='A chart'>",
        "<img alt='A chart'>",
    ],
)
def test_an_image_that_says_nothing_is_left_out(image: str) -> None:
    """Images only when the alternative text says something."""
    assert text(f"<p>a{image}</p>") == "a\n"


def test_an_image_that_is_loaded_late_is_kept() -> None:
    """Its address is in data-src."""
    image = "<img src='data:image/gif;base64,R0' data-src='/c.png' alt='A &quot;chart&quot; [1]'>"
    assert text(image) == '![A "chart" [1]](https://example.com/c.png)\n'


def test_all_links_of_the_page_are_listed_once_in_order_without_fragments() -> None:
    """For crawling: menus count too."""
    page = """<nav><a href="/b#1">b</a><a href="a.html">a</a></nav><main><a href="/b#2">b</a>
      <a href="mailto:x@y.z">m</a><a href="">e</a><a>n</a><a href="http://other.org/?q=1&amp;r=2 3">o</a>
      <!-- <a href="/no">no</a> --><script>'<a href="/no">'</script></main>"""
    assert html.to_markdown(page, URL).links == (
        "https://example.com/b",
        "https://example.com/docs/guide/a.html",
        "http://other.org/?q=1&r=2%203",
    )


def test_markdown_twins() -> None:
    """Issue: markdown twins by rel="alternate"."""
    page = """<head><link rel="alternate" type="text/markdown" href="page.md">
      <link rel="alternate" type="application/rss+xml" href="/feed"><link rel=canonical href="/canon">
      <link rel="stylesheet alternate" type="Text/Markdown; charset=utf-8" href="/raw/page.md"></head>"""
    article = html.to_markdown(page, URL)
    assert article.alternates == ("https://example.com/docs/guide/page.md", "https://example.com/raw/page.md")
    assert html.to_markdown(page).alternates == ()


# ------------------------------------------------------------------------------------------ titles


@pytest.mark.parametrize(
    ("page", "title"),
    [
        ("<title>Pumps | Waterworks</title><h1>Pumps</h1>", "Pumps"),
        ("<title>Pumps - Waterworks - Docs</title><h1>Pumps</h1>", "Pumps"),
        (
            "<title>json — coder &#8212; Python</title><h1><code>json</code> — coder<a href='#x'>¶</a></h1>",
            "json — coder",
        ),
        ("<title>Pumps | Waterworks</title><h1>Other</h1>", "Pumps | Waterworks"),
        ("<title>Pumps-and-more</title><h1>Pumps</h1>", "Pumps-and-more"),
        ("<meta property='og:title' content='Big &amp; Pumps'><title>x</title>", "Big & Pumps"),
        ("<meta property='og:title' content=' '><title> x\n y </title>", "x y"),
        ("<svg><title>Logo</title></svg><h1>Pumps</h1>", "Pumps"),
        ("<header><h1><a href='/'>Site</a></h1></header><main><h1>Pumps</h1><p>x</p></main>", "Pumps"),
        ("<p>x</p>", ""),
    ],
)
def test_the_title(page: str, title: str) -> None:
    """Open Graph, then <title> without the site's name, then the first heading."""
    assert html.to_markdown(page, URL).title == title


# ------------------------------------------------------------------------------------------ the rest


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<h1>A</h1><h2>B <em>c</em></h2><h6>D</h6>", "# A\n\n## B *c*\n\n###### D\n"),
        ("<h2>A</h3><p>b", "## A\n\nb\n"),
        ("<p>a<br>b</p>", "a  \nb\n"),
        ("<p>a\n  b\tc&nbsp;d</p>", "a b c d\n"),
        ("<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>", "- a\n  * b\n- c\n"),
        ("<ol start=3><li>a<li>b<ul><li>c</ul></ol>", "3. a\n4. b\n   - c\n"),
        ("<p>Press <kbd>Ctrl</kbd>+<kbd>C</kbd>", "Press `Ctrl`+`C`\n"),
        (
            "10<sup>6</sup> x<sup>n</sup> 1<sup>st</sup> a<sup><a href='/f'>1</a></sup>",
            "10^6 x^n 1st a[1](https://example.com/f)\n",
        ),
        ("H<sub>2</sub>O x<sub>max</sub>", "H2O x_max\n"),
        ("<dl><dt>Pump</dt><dd>Moves water.</dd></dl>", "**Pump**\n\nMoves water.\n"),
        ("<dl><dt><pre>&lt;!--</pre></dt><dd>Opens.</dd></dl>", "```\n<!--\n```\n\nOpens.\n"),
        ("<dl><dt><xmp>a = b</xmp></dt></dl>", "```\na = b\n```\n"),
        ("<dl><dt><h2>Pump</h2></dt><dd>Moves water.</dd></dl>", "## Pump\n\nMoves water.\n"),
        (
            "<dl><dt class='sig'>f(<em>a</em>, <em>*b</em>)<a class=headerlink href='#f'>¶</a></dt></dl>",
            "`f(a, *b)`\n",
        ),
        ("<details><summary>More</summary><p>inside</p></details>", "**More**\n\ninside\n"),
        ("<details><summary><h3>More</h3></summary><p>in</p></details>", "### More\n\nin\n"),
        (
            "<div class='admonition note'><p class='admonition-title'>Note</p><p>Turn it off.</p></div>",
            "> **Note**\n>\n> Turn it off.\n",
        ),
        ("<aside class='starlight-aside'><p>Careful.</p></aside>", "> Careful.\n"),
        ("<div class='note'><h3 class='title'>Note</h3><p>Off.</p></div>", "> **Note**\n>\n> Off.\n"),
        ("<p>Let <math alttext='x^2_1'><mi>x</mi></math> be", "Let `x^2_1` be\n"),
        (
            "<span class='katex'><math><semantics><mi>x</mi>"
            "<annotation encoding='application/x-tex'>\\alpha_1</annotation></semantics></math></span>",
            "`\\alpha_1`\n",
        ),
        ("<span class='math'>\\(a_1 \\{\\}\\)</span>", "`\\(a_1 \\{\\}\\)`\n"),
        ("<p><math><mi>x</mi><mo>=</mo><mn>1</mn></math></p>", "x=1\n"),
        ("<p>a &lt;div&gt; &amp;amp; &lt; b && c", "a \\<div> \\&amp; < b && c\n"),
        ("<p>&lt;!-- </p><h2>b</h2>", "\\<!--\n\n## b\n"),
        ("<p># no</p><p>1. no</p><p>- no</p><p>```</p>", "\\# no\n\n1\\. no\n\n\\- no\n\n\\```\n"),
        ("<b>a<p>b</b>c</p>", "**a**\n\n**b**c\n"),
        ("<p>a<p>b<div>c</div>d", "a\n\nb\n\nc\n\nd\n"),
        ("<blockquote>a<footer>by b</footer></blockquote>", "> a\n>\n> by b\n"),
        ("<a href=/x>a<a href=/y>b", "[a](https://example.com/x)[b](https://example.com/y)\n"),
        ("<div a=\"1>\" b='>' c=x>y</div>", "y\n"),
        ("<div class=a/>y", "y\n"),
        ("a < b <3 <- c", "a < b <3 <- c\n"),
        ("<p>\ud800\0\ufdd0x", "\ufffd\ufffdx\n"),
        ("a<script>", "a\n"),
        ("a<b", "a\n"),
        ("", ""),
    ],
)
def test_what_markdown_can_say_is_kept(page: str, expected: str) -> None:
    """Issue: headings, lists, definitions, notes, formulas; broken HTML as a browser reads it."""
    assert text(page) == expected


def test_tables_are_tables() -> None:
    """Issue: tables, pipes escaped, cells that are never closed, captions."""
    page = """<table><caption>Sizes</caption><thead><tr><th>a|b<th>c</thead>
      <tr><td><code>x|y</code><td>1<br>2<p>3</p><tr><td colspan=2>wide</table>"""
    assert text(page) == "Sizes\n\n| a\\|b | c |\n| --- | --- |\n| `x\\|y` | 1 2 3 |\n| wide | |\n"


def test_a_table_that_lays_out_a_page_is_not_a_table() -> None:
    """Headings and code intact: old pages are one large table."""
    page = "<table><tr><td><h2>Pumps</h2><p>a</p></td><td><pre>x\ny</pre></td></tr></table>"
    assert text(page) == "## Pumps\n\na\n\n```\nx\ny\n```\n"


def test_text_that_strays_into_a_table_is_kept() -> None:
    """No text is lost."""
    shown = text("<table>stray<form><tr>cell<td>b</form></table>")
    assert "stray" in shown
    assert "| cell | b |" in shown


# ------------------------------------------------------------------------------------------ bad pages

SECONDS = 2.0
MEGABYTE = 1_000_000


@pytest.mark.parametrize(
    ("page", "holds"),
    [
        ("<div>" * 100_000 + "x", "x"),
        ("<div>" * 100_000 + "x" + "</div>" * 100_000 + "<p>y", "y"),
        ("<ul><li>x" * 20_000, "x"),
        ("<blockquote>x" * 20_000, "x"),
        ("<table><tr><td>x" * 20_000, "x"),
        ("<sup><dl><dt>x" * 20_000, "x"),
        ("<" * MEGABYTE, "<<<"),
        ("<!" * (MEGABYTE // 2), ""),
        ("<!--" * (MEGABYTE // 4), ""),
        ("</" * (MEGABYTE // 2), ""),
        ("<a " * (MEGABYTE // 3), ""),
        ("<a href='" * (MEGABYTE // 9), ""),
        ("<p>x" * 50_000, "x"),
        ("<h1>" + "<a class=headerlink href=#>x</a>" * 20_000, ""),
        ("&" * MEGABYTE, "&&&"),
        ("<p " + "a=' " * (MEGABYTE // 4) + ">x", ""),
        ("<p class='" + "nav-" * (MEGABYTE // 4) + "'>x", "x"),
        ("<script>" * (MEGABYTE // 8), ""),
        ("\0" * MEGABYTE, ""),
        ("<p>" + "\ud800" * MEGABYTE, "\ufffd"),
        ("<table><tr>" + "<td>x" * 5_000 + "<tr><td>x" * 5_000, "x"),
        ("<table>" + "<tr><td colspan=99999 rowspan=99999>x" * 1_000, "x"),
        ("x" * 10 * MEGABYTE, "xxx"),
        ("<main>" + "<h2 id=x></h2>" * 20_000 + "<p>x", "x"),
        ("<main>" + "<a id=x></a>" * 20_000 + "<h2>x", "x"),
        ("<main>" + "<p></p><h2>x</h2>" * 10_000, "x"),
        ("<main>" + "<ul role=tablist><li>x</ul>" * 10_000, "x"),
        ("<main><div class=summary-table><div class=table-header>a</div>" + "<div>x</div>" * 20_000, "x"),
        ("<main><table><tr><td>" + "<dl><dt id=x>x</dl>" * 10_000, "x"),
    ],
    ids=lambda value: repr(value[:16]) + str(len(value)),
)
def test_no_page_takes_long(page: str, holds: str) -> None:
    """BAD_INPUTS: linear time, bounded output, no crash."""
    start = time.process_time()
    shown = text(page)
    assert holds in shown
    assert len(shown) <= 4 * len(page) + 1000
    assert time.process_time() - start < SECONDS


@given(st.text())
def test_any_text_is_a_page(page: str) -> None:
    """BAD_INPUTS: some Article, no crash."""
    article = html.to_markdown(page, page)
    assert "\0" not in article.text
    article.text.encode()


PIECES = st.sampled_from(
    """<p> </p> <div> </div> <main> <article> <a\thref='#x'> <a\thref='/y'> </a> <h1> </h1> <h2> <pre> </pre>
    <code> </code> <ul> <ol> <li> </ul> <table> <tr> <td> <th> </table> <dl> <dt> <dd> <b> </b> <sup> <math>
    <nav> <header> </header> <footer> <aside> <details> <summary> <blockquote> <br> <hr> <img\tsrc=x\talt=y>
    <button> <script> <title> <form> <caption> <svg> </svg> <!-- --> < & &lt; &lt;pre&gt; text # ` ``` | * -
    <div\tclass='admonition'> <div\tclass='highlight-x'> <p\thidden> <base\thref='//[x'> <span\tclass=math>
    \n &#32; 1. &lt;!-- ~~~ ---""".replace("\n    ", " ").split(" ")
)


@given(st.lists(PIECES, max_size=40).map("".join))
def test_no_page_brings_markup_of_its_own(page: str) -> None:
    """Invariant: what comes out holds no HTML blocks, so nothing on a page can hide what follows it."""
    shown = text(page)
    assert "html" not in kinds(markdown.blocks(shown)), shown


def kinds(blocks: tuple[markdown.Block, ...]) -> set[str]:
    return {block.kind for block in blocks} | {kind for block in blocks for kind in kinds(block.children)}
