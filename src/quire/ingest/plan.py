"""What a source has now, and what the library holds of it, to what is to be done: item by item.

Pure: nothing is read, written or asked here. Always: each path has one item at most; no document is
renamed onto a path that is taken, or away from another source that holds it; a document is removed only
where the source is healthy, or where removing was asked for; what could not be looked at stays.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from quire.sources.files import Found, PassedOver, Seen, Skipped
from quire.stores.rows import DocumentRow, SourceRow

ADD, UPDATE, REMAKE, MOVE, TOUCH = "add", "update", "remake", "move", "touch"
REMOVE, KEEP, SKIP, REFUSE, IGNORE = "remove", "keep", "skip", "refuse", "ignore"
CHANGES = (ADD, UPDATE, REMAKE, MOVE, REMOVE)  # what a reader of the library would notice
WRITES = (ADD, UPDATE, REMAKE)  # what is read, cut and written

AUTO, PRUNE, NEVER = "auto", "prune", "never"  # what becomes of documents whose files are gone


@dataclass(frozen=True, slots=True)
class Item:
    """What is to be done about one path."""

    action: str
    path: str
    reason: str = ""
    old_path: str = ""  # where the document was, if it moves
    kind: str = ""  # what a skipped file is counted as, such as `.pdf`
    found: Found | None = None
    row: DocumentRow | None = None

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
    """What a source would change in a library."""

    source: SourceRow
    items: tuple[Item, ...]
    unchanged: int = 0
    problem: str = ""  # why documents whose files are gone stay

    @property
    def counts(self) -> dict[str, int]:
        """How many items there are of each action, and how many documents are as they were."""
        return {**Counter(item.action for item in self.items), "unchanged": self.unchanged}

    @property
    def changes(self) -> tuple[Item, ...]:
        """The items that a reader of the library would notice."""
        return tuple(item for item in self.items if item.action in CHANGES)

    def of(self, *actions: str) -> list[Item]:
        """The items with one of some actions."""
        return [item for item in self.items if item.action in actions]

    def to_json(self) -> dict[str, Any]:
        """The plan as `--dry-run --json` prints it."""
        items = [item.to_json() for item in self.items]
        return {"source": self.source.name, "items": items, "counts": self.counts, "problem": self.problem}


@dataclass(frozen=True, slots=True)
class Held:
    """A document of the source's collection, and how the source and others hold it."""

    row: DocumentRow
    seen: int | None = None  # when this source saw its file (see Member); None if it does not hold it
    is_shared: bool = False  # another source holds it too


@dataclass(frozen=True, slots=True)
class Rules:
    """What a plan goes by besides what there is."""

    made_by: str  # what makes chunks now
    gone: str = AUTO
    problem: str = ""  # why the source cannot be trusted to be complete: its root is gone or empty


def make(source: SourceRow, listing: Iterable[Seen], held: Mapping[str, Held], rules: Rules) -> Plan:
    """The plan for a source. `held` has the documents of its collection and kind, by path."""
    draft = _Draft(source, held, rules)
    draft.look(listing)
    draft.pair_moves()
    problem = draft.settle_gone()
    return Plan(source, tuple(sorted(draft.items, key=_order)), draft.unchanged, problem)


def to_read(listing: Iterable[Seen], held: Mapping[str, Held]) -> set[str]:
    """Paths of new files that may be documents whose files are gone: their content tells."""
    found = {seen.path: seen for seen in listing if isinstance(seen, Found)}
    sizes = {one.row.size for path, one in held.items() if one.seen is not None and path not in found}
    return {path for path, seen in found.items() if path not in held and seen.size in sizes}


