"""The pages of a fetched llms-full.txt that have content, and the URL of each."""

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
    """The pages of an llms-full.txt that have content."""
    text = _narrow(full)
    return [page for page in llmstxt.pages(text, Decoder(full)) if text[page.start : page.end].strip()]


def _narrow(full: Response) -> str:
    """The narrow form of a text, made without holding the whole text in memory."""
    narrow = BytesIO()
    for piece in Decoder(full).pieces():
        narrow.write(llmstxt.narrow(piece))
    return narrow.getvalue().decode("latin-1")


def urls_of(pages: list[FullPage], base: str, taken: set[str]) -> list[str]:
    """A URL for each page that is not in `taken`; each is added to it."""
    last: dict[str, int] = {}
    return [_unused(_own_url(page, base), taken, last) for page in pages]


def _own_url(page: FullPage, base: str) -> str:
    """The URL that a page of an llms-full.txt gives, else its title as a fragment of that file's URL."""
    try:
        url, mark, part = urljoin(base, page.url or "").partition("#")
        if page.url:
            return f"{normalise_url(url)}{mark}{part}"
    except (ValueError, Refused):  # it gives no valid URL
        pass
    slug = re.sub(r"[^\w.-]+", "-", page.title).strip("-") or "page"
    return f"{base}#{slug}"


def _unused(url: str, taken: set[str], last: dict[str, int]) -> str:
    """A unique URL for a page: several may give the same, or none. `last` has the last number of each."""
    found, number = url, last.get(url, 1)
    while found in taken:
        number += 1
        found = f"{url}-{number}" if "#" in url else f"{url}#{number}"
    last[url] = number
    taken.add(found)
    return found
