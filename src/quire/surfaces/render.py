"""What surfaces show: chunks, outlines, results and reports as text and JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from quire import later, redact
from quire.context import NO_GOOD_MATCH as NO_GOOD_MATCH
from quire.context import one_line as one_line
from quire.context import safe as safe
from quire.context import safe_lines as safe_lines
from quire.embed.base import STATIC
from quire.errors import SourceError
from quire.plural import counted as counted
from quire.surfaces import wrapping
from quire.surfaces.outcomes import DONE as DONE
from quire.surfaces.outcomes import FAILED as FAILED
from quire.surfaces.outcomes import NOTHING as NOTHING
from quire.surfaces.outcomes import PARTLY as PARTLY
from quire.surfaces.outcomes import STOPPED as STOPPED
from quire.surfaces.outcomes import USAGE as USAGE
from quire.surfaces.outcomes import exit_code as exit_code

if TYPE_CHECKING:  # a command that needs no library loads none
    from quire.chunkers.base import Chunk
    from quire.context import Passage
    from quire.copying import Copied
    from quire.embedding import Embedded
    from quire.ingest.plan import Plan
    from quire.ingest.report import Report
    from quire.location import Places
    from quire.records import StoredChunk
    from quire.result import Result
    from quire.searcher import Found
    from quire.sources.files import Skipped
    from quire.stores import Counts, DocumentRow, SourceRow
    from quire.sync import Changes
    from quire.tree import Tree

_KINDS = 8  # the most kinds of skipped files to name
_SURROGATE = later.pattern("[\ud800-\udfff]")
_LONGEST = 1000  # characters of a message
INDENT = 5  # columns before what belongs to a numbered result
_FACTS = {  # of a hit: what it counts by
    "words": "words",
    "meaning": "cosine",
    "covers": "share of the query's words",
    "heading": "heading",
    "whole": "rest of the document",
    "logit": "read again",
    "added": "added by that",
}


def line(text: str) -> str:
    """A name or a message: safe, and on one line."""
    return safe(text).replace("\n", "\\u{a}")


def as_text(argument: str) -> str:
    r"""An argument as it can be stored: bytes that are not UTF-8 are written `\\xNN`, as in paths."""
    return _SURROGATE.sub(lambda found: safe(found[0]), argument)


def as_json(value: Any) -> str:
    """A value as JSON on one line, in valid UTF-8."""
    text = json.dumps(value, ensure_ascii=False)
    return _SURROGATE.sub(lambda found: json.dumps(safe(found[0]))[1:-1], text)


def cut(text: str) -> str:
    """A message without its middle, if it is long: the end says what to do."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} … {text[-_LONGEST // 2 :]}"


def first_line(text: str, width: int) -> str:
    """The first line with text, cut to a width."""
    line = next((line.strip() for line in text.splitlines() if line.strip(" \t\ufeff")), "")
    line = safe(line)
    return line if len(line) <= width else f"{line[: width - 1]}…"


def chunk_json(chunk: Chunk, places: Places | None) -> dict[str, Any]:
    """A chunk with all its fields, and where it is in the original if that has places."""
    return {
        "index": chunk.index,
        "address": chunk.address,
        "start": chunk.start,
        "end": chunk.end,
        "byte_start": chunk.byte_start,
        "byte_end": chunk.byte_end,
        "start_line": chunk.start_line,
        "end_line": chunk.end_line,
        "location": (places.location(chunk.start, chunk.end) if places else "") or None,
        "tokens": chunk.tokens,
        "trail": list(chunk.trail),
        "header_path": chunk.header_path,
        "breadcrumb": chunk.breadcrumb,
        "context": chunk.context,
        "text": chunk.text,
    }


def chunks_json(
    tree: Tree, strategy: str, chunks: Sequence[Chunk], places: Places | None = None
) -> dict[str, Any]:
    """What `quire chunk --json` prints of one document."""
    document = tree.document
    return {
        "strategy": strategy,
        "document": {
            "path": document.path,
            "title": tree.title,
            "bytes": len(document.source),
            "lines": document.lines,
            "checksum": document.checksum,
            "warnings": list(document.warnings),
        },
        "chunks": [chunk_json(chunk, places) for chunk in chunks],
    }


