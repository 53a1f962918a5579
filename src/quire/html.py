"""A web page to markdown, its main part only.

In comes HTML as text, however broken, and the address it came from; out comes an Article. Nothing
is fetched. Always: any text gives an Article, in time that grows with its length alone; code stands
in its fence as it stood on the page; no link leads to a script. What a reader of the page cannot
see is left out, and so is what is not about its subject: menus, banners, footers.

Four steps: text to a tree of elements, as a browser would close them; a sweep that drops what is
never wanted and marks the furniture; the choice of the element that holds the content; and that
element written anew as plain, well-formed HTML, which html-to-markdown turns into markdown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from html import escape, unescape
from itertools import islice
from urllib.parse import quote, urljoin, urlsplit


@dataclass(frozen=True, slots=True)
class Article:
    """What a page says, and where it points. Addresses are absolute, each is given once."""

    title: str  # "" if the page has none
    text: str  # markdown
    alternates: tuple[str, ...]  # the page as markdown, by its own account
    links: tuple[str, ...]  # of the whole page, menus included, without fragments; () if not asked for
    canonical: str | None


def to_markdown(html: str, url: str = "", *, links: bool = True) -> Article:
    """The main content of a page as markdown; addresses are made absolute against `url`."""
    page = _Builder()
    page.feed(_clean(html))
    addresses = _Addresses(url, page.seen("base"))
    containers = _sweep(page.root)
    main = _choose(page.root, containers)
    return Article(
        _title(page, main),
        _markdown(main, addresses) or _markdown(page.root, addresses, with_furniture=True),
        addresses.found(link for link in page.seen("link") if _is_markdown_twin(link)),
        addresses.found(page.seen("a")) if links else (),
        next(iter(addresses.found(link for link in page.seen("link") if "canonical" in _rel(link))), None),
    )


# Characters that no text uses stand, for a while, for a `<` and a `&` that are not markup.
_LESS, _AND = "\ufdd0", "\ufdd1"
_UNFIT = re.compile(f"[\ud800-\udfff{_LESS}{_AND}]")


def _clean(html: str) -> str:
    """The page with line feeds for line ends, and without what no document can hold."""
    html = html.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    return html if _is_fit(html) else _UNFIT.sub("\ufffd", html)


def _is_fit(html: str) -> bool:
    """Whether there is nothing unfit in a page, found out much faster than by looking for it."""
    try:
        html.encode()
    except UnicodeEncodeError:
        return False
    return _LESS not in html and _AND not in html


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# ---------------------------------------------------------------------------------- the tree

_MAX_DEPTH = 120  # what is nested deeper becomes part of the element at that depth

_MARKUP = re.compile(
    r"<(?:"
    r"(?P<tag>/?[a-zA-Z][^\s/>]*+)"
    r"(?P<attributes>(?:[^>=]++|=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s>\"'][^\s>]*+)?+)*+)>"
    r"|!--(?:-?>|.*?(?:--!?>|\Z))"  # a comment; one that is never closed goes on to the end
    r"|(?:[!?]|/(?![a-zA-Z]))[^>]*+>?"  # browsers take these for comments
    r"|/?[a-zA-Z].*+"  # a tag that is never closed hides what follows
    r")",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(r"([^\s=/>]++)(?:\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s>]++)))?+")

_VOID = _words("area base br col embed hr img input link meta param source track wbr")
_RAW = _words("script style title textarea noscript iframe noembed noframes xmp")
_RAW_END = {tag: re.compile(f"</{tag}(?=[\\s/>])", re.IGNORECASE) for tag in _RAW}
_UNNESTED = _words("html head body")  # there is one of each, whatever the page says
_SEEN = _words("a base link meta title")
_HEADINGS = _words("h1 h2 h3 h4 h5 h6")
_BLOCKS = _HEADINGS | _words(
    "address article aside blockquote center dd details dialog dir div dl dt fieldset figcaption figure"
    " footer form header hgroup hr li main menu nav ol p pre search section summary table ul"
)
_TABLE_PARTS = _words("caption thead tbody tfoot tr td th")
_CELLS = _words("table caption td th")
_NOTHING = _words("")
# What a start tag closes that was left open, and the elements it does not look beyond.
_CLOSES: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    **dict.fromkeys(_BLOCKS, (_words("p"), _CELLS)),
    **dict.fromkeys(_HEADINGS, (_HEADINGS | {"p"}, _BLOCKS - _HEADINGS - {"p"} | _CELLS)),
    "li": (_words("li"), _CELLS | {"ul", "ol", "menu", "dir"}),
    **dict.fromkeys(("dt", "dd"), (_words("dt dd"), _CELLS | {"dl"})),
    "a": (_words("a"), _CELLS),
    **dict.fromkeys(("td", "th"), (_words("td th"), _words("tr table"))),
    **dict.fromkeys(("tr", "thead", "tbody", "tfoot"), (_words("tr caption"), _words("table"))),
}
_GAPS = dict.fromkeys(_BLOCKS | _TABLE_PARTS | {"br"}, " ")
_END_IS_OPTIONAL = (_TABLE_PARTS - {"caption"}) | _words("p li dt dd")


class _Element:
    """An element of the page. What it weighs and holds is known after the sweep."""

    __slots__ = (
        "attributes",
        "children",
        "holds",
        "is_furniture",
        "linked",
        "names",
        "parent",
        "plain",
        "tag",
    )

    def __init__(self, tag: str, attributes: dict[str, str], parent: _Element | None) -> None:
        self.tag, self.attributes, self.parent = tag, attributes, parent
        self.children: list[_Element | str] = []
        named = "class" in attributes or "id" in attributes
        self.names = f"{self.get('id')} {self.get('class')}".lower().split() if named else ()
        self.is_furniture = False
        self.plain = self.linked = 0  # characters of text, outside and inside links
        self.holds = _NOTHING  # the tags in it that matter to those around it

    @property
    def weight(self) -> int:
        """How much it says: a tenth of a link's text counts, since menus are made of links."""
        return self.plain + self.linked // 10

    @property
    def size(self) -> int:
        """Characters of text."""
        return self.plain + self.linked

    @property
    def path(self) -> list[_Element]:
        """From the root to this one."""
        line, element = [self], self
        while element.parent is not None:
            element = element.parent
            line.append(element)
        return line[::-1]

    def means(self, meaning: str) -> bool:
        """Whether one of its names has a meaning, such as furniture."""
        return bool(self.names) and any(_meaning(name) == meaning for name in self.names)

    def get(self, name: str) -> str:
        """An attribute, or ""."""
        return self.attributes.get(name, "")

    def elements(self) -> Iterator[_Element]:
        """All elements in it, in the order of the page."""
        waiting = self.children[::-1]
        while waiting:
            child = waiting.pop()
            if isinstance(child, _Element):
                yield child
                waiting += child.children[::-1]

    def text(self) -> str:
        """Its text, white space folded."""
        parts, waiting = [], self.children[::-1]
        while waiting:
            child = waiting.pop()
            if isinstance(child, str):
                parts.append(child)
            else:
                gap = _GAPS.get(child.tag, "")
                waiting += (gap, *child.children[::-1], gap)
        return " ".join("".join(parts).split())


