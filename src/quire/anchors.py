"""The texts of links as evidence: what people call a section when they link to it.

Input: a query's terms, and its best hits. Output: sections that links with such texts lead to, and how much
that tells. Two sorts of links are read: those whose whole text stands in the query, wherever they are, and
those in the best hits. A text that leads to several places tells less of each. If several documents call a
place what the query is, that is its name. Links within a document only repeat its headings: they do not
count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from quire import later
from quire.result import Hit
from quire.stores import Filters, LinkRow, Store

if TYPE_CHECKING:
    from quire import linking
    from quire.linking import Destination
else:
    linking = later.module("quire.linking")

OF_WHOLE = 0.3  # so much does a link to a whole document tell of its beginning: chosen by bench/links.py
_LONGEST = 6  # terms of a text that is looked up
_FIRST = 6  # hits whose links are read
_MOST = 200  # links that are looked up
_TEXTS = 12  # of links that are followed
_AGREE = 2  # documents whose links make a text the name of a place
_NAME = 0.75  # of a query's terms, that a name has at least
_LEAST = 0.3  # of a text, that the query has to ask for


class LinkText(NamedTuple):
    """A text of links that lead to a place."""

    share: float  # how much it tells
    text: str  # its terms
    is_name: bool = False  # several documents call the place so, and the query is this name


_NOTHING = LinkText(0.0, "")


def destinations(
    store: Store,
    terms: Sequence[str],
    hits: Sequence[Hit],
    within: Filters,
    share: Callable[[frozenset[str]], float],
) -> dict[Destination, LinkText]:
    """Where links lead whose texts a query has, each with the text that tells most.

    Only links in the collections that the filters allow count: no other collection tells anything. `share`
    tells how much of a text's terms a query asks for, from 0 to 1.
    """
    best = {(hit.document, hit.section) for hit in hits[:_FIRST]}
    found = store.links_saying(_runs(terms), best, within.scope, _MOST)
    links = {(one.document, one.number): one for one in found}
    judged = {one: share(frozenset(one.split())) for one in {link.anchor for link in links.values()}}
    kept = sorted((text for text in judged if judged[text] >= _LEAST), key=lambda text: (-judged[text], text))
    texts = set(kept[:_TEXTS])
    led = _led(store, [link for link in links.values() if link.anchor in texts])
    ends = dict["Destination", LinkText]()
    for text, places in led.items():
        total, names = sum(map(len, places.values())), _named(terms, text, places)
        for place, sources in places.items():
            told = judged[text] * len(sources) / total * (1.0 if place.section else OF_WHOLE)
            ends[place] = _better(ends.get(place, _NOTHING), LinkText(told, text, place in names))
    return ends


def _better(one: LinkText, other: LinkText) -> LinkText:
    """The text that tells more; a name tells most."""
    return max(one, other, key=lambda text: (text.is_name, text.share, text.text))


def _named(terms: Sequence[str], text: str, places: Mapping[Destination, Sequence[int]]) -> set[Destination]:
    """The place that a query names with the text of links: most documents that say it link there."""
    said, asked = set(text.split()), set(terms)
    documents = {place: len(set(sources)) for place, sources in places.items()}
    most = max(_AGREE, sum(documents.values()) / 2)
    is_name = len(said & asked) >= _NAME * len(said | asked)
    return {place for place, count in documents.items() if is_name and count >= most}


def _runs(terms: Sequence[str]) -> list[str]:
    """The texts of at most _LONGEST terms that stand in a query, long ones first."""
    sizes = range(min(_LONGEST, len(terms)), 0, -1)
    found = (" ".join(terms[at : at + size]) for size in sizes for at in range(len(terms) - size + 1))
    return list(dict.fromkeys(found))


def _led(store: Store, links: Sequence[LinkRow]) -> dict[str, dict[Destination, list[int]]]:
    """For each text, where its links lead, and the documents of the links."""
    found = defaultdict[str, dict["Destination", list[int]]](lambda: defaultdict(list))
    if not links:
        return found
    finder = linking.Finder(store, {link.key for link in links})
    finder.load_documents({link.document for link in links})
    for link in links:
        source = finder.documents.get(link.document)
        place = finder.place(link, source) if source else None
        if place and place.document != link.document:
            found[link.anchor][place].append(link.document)
    return found
