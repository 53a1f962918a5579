"""Compare what a source has with what the library holds, and plan what to do, item by item.

Pure: no I/O here. Always: each path has one item at most; no document is renamed onto a taken path, or
away from another source that holds it; a document is removed only if the source is healthy or a person
asked for it; a document whose file could not be examined stays.
"""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any

from quire import redact
from quire.document import format_of
from quire.errors import Refused
from quire.fingerprint import why_remade
from quire.plural import counted
from quire.sources.contents import is_converted
from quire.sources.files import SECRETS, FoundFile, PassedOver, Seen, Skipped
from quire.stores import DocumentRow, SourceRow

ADD, UPDATE, REMAKE, MOVE, TOUCH = "add", "update", "remake", "move", "touch"
REMOVE, KEEP, SKIP, REFUSE, IGNORE = "remove", "keep", "skip", "refuse", "ignore"
WRITES = (ADD, UPDATE, REMAKE)  # the actions that read, cut and write
_TAKES = (*WRITES, MOVE, TOUCH)

AUTO, PRUNE, NEVER = "auto", "prune", "never"  # what to do with documents whose files are gone


@dataclass(frozen=True, slots=True)
class Item:
    """What to do about one path."""

    action: str
    path: str
    reason: str = ""
    old_path: str = ""  # the document's path before a move
    kind: str = ""  # what a skipped file is counted as, such as `.pdf`
    found: FoundFile | None = None
    row: DocumentRow | None = None
    code: str = ""  # of the error, if doing it would be reported as a failure
    is_named: bool = False  # reported by name, even if it is counted as well
    leaves: bool = False  # this source drops it, and another still holds it

    def to_json(self) -> dict[str, Any]:
        """The item as `--dry-run --json` prints it."""
        return {
            "action": self.action,
            "path": self.path,
            "from": self.old_path or None,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes that a source would make in a library."""

    source: SourceRow
    items: tuple[Item, ...]
    unchanged: int = 0
    problem: str = ""  # why documents whose files are gone stay

    @property
    def counts(self) -> dict[str, int]:
        """The number of items of each action, and of unchanged documents."""
        return {**Counter(item.action for item in self.items), "unchanged": self.unchanged}

    @property
    def fails(self) -> bool:
        """Whether applying it would report a failure."""
        return any(item.code for item in self.items)

    @property
    def takes_in(self) -> bool:
        """Whether the source would have documents afterwards."""
        return self.unchanged > 0 or any(item.action in _TAKES for item in self.items)

    def of(self, *actions: str) -> list[Item]:
        """The items with one of these actions."""
        return [item for item in self.items if item.action in actions]

    def to_json(self) -> dict[str, Any]:
        """The plan as `--dry-run --json` prints it."""
        items = [item.to_json() for item in self.items]
        about = {"source": redact.url(self.source.name), "collection": self.source.collection}
        return {**about, "items": items, "counts": self.counts, "problem": self.problem}


@dataclass(frozen=True, slots=True)
class Held:
    """A document of the source's collection, and how the source and others hold it."""

    row: DocumentRow
    seen: int | None = None  # when this source saw its file (see Member); None if it does not hold it
    others: tuple[SourceRow | None, ...] = ()  # the other sources that hold it; None is one that is not known
    original: str = ""  # checksum of its file, if it was converted

    @property
    def checksum(self) -> str:
        """The checksum of its file."""
        return self.original or self.row.checksum

    def may_move(self, path: str) -> bool:
        """Whether every other source that holds it would hold it under another path, too."""
        place = f"{self.row.root}/{path}"
        return all(s and s.type == "folder" and place.startswith(f"{s.place}/") for s in self.others)


@dataclass(frozen=True, slots=True)
class Rules:
    """What a plan depends on besides files and documents."""

    made_by: str  # what makes chunks now
    gone: str = AUTO
    problem: str = ""  # why the source may be incomplete: its root is gone or empty
    shared: bool = False  # another version of a program is no reason to remake documents
    members: int = 0  # how many documents the source holds, if `held` has only some of them


def make_plan(source: SourceRow, listing: Iterable[Seen], held: Mapping[str, Held], rules: Rules) -> Plan:
    """The plan for a source. `held` has the documents of its collection and kind, by path."""
    draft = _Draft(source, held, rules)
    draft.look(listing)
    draft.pair_moves()
    problem = draft.settle_gone()
    return Plan(source, tuple(sorted(draft.items, key=_order)), draft.unchanged, problem)


def to_read(listing: Iterable[Seen], held: Mapping[str, Held]) -> set[str]:
    """Paths of new files that may be renamed documents. Only their content can tell."""
    found = {seen.path: seen for seen in listing if isinstance(seen, FoundFile)}
    sizes = {one.row.size for path, one in held.items() if one.seen is not None and path not in found}
    return {path for path, seen in found.items() if path not in held and seen.size in sizes}


def is_unchanged(held: Held, found: FoundFile) -> bool:
    """Whether a file is unchanged since it was seen, without reading it: no rename, no write."""
    row = held.row
    same = (row.size, row.mtime_ns) == (found.size, found.mtime_ns)
    return same and held.seen == found.ctime_ns


def _order(item: Item) -> tuple[str, str]:
    return item.path, item.action


@dataclass(slots=True)
class _Draft:
    """A plan in the making."""

    source: SourceRow
    held: Mapping[str, Held]
    rules: Rules
    items: list[Item] = field(default_factory=list)
    unchanged: int = 0
    new: dict[str, FoundFile] = field(default_factory=dict)
    present: set[str] = field(default_factory=set)
    passed: dict[str, Skipped | PassedOver] = field(default_factory=dict)
    gone: dict[str, DocumentRow] = field(default_factory=dict)

    def look(self, listing: Iterable[Seen]) -> None:
        """Compare each file with its document."""
        for seen in listing:
            if isinstance(seen, FoundFile):
                self.present.add(seen.path)
                self._compare(seen)
            elif isinstance(seen, Skipped):
                self.passed[seen.source] = seen
                self.items.append(_skipped(seen))
            else:
                self.passed[seen.path] = seen
                self.items.append(Item(SKIP if seen.kind else IGNORE, seen.path, seen.reason, kind=seen.kind))
        self.gone = {path: one.row for path, one in self._members() if self._is_gone(path)}

    def _members(self) -> Iterator[tuple[str, Held]]:
        return ((path, one) for path, one in self.held.items() if one.seen is not None)

    def _compare(self, found: FoundFile) -> None:
        held = self.held.get(found.path)
        if held is None:
            self.new[found.path] = found
        elif held.row.root != self.source.root:
            self.items.append(_refused(self.source, held.row, found))
        elif is_unchanged(held, found):
            self._same(held.row, found, is_read=False)
        elif found.problem:
            self.items.append(_skipped(found.problem))
        elif found.checksum == held.checksum:
            self._same(held.row, found, is_read=True)
        else:
            reason = "its file has changed" if found.checksum else "its file may have changed"
            self.items.append(Item(UPDATE, found.path, reason, found=found, row=held.row))

    def _same(self, row: DocumentRow, found: FoundFile, *, is_read: bool) -> None:
        """Plan for a document with unchanged content. It may still have to be cut again."""
        if reason := why_remade(row.made_by, self.rules.made_by, shared=self.rules.shared):
            self.items.append(Item(REMAKE, found.path, reason, found=found, row=row))
        elif is_read:
            self.items.append(Item(TOUCH, found.path, "only its time has changed", found=found, row=row))
        else:
            self.unchanged += 1

    def _is_gone(self, path: str) -> bool:
        """Whether the source no longer has a document's file. An unreadable file still counts as there."""
        if path in self.present:
            return False
        passed = self._passed(path)
        return passed is None or isinstance(passed, PassedOver)

    def _passed(self, path: str) -> Skipped | PassedOver | None:
        """Why a path, or the nearest folder above it, was skipped; None if it was not."""
        places = (path, *map(str, PurePosixPath(path).parents))
        return next((self.passed[place] for place in places if place in self.passed), None)

    def pair_moves(self) -> None:
        """Match new files to missing ones by content: these files were renamed."""
        candidates = _Candidates(self.gone.values(), self.held)
        for path, found in sorted(self.new.items()):
            old = None if found.problem else candidates.take(found)
            if old:
                del self.gone[old.path]
                self.items.append(
                    Item(MOVE, path, f"renamed from {old.path}", old.path, found=found, row=old)
                )
            elif found.problem:
                self.items.append(_skipped(found.problem))
            else:
                self.items.append(Item(ADD, path, "new", found=found))

    def settle_gone(self) -> str:
        """Remove or keep documents whose files are gone; returns why they are kept."""
        if not self.gone:
            return ""
        asked = {path for path in self.gone if self._is_asked(path)}
        problem = self._why_kept(len(self.gone) - len(asked))
        for path, row in self.gone.items():
            passed = self._passed(path)
            reason = passed.reason if passed else "its file is gone"
            if problem and path not in asked:
                self.items.append(Item(KEEP, path, f"{reason}; kept, because {problem}", row=row))
            elif self.held[path].others:
                kept = f"{reason}; kept, because another source holds it"
                self.items.append(Item(KEEP, path, kept, row=row, leaves=True))
            else:
                self.items.append(Item(REMOVE, path, reason, row=row))
        return problem if len(asked) < len(self.gone) else ""

    def _is_asked(self, path: str) -> bool:
        """Whether the source's options exclude a document: then a person asked for it."""
        passed = self._passed(path)
        return isinstance(passed, PassedOver) and passed.is_asked

    def _why_kept(self, gone: int) -> str:
        """Why this many documents stay though their files are gone; empty if they go."""
        if self.rules.gone == PRUNE or not gone:
            return ""
        if self.rules.gone == NEVER or self.rules.problem:
            return self.rules.problem or "nothing is removed here"
        held = self.rules.members or sum(1 for _ in self._members())
        if 2 * gone >= held:
            how = "ignored or missing" if any(map(self._passed, self.gone)) else "missing"
            return f"{gone:,} of its {counted(held, 'document')} {'is' if gone == 1 else 'are'} {how} at once"
        return ""


def _skipped(seen: Skipped) -> Item:
    is_named = seen.kind in ("", SECRETS)  # others are counted
    return Item(SKIP, seen.source, seen.reason, kind=seen.kind, code=seen.code, is_named=is_named)


def _refused(source: SourceRow, row: DocumentRow, found: FoundFile) -> Item:
    where = row.url or row.root or "text that was added under this name"
    place = shlex.quote(source.place)
    reason = (
        f"{row.collection} already has this path from {where}. Name another collection: -c NAME. If this"
        f" source is held already, remove it first: quire sources remove {place} -c {row.collection}"
    )
    return Item(REFUSE, found.path, reason, code=Refused.code)


class _Candidates:
    """Documents whose files are gone, by content. Each is matched to one new file.

    Those that other sources hold come last: they may have to stay.
    """

    def __init__(self, rows: Iterable[DocumentRow], held: Mapping[str, Held]) -> None:
        self._held = held
        self._rows: dict[tuple[object, ...], deque[DocumentRow]] = defaultdict(deque)
        for row in sorted(rows, key=lambda row: (bool(held[row.path].others), row.path)):
            content = held[row.path].checksum, row.size
            self._rows[content].append(row)
            self._rows[*content, PurePosixPath(row.path).name].append(row)
        self._taken: set[int] = set()

    def take(self, found: FoundFile) -> DocumentRow | None:
        """The document that a file was before: the one with the same file name, else the first."""
        content = found.checksum, found.size
        for key in ((*content, PurePosixPath(found.path).name), content):
            rows = self._rows.get(key, deque[DocumentRow]())
            while rows and rows[0].seq in self._taken:
                rows.popleft()
            if rows and self._held[rows[0].path].may_move(found.path):
                self._taken.add(rows[0].seq)
                return rows.popleft()
        return None


def is_cut_anew(row: DocumentRow, path: str) -> bool:
    """Whether a rename changes more than the path: a title that is the name, the format, the reader."""
    is_other = row.format != format_of(path) or _reader(row.path) != _reader(path)
    return row.title == PurePosixPath(row.path).stem or is_other


def _reader(path: str) -> str:
    """The ending that tells how a file is converted; "" if it is not."""
    return PurePosixPath(path).suffix.lower() if is_converted(path) else ""


def after(held: Mapping[str, Held], plan: Plan, made_by: str) -> dict[str, Held]:
    """What the library holds after another source's plan, as far as a plan can tell."""
    changed = dict(held)
    for item in plan.items:
        if item.action in (MOVE, REMOVE):
            changed.pop(item.old_path or item.path, None)
        if item.action in (ADD, MOVE, UPDATE) and item.found:
            known = item.row or _nothing(plan.source, item.path)
            found, root = item.found, plan.source.root
            before = held.get(item.old_path or item.path)
            checksum = found.checksum or (before.checksum if before else known.checksum)
            row = replace(known, path=item.path, root=root, checksum=checksum)
            row = replace(row, size=found.size, mtime_ns=found.mtime_ns, made_by=made_by)
            changed[item.path] = Held(row, before.seen if before else None, (plan.source,))
    return changed


def _nothing(source: SourceRow, path: str) -> DocumentRow:
    """A document of which only the future path is known."""
    about = (source.collection, source.kind, path, None, source.root, "", path, "", 0, 0, 0, "", "standard")
    return DocumentRow(0, "", *about, 0, 0, 0)