def toc_json(tree: Tree, tokens: dict[int, int]) -> dict[str, Any]:
    """The outline of a document, nested; `tokens` of each section by its position."""
    nodes: dict[int, dict[str, Any]] = {}
    for section in tree.sections:
        node = {
            "address": section.address,
            "title": section.title,
            "depth": section.level,
            "tokens": tokens[section.position],
            "children": [],
        }
        nodes[section.position] = node
        if section.parent is not None:
            nodes[section.parent.position]["children"].append(node)
    return nodes[0]


def line_range(first: int, last: int) -> str:
    """`line 7`, `lines 7–9`."""
    return f"line {first:,}" if first == last else f"lines {first:,}–{last:,}"


def shown_place(found: Result | Passage | StoredChunk) -> str:
    """Where something is in its original: `page 12`; in a text, `lines 7–9`."""
    return found.location or line_range(found.start_line, found.end_line)


def chunk_place(chunk: Chunk, places: Places | None) -> str:
    """Where a chunk is in its original: `page 12`; in a text, `lines 7–9`."""
    location = places.location(chunk.start, chunk.end) if places else ""
    return location or f"lines {chunk.start_line}–{chunk.end_line}"


def chunk_lines(chunk: Chunk, places: Places | None, width: int) -> Iterable[str]:
    """A chunk in two lines: its place and its beginning."""
    where = chunk_place(chunk, places)
    name = line(" › ".join(chunk.trail)) + (f" ~{chunk.part}" if chunk.part else "")
    yield f"{chunk.index:>4}  {name}"
    yield f"      {where}, {counted(chunk.tokens, 'token')}: {first_line(chunk.text, width)}"


def toc_lines(tree: Tree, tokens: dict[int, int]) -> Iterable[str]:
    """The outline, indented; a first heading that repeats the document's title is not shown twice."""
    for section in tree.sections:
        depth = len(section.trail) - 1
        if depth or section is tree.root:
            slug = f"  #{section.slug}" if section.slug else ""
            yield f"{'  ' * depth}{line(section.title)}{slug}  ({tokens[section.position]:,})"


def found_json(found: Found) -> dict[str, Any]:
    """What `quire search --json` prints."""
    shown = map(asdict, found.results)
    results = [
        {name: one[name] for name in one if name != "checksum" and (one[name] or name != "explain")}
        for one in shown
    ]
    about = {"query": found.query, "mode": found.mode, "model": found.model, "good_match": found.good_match}
    return about | {"results": results, "notes": list(found.notes)}


def size(result: Result) -> str:
    """How large a result is, and where to read more: `180 of 2,300 tokens in docs:a.md`."""
    if result.parent is None:
        return counted(result.tokens, "token")
    return f"{result.tokens:,} of {counted(result.parent_tokens, 'token')} in {line(result.parent)}"


def result_lines(
    number: int, result: Result, *, colour: bool = False, columns: int | None = None
) -> tuple[str, ...]:
    """A result: its address, its place, a link if it has one, its snippet. Wrapped to `columns`, if given."""
    where = f"{shown_place(result)}, {size(result)}"
    where += f", {counted(len(result.merged_from), 'section')} in one" if result.merged_from else ""
    where += f", {result.strength} match" if result.strength != "none" else ""
    where += ", changed since" if result.stale else ""
    snippet = wrapping.drawn(result.snippet, result.highlights if colour else (), columns, INDENT)
    return (
        f"{number:>3}. {line(result.address)}",
        _indented(f"{line(' › '.join(result.trail))}  ({where})", columns),
        *((f"{' ' * INDENT}{line(redact.url(result.link))}",) if result.link else ()),
        f"{' ' * INDENT}{snippet}",
    )


