"""Markdown to what stands in its lines: links with their texts, and the text outside links and code.

Input: a text whose lines end in line feeds. Output: pieces in order, with byte offsets. Code, formulas,
comments and raw HTML give none. Like markdown.py, this file knows the parser; it reads `[[wikilinks]]` too.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from quire import later

if TYPE_CHECKING:
    import pyromark
else:
    pyromark = later.module("pyromark")

_LINKS = ("Link", "Image")  # what opens and ends
_BREAKS = ("SoftBreak", "HardBreak")


class Piece(NamedTuple):
    """A link, or a run of text outside links and code."""

    start: int
    end: int
    target: str | None  # of a link, as it is written; None for text
    text: str = ""  # what a link says
    form: str = ""  # wikilink, embed or markdown


def pieces_in(text: str) -> Iterator[Piece]:
    """The links and texts of a document, in order. A link in another is part of its text."""
    link: Piece | None = None
    depth, said, in_code = 0, list[str](), False
    for event, span in _events(text):
        if type(event) is not dict:
            if link and event in _BREAKS:
                said.append(" ")
            continue
        if (words := event.get("Text")) is not None:
            if link:
                said.append(words)
            elif not in_code:
                yield Piece(span["start"], span["end"], None)
        elif (tag := event.get("Start")) is not None:
            if type(tag) is dict:
                in_code = in_code or "CodeBlock" in tag
                if opened := _link(tag, span):
                    link, said, depth = (opened, [], 1) if depth == 0 else (link, said, depth + 1)
        elif (end := event.get("End")) is not None:
            in_code = in_code and end != "CodeBlock"
            if end in _LINKS:
                depth -= 1
                if depth == 0 and link:
                    yield link._replace(text="".join(said))
                    link = None
        elif link and (code := event.get("Code") or event.get("InlineMath") or event.get("DisplayMath")):
            said.append(code)


def _events(text: str) -> Iterator[tuple[Any, Any]]:
    return pyromark.events_with_range(text, options=_options(), merge_text=True)


def _link(tag: dict[str, Any], span: Any) -> Piece | None:
    """The link that a tag opens. A picture that Markdown shows is none; an embedded note is."""
    found = tag.get("Link")
    about = found or tag.get("Image")
    if about is None:
        return None
    is_wiki = type(about["link_type"]) is dict
    form = ("wikilink" if found else "embed") if is_wiki else ("markdown" if found else "image")
    return Piece(span["start"], span["end"], about["dest_url"], form=form)


@cache
def _options() -> pyromark.Options:
    return pyromark.Options.ENABLE_TABLES | pyromark.Options.ENABLE_WIKILINKS | pyromark.Options.ENABLE_MATH
