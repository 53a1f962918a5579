"""A store without the links that questions were made from, so that their texts are no evidence.

Input: a store and questions. Output: the same store for searches. The library is not changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from quire.evaluation.measures import TextSpan
from quire.evaluation.questions import EvalQuestion
from quire.linking import Finder
from quire.stores import Filters, LinkRow, Store

LinkKey = tuple[int, int]  # of a link: its document and its number
PlacedLink = tuple[LinkRow, str, int]  # a link, and the address and the place that it leads to


def asked_links(store: Store, questions: Iterable[EvalQuestion]) -> set[LinkKey]:
    """The links that questions were made from: those that stand beside a question, and those of the same
    document that lead to the same answer.
    """
    known, hidden = dict[str, list[PlacedLink]](), set[LinkKey]()
    for question in questions:
        answers = {(answer.document, answer.start) for answer in question.answers}
        for place in question.beside:
            if place.document not in known:
                known[place.document] = _placed_links(store, place.document)
            hidden |= set(_led_or_beside(known[place.document], place, answers))
    return hidden


def _led_or_beside(
    links: Iterable[PlacedLink], place: TextSpan, answers: set[tuple[str, int]]
) -> Iterable[LinkKey]:
    for link, address, start in links:
        if place.start <= link.start < place.end or (address, start) in answers:
            yield link.document, link.number


def _placed_links(store: Store, address: str) -> list[PlacedLink]:
    """The links of a document, and where they lead; "" is nowhere."""
    collection, _, path = address.partition(":")
    row = store.document(collection, path)
    links = store.links(row.seq) if row else []
    if row is None or not links:
        return []
    finder = Finder(store, {link.key for link in links})
    places = [finder.place(link, row) for link in links]
    finder.load_documents({place.document for place in places if place})
    found = zip(links, places, strict=True)
    return [
        (link, finder.documents[place.document].address, finder.section(place).start)
        if place
        else (link, "", -1)
        for link, place in found
    ]


class WithoutLinks:
    """A store in which some links say nothing. Closing it leaves the store open."""

    def __init__(self, store: Store, hidden: set[LinkKey]) -> None:
        self._store, self._hidden = store, hidden

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def close(self) -> None:
        """Close nothing: whoever opened the store closes it."""

    def links_saying(
        self, anchors: Sequence[str], sections: Iterable[LinkKey], within: Filters, limit: int
    ) -> list[LinkRow]:
        """The links that say exactly these terms, and those in sections, as if the others were not there."""
        more = limit + len(self._hidden)
        said = self._shown(self._store.links_saying(anchors, (), within, more))[:limit]
        return said + self._shown(self._store.links_saying((), sections, within, limit))

    def _shown(self, links: Iterable[LinkRow]) -> list[LinkRow]:
        return [link for link in links if (link.document, link.number) not in self._hidden]
