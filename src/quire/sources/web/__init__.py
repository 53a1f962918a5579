"""Pages and sites on the web: fetched within limits, read, and handed on as text.

Import it where it is needed: it is slow to load, and a search does not need it.
"""

from quire.sources.web.fetch import Fetcher
from quire.sources.web.pool import PagePool
from quire.sources.web.reader import not_typed
from quire.sources.web.reading import read_web
from quire.sources.web.urls import index_of, normalise_url, target_of
from quire.sources.web.visit import Validators, Visit, WebPage

__all__ = [
    "Fetcher",
    "PagePool",
    "Validators",
    "Visit",
    "WebPage",
    "index_of",
    "normalise_url",
    "not_typed",
    "read_web",
    "target_of",
]
