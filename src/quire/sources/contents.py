"""The bytes of a file to its document: as they are, or converted by a reader.

Always: the checksum of a file is that of its bytes, whether it is converted or not.
"""

from __future__ import annotations

from typing import NamedTuple

from quire import readers
from quire.config import DEFAULT, DocumentSettings
from quire.document import Document, encoding_of
from quire.location import Places, anchors

WEB_PAGES = (".html", ".htm")


class FileDocument(NamedTuple):
    """The document in a file, and what is known of the file itself."""

    document: Document
    original: str = ""  # SHA-256 of the file, if it was converted
    places: Places | None = None  # where parts of the text are in the file
    warnings: tuple[str, ...] = ()


def document_of(
    source: bytes,
    path: str,
    *,
    collection: str = "local",
    title: str | None = None,
    settings: DocumentSettings = DEFAULT.document,
) -> FileDocument:
    """The document in the bytes of a file. Raises SourceError if it holds none."""
    if not is_converted(path):
        document = Document.from_bytes(source, path, collection=collection, title=title, settings=settings)
        return FileDocument(document, places=places_in(document))
    if path.lower().endswith(WEB_PAGES):
        found = _page(source)
    else:
        found = readers.convert(source, path, settings)
    title = title or found.title or None
    text = found.text.encode()
    document = Document.from_bytes(text, path, collection=collection, title=title, settings=settings)
    return FileDocument(document, digest_of_file(source), found.places, found.warnings)


def places_in(document: Document) -> Places | None:
    """The rows of a table, as places; other texts are cited by lines."""
    if document.format != "csv":
        return None
    from quire import table

    starts = table.rows(document.markup)
    return Places("row", tuple(starts)) if starts else None


def _page(source: bytes) -> readers.Converted:
    """The main content of a web page."""
    if b"\0" in source[:8192] and encoding_of(source) == "utf-8":
        return readers.Converted(source.decode("latin-1"))  # binary, whatever its name: it is refused later
    from quire import html
    from quire.sources.charset import declared_charset, likely_charset

    declared = declared_charset(source, {})
    charset, warning = (declared, "") if declared else likely_charset(source, "html", {})
    page = html.to_markdown(source.decode(charset, "replace"), links=False)
    return readers.Converted(page.text, anchors(page.anchors), warnings=(warning,) if warning else ())


def digest_of_file(source: bytes) -> str:
    """SHA-256 of the bytes of a file: the checksum of a document that is not converted."""
    import hashlib

    return hashlib.sha256(source).hexdigest()


def is_converted(path: str) -> bool:
    """Whether files with this name are not text themselves."""
    return path.lower().endswith((*WEB_PAGES, *readers.CONVERTED))


def may_grow(path: str) -> bool:
    """Whether reading a file with this name may take much more memory than its size."""
    format = readers.format_named(path)
    return format is not None and not format.is_light


def check_content(source: bytes, path: str, *, settings: DocumentSettings = DEFAULT.document) -> None:
    """Raise SourceError for a file that holds no document, as far as that shows without converting it."""
    if readers.format_named(path):
        readers.check_format(source, path)
    elif not path.lower().endswith(WEB_PAGES):
        Document.from_bytes(source, path, settings=settings)