class _Builder:
    """A page to its tree. Every step looks at no more elements than are open, which has a bound."""

    def __init__(self) -> None:
        self.root = _Element("body", {}, None)
        self.stack = [self.root]
        self.open: dict[str, int] = {}  # how many elements of each tag are on the stack, of those that are
        self.beyond = 0  # how many elements are open that were too deep to be put on the stack
        self._seen: dict[str, list[_Element]] = {tag: [] for tag in _SEEN}

    def seen(self, tag: str) -> list[_Element]:
        """The elements of a kind that is worth remembering, in the order of the page."""
        return self._seen[tag]

    def feed(self, html: str) -> None:
        """Take in the whole page."""
        at, search = 0, _MARKUP.search
        while found := search(html, at):
            start, after = found.span()
            if at < start:
                self._text(html[at:start])
            at = after
            tag, attributes = found.groups()
            if tag is None:
                continue
            tag = tag.lower()
            if tag[0] == "/":
                self._end(tag[1:])
            elif tag in _RAW:
                closing = _RAW_END[tag].search(html, at)
                end = closing.start() if closing else len(html)
                self._add(tag, attributes).children.append(unescape(html[at:end]))
                at = end
            elif tag not in _UNNESTED:
                self._start(tag, attributes)
        self._text(html[at:])

    def _text(self, text: str) -> None:
        if text:
            self.stack[-1].children.append(unescape(text) if "&" in text else text)

    def _start(self, tag: str, attributes: str) -> None:
        if rule := _CLOSES.get(tag):
            self._close(*rule)
        if tag in _VOID:
            self._add(tag, attributes)
        elif len(self.stack) < _MAX_DEPTH:
            self.stack.append(self._add(tag, attributes))
            self.open[tag] = self.open.get(tag, 0) + 1
        else:
            self.beyond += tag not in _END_IS_OPTIONAL
            self._text(_GAPS.get(tag, ""))
            if tag in _SEEN:
                self._add(tag, attributes)

    def _add(self, tag: str, attributes: str) -> _Element:
        element = _Element(tag, _attributes(attributes), self.stack[-1])
        self.stack[-1].children.append(element)
        if tag in _SEEN and "svg" not in self.open:
            self._seen[tag].append(element)
        return element

    def _end(self, tag: str) -> None:
        """Close what an end tag is meant for; one that stands in a cell closes nothing around the table."""
        if self.beyond and tag not in _END_IS_OPTIONAL:
            self.beyond -= 1
        elif tag == self.stack[-1].tag and tag in self.open:
            self._pop()
        elif tag in _HEADINGS:
            self._close(_HEADINGS, _CELLS)
        else:
            self._close(frozenset({tag}), _NOTHING if tag in _TABLE_PARTS or tag == "table" else _CELLS)

    def _close(self, tags: frozenset[str], barriers: frozenset[str]) -> None:
        """Close the nearest open element with one of the tags, and all in it, unless a barrier is nearer."""
        if self.open.keys().isdisjoint(tags):
            return
        for place in range(len(self.stack) - 1, 0, -1):
            tag = self.stack[place].tag
            if tag in tags:
                while len(self.stack) > place:
                    self._pop()
                return
            if tag in barriers:
                return

    def _pop(self) -> None:
        tag = self.stack.pop().tag
        if self.open[tag] == 1:
            del self.open[tag]
        else:
            self.open[tag] -= 1