def explained_lines(told: Mapping[str, Any], columns: int | None = None) -> Iterable[str]:
    """How a result came about: its score, then each chunk that it has, with what counted."""
    words = ", ".join(map(line, told["terms"])) or "none"
    yield _indented(f"score {told['score']:.3f} for the words: {words}", columns)
    for hit in told["hits"]:
        ranked = f"chunk ranked {hit['rank']:,}" if hit["rank"] else "chunk without a rank"
        facts = [f"{name} {hit[key]:.2f}" for key, name in _FACTS.items() if hit[key]]
        yield _indented(f"{ranked}: score {hit['score']:.3f} ({', '.join(facts) or 'no facts'})", columns)
    if merged := told["merged_sections"]:
        yield _indented(f"merged from {counted(len(merged), 'section')}", columns)


def _indented(text: str, columns: int | None) -> str:
    return f"{' ' * INDENT}{wrapping.filled(text, columns, INDENT)}"


def report_json(report: Report) -> dict[str, Any]:
    """What `quire add --json` prints."""
    shown = asdict(report)
    shown["skipped"] = [{"source": one.source, "reason": one.reason} for one in report.skipped]
    shown["failed"] = failed_json(report.failed)
    shown["seconds"], shown["pending_seconds"] = round(report.seconds, 3), round(report.pending_seconds)
    return shown


def failed_json(failed: Iterable[Skipped]) -> list[dict[str, Any]]:
    """What failed in a batch, one by one."""
    return [{"source": one.source, "reason": one.reason, "code": one.code} for one in failed]


def failure_json(failed: Skipped) -> dict[str, Any]:
    """One thing that failed in a batch, as an error."""
    details = {"source": failed.source, "reason": failed.reason}
    return {"code": failed.code, "message": f"{failed.source}: {failed.reason}", "details": details}


def report_error(report: Report) -> dict[str, Any]:
    """The error of a batch in which everything failed."""
    if len(report.failed) == 1:
        return failure_json(report.failed[0])
    details = {"failed": failed_json(report.failed)}
    return {"code": SourceError.code, "message": report_line(report), "details": details}


def report_line(report: Report) -> str:
    """What an indexing run did, in a sentence."""
    from quire.ingest.report import EMBEDDING

    parts = [f"{report.added:,} added", f"{report.updated:,} updated", f"{report.unchanged:,} unchanged"]
    parts += [f"{report.moved:,} renamed"] if report.moved else []
    parts += [f"{report.removed:,} removed"] if report.removed else []
    failed = sum(one.source != EMBEDDING for one in report.failed)
    parts += [f"{failed:,} failed"] if failed else []
    written = f"{counted(report.chunks, 'chunk')} in {report.seconds:.1f} s"
    return f"{', '.join(parts)}: {written}"


def skipped_line(kinds: Mapping[str, int]) -> str:
    """`skipped 14 .pdf, 3 .exe`: unread files by kind, most frequent first; "" for none."""
    from quire.readers import missing_extra
    from quire.sources.files import SECRETS

    ranked = sorted(kinds.items(), key=lambda item: (-item[1], item[0]))
    others = [(kind, number) for kind, number in ranked if kind != SECRETS]
    parts = [f"{number:,} {safe(kind)}" for kind, number in others[:_KINDS]]
    if rest := sum(number for _, number in others[_KINDS:]):
        parts.append(f"{rest:,} of other kinds")
    if secrets := kinds.get(SECRETS):
        parts.append(f"{counted(secrets, 'file')} that may hold secrets")
    how = next(filter(None, map(missing_extra, kinds)), "")
    return f"skipped {', '.join(parts)}{f': {how}' if how else ''}" if parts else ""


def missing_line(addresses: Sequence[str]) -> str:
    """A line about documents that stay though their sources no longer have them."""
    first = line(addresses[0])
    if len(addresses) == 1:
        return f"{first} is no longer in its source. To remove it: quire refresh"
    return (
        f"{len(addresses):,} documents are no longer in their sources, for example {first}. "
        "To remove them: quire refresh"
    )


_CHANGES = ("add", "update", "remake", "move", "remove")
_SHOWN_ALONE = (*_CHANGES, "keep", "refuse")


