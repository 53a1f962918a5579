"""How pages and sites are named: in what people type, and in a collection."""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

INDEX, FULL = "llms.txt", "llms-full.txt"
_NAME = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z][a-z0-9-]+", re.I)


def is_url(source: str) -> bool:
    """Whether a source is a URL with its scheme."""
    return re.match(r"[a-z][a-z0-9+.-]*://", source, re.I) is not None


def is_site(source: str) -> bool:
    """Whether a source names a whole site: `example.com`, or the URL of an llms.txt."""
    path = urlsplit(source if is_url(source) else f"https://{source}").path
    if path.rpartition("/")[2] in (INDEX, FULL):
        return True
    return not is_url(source) and path in ("", "/") and _NAME.fullmatch(source.rstrip("/")) is not None


def path_of(url: str, site: str) -> str:
    """A page's path in the collection of its site; pages of other hosts begin with theirs."""
    there, here = urlsplit(url), urlsplit(site)
    path = unquote(there.path).strip("/") or "index"
    path += f"?{unquote(there.query)}" if there.query else ""
    path += f"/{unquote(there.fragment)}" if there.fragment else ""
    return path if there.netloc == here.netloc else f"{there.netloc}/{path}"