def _attributes(text: str) -> dict[str, str]:
    """The attributes of a tag; of two with one name the first counts."""
    attributes: dict[str, str] = {}
    if not text:
        return attributes
    for name, double, single, bare in _ATTRIBUTE.findall(text):
        value = double or single or bare
        attributes.setdefault(name.lower(), unescape(value) if "&" in value else value)
    return attributes


# ------------------------------------------------------------------------------ the addresses

_ON_THE_WEB = re.compile(r"https?://[^/?#]", re.IGNORECASE)
_HARMLESS = frozenset({"", "http", "https", "mailto", "tel", "ftp"})  # without one it is relative
# What browsers ignore around an address, and anywhere in it.
_AROUND, _ANYWHERE = "".join(map(chr, range(33))), str.maketrans("", "", "\t\n\r")
_UNSAFE = re.compile(r"[\s<>\"\\^`{|}\x00-\x1f]")


class _Addresses:
    """Makes the addresses on a page absolute; what is malformed or might run a script becomes ""."""

    def __init__(self, url: str, bases: list[_Element]) -> None:
        self.base = next((_absolute(url, base.get("href")) for base in bases), "") or url
        self._known: dict[str, str] = {}

    def resolve(self, address: str) -> str:
        """The absolute address."""
        if address not in self._known:
            self._known[address] = _absolute(self.base, address)
        return self._known[address]

    def found(self, elements: Iterable[_Element]) -> tuple[str, ...]:
        """The places on the web that elements link to, without fragments, each once."""
        every = (self.resolve(e.get("href")).partition("#")[0] for e in elements if e.get("href").strip())
        return tuple(dict.fromkeys(filter(_ON_THE_WEB.match, every)))


def _absolute(base: str, address: str) -> str:
    try:
        address = urljoin(base, address.strip(_AROUND).translate(_ANYWHERE))
        scheme = urlsplit(address).scheme
    except ValueError:  # such as http://[
        return ""
    return _UNSAFE.sub(lambda found: quote(found[0]), address) if scheme in _HARMLESS else ""


def _rel(link: _Element) -> list[str]:
    return link.get("rel").lower().split()


def _is_markdown_twin(link: _Element) -> bool:
    kind = link.get("type").partition(";")[0].strip().lower()
    return "alternate" in _rel(link) and kind in ("text/markdown", "text/x-markdown")


# ---------------------------------------------------------------------------------- the sweep

_DROPPED = (_RAW - {"xmp"}) | _words(
    "template svg audio video canvas embed link meta base input select option optgroup datalist"
)
_INVISIBLE = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)
_MAY_BE_FURNITURE = _words("nav header footer aside a ul ol")  # whatever they are called
_ROLES = _words("navigation banner contentinfo search dialog alertdialog menu menubar")
# What classes and ids are called by the tools that most documentation is made with.
_NAMES = re.compile(
    r"(?P<unseen>sr-only|visually-?hidden|screen-reader-text|skip-?(?:link|nav|to-.*)"
    r"|.*copy-?(?:btn|button|code).*|.*clipboard.*|viewcode-(?:link|back))"
    r"|(?P<gutter>linenos?|linenodiv|line-?numbers?-(?:rows|wrapper)|linenumbers?|line-number|lnt?"
    r"|(?:rouge|code|line)-gutter|hljs-ln-numbers|blob-num|src-line-numbers"
    r"|react-syntax-highlighter-line-number)"
    r"|(?P<permalink>headerlink|hash-link|(?:header|heading|section|doc)-?anchor|anchor-?link|anchorjs-link"
    r"|sl-anchor-link|heading-?link|permalink|(?:td-)?heading-self-link)"
    r"|(?P<admonition>(?:(?:theme|markdown|md|docs?)-)?(?:admonition|alert|callout)|custom-block|hint|notice"
    r"|starlight-aside|note|tip|important|warning|caution|danger)"
    r"|(?P<furniture>.*breadcrumbs?(?:[-_].*)?"
    r"|(?:page-?|local-?|bd-|md-|docs?-)?toc|table-?of-?contents(?:[-_].*)?|on-this-page"
    r"|nav|navbar|navigation|nav-?(?:panel|header|footer|links|chapters|wrapper|wide-wrapper|menu)"
    r"|(?:top|side|site|page|docs?|main|mobile|global|local|post|prev-?next)-?nav(?:igation|bar)?"
    r"|sidebar|sphinxsidebar|(?:left|right|page|docs?|nav|site|primary|secondary)-?sidebar"
    r"|(?:(?:site|page|global|docs?|md|theme-doc|article)-?)?footer|(?:site|global)-?header|menu-?bar"
    r"|pagination(?:[-_].*)?|pager|prev-?next(?:[-_].*)?|rst-footer-buttons|related"
    r"|(?:theme-)?edit-(?:this-)?page(?:-link)?|edit-link|md-content__button|last-?updated"
    r"|.*(?:cookie|gdpr|consent)[-_]?(?:banner|notice|bar|consent|popup|modal|message|law|dialog).*"
    r"|(?:page-|docs?-)?feedback(?:-.*)?|(?:social-?)?share(?:-?(?:buttons?|links?))?)"
)
_LONGEST_NAME = 60
_CONTENT = _words("h1 main article pre")
_LABELS = (("span", "lang"), ("td", "gutter"))  # beside code: its language, its line numbers
_FURNITURE_LINK = re.compile(
    r"\W*(?:edit|improve|view|show|suggest|report)\b.{0,20}"
    r"\b(?:page|doc|source|on github|on gitlab|edits?|issue)\W*",
    re.IGNORECASE,
)
_STEPS_AT_MOST = 300  # characters that links to the page before and after take, with what is around them
_CONTENTS_AT_LEAST = 3  # links that make a table of contents
_NOTABLE = _HEADINGS | _words("main article pre xmp table code b strong")