def plan_lines(plan: Plan) -> Iterable[str]:
    """A plan for people: each change on a line, skipped files by reason, and a summary."""
    yield line(redact.url(plan.source.name))
    for item in plan.items:
        if item.action in _SHOWN_ALONE or (item.action == "skip" and not item.kind):
            old = f"{line(item.old_path)} → " if item.old_path else ""
            told = "" if item.action in ("add", "move") else f"  ({line(item.reason)})"
            yield f"  {item.action:<7} {old}{line(item.path)}{told}"
    ignored = Counter(item.reason for item in plan.items if item.action == "ignore")
    for reason, number in sorted(ignored.items()):
        yield f"  ignore  {counted(number, 'path')}: {line(reason)}"
    if skipped := skipped_line(Counter(item.kind for item in plan.items if item.kind)):
        yield f"  {skipped.replace('skipped', 'skip   ', 1)}"
    yield f"  {plan_sum(plan)}"
    if plan.problem and not plan.of("keep"):
        yield f"  problem: {line(plan.problem)}"


def plan_sum(plan: Plan) -> str:
    """The summary of a plan, in a sentence."""
    counts = plan.counts
    changes = [f"{counts[name]:,} to {name}" for name in _CHANGES if counts.get(name)]
    unchanged = counts["unchanged"] + counts.get("touch", 0)
    return f"{', '.join(changes) or 'nothing would change'}; {unchanged:,} unchanged"


def source_json(source: SourceRow) -> dict[str, Any]:
    """What `quire sources --json` prints for a source."""
    shown = asdict(source)
    options = shown.pop("options")
    hidden = {name: shown[name] and redact.url(shown[name]) for name in ("place", "root")}
    return {**shown, **hidden, **options}


def source_lines(source: SourceRow, now_ms: int) -> Iterable[str]:
    """A source for people: its type, place, documents and state."""
    checked = f"checked {age(now_ms - source.checked_at)} ago" if source.checked_at else "never checked"
    held = counted(source.documents, "document")
    yield line(redact.url(source.name))
    yield f"     {source.type} in {line(source.collection)}: {held}, {checked}{_options(source)}"
    if source.problem:
        yield f"     problem: {line(source.problem)}"


def _options(source: SourceRow) -> str:
    options = source.options
    told = [f"include {line(' '.join(options.include))}"] if options.include else []
    told += [f"exclude {line(' '.join(options.exclude))}"] if options.exclude else []
    told += [f"without {counted(len(options.without), 'removed document')}"] if options.without else []
    told += ["keeps what is gone"] if options.keep else []
    told += [f"at commit {options.commit[:12]}"] if options.commit else []
    told += [source.kind] if source.kind != "document" else []
    return "".join(f", {one}" for one in told)


_UNITS = ((86_400_000, "day"), (3_600_000, "hour"), (60_000, "minute"), (1000, "second"))


