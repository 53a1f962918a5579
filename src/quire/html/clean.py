"""Clean a tree of elements: drop unwanted ones, mark furniture, and measure the rest.

Furniture is boilerplate that is not about the subject of the page: menus, banners, footers.
"""

from __future__ import annotations

import re
from itertools import islice
from urllib.parse import unquote

from quire.html.class_names import LONGEST_NAME
from quire.html.content import INSIDE_CONTENT, Candidates, signs_of
from quire.html.elements import HEADINGS, Element, words
from quire.html.links import rel_of
from quire.html.parse import RAW

_DROPPED = (RAW - {"xmp"}) | words(
    "template svg audio video canvas embed link meta base input select option optgroup datalist"
)
_INVISIBLE = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)
_MAY_BE_FURNITURE = words("nav header footer aside a ul ol")  # whatever their classes and ids
_ROLES = words("navigation banner contentinfo search dialog alertdialog menu menubar")
_CONTENT = words("h1 main article pre")
# Beside code: its language, its line numbers, hidden lines. Around text: a link to its source, what opens it,
# the title of results that a search will show, what only a printer shows.
_LABELS = (
    *(("span", "lang"), ("td", "gutter"), ("span", "boring")),
    *(("a", "src"), ("span", "rightside"), ("span", "sub-heading"), ("summary", "hideme")),
    *(("h1", "search-results-title"), ("div", "onlyprint")),
)
_FURNITURE_LINK = re.compile(
    r"\W*(?:edit|improve|view|show|suggest|report)\b.{0,20}"
    r"\b(?:page|doc|source|on github|on gitlab|edits?|issue)\W*",
    re.IGNORECASE,
)
_STEPS_AT_MOST = 300  # characters of the links to the previous and next page, with the text around them
_CONTENTS_AT_LEAST = 3  # links that make a table of contents
_NOTABLE = HEADINGS | words("main article pre xmp table code b strong")


def sweep(root: Element) -> Candidates:
    """Drop unwanted elements, mark furniture, measure the rest; returns the containers, by their signs."""
    found: Candidates = {}
    _weigh(root, found, inside=False, in_link=False)
    return found


def _weigh(element: Element, found: Candidates, *, inside: bool, in_link: bool) -> None:
    kept: list[Element | str] = []
    size = 0
    for child in element.children:
        if isinstance(child, str):
            kept.append(child)
            size += len(child.strip())
        elif _is_dropped(child):
            element.anchor = element.anchor or _place_of(child)
        else:
            kept.append(child)
            signs = signs_of(child)
            within = inside or not signs.isdisjoint(INSIDE_CONTENT)
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


def _tell(parent: Element, child: Element) -> None:
    """Add what a child holds, and its size, to its parent."""
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


def _is_dropped(element: Element) -> bool:
    tag = element.tag
    if tag in _DROPPED:
        return True
    if tag == "button":  # a heading that folds its section is a button
        parent = element.parent
        return parent is None or parent.tag not in HEADINGS or not _is_alone(element)
    if tag == "dialog":
        return "open" not in element.attributes
    return bool(element.attributes) and (
        _is_hidden(element) or _is_label(element) or (tag == "a" and _is_permalink(element))
    )


def _is_hidden(element: Element) -> bool:
    if element.get("role") == "tabpanel":  # a reader opens it with a click
        return False
    if "hidden" in element.attributes or element.get("aria-hidden").lower() == "true":
        return True
    return "style" in element.attributes and _INVISIBLE.search(element.get("style")) is not None


def _is_label(element: Element) -> bool:
    """Whether an element is for screen readers or a label beside code or text, and does not contain it."""
    if element.means("gutter") or any((element.tag, name) in _LABELS for name in element.names):
        return True
    return element.means("unseen") and not any(inner.tag in _CONTENT for inner in element.elements())


def _is_permalink(link: Element) -> bool:
    """Whether a link leads to its own place, and is not the whole heading."""
    if link.means("permalink"):
        return not _is_alone(link)
    if link.get("href").startswith("#") or "anchor" in link.names:
        return not any(map(str.isalnum, link.text())) and not _has_image(link)
    return False


def _place_of(dropped: Element) -> str:
    """The id that a permalink leads to."""
    if dropped.tag != "a":
        return ""
    href = dropped.get("href")
    return unquote(href[1:]) if href.startswith("#") else dropped.get("id") or dropped.get("name")


def _is_alone(element: Element) -> bool:
    around = element.parent.children if element.parent else []
    return all(other is element or (isinstance(other, str) and not other.strip()) for other in around)


def _has_image(element: Element) -> bool:
    return any(inner.tag == "img" for inner in element.elements())


def _is_furniture(element: Element, inside: bool) -> bool:
    tag = element.tag
    if not element.attributes and tag not in _MAY_BE_FURNITURE and "step" not in element.holds:
        return False  # the common case
    role = element.get("role").lower()
    if tag == "nav" or role in _ROLES:
        return True
    if tag == "header":
        return element.holds.isdisjoint(HEADINGS if inside else {"title"})
    if tag == "footer":
        return not any(above.tag in ("blockquote", "figure") for above in element.path)
    if tag == "aside" or role == "complementary":
        return not is_admonition(element) and (not inside or element.linked > element.plain)
    if tag == "a":
        return _is_step(element) or _is_about_the_page(element)
    if tag in ("ul", "ol") and _is_contents(element):
        return True
    if "step" in element.holds and element.size <= _STEPS_AT_MOST:
        return element.holds.isdisjoint(HEADINGS | {"pre", "table"})
    return element.means("furniture") and element.holds.isdisjoint(("title", "main", "article"))


def _is_step(link: Element) -> bool:
    """Whether a link leads to the previous or next page."""
    return not {"prev", "next"}.isdisjoint(rel_of(link))


def _is_about_the_page(link: Element) -> bool:
    """Whether a link leads to the source of the page, and is not part of a sentence."""
    in_text = link.parent is not None and link.parent.tag in ("p", "li", "dd", "td")
    if link.size > LONGEST_NAME or (in_text and not _is_alone(link)):
        return False
    return _FURNITURE_LINK.fullmatch(link.text()) is not None


def _is_contents(list_: Element) -> bool:
    """Whether a list holds only links to places on the same page."""
    if list_.plain or not list_.linked or "link elsewhere" in list_.holds:
        return False
    links = (element for element in list_.elements() if element.tag == "a")
    return sum(1 for _ in islice(links, _CONTENTS_AT_LEAST)) == _CONTENTS_AT_LEAST


def is_admonition(element: Element) -> bool:
    """Whether an element is a note, tip or warning in a box."""
    if element.tag not in ("div", "aside", "section") or not element.means("admonition"):
        return False
    return element.holds.isdisjoint(("main", "article", "h1", "h2"))