# The elements that hold the content, the surest sign first.
_SIGNS = (
    "main [role=main] article [itemprop=articlebody] #content-area #content #main-content #main_content"
    " .main-content .markdown-body .theme-doc-markdown .md-content .vp-doc .rst-content .bd-article"
    " .td-content .documentwrapper .contentcontainer .document .article .post-content .entry-content"
    " .page-content .markdown .prose .content #main #apicontent .book .body"
)
_CONTAINERS = _words(_SIGNS)
_TELLING = _words("class id itemprop role")
_INSIDE_CONTENT = frozenset({"main", "[role=main]", "article"})
_Found = dict[str, list[_Element]]


def _sweep(root: _Element) -> _Found:
    """Drop what is never wanted, mark the furniture, weigh the rest; the containers, by their signs."""
    found: _Found = {}
    _weigh(root, found, inside=False, in_link=False)
    return found


def _weigh(element: _Element, found: _Found, *, inside: bool, in_link: bool) -> None:
    kept: list[_Element | str] = []
    size = 0
    for child in element.children:
        if isinstance(child, str):
            kept.append(child)
            size += len(child.strip())
        elif not _is_dropped(child):
            kept.append(child)
            signs = _signs(child)
            within = inside or not signs.isdisjoint(_INSIDE_CONTENT)
            if child.children:
                _weigh(child, found, inside=within, in_link=in_link or child.tag == "a")
            child.is_furniture = _is_furniture(child, inside)
            _tell(element, child)
            if signs and not child.is_furniture:
                for sign in signs:
                    found.setdefault(sign, []).append(child)
    element.children = kept
    if in_link:
        element.linked += size
    else:
        element.plain += size


def _tell(parent: _Element, child: _Element) -> None:
    """Let an element know what a child of it holds and weighs."""
    if child.is_furniture:
        if "step" in child.holds or (child.tag == "a" and _is_step(child)):
            parent.holds |= {"step"}
        return
    parent.plain += child.plain
    parent.linked += child.linked
    if not child.holds <= parent.holds:
        parent.holds |= child.holds
    if child.tag in _NOTABLE:
        parent.holds |= {child.tag}
        if child.tag == "h1" and (child.plain or "link elsewhere" not in child.holds):
            parent.holds |= {"title"}  # the name of a site is a link
    elif child.tag == "a" and not child.get("href").startswith("#"):
        parent.holds |= {"link elsewhere"}


def _signs(element: _Element) -> frozenset[str]:
    """What says that an element may hold the content."""
    if element.attributes.keys().isdisjoint(_TELLING):
        return _CONTAINERS & {element.tag} if element.tag in _CONTAINERS else _NOTHING
    attributes = (f"[{name}={element.get(name).lower()}]" for name in ("role", "itemprop"))
    names = (f".{name}" for name in element.names)
    return _CONTAINERS.intersection((element.tag, f"#{element.get('id').lower()}", *attributes, *names))


@lru_cache(maxsize=4096)
def _meaning(name: str) -> str:
    """What a class or an id says of its element; "" if nothing we know of."""
    found = _NAMES.fullmatch(name) if len(name) <= _LONGEST_NAME else None
    return found.lastgroup or "" if found else ""


