"""The names of pages and sites: as people type them, and as paths in a collection."""

from __future__ import annotations

import hashlib
import re
from urllib.parse import unquote, urlsplit

from quire import later

INDEX, FULL = "llms.txt", "llms-full.txt"
REPOSITORY = "git+"  # the roots of documents in repositories begin so, and no path of a file does
_NAME = later.pattern(r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z][a-z0-9-]+", re.I)


def is_url(source: str) -> bool:
    """Whether a source is a URL with its scheme."""
    return re.match(r"[a-z][a-z0-9+.-]*://", source, re.I) is not None


def is_site(source: str) -> bool:
    """Whether a source names a whole site: `example.com`, or an llms.txt with its host."""
    host, path = _parts(source)
    if not is_url(source) and not _NAME.fullmatch(host):
        return False
    return names_index(source) or (not is_url(source) and not path)


def names_index(source: str) -> bool:
    """Whether a source ends in llms.txt or llms-full.txt."""
    return _parts(source)[1].rpartition("/")[2] in (INDEX, FULL)


def _parts(source: str) -> tuple[str, str]:
    """The host and the path of a source."""
    named = source.partition("://")[2] if is_url(source) else source
    host, _, path = re.split("[?#]", named)[0].partition("/")
    return host, path


_SAYS_MORE = later.pattern(r"%(?:2f|3f)|\?.*%(?:23|26|2b|3d)", re.I)  # escapes of characters with a meaning
_HASH = 8  # characters


def path_of(url: str, root: str) -> str:
    """A page's path in its collection. It does not depend on other pages.

    Paths of pages on other hosts begin with the host, and a folder is its index. If a more usual URL would
    have the same path, a hash of the URL is appended.
    """
    there, here = urlsplit(url), urlsplit(root)
    path = unquote(there.path).removeprefix("/")
    path += "index" if path.endswith("/") or not path else ""
    usual = there.scheme == here.scheme and "\ufffd" not in path and not _SAYS_MORE.search(url)
    usual = usual and not there.path.endswith("/index")
    path += f"?{unquote(there.query)}" if there.query else ""
    if there.fragment:
        path += f"/{unquote(there.fragment)}"
        usual = usual and there.path.endswith(FULL)
    path = path if there.netloc == here.netloc else f"{there.netloc}/{path}"
    return path if usual else f"{path}-{hashlib.sha256(url.encode()).hexdigest()[:_HASH]}"
