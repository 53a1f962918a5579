"""EPUB books to markdown, chapter by chapter, in the order in which they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.config import DocumentSettings
from quire.errors import NotPrepared
from quire.html import whole_to_markdown
from quire.readers.archive import Archive, resolve
from quire.readers.base import Converted, clean, found_marks, mark

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_ENCRYPTION = "META-INF/encryption.xml"
_FONTS = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")  # only hide fonts
_PAGES = ("application/xhtml+xml", "text/html")


def read(source: bytes, name: str, settings: DocumentSettings) -> Converted:
    """The text of a book."""
    archive = Archive(source, name, settings)
    _check_open(archive)
    package = _package_path(archive)
    root = archive.xml(package)
    parts = [_chapter(archive, path) for path in _spine(root, package) if archive.has(path)]
    told = (f"{mark(number)}{part.strip()}\n" for number, part in enumerate(parts, 1))
    text, places = found_marks("\n".join(told), "chapter")
    return Converted(text, places, _title(root))


def _chapter(archive: Archive, path: str) -> str:
    return whole_to_markdown(clean(archive.read(path).decode("utf-8", "replace")))


def _check_open(archive: Archive) -> None:
    """Raise NotPrepared for a book that only a seller's program can open."""
    root = archive.optional_xml(_ENCRYPTION)
    methods = (
        [one.get("Algorithm", "") for one in root.iter() if one.tag.endswith("EncryptionMethod")]
        if root is not None
        else []
    )
    if any(method not in _FONTS for method in methods):
        raise NotPrepared(archive.name, "is encrypted: only the program of its seller can open it")


def _package_path(archive: Archive) -> str:
    for one in archive.xml("META-INF/container.xml").iter():
        if one.tag.endswith("}rootfile") and one.get("full-path"):
            return one.get("full-path", "")
    raise NotPrepared(archive.name, "is damaged: it does not name its package")


def _spine(root: Element, package: str) -> list[str]:
    """The paths of the chapters, without the page that lists them."""
    items = {one.get("id", ""): one for one in root.iter() if one.tag.endswith("}item")}
    found = []
    for reference in (one for one in root.iter() if one.tag.endswith("}itemref")):
        item = items.get(reference.get("idref", ""))
        is_page = item is not None and item.get("media-type") in _PAGES
        if item is not None and is_page and "nav" not in item.get("properties", "").split():
            found.append(resolve(package, item.get("href", "")))
    return found


def _title(root: Element) -> str:
    titles = (one.text or "" for one in root.iter() if one.tag.endswith("/dc/elements/1.1/}title"))
    return next((" ".join(title.split()) for title in titles if title.strip()), "")