def _is_dropped(element: _Element) -> bool:
    tag = element.tag
    if tag in _DROPPED:
        return True
    if tag == "button":  # a heading that folds its section is one
        parent = element.parent
        return parent is None or parent.tag not in _HEADINGS or not _is_alone(element)
    if tag == "dialog":
        return "open" not in element.attributes
    return bool(element.attributes) and (
        _is_hidden(element) or _is_label(element) or (tag == "a" and _is_permalink(element))
    )


def _is_hidden(element: _Element) -> bool:
    if element.get("role") == "tabpanel":  # a reader opens it with a click
        return False
    if "hidden" in element.attributes or element.get("aria-hidden").lower() == "true":
        return True
    return "style" in element.attributes and _INVISIBLE.search(element.get("style")) is not None


def _is_label(element: _Element) -> bool:
    """Whether an element is a help for screen readers or stands beside code, and is not around it."""
    if element.means("gutter") or any((element.tag, name) in _LABELS for name in element.names):
        return True
    return element.means("unseen") and not any(inner.tag in _CONTENT for inner in element.elements())


def _is_permalink(link: _Element) -> bool:
    """Whether a link leads to the very place it stands at, and is not the whole heading."""
    if link.means("permalink"):
        return not _is_alone(link)
    if link.get("href").startswith("#") or "anchor" in link.names:
        return not any(map(str.isalnum, link.text())) and not _has_image(link)
    return False


def _is_alone(element: _Element) -> bool:
    around = element.parent.children if element.parent else []
    return all(other is element or (isinstance(other, str) and not other.strip()) for other in around)


def _has_image(element: _Element) -> bool:
    return any(inner.tag == "img" for inner in element.elements())


def _is_furniture(element: _Element, inside: bool) -> bool:
    tag = element.tag
    if not element.attributes and tag not in _MAY_BE_FURNITURE and "step" not in element.holds:
        return False  # as are most
    role = element.get("role").lower()
    if tag == "nav" or role in _ROLES:
        return True
    if tag == "header":
        return element.holds.isdisjoint(_HEADINGS if inside else {"title"})
    if tag == "footer":
        return not any(above.tag in ("blockquote", "figure") for above in element.path)
    if tag == "aside" or role == "complementary":
        return not _is_admonition(element) and (not inside or element.linked > element.plain)
    if tag == "a":
        return _is_step(element) or _is_about_the_page(element)
    if tag in ("ul", "ol") and _is_contents(element):
        return True
    if "step" in element.holds and element.size <= _STEPS_AT_MOST:
        return element.holds.isdisjoint(_HEADINGS | {"pre", "table"})
    return element.means("furniture") and element.holds.isdisjoint(("title", "main", "article"))


def _is_step(link: _Element) -> bool:
    """Whether a link leads to the page before or after."""
    return not {"prev", "next"}.isdisjoint(_rel(link))


def _is_about_the_page(link: _Element) -> bool:
    """Whether a link leads to the source of the page, and is not part of a sentence."""
    in_text = link.parent is not None and link.parent.tag in ("p", "li", "dd", "td")
    if link.size > _LONGEST_NAME or (in_text and not _is_alone(link)):
        return False
    return _FURNITURE_LINK.fullmatch(link.text()) is not None


def _is_contents(list_: _Element) -> bool:
    """Whether a list holds nothing but links to places on the same page."""
    if list_.plain or not list_.linked or "link elsewhere" in list_.holds:
        return False
    links = (element for element in list_.elements() if element.tag == "a")
    return sum(1 for _ in islice(links, _CONTENTS_AT_LEAST)) == _CONTENTS_AT_LEAST


def _is_admonition(element: _Element) -> bool:
    if element.tag not in ("div", "aside", "section") or not element.means("admonition"):
        return False
    return element.holds.isdisjoint(("main", "article", "h1", "h2"))


# --------------------------------------------------------------------------------- the choice


def _choose(root: _Element, found: _Found) -> _Element:
    """The element with the surest sign that holds most of what the page says; else the whole page."""
    for sign in _SIGNS.split():
        if candidates := found.get(sign):
            for candidate in (pick(candidates) for pick in (_heaviest, _around)):
                if candidate.weight * 2 > root.weight:
                    return candidate
    return root


def _heaviest(elements: list[_Element]) -> _Element:
    return max(elements, key=lambda element: element.weight)


def _around(elements: list[_Element]) -> _Element:
    """The innermost element that holds all of some."""
    by_parent = {element.parent: element for element in elements}
    common, *paths = (element.path[: -1 if len(elements) > 1 else None] for element in by_parent.values())
    for path in paths:
        common = [above for above, other in zip(common, path, strict=False) if above is other]
    return common[-1]


_AFTER_TITLE = re.compile(r"\s+[|:·•»«–—-]+\s+\S")


def _title(page: _Builder, main: _Element) -> str:
    """What the page calls itself, without the name of its site where the heading shows which part that is."""
    heading = next((found.text() for found in _headings(page, main)), "")
    metas = page.seen("meta")
    named = [meta.get("content") for meta in metas if "og:title" in (meta.get("property"), meta.get("name"))]
    named += [title.text() for title in page.seen("title")]
    title = next((" ".join(name.split()) for name in named if name.strip()), heading)
    rest = title.removeprefix(heading)
    return heading if heading and rest != title and _AFTER_TITLE.match(rest) else title


