"""The pages of an llms-full.txt that was fetched: which say something, and the URL of each."""

from __future__ import annotations

import re
from io import BytesIO
from urllib.parse import urljoin

from quire.errors import Refused
from quire.sources.web import llmstxt
from quire.sources.web.llmstxt import FullPage
from quire.sources.web.response import Decoder, Response
from quire.sources.web.urls import normalise_url


def pages_of(full: Response) -> list[FullPage]:
    """The pages of an llms-full.txt that say something."""
    text = _narrow(full)
    return [page for page in llmstxt.pages(text, Decoder(full)) if text[page.start : page.end].strip()]


def _narrow(full: Response) -> str:
    """The narrow form of a text, made without the text itself or as many pieces in memory."""
    narrow = BytesIO()
    for piece in Decoder(full).pieces():
        narrow.write(llmstxt.narrow(piece))
    return narrow.getvalue().decode("latin-1")


def urls_of(pages: list[FullPage], base: str, taken: set[str]) -> list[str]:
    """The URL of each page, none of which is taken; they are added to those that are."""
    return [_unused(_own_url(page, base), taken) for page in pages]


def _own_url(page: FullPage, base: str) -> str:
    """The URL of a page of an llms-full.txt: as it says, else its title as a part of that file."""
    try:
        url, mark, part = urljoin(base, page.url or "").partition("#")
        if page.url:
            return f"{normalise_url(url)}{mark}{part}"
    except (ValueError, Refused):  # what it says is no URL
        pass
    slug = re.sub(r"[^\w.-]+", "-", page.title).strip("-") or "page"
    return f"{base}#{slug}"


def _unused(url: str, taken: set[str]) -> str:
    """A URL of its own for a page: several may name the same, or none."""
    found, number = url, 1
    while found in taken:
        number += 1
        found = f"{url}-{number}" if "#" in url else f"{url}#{number}"
    taken.add(found)
    return found
