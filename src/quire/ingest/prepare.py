"""A document to what is stored of it: its sections, chunks, terms and digests.

Always: a file that cannot be prepared fails alone: a parser's error becomes its reason, and in a worker
its time and memory are limited.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, NoReturn

from quire import chunkers, fingerprint, links, redact
from quire.chunkers.base import Chunk
from quire.config import Config, IngestSettings
from quire.document import Document
from quire.embed import NONE
from quire.embed.base import packed
from quire.errors import EmbeddingError, NotPrepared, QuireError, SourceError
from quire.sources import contents, files
from quire.sources.files import FoundFile, Skipped
from quire.stores import Prepared, chunk_rows, digest_of, embedded_text, held, section_rows
from quire.stores.packed import LARGE
from quire.stores.texts import ChunkWords, words_of
from quire.tokens import counter
from quire.tree import Tree

if TYPE_CHECKING:
    from quire.embed.static import Static

_RULES = 7  # version of the rules that read and cut documents: raise it whenever they change
_PARALLEL_FROM = 64  # files: for fewer, starting workers costs more than they save
_RACY_NS = 100_000_000  # a file written this shortly before it was read may change again in the same tick
_TOGETHER = 256  # chunks of a large document that are embedded at the same time
_KEY_START = b"-----BEGIN "


@dataclass(frozen=True, slots=True)
class FileJob:
    """A file to read: its place, its future name, and what is stored of it."""

    found: FoundFile
    collection: str
    kind: str
    root: str
    named: bool  # named by itself: then it is read whatever its content
    known: tuple[str, str] | None  # checksum of the file that is stored, and made_by of its document
    replaces: bool = False  # whether the library has its document already
    read: tuple[bytes, int] | None = None  # its bytes, and what Same.seen would be, if they were read before


def made_by(config: Config) -> str:
    """The fingerprint of chunks: what they depend on besides the text."""
    chunk = config.chunk
    settings = f"{chunk.strategy} {chunk.named(chunk.strategy)} {config.tree} {config.tokens}"
    return fingerprint.joined(settings, _versions())


@cache
def _versions() -> str:
    from importlib.metadata import version  # takes 20 ms, which a search does not need

    return f"cutting {_RULES}, pyromark {version('pyromark')}, sentencex {version('sentencex')}"


def prepare(
    document: Document, config: Config, kind: str = "document", *, is_searched: bool = True, **origin: Any
) -> Prepared:
    """A document read, cut and analysed. One that is not to be found has no chunks."""
    (prepared,) = _with_vectors([_cut(document, config, kind, is_searched=is_searched, **origin)], config)
    return prepared


def _cut(
    document: Document, config: Config, kind: str, *, is_searched: bool = True, **origin: Any
) -> _Unembedded:
    """A document without vectors, and the texts of its chunks that they are made of."""
    tree = Tree(document, config.tree)
    strategy = config.chunk.strategy
    chunks = (
        chunkers.split(tree, strategy, config.chunk.named(strategy), config.tokens) if is_searched else []
    )
    count, size = counter(config.tokens).count, len(document.source)
    found = links.of_tree(tree, origin.get("url"))
    facts: dict[str, Any] = {
        "url": None,
        "root": None,
        "size": size,
        "mtime_ns": 0,
        "tags": found.tags,
    }
    facts |= origin
    prepared = Prepared(
        collection=document.collection,
        kind=kind,
        path=document.path,
        format=document.format,
        title=tree.title,
        source=document.source,
        checksum=document.checksum,
        made_by=made_by(config),
        sections=held(section_rows(tree, lambda s: count(document.text, s.start, s.end)), size),
        chunks=held(chunk_rows(chunks), size),
        words=held(map(_words_of, chunks), size),
        digests=held((digest_of(_embedded(chunk)) for chunk in chunks), size),
        warnings=(*document.warnings, *found.problems),
        links=held(((*link,) for link in found.links), size),  # plain tuples, which workers send faster
        fields=tuple((*field,) for field in found.fields),
        **facts,
    )
    if size < LARGE:
        return prepared, list(map(_embedded, chunks))
    return replace(prepared, instant=_made_in_parts(chunks, config)), []


def _embedded(chunk: Chunk) -> str:
    return embedded_text(chunk.trail, chunk.context, chunk.text, chunk.start)


def _made_in_parts(chunks: Sequence[Chunk], config: Config) -> bytes:
    """The instant vectors of the chunks of a large document, whose texts together take as much as it does."""
    if config.embed.model == NONE:
        return b""
    parts = (chunks[start : start + _TOGETHER] for start in range(0, len(chunks), _TOGETHER))
    return b"".join(_instant(list(map(_embedded, part))) for part in parts)


_Unembedded = tuple[Prepared, list[str]]


def _with_vectors(cut: Sequence[_Unembedded], config: Config) -> list[Prepared]:
    """Documents with the instant vectors of their chunks: made together, which is faster."""
    texts = [text for _, own in cut for text in own] if config.embed.model != NONE else []
    found = _instant(texts)
    if not found:
        return [prepared for prepared, _ in cut]
    size = len(found) // len(texts)
    ends = accumulate((size * len(own) for _, own in cut), initial=0)
    each = zip(cut, pairwise(ends), strict=True)
    return [replace(one, instant=found[a:b]) if own else one for (one, own), (a, b) in each]


def _words_of(chunk: Chunk) -> ChunkWords:
    return words_of(chunk.trail, chunk.text, "\n".join(chunk.headings))


def _instant(texts: Sequence[str]) -> bytes:
    """The static vectors of texts; empty if the table cannot be used, which embedding will say."""
    try:
        return packed(_static().embed_documents(texts)) if texts else b""
    except EmbeddingError:
        return b""


@cache
def _static() -> Static:
    from quire.embed.static import Static  # takes time, which a search by words does not need

    return Static()


def prepare_alone(document: Document, config: Config, kind: str = "document", **origin: Any) -> Prepared:
    """`prepare`, in a worker if it might approach the limits. Raises SourceError if it exceeds them."""
    if config.ingest.are_far(len(document.source)):
        return prepare(document, config, kind, **origin)
    from quire.workers import spread

    work = (document, config, kind, origin)
    (prepared,) = spread(_prepare_texts, [work], _refuse_text, count=1, limits=config.ingest)
    return prepared


def read_alone(source: bytes, path: str, config: Config, **about: Any) -> contents.FileDocument:
    """The document in the bytes of a file, read in a worker if it might grow. Raises SourceError."""
    if not contents.may_grow(path):
        return contents.document_of(source, path, settings=config.document, **about)
    from quire.workers import spread

    work = (source, path, config, about)
    (found,) = spread(_read_sources, [work], _refuse_source, count=1, limits=config.ingest)
    if isinstance(found, QuireError):
        raise found
    return found


_Source = tuple[bytes, str, Config, dict[str, Any]]


def _read_sources(work: list[_Source]) -> list[contents.FileDocument | QuireError]:
    found = list[contents.FileDocument | QuireError]()
    for source, path, config, about in work:
        try:
            found.append(contents.document_of(source, path, settings=config.document, **about))
        except QuireError as error:
            found.append(error)
    return found


def _refuse_source(work: _Source, error: QuireError) -> NoReturn:
    raise NotPrepared(work[1], str(error)) from None


_Text = tuple[Document, Config, str, dict[str, Any]]


def _prepare_texts(work: list[_Text]) -> list[Prepared]:
    return [prepare(document, config, kind, **origin) for document, config, kind, origin in work]


def _refuse_text(work: _Text, error: QuireError) -> NoReturn:
    raise NotPrepared(work[0].path, str(error)) from None


@dataclass(frozen=True, slots=True)
class Same:
    """A file whose stored document is current."""

    seen: int  # see Member


Outcome = Prepared | Same | Skipped


def prepared(jobs: Sequence[FileJob], config: Config) -> Iterator[tuple[FileJob, Outcome]]:
    """Each job with its document, or with why there is none."""
    work, limits = [(job, config) for job in jobs], config.ingest
    if len(jobs) < _PARALLEL_FROM and all(is_harmless(job, limits) for job in jobs):
        for one in work:
            yield one[0], _prepare_files([one])[0]
        return
    from quire.workers import COUNT, spread  # takes 6 ms, which a search does not need

    count = min(COUNT, len(jobs))
    yield from zip(jobs, spread(_prepare_files, work, _lost, count=count, limits=limits), strict=True)


def is_harmless(job: FileJob, limits: IngestSettings) -> bool:
    """Whether a file cannot come near the limits, whatever it holds."""
    return limits.are_far(job.found.size) and not contents.may_grow(job.found.path)


def prepared_batch(jobs: Sequence[FileJob], config: Config, *, guarded: bool) -> list[Outcome]:
    """The outcomes of some jobs in this process; if they are guarded, in one that they may end."""
    work = [(job, config) for job in jobs]
    if not guarded:
        return _prepare_files(work)
    from quire.workers import spread

    return list(spread(_prepare_files, work, _lost, count=1, limits=config.ingest))


def _lost(work: _File, error: QuireError) -> Outcome:
    return Skipped(work[0].found.path, str(error), NotPrepared.code)


_File = tuple[FileJob, Config]


def _prepare_files(work: list[_File]) -> list[Outcome]:
    found = [_cut_file(*one) for one in work]
    cut = [one for one in found if isinstance(one, tuple)]
    try:
        embedded = iter(_with_vectors(cut, work[0][1]) if work else ())
    except Exception as error:  # such as too little memory: one file of these is to blame
        if len(work) == 1:
            return [failed_by(work[0][0].found.path, error)]
        return [outcome for one in work for outcome in _prepare_files([one])]
    return [next(embedded) if isinstance(one, tuple) else one for one in found]


def _cut_file(job: FileJob, config: Config) -> _Unembedded | Same | Skipped:
    try:
        return _cut_one(job, config)
    except Exception as error:  # any parser error belongs to this file alone
        return failed_by(job.found.path, error)


def _cut_one(job: FileJob, config: Config) -> _Unembedded | Same | Skipped:
    found = job.found
    source, seen = job.read or read_file(found, config)
    if not job.named and is_private_key(source):
        return _private_key(found)
    if job.known == (contents.digest_of_file(source), made_by(config)):
        return Same(seen)
    read = contents.document_of(source, found.path, collection=job.collection, settings=config.document)
    origin: dict[str, Any] = {"url": found.url, "root": job.root, "size": found.size}
    origin |= {"mtime_ns": found.mtime_ns, "seen": seen}
    origin |= {"original": read.original, "places": read.places}
    prepared, texts = _cut(read.document, config, job.kind, **origin)
    return replace(prepared, warnings=(*read.warnings, *prepared.warnings)), texts


def read_file(found: FoundFile, config: Config) -> tuple[bytes, int]:
    """The bytes of a file, and when it was seen: see Member. Raises SourceError."""
    seen = seen_of(found)
    return files.read_bytes(found.absolute, settings=config.document), seen


def failed_by(source: str, error: Exception) -> Skipped:
    """What a report says of a source that an error kept out."""
    code = error.code if isinstance(error, QuireError) else NotPrepared.code
    return Skipped(source, _reason(error), code)


def _reason(error: Exception) -> str:
    """Why something could not be added, on one line."""
    if isinstance(error, SourceError):
        return error.reason
    if isinstance(error, QuireError):
        return str(error)
    told = redact.text(" ".join(str(error).split()))[:200]
    return f"cannot be prepared ({type(error).__name__}{f': {told}' if told else ''})"


def is_private_key(source: bytes) -> bool:
    """Whether a file is a private key, whatever its name is."""
    start = source[:1000].lstrip()
    return start.startswith(_KEY_START) and b"PRIVATE KEY-----" in start[:100]


def _private_key(found: FoundFile) -> Skipped:
    return Skipped(found.path, f"{files.SECRETS}: it is a private key", kind=files.SECRETS)


def seen_of(found: FoundFile) -> int:
    """When a file about to be read was last changed; below 0 if it could change again undetected."""
    late = abs(time.time_ns() - found.ctime_ns) < _RACY_NS
    return -found.ctime_ns if late else found.ctime_ns


def examined(found: FoundFile, config: Config, *, named: bool) -> FoundFile:
    """A file with the checksum of its document, or with why it cannot be added."""
    found = replace(found, seen=seen_of(found))
    try:
        source = files.read_bytes(found.absolute, settings=config.document)
        if not named and is_private_key(source):
            return replace(found, problem=_private_key(found))
        contents.check_content(source, found.path, settings=config.document)
        return replace(found, checksum=contents.digest_of_file(source))
    except Exception as error:  # the same reason that preparing it would give
        return replace(found, problem=failed_by(found.path, error))