def _headings(page: _Builder, main: _Element) -> Iterator[_Element]:
    for part in (main, page.root):
        if "h1" in part.holds:
            yield from (element for element in part.elements() if element.tag == "h1" and element.text())


# -------------------------------------------------------------------------------- the writing

_MAX_NESTING = 10  # lists and quotes in one another: each is marked again on every line
_NUMBER = re.compile(r"[0-9]{1,9}")
_SMALL_NUMBER = re.compile(r"[1-9][0-9]?")
_SPACE = re.compile(r"[ \t\n\f\xa0]{2,}|[\t\n\f\xa0]")  # all but the single spaces, which most are
_TAG_LIKE = re.compile(r"<(?=[a-zA-Z/!?])")
_ENTITY_LIKE = re.compile(r"&(?=#?\w{1,31};)")
_INLINE = {
    **dict.fromkeys(("b", "strong"), "strong"),
    **dict.fromkeys(("i", "em", "cite", "var"), "em"),
    **dict.fromkeys(("s", "strike", "del"), "del"),
    "q": "q",
}
_NOT_BOLD = _HEADINGS | {"pre", "xmp", "table"}
_TITLE_WITHIN = 5  # elements from the start of a note
_ADMONITION_TITLE = re.compile(r".*(?:title|heading)(?:[-_].*)?")
_SCRIPT_AT_MOST = 20  # characters; what is longer is no exponent
_PLAIN_SCRIPT = {"sup": re.compile(r"st|nd|rd|th|tm|\W*", re.IGNORECASE), "sub": re.compile(r"[\d\W]*")}
_SAYS_NOTHING = re.compile(
    r"[\W_]*|image|img|icon|logo|picture|photo|\S*\.(?:png|jpe?g|gif|svg|webp)", re.IGNORECASE
)


def _markdown(element: _Element, addresses: _Addresses, *, with_furniture: bool = False) -> str:
    """An element and all it holds, as markdown."""
    from html_to_markdown import ConversionOptions, PreprocessingOptions, convert

    writer = _Writer(addresses, with_furniture)
    writer.write(element)
    options = ConversionOptions(
        compact_tables=True,
        extract_metadata=False,
        preprocessing=PreprocessingOptions(enabled=False),
    )
    text = convert("".join(writer.parts), options).content or ""
    return text.replace(_LESS, "\\<").replace(_AND, "\\&")