def is_unchanged(held: Held, found: Found) -> bool:
    """Whether a file is as it was, without reading it: no rename, no write has touched it since."""
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
    new: dict[str, Found] = field(default_factory=dict)
    present: set[str] = field(default_factory=set)
    passed: dict[str, Skipped | PassedOver] = field(default_factory=dict)
    gone: dict[str, DocumentRow] = field(default_factory=dict)

    def look(self, listing: Iterable[Seen]) -> None:
        """Compare each file with what is held of it."""
        for seen in listing:
            if isinstance(seen, Found):
                self.present.add(seen.path)
                self._compare(seen)
            elif isinstance(seen, Skipped):
                self.passed[seen.source] = seen
                self.items.append(Item(SKIP, seen.source, seen.reason))
            else:
                self.passed[seen.path] = seen
                self.items.append(Item(SKIP if seen.kind else IGNORE, seen.path, seen.reason, kind=seen.kind))
        self.gone = {path: one.row for path, one in self._members() if self._is_gone(path)}

    def _members(self) -> Iterator[tuple[str, Held]]:
        return ((path, one) for path, one in self.held.items() if one.seen is not None)

    def _compare(self, found: Found) -> None:
        held = self.held.get(found.path)
        if held is None:
            self.new[found.path] = found
        elif held.row.root != self.source.root or held.row.url is not None:
            self.items.append(_refused(held.row, found))
        elif is_unchanged(held, found):
            self._same(held.row, found, is_read=False)
        elif found.problem:
            self.items.append(Item(SKIP, found.path, found.problem))
        elif found.checksum == held.row.checksum:
            self._same(held.row, found, is_read=True)
        else:
            reason = "its file has changed" if found.checksum else "its file may have changed"
            self.items.append(Item(UPDATE, found.path, reason, found=found, row=held.row))

    def _same(self, row: DocumentRow, found: Found, *, is_read: bool) -> None:
        """A document whose content is as it was: it may still have to be cut anew."""
        if row.made_by != self.rules.made_by:
            reason = "the settings that cut documents have changed"
            self.items.append(Item(REMAKE, found.path, reason, found=found, row=row))
        elif is_read:
            self.items.append(Item(TOUCH, found.path, "only its time has changed", found=found, row=row))
        else:
            self.unchanged += 1

    def _is_gone(self, path: str) -> bool:
        """Whether a document's file is no longer the source's; one that cannot be looked at still is."""
        if path in self.present:
            return False
        passed = self._passed(path)
        return passed is None or isinstance(passed, PassedOver)

    def _passed(self, path: str) -> Skipped | PassedOver | None:
        """How a path, or the nearest folder above it, was passed over."""
        places = (path, *map(str, PurePosixPath(path).parents))
        return next((self.passed[place] for place in places if place in self.passed), None)

    def pair_moves(self) -> None:
        """Find each new file that is a vanished one under another name, by its content."""
        candidates: dict[str, list[DocumentRow]] = defaultdict(list)
        for path, row in sorted(self.gone.items(), reverse=True):
            if not self.held[path].is_shared:
                candidates[row.checksum].append(row)
        for path, found in sorted(self.new.items()):
            olds = candidates.get(found.checksum or "")
            if olds and not found.problem:
                old = _likeliest(path, olds)
                olds.remove(old)
                del self.gone[old.path]
                self.items.append(
                    Item(MOVE, path, f"renamed from {old.path}", old.path, found=found, row=old)
                )
            elif found.problem:
                self.items.append(Item(SKIP, path, found.problem))
            else:
                self.items.append(Item(ADD, path, "new", found=found))

    def settle_gone(self) -> str:
        """Remove documents whose files are gone, or keep them; why they are kept."""
        if not self.gone:
            return ""
        problem = self._why_kept()
        for path, row in self.gone.items():
            passed = self._passed(path)
            reason = passed.reason if passed else "its file is gone"
            kept = f"{reason}; kept, because {problem}" if problem else reason
            self.items.append(Item(KEEP if problem else REMOVE, path, kept, row=row))
        return problem

    def _why_kept(self) -> str:
        if self.rules.gone == PRUNE:
            return ""
        if self.rules.gone == NEVER or self.rules.problem:
            return self.rules.problem or "nothing is removed here"
        held = sum(1 for _ in self._members())
        if 2 * len(self.gone) >= held:
            return f"{len(self.gone):,} of its {held:,} documents are missing at once"
        return ""


def _refused(row: DocumentRow, found: Found) -> Item:
    where = row.url or row.root or "text that was added under this name"
    reason = f"{row.collection} already has this path from {where}. Name another collection: -c NAME"
    return Item(REFUSE, found.path, reason)


def _likeliest(path: str, olds: list[DocumentRow]) -> DocumentRow:
    """Of documents with the same content, the one with the same file name, else the first."""
    name = PurePosixPath(path).name
    return next((row for row in reversed(olds) if PurePosixPath(row.path).name == name), olds[-1])


def takes_title_from_name(row: DocumentRow) -> bool:
    """Whether a document's title is its file's name, so that a rename changes it."""
    return row.title == PurePosixPath(row.path).stem
