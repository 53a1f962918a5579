"""Ids to places: the keys that sections and parts are found by, for both databases.

Always: every section has a key, and so has every part of a section; a chunk that is a whole section has the
id of its section, and no key. Keys may be equal, so the whole id is compared after the lookup.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from quire.address import id_of, keys_of, of_document, of_part, of_section
from quire.stores.rows import DocumentRow, Prepared

_SLUG = 5  # its place in a section of Prepared; a chunk begins with its section and part
_Rows = Sequence[tuple[Any, ...]]
IdPlace = tuple[DocumentRow, str, int]  # a document, the slug of a section and the part, 0 for all of it


def key_of_place(kind: str, collection: str, path: str, slug: str, part: int) -> int:
    """The key of a section or of a part of it."""
    section = of_section(of_document(collection, path), slug)
    return keys_of(kind, [of_part(section, part, is_root=not slug)])[0]


def section_keys(new: Prepared) -> list[int]:
    """The key of each section."""
    document, sections = of_document(new.collection, new.path), cast(_Rows, new.sections)
    return keys_of(new.kind, [of_section(document, section[_SLUG]) for section in sections])


def chunk_keys(new: Prepared) -> list[int | None]:
    """The key of each chunk that is part of a section; None for one that is a whole section."""
    document, chunks = of_document(new.collection, new.path), cast(_Rows, new.chunks)
    slugs: list[str] = [section[_SLUG] for section in cast(_Rows, new.sections)]
    places = [(slugs[chunk[0]], chunk[1]) for chunk in chunks if chunk[1]]
    parts = (of_part(of_section(document, slug), part, is_root=not slug) for slug, part in places)
    keys = iter(keys_of(new.kind, parts))
    return [next(keys) if chunk[1] else None for chunk in chunks]


def with_id(id: str, places: Iterable[IdPlace]) -> tuple[DocumentRow, str] | None:
    """The place that has an id: its document, and what follows the # of its address."""
    for document, slug, part in places:
        address = of_part(of_section(document.address, slug), part, is_root=not slug)
        if id_of(document.kind, address) == id:
            return document, address.removeprefix(document.address)[1:]
    return None
