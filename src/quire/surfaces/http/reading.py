"""The routes that only read: what each answers, as the command line prints it with --json."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from quire import tokens
from quire.errors import NoResults, RequestRefused, SettingError, no_collection
from quire.surfaces import packs, render
from quire.surfaces.http import asked as ask

if TYPE_CHECKING:
    from quire.chunkers.base import Chunk
    from quire.library import Library
    from quire.location import Places
    from quire.sources.contents import FileDocument
    from quire.stores import DocumentRow
    from quire.tree import Tree

_PREVIEWED = 8_000_000  # characters of a text whose cuts are shown


class Download:
    """Bytes to be saved as a file."""

    def __init__(self, content: bytes, name: str) -> None:
        self.content, self.name = content, name


def search(library: Library, asked: ask.Searching) -> dict[str, Any]:
    """The best sections for a query."""
    found = library.search(
        asked.q,
        collection=asked.collection,
        paths=asked.path,
        tags=asked.tag,
        where=asked.where,
        kind=asked.kind,
        limit=asked.limit,
        mode=asked.mode,
        rerank=asked.rerank or None,
        explain=asked.explain,
    )
    return render.found_json(found)


def recall(library: Library, asked: ask.Recalling) -> dict[str, Any]:
    """The best chunks of memories and knowledge."""
    from quire.sources.entries import KINDS

    found = library.recall(
        asked.q,
        kinds=asked.kind or KINDS,
        collection=asked.collection,
        tags=asked.tag,
        since=asked.since,
        until=asked.until,
        limit=asked.limit,
        mode=asked.mode,
        group=asked.group,
    )
    return render.found_json(found)


def context(library: Library, asked: ask.Packing) -> dict[str, Any]:
    """A context pack, as Markdown and as data."""
    found = library.context(
        asked.q,
        max_tokens=asked.max_tokens,
        collection=asked.collection,
        paths=asked.path,
        tags=asked.tag,
        where=asked.where,
        mode=asked.mode,
        include=asked.include,
    )
    return {**packs.as_values(found), "text": packs.as_markdown(found)}


def read(library: Library, asked: ask.ReadingAt) -> dict[str, Any]:
    """A document or a section, exactly as it stands."""
    return asdict(library.read(asked.address, asked.heading, max_tokens=asked.max_tokens))


def source(library: Library, asked: ask.At) -> Download:
    """The exact bytes that are stored of a document: of a converted one, its text."""
    with library.store.reading():
        row = _row(library, asked.address)
        is_converted = row.seq in library.store.original_checksums([row.seq])
        name = row.path.rpartition("/")[2] or "document"
        return Download(library.source(row.address), f"{name}.md" if is_converted else name)


def _row(library: Library, address: str) -> DocumentRow:
    row = library.document(address)
    if row is None:
        library.toc(address)  # raises NoResults, naming the nearest
        raise NoResults(f"No document {address!r} is indexed.", missing="document", name=address)
    return row


def _sizes(library: Library, tree: Tree) -> dict[int, int]:
    """The tokens of each section, by its position."""
    counter, text = tokens.budget_counter(library.config.tokens), tree.document.text
    return {one.position: counter.count(text, one.start, one.end) for one in tree.sections}


def toc(library: Library, asked: ask.At) -> dict[str, Any]:
    """The outline of a document."""
    tree = library.toc(asked.address)
    return render.toc_json(tree, _sizes(library, tree))


def rendered_document(library: Library, asked: ask.At) -> dict[str, Any]:
    """A document as safe HTML, its sections, and where in it the address leads."""
    from quire.surfaces.http.destinations import section_anchor
    from quire.surfaces.http.rendering import rendered, sections_of

    with library.store.reading():
        row, tree, found = (
            _row(library, asked.address),
            library.toc(asked.address),
            library.read(asked.address),
        )
        places = library.store.places([row.seq]).get(row.seq)
        links = library.links(row.address)
    targets = {link.written: link.target for link in links.out if link.target}
    at = next((one for one in reversed(tree.sections) if one.start <= found.start), tree.root)
    focus: dict[str, Any] = {"address": found.address, "anchor": section_anchor(at)}
    focus |= {"start_line": found.start_line, "end_line": found.end_line, "location": found.location}
    return {
        "document": render.document_json(row),
        "html": rendered(tree, places, targets),
        "sections": sections_of(tree, _sizes(library, tree)),
        "focus": focus if found.address != row.address else None,
        "stale": found.stale,
        "location_unit": places.unit if places and places.location(0, 1) else None,
    }


def list_documents(library: Library, asked: ask.ListingDocuments) -> dict[str, Any]:
    """The documents, some at a time."""
    given: Any = {"paths": asked.path, "tags": asked.tag, "where": asked.where, "kind": asked.kind}
    rows = library.documents(asked.collection, **given)
    if asked.collection is not None and not rows and not library.documents(asked.collection):
        raise no_collection(asked.collection, library.collections())
    if asked.order == "newest":
        rows.sort(key=lambda row: -row.updated_at)
    elif asked.order == "largest":
        rows.sort(key=lambda row: -row.length)
    shown = rows[asked.offset : asked.offset + asked.limit]
    return {"documents": list(map(render.document_json, shown)), "total": len(rows), "offset": asked.offset}


def no_documents(asked: ask.ListingDocuments) -> dict[str, Any]:
    """The documents of a library that is not there yet."""
    return {"documents": [], "total": 0, "offset": asked.offset}


def chunks(library: Library, asked: ask.At) -> dict[str, Any]:
    """The chunks of a document or a section, as they are stored."""
    return {"chunks": [asdict(chunk) for chunk in library.chunks(asked.address)]}


def links(library: Library, asked: ask.At) -> dict[str, Any]:
    """The links in a document or a section, and those to it."""
    return asdict(library.links(asked.address))


def sources(library: Library, _: ask.NoArguments) -> dict[str, Any]:
    """What the library follows."""
    return {"sources": [render.source_json(one) for one in library.sources()]}


def status(library: Library, asked: ask.Looking) -> dict[str, Any]:
    """What is in the library, and what is wrong with it."""
    problems = library.store.check() if asked.check else None
    return render.status_json(library.url, library.status(), problems, library.unembeddable())


def empty_status(url: str) -> dict[str, Any]:
    """The status of a library that is not there yet."""
    from quire.stores import Counts

    return render.status_json(url, Counts(0, 0, 0, 0, {}), None, {})


def map_documents(library: Library, asked: ask.Area) -> dict[str, Any]:
    """The documents, placed by meaning."""
    return asdict(library.map(asked.collection))


def no_map() -> dict[str, Any]:
    """The map of a library that is not there yet."""
    return {"points": [], "labels": [], "notes": ["There are no documents to show."]}


def on_empty(config: Any, work: Callable[[Library], dict[str, Any]]) -> dict[str, Any]:
    """What comes of work on a library that is not there yet: nothing is written."""
    from quire.library import Library

    with Library.open(":memory:", create=True, config=config) as library:
        return work(library)


def history(library: Library, asked: ask.At) -> dict[str, Any]:
    """The texts of a memory, newest first."""
    return {"address": asked.address, "versions": [asdict(one) for one in library.history(asked.address)]}


# ------------------------------------------------------------------------------------------- cuts


def cut_text(library: Library | None, asked: ask.Chunking, config: Any) -> dict[str, Any]:
    """How strategies would cut a text, or a stored document."""
    if (asked.content is None) == (asked.address is None):
        raise SettingError("chunk", "needs either content, perhaps with a path, or the address of a document")
    if asked.address is not None:
        if library is None:
            raise NoResults("Nothing is indexed yet.", missing="documents")
        row, tree = _row(library, asked.address), library.toc(asked.address)
        places = library.store.places([row.seq]).get(row.seq)
        return _cuts(tree, places, asked.strategies, asked, config)
    return cut_bytes((asked.content or "").encode(), asked.path or "text.md", asked.strategies, asked, config)


def cut_bytes(
    content: bytes, path: str, strategies: Sequence[str], asked: ask.Chunking | ask.Cutting, config: Any
) -> dict[str, Any]:
    """How strategies would cut a file."""
    from quire.ingest.prepare import read_alone
    from quire.tree import Tree

    found: FileDocument = read_alone(content, path, config)
    shown = _cuts(Tree(found.document, config.tree), found.places, strategies, asked, config)
    shown["document"]["warnings"] += found.warnings
    return shown


def _cuts(
    tree: Tree,
    places: Places | None,
    strategies: Sequence[str],
    asked: ask.Chunking | ask.Cutting,
    config: Any,
) -> dict[str, Any]:
    document = tree.document
    if len(document.text) > _PREVIEWED:
        size = f"{len(document.text):,} characters are more than the {_PREVIEWED:,} whose cuts are shown"
        raise RequestRefused(f"{size}. Use the command line: quire chunk FILE", 413)
    given = {"max_tokens": asked.max_tokens, "overlap": asked.overlap}
    about = render.chunks_json(tree, "", [])["document"]
    return {
        "document": {**about, "characters": len(document.text)},
        "text": document.text,
        "strategies": [_strategy(tree, places, name, given, config) for name in dict.fromkeys(strategies)],
    }


def _strategy(
    tree: Tree, places: Places | None, name: str, given: dict[str, Any], config: Any
) -> dict[str, Any]:
    """The cuts of one strategy, or why it makes none. What it has no setting for is left out."""
    from quire import chunkers
    from quire.config import override
    from quire.errors import QuireError

    settings = config.chunk.named(name)
    changes = {key: value for key, value in given.items() if value is not None and hasattr(settings, key)}
    try:
        found = chunkers.split(tree, name, override(settings, changes, f"{name}."), config.tokens)
    except QuireError as problem:
        return {"strategy": name, "chunks": [], "error": problem.to_json()}
    return {"strategy": name, "chunks": [_span(chunk, places) for chunk in found], "error": None}


def _span(chunk: Chunk, places: Places | None) -> dict[str, Any]:
    """A chunk without its text, which is in the document's."""
    shown = render.chunk_json(chunk, places)
    del shown["text"], shown["context"]
    return shown
