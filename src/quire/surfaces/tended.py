"""What `quire doctor` and `quire optimize` print, as text and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from quire.plural import counted
from quire.surfaces.render import line

if TYPE_CHECKING:
    from quire.doctor import Problem, Repaired
    from quire.stores import Optimized


def doctor_lines(found: Sequence[Problem], done: Repaired | None, versions: dict[str, str]) -> Iterable[str]:
    """What `quire doctor` prints."""
    yield f"Quire {versions['quire']}, Python {versions['python']}, {versions['database']}"
    if done:
        yield f"Repaired: {counted(done.documents, 'document')} taken over, {done.again:,} read again."
        yield f"The old library is kept in {line(done.kept)}"
        yield from (f"lost  {line(address)}" for address in done.lost)
        yield from [f"What could be read of damaged documents is in {line(done.saved)}"] if done.saved else []
        yield from map(line, done.notes)
    for finding in found:
        yield f"{finding.part}: {line(finding.problem)}"
        yield f"  To repair it: {line(finding.fix)}"
    if not found:
        now = "The library is sound now" if done else "All is well"
        but = ", except for what is named above" if done and (done.lost or done.notes) else ""
        yield f"{now}: the file, its indexes, every text and every span{but}."


def optimized_json(done: Optimized) -> dict[str, Any]:
    """What `quire optimize --json` prints."""
    return {"freed": done.freed, **asdict(done)}


def optimized_line(done: Optimized) -> str:
    """What `quire optimize` prints."""
    return f"{counted(done.freed, 'byte')} given back: {counted(done.after, 'byte')} of {done.before:,} left"
