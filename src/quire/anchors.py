"""The texts of links as evidence: what people call a section when they link to it.

Input: a query's terms, and its best hits. Output: sections that links with such texts lead to, and how much
that tells. Two sorts of links are read: those whose whole text stands in the query, wherever they are, and
those in the best hits. A text that leads to several places tells less of each. Links within a document only
repeat its headings: they do not count.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from quire.linking import Destination, Finder
from quire.result import Hit
from quire.stores import Filters, LinkRow, Store

LinkText = tuple[float, str]  # how much a text of a link tells, and its terms
OF_WHOLE = 0.3  # so much does a link to a whole document tell of its beginning: chosen by bench/links.py
_LONGEST = 6  # terms of a text that is looked up
_FIRST = 6  # hits whose links are read
_MOST = 200  # links that are looked up
_TEXTS = 12  # of links that are followed
_NOTHING = (0.0, "")
_LEAST = 0.3  # of a text, that the query has to ask for


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
    ends = dict[Destination, LinkText]()
    for text, places in led.items():
        total = sum(places.values())
        for place, count in places.items():
            told = judged[text] * count / total * (1.0 if place.section else OF_WHOLE)
            ends[place] = max(ends.get(place, _NOTHING), (told, text))
    return ends


def _runs(terms: Sequence[str]) -> list[str]:
    """The texts of at most _LONGEST terms that stand in a query."""
    sizes = range(1, min(_LONGEST, len(terms)) + 1)
    found = (" ".join(terms[at : at + size]) for size in sizes for at in range(len(terms) - size + 1))
    return list(dict.fromkeys(found))


def _led(store: Store, links: Sequence[LinkRow]) -> dict[str, Counter[Destination]]:
    """For each text, where its links lead, and how many of them."""
    found = defaultdict[str, Counter[Destination]](Counter)
    if not links:
        return found
    finder = Finder(store, {link.key for link in links})
    finder.load_documents({link.document for link in links})
    for link in links:
        source = finder.documents.get(link.document)
        place = finder.place(link, source) if source else None
        if place and place.document != link.document:
            found[link.anchor][place] += 1
    return found