class _Writer:
    """Writes elements as plain HTML: no attribute that says nothing, every tag closed."""

    def __init__(self, addresses: _Addresses, with_furniture: bool) -> None:
        self.addresses, self.with_furniture = addresses, with_furniture
        self.parts: list[str] = []
        self.nesting = 0
        self.in_heading = False

    def write(self, element: _Element) -> None:
        """Write what an element holds."""
        for child in self.shown(element):
            self.child(child)

    def shown(self, element: _Element) -> Iterator[_Element | str]:
        for child in element.children:
            if isinstance(child, str) or self.with_furniture or not child.is_furniture:
                yield child

    def child(self, child: _Element | str) -> None:
        if isinstance(child, str):
            self.parts.append(_as_text(child))
        else:
            self.element(child)

    def element(self, element: _Element) -> None:
        tag = element.tag
        if writes := _WRITES.get(tag):
            writes(self, element)
        elif "math" in element.names or "arithmatex" in element.names:
            self.formula(element)
        elif _is_admonition(element):
            self.admonition(element)
        elif tag in _INLINE:
            self.wrapped(element, _INLINE[tag])
        elif tag in _BLOCKS or tag in _TABLE_PARTS:
            self.wrapped(element, "p" if tag in ("p", "figcaption") else "div")
        else:
            self.write(element)

    def wrapped(self, element: _Element, tag: str, attributes: str = "") -> None:
        """Write what an element holds, inside another one."""
        self.parts.append(f"<{tag}{attributes}>")
        self.write(element)
        self.parts.append(f"</{tag}>")

    def nested(self, element: _Element, tag: str = "", attributes: str = "") -> None:
        """Write a list or a quote, unless it is in too many others."""
        deep = self.nesting >= _MAX_NESTING
        self.nesting += 1
        self.wrapped(element, "div" if deep else tag or element.tag, "" if deep else attributes)
        self.nesting -= 1

    def unordered(self, element: _Element) -> None:
        self.nested(element, "ul")

    def ordered(self, element: _Element) -> None:
        start = element.get("start")
        self.nested(element, attributes=f' start="{start}"' if _NUMBER.fullmatch(start) else "")

    def item(self, element: _Element) -> None:
        self.wrapped(element, "li" if 0 < self.nesting <= _MAX_NESTING else "div")

    def heading(self, element: _Element) -> None:
        outer, self.in_heading = self.in_heading, True
        self.wrapped(element, element.tag)
        self.in_heading = outer

    def bold(self, element: _Element) -> None:
        """Write a line of its own, in bold unless it is bold or code already; no line holds other blocks."""
        if not element.holds.isdisjoint(_NOT_BOLD):
            self.wrapped(element, "div")
            return
        marked = not element.holds.isdisjoint(("b", "strong", "code"))
        self.parts.append("<p>" if marked else "<p><strong>")
        self.write(element)
        self.parts.append("</p>" if marked else "</strong></p>")

    def term(self, element: _Element) -> None:
        """Write a term that is defined; the signature of a function is code."""
        if "sig" in element.names:
            self.parts.append(f"<p>{_as_code(element.text())}</p>")
        else:
            self.bold(element)

    def admonition(self, element: _Element) -> None:
        """Write a note as a quote whose title is bold."""
        for inner in islice(element.elements(), _TITLE_WITHIN):
            if any(_ADMONITION_TITLE.fullmatch(name) for name in inner.names):
                inner.tag = "summary"
                break
        self.nested(element, "blockquote")

    def empty(self, element: _Element) -> None:
        self.parts.append(f"<{element.tag}>")

    def anchor(self, element: _Element) -> None:
        """Write a link; its text alone if it leads nowhere we may go; nothing if it shows nothing."""
        href = element.get("href").strip()
        address = self.addresses.resolve(href) if href else ""
        if not address or element.holds & {"pre", "table"} or (self.in_heading and href.startswith("#")):
            self.write(element)
        elif element.holds & _HEADINGS:
            _move_into_headings(element)
            self.wrapped(element, "div")
        else:
            before = len(self.parts)
            self.wrapped(element, "a", f' href="{escape(address)}"')
            if not "".join(self.parts[before + 1 : -1]).strip():
                del self.parts[before:]

    def image(self, element: _Element) -> None:
        """Write an image whose description says something."""
        sources = (element.get("src"), element.get("data-src"))
        address = next(filter(None, map(self.addresses.resolve, filter(str.strip, sources))), "")
        alt = " ".join(element.get("alt").split())
        if address and not _SAYS_NOTHING.fullmatch(alt):
            self.parts.append(f'<img src="{escape(address)}" alt="{escape(_marked(alt))}">')

    def code(self, element: _Element) -> None:
        if "pre" in element.holds:
            self.write(element)
        else:
            self.parts.append(_as_code(element.text()))

    def block(self, element: _Element) -> None:
        code = _code(element).strip("\n")
        if code.strip():
            known = _language(element)
            language = f' class="language-{escape(known)}"' if known else ""
            self.parts.append(f"<pre><code{language}>{escape(code, quote=False)}</code></pre>")

    def formula(self, element: _Element) -> None:
        """Write a formula as its TeX source where the page gives that, else as its text."""
        source = next((e.text() for e in element.elements() if e.get("encoding") == "application/x-tex"), "")
        if element.tag == "math":
            source = source or element.get("alttext")
            self.parts.append(_as_code(source) if source else _as_text(element.text()))
        else:
            formula = _as_code(source or element.text())
            self.parts.append(f"<p>{formula}</p>" if element.tag in _BLOCKS else formula)

    def script(self, element: _Element) -> None:
        """Write what is raised or lowered so that 10⁶ is not 106."""
        short = element.plain <= _SCRIPT_AT_MOST and not element.linked
        if short and not _PLAIN_SCRIPT[element.tag].fullmatch(element.text()):
            self.parts.append("^" if element.tag == "sup" else "_")
        self.write(element)

    def table(self, element: _Element) -> None:
        """Write a table; one that only lays out the page, or whose cells hold blocks of code, as blocks."""
        rows = list(self.rows(element))
        if _is_layout(element, rows):
            for cell in (cell for row in rows for cell in row):
                self.wrapped(cell, "div")
            return
        self.parts.append("<table>")
        for row in rows:
            self.parts.append("<tr>")
            for cell in row:
                spans = "".join(f' {name}="{cell.get(name)}"' for name in _SPANS if _span(cell, name) > 1)
                self.wrapped(cell, "th" if cell.tag == "th" else "td", spans)
            self.parts.append("</tr>")
        self.parts.append("</table>")

    def rows(self, table: _Element) -> Iterator[list[_Element]]:
        """The cells of a table, by row; what strayed into the table is written before it."""
        for part in self.shown(table):
            if isinstance(part, str) or part.tag not in _GROUPS | {"tr"}:
                self.child(part)
            elif part.tag in _GROUPS:
                yield from self.rows(part)
            elif cells := [_cell(child) for child in self.shown(part) if _shows(child)]:
                yield cells