def age(ms: int) -> str:
    """`3 minutes`: a time span in its largest unit."""
    return next((counted(ms // size, unit) for size, unit in _UNITS if ms >= size), "a moment")


def report_code(report: Report) -> int:
    """The exit code of a report: done, partly done, or failed."""
    if not report.failed:
        return DONE
    return PARTLY if report.added or report.updated or report.unchanged else FAILED


def plans_code(plans: Sequence[Plan]) -> int:
    """The exit code that applying plans would have."""
    if not any(plan.fails for plan in plans):
        return DONE
    return PARTLY if any(plan.takes_in for plan in plans) else FAILED


def copied_line(done: Copied) -> str:
    """What a copy did, in a sentence."""
    parts = [f"{counted(done.documents, 'document')} copied"]
    parts += [f"{done.unchanged:,} there already"] if done.unchanged else []
    parts += [f"{counted(done.vectors, 'vector')}"] if done.vectors else []
    return f"{', '.join(parts)}: {done.seconds:.1f} s"


def embedded_line(done: Embedded) -> str:
    """What an embedding run did, in a sentence."""
    parts = [f"{counted(done.embedded, 'chunk')} embedded with {line(done.model)}"]
    parts += [f"{done.reused:,} known already"] if done.reused else []
    parts += [f"{counted(len(done.failed), 'document')} failed"] if done.failed else []
    return f"{', '.join(parts)}: {done.seconds:.1f} s"


def embedded_json(done: Embedded, failed: Iterable[Skipped]) -> dict[str, Any]:
    """What `quire embed --json` prints."""
    shown = asdict(done)
    del shown["left"], shown["seconds_left"]  # nothing is left by a command that does it all
    return {**shown, "failed": failed_json(failed), "seconds": round(done.seconds, 3)}


def document_json(row: DocumentRow) -> dict[str, Any]:
    """A document without its text."""
    shown = asdict(row)
    del shown["seq"]
    told = {"tokens": reading_tokens(row), "source_type": row.source_type, "is_chunked": row.is_chunked}
    return {"address": row.address, **shown, **told}


def reading_tokens(row: DocumentRow) -> int:
    """About how many tokens of a budget reading a document takes: one for three bytes of text."""
    return (row.length + 2) // 3


def changes_json(changes: Changes) -> dict[str, Any]:
    """What `quire refresh --check --json` prints."""
    return {
        "changed": [row.address for row in changes.changed],
        "missing": [row.address for row in changes.missing],
        "kept": [row.address for row in changes.missing if row.seq in changes.kept],
        "new": list(changes.new),
        "remade": [row.address for row in changes.remade],
    }


def changes_lines(changes: Changes) -> Iterable[str]:
    """What `quire refresh --check` prints."""
    yield from (f"changed  {line(row.address)}" for row in changes.changed)
    for row in changes.missing:
        yield f"{'kept   ' if row.seq in changes.kept else 'missing'}  {line(row.address)}"
    yield from (f"new      {line(address)}" for address in changes.new)
    yield from (f"remade   {line(row.address)}" for row in changes.remade)


def status_json(
    url: str, counts: Counts, wrong: list[str] | None, not_embedded: dict[str, str]
) -> dict[str, Any]:
    """What `quire status --json` prints. `wrong` is None if nobody looked for problems."""
    checked = {"checked": wrong is not None, "problems": wrong or []}
    return {"library": redact.url(url), **asdict(counts), "not_embedded": not_embedded, **checked}


def status_lines(shown: dict[str, Any]) -> Iterable[str]:
    """The status for people."""
    yield line(shown["library"])
    yield (
        f"{counted(shown['documents'], 'document')}, {counted(shown['sections'], 'section')}, "
        f"{counted(shown['chunks'], 'chunk')}, {counted(shown['bytes'], 'byte')}"
    )
    for name, documents in shown["collections"].items():
        yield f"  {line(name)}  {counted(documents, 'document')}"
    yield from [f"meaning: {_meaning(shown)}"] if shown["chunks"] else []
    for address, reason in shown["not_embedded"].items():
        yield f"not embedded: {line(address)}: {line(reason)}"
    yield from (f"problem: {line(problem)}" for problem in shown["problems"])
    yield from ["checked: no problem was found"] if shown["checked"] and not shown["problems"] else []


def _meaning(shown: dict[str, Any]) -> str:
    """Which model searches use, and how far another has come."""
    serving, model, chunks = shown["serving"], shown["model"], shown["chunks"]
    parts = [f"{line(serving)} serves" if serving else "words alone serve"]
    for name, embedded in ((model, shown["embedded"]), (STATIC, shown["instant"])):
        if name and (name == serving or embedded < chunks) and (name == model or embedded):
            how_far = "all chunks" if embedded == chunks else f"{embedded:,} of {counted(chunks, 'chunk')}"
            parts.append(f"{line(name)} has {how_far}")
    told = f". {line(shown['model_problem'])}" if shown["model_problem"] else ""
    return "; ".join(parts) + (". Go on with: quire embed" if shown["goes_on"] else told)


def pending_line(report: Report) -> str:
    """What is left to `quire embed`; "" if nothing is."""
    if not report.pending:
        return ""
    minutes = max(1, round(report.pending_seconds / 60))
    hours = round(minutes / 60)
    about = counted(minutes, "minute") if minutes < 90 else counted(hours, "hour")
    return f"Searchable now. Deeper meaning: quire embed (about {about})"
