"""A web page to its Article: the steps of this folder, in order."""

from __future__ import annotations

from dataclasses import dataclass

from quire.html.anchors import Anchor
from quire.html.clean import sweep
from quire.html.content import choose, title_of
from quire.html.links import Addresses, is_markdown_twin, rel_of, robots_of
from quire.html.parse import Builder
from quire.html.tabs import label_panels
from quire.html.text import normalise
from quire.html.writer import write_markdown


@dataclass(frozen=True, slots=True)
class Article:
    """The content of a page and its links. Addresses are absolute and unique."""

    title: str  # "" if the page has none
    text: str  # markdown
    alternates: tuple[str, ...]  # addresses of the page as markdown, as the page declares them
    links: tuple[str, ...]  # of the whole page, menus included, without fragments; () if not asked for
    anchors: tuple[Anchor, ...]  # the lines of `text` that an id on the page leads to, in order
    canonical: str  # the address that the page gives for itself; "" if it gives none
    robots: frozenset[str]  # what it asks of crawlers: noindex, nofollow


def to_markdown(html: str, url: str = "", *, links: bool = True) -> Article:
    """The main content of a page as markdown; addresses are made absolute against `url`."""
    page = Builder()
    page.feed(normalise(html))
    addresses = Addresses(url, page.seen("base"))
    label_panels(page.root)
    containers = sweep(page.root)
    main = choose(page.root, containers)
    text, anchors = write_markdown(main, addresses)
    if not text:
        text, anchors = write_markdown(page.root, addresses, with_furniture=True)
    return Article(
        title_of(page, main),
        text,
        addresses.found(link for link in page.seen("link") if is_markdown_twin(link)),
        addresses.found(page.seen("a")) if links else (),
        anchors,
        next(iter(addresses.found(link for link in page.seen("link") if "canonical" in rel_of(link))), ""),
        robots_of(page.seen("meta")),
    )


def whole_to_markdown(html: str) -> str:
    """All of a text in HTML as markdown, with nothing left out as furniture; its links stay as they are."""
    page = Builder()
    page.feed(normalise(html))
    sweep(page.root)
    return write_markdown(page.root, Addresses("", page.seen("base")), with_furniture=True)[0]