_WRITES: dict[str, Callable[[_Writer, _Element], None]] = {
    **dict.fromkeys(_HEADINGS, _Writer.heading),
    **dict.fromkeys(("ul", "menu", "dir"), _Writer.unordered),
    **dict.fromkeys(("code", "kbd", "samp", "tt"), _Writer.code),
    **dict.fromkeys(("pre", "xmp"), _Writer.block),
    **dict.fromkeys(("br", "hr"), _Writer.empty),
    **dict.fromkeys(("sup", "sub"), _Writer.script),
    "ol": _Writer.ordered,
    "li": _Writer.item,
    "blockquote": _Writer.nested,
    "summary": _Writer.bold,
    "dt": _Writer.term,
    "a": _Writer.anchor,
    "img": _Writer.image,
    "math": _Writer.formula,
    "table": _Writer.table,
}


def _marked(text: str) -> str:
    """Text whose `<` and `&` will not be taken for markup in markdown either."""
    return _ENTITY_LIKE.sub(_AND, _TAG_LIKE.sub(_LESS, text))


def _as_text(text: str) -> str:
    text = _SPACE.sub(" ", text)
    return escape(_marked(text), quote=False) if "<" in text or "&" in text or ">" in text else text


def _as_code(text: str) -> str:
    return f"<code>{escape(text, quote=False)}</code>" if text else ""


def _move_into_headings(link: _Element) -> None:
    """Put a link inside the headings it holds, since markdown has no heading in a link."""
    for heading in [inner for inner in link.elements() if inner.tag in _HEADINGS]:
        inner = _Element("a", link.attributes, heading)
        inner.children = heading.children
        heading.children = [inner]


# ----------------------------------------------------------------------------------- the code

_LANGUAGE = re.compile(
    r"(?:language|lang|highlight-source)-([\w+#.-]{1,30})|(?:highlight|src)-([\w+#]{1,30})"
)
_LANGUAGE_AFTER = frozenset({"hljs", "sourcecode", "rust-example-rendered"})
_NO_LANGUAGE = _words("default none text plaintext plain txt code lines numberlines notranslate")
_NEARLY_NOTHING = 80  # characters a box around code may hold besides: a file name, a caption
_LEVELS = 7


def _code(element: _Element) -> str:
    """The code in an element: what is a block of its own is a line of its own."""
    parts: list[str] = []
    _collect(element, parts)
    return "".join(parts)


def _collect(element: _Element, parts: list[str]) -> None:
    for child in element.children:
        if isinstance(child, str):
            parts.append(child)
        elif child.tag == "br":
            parts.append("\n")
        elif child.tag in _BLOCKS or child.tag == "tr":
            if parts and not parts[-1].endswith("\n"):
                parts.append("\n")
            before = len(parts)
            _collect(child, parts)
            if before == len(parts) or not parts[-1].endswith("\n"):
                parts.append("\n")
        else:
            _collect(child, parts)


def _language(pre: _Element) -> str:
    """The language of a block of code, by its own account or that of the boxes around it."""
    above = pre.path[-2 : -2 - _LEVELS : -1]
    around = [element for element in above if element.size - pre.size <= _NEARLY_NOTHING]
    for element in (*(inner for inner in pre.elements() if inner.tag == "code"), pre, *around):
        for language in _languages(element):
            if language not in _NO_LANGUAGE:
                return language
    return ""


def _languages(element: _Element) -> Iterator[str]:
    for attribute in ("data-lang", "data-language", "language"):
        if found := _LANGUAGE.fullmatch(f"lang-{element.get(attribute).lower()}"):
            yield found[1]
    yield from (found[1] or found[2] for name in element.names if (found := _LANGUAGE.fullmatch(name)))
    if element.tag in ("pre", "code") and not _LANGUAGE_AFTER.isdisjoint(element.names):
        yield from (name for name in element.names if name not in _LANGUAGE_AFTER)


# ---------------------------------------------------------------------------------- the tables

_GROUPS = _words("thead tbody tfoot colgroup form")
_SPANS = ("colspan", "rowspan")
_SPARSE = 1000  # how many cells a table may lack before it is no table


def _shows(child: _Element | str) -> bool:
    return bool(child.strip()) if isinstance(child, str) else True


def _cell(child: _Element | str) -> _Element:
    if isinstance(child, _Element) and child.tag in ("td", "th"):
        return child
    cell = _Element("td", {}, None)
    cell.children = [child]
    return cell


def _is_layout(table: _Element, rows: list[list[_Element]]) -> bool:
    inner = {tag for row in rows for cell in row for tag in cell.holds}
    if table.get("role") in ("presentation", "none") or inner & (_HEADINGS | {"table"}):
        return True
    if "pre" in inner and any("\n" in _code(e).strip("\n") for e in table.elements() if e.tag == "pre"):
        return True
    widths = [sum(_span(cell, "colspan") for cell in row) for row in rows]
    return max(widths, default=0) * len(rows) - sum(widths) > _SPARSE + sum(widths)


def _span(cell: _Element, name: str) -> int:
    """How many columns or rows a cell covers; a number that no table needs counts as one."""
    return int(cell.get(name)) if _SMALL_NUMBER.fullmatch(cell.get(name)) else 1
