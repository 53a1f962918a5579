"""The part of a page that holds its content, and the title of the page.

Input: a tree whose elements clean.py has measured. Output: one of its elements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from quire.html.elements import NOTHING, Element, words
from quire.html.parse import Builder

# The elements that hold the content, the surest sign first.
_SIGNS = (
    "main [role=main] article [itemprop=articlebody] #content-area #content #main-content #main_content"
    " .main-content .markdown-body .theme-doc-markdown .md-content .vp-doc .rst-content .bd-article"
    " .td-content .documentwrapper .contentcontainer .document .article .post-content .entry-content"
    " .page-content .markdown .prose .content #main #apicontent .book .body"
)
_CONTAINERS = words(_SIGNS)
_TELLING = words("class id itemprop role")
INSIDE_CONTENT = frozenset({"main", "[role=main]", "article"})
Candidates = dict[str, list[Element]]
_AFTER_TITLE = re.compile(r"\s+[|:·•»«–—-]+\s+\S")


def signs_of(element: Element) -> frozenset[str]:
    """The signs that an element may hold the content."""
    if element.attributes.keys().isdisjoint(_TELLING):
        return _CONTAINERS & {element.tag} if element.tag in _CONTAINERS else NOTHING
    attributes = (f"[{name}={element.get(name).lower()}]" for name in ("role", "itemprop"))
    names = (f".{name}" for name in element.names)
    return _CONTAINERS.intersection((element.tag, f"#{element.get('id').lower()}", *attributes, *names))


def is_container(element: Element) -> bool:
    """Whether the id of an element says that it holds the content. Such an id leads to no place in it."""
    return f"#{element.get('id').lower()}" in _CONTAINERS


def choose(root: Element, found: Candidates) -> Element:
    """The element with the surest sign that holds most of the page's text; else the whole page."""
    for sign in _SIGNS.split():
        if candidates := found.get(sign):
            for candidate in (pick(candidates) for pick in (_heaviest, _around)):
                if candidate.weight * 2 > root.weight:
                    return candidate
    return root


def _heaviest(elements: list[Element]) -> Element:
    return max(elements, key=lambda element: element.weight)


def _around(elements: list[Element]) -> Element:
    """The innermost element that holds all of these."""
    by_parent = {element.parent: element for element in elements}
    common, *paths = (element.path[: -1 if len(elements) > 1 else None] for element in by_parent.values())
    for path in paths:
        common = [above for above, other in zip(common, path, strict=False) if above is other]
    return common[-1]


def title_of(page: Builder, main: Element) -> str:
    """The title of the page, without the name of its site if the heading shows which part that is."""
    heading = next((found.text() for found in _headings(page, main)), "")
    metas = page.seen("meta")
    named = [meta.get("content") for meta in metas if "og:title" in (meta.get("property"), meta.get("name"))]
    named += [title.text() for title in page.seen("title")]
    title = next((" ".join(name.split()) for name in named if name.strip()), heading)
    rest = title.removeprefix(heading)
    return heading if heading and rest != title and _AFTER_TITLE.match(rest) else title


def _headings(page: Builder, main: Element) -> Iterator[Element]:
    for part in (main, page.root):
        if "h1" in part.holds:
            yield from (element for element in part.elements() if element.tag == "h1" and element.text())
