"""The recording of a terminal in the README, docs/recording.svg: python -m tests.recording makes it."""

from __future__ import annotations

import os
import pty
import re
import shlex
import shutil
import subprocess
import tempfile
from html import escape
from pathlib import Path

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from tests import forks
from tests.commands import environment
from tests.mcp_docs import DOCUMENTS

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "recording.svg"
MANUALS = ("handbook.pdf",)
COMMANDS = (
    "quire add docs manuals",
    "quire search 'how do I undo a release'",
    "quire read docs:guide.md 'Rolling back'",
    "quire search 'start the motor slowly' -n 1",
    "quire context 'is it fast?' --max-tokens 200",
)
COLUMNS = 92
_LINE, _COLUMN, _MARGIN = 19, 8.43, 16  # pixels
_PAUSE = 1.6  # seconds between two commands
_TIMES = re.compile(r"in \d+\.\d s")
_STYLE = """\
svg { --paper: #0d1117; --ink: #e6edf3; --soft: #9198a1; --bright: #fff }
rect { fill: var(--paper) }
text { fill: var(--ink); white-space: pre }
text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace }
.prompt { fill: #3fb950 } .dim { fill: var(--soft) } .bold { fill: var(--bright); font-weight: 700 }
g { animation: appear 0.2s backwards }
@keyframes appear { from { opacity: 0 } }
@media (prefers-reduced-motion: reduce) { g { animation: none } }"""


def fill(place: Path) -> None:
    """Write two small Markdown files and a manual in PDF."""
    (place / "docs").mkdir()
    for name, text in DOCUMENTS.items():
        (place / "docs" / name).write_text(text)
    (place / "manuals").mkdir()
    for name in MANUALS:
        shutil.copy(ROOT / "tests" / "fixtures" / "documents" / name, place / "manuals")


def printed(command: str, place: Path) -> str:
    """What a command prints on a terminal, with its escape codes; then what it says on stderr."""
    leader, follower = pty.openpty()
    env = environment(place) | {"COLUMNS": str(COLUMNS), "TERM": "xterm-256color", "PWD": str(place)}
    del env["QUIRE_EMBED_MODEL"]
    env.pop("NO_COLOR", None)
    args = [forks.command(), *shlex.split(command)[1:]]
    with subprocess.Popen(args, stdout=follower, stderr=subprocess.PIPE, cwd=place, env=env) as process:
        os.close(follower)
        shown = _all_of(leader)
        told = process.stderr.read() if process.stderr else b""
    assert process.returncode == 0, (command, shown, told)
    return (shown + told).decode().replace("\r\n", "\n").replace(str(place), "/home/you")


def _all_of(leader: int) -> bytes:
    """Read a terminal until nobody has it open."""
    found = b""
    while True:
        try:
            part = os.read(leader, 65_536)
        except OSError:  # EIO on Linux: the other end is closed
            part = b""
        if not part:
            os.close(leader)
            return found
        found += part


def session() -> list[tuple[str, str]]:
    """Every command with what it prints, in a new home with a library of its own."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder).resolve()
        fill(place)
        return [(command, printed(command, place)) for command in COMMANDS]


def draw(told: list[tuple[str, str]]) -> str:
    """A session as a picture in which one command appears after the other."""
    rows, at = [], 0
    for number, (command, shown) in enumerate(told):
        lines = [Text.assemble(("$ ", "green"), (command, "bold")), *_lines(shown.rstrip()), Text()]
        body = "\n".join(_row(line, at + place) for place, line in enumerate(lines))
        rows.append(f'<g style="animation-delay: {number * _PAUSE:.1f}s">\n{body}\n</g>')
        at += len(lines)
    width, height = round(COLUMNS * _COLUMN) + 2 * _MARGIN, (at - 1) * _LINE + 2 * _MARGIN
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">'
    title = "<title>A terminal: documents are added, searched and read with Quire</title>"
    parts = [head, title, f"<style>{_STYLE}</style>", '<rect width="100%" height="100%" rx="8"/>', *rows]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _lines(shown: str) -> list[Text]:
    """Lines as a terminal of this width shows them."""
    found: list[Text] = []
    for line in shown.splitlines():
        text = Text.from_ansi(line)
        starts = range(COLUMNS, len(text), COLUMNS)
        found += text.divide(list(starts)) if starts else [text]
    return found


def _row(line: Text, row: int) -> str:
    y = _MARGIN + row * _LINE + 14
    at, parts = 0, []
    for piece in line.divide(sorted({end for span in line.spans for end in (span.start, span.end)})):
        parts.append(_piece(piece, at, y))
        at += cell_len(piece.plain)
    return "".join(parts)


def _piece(piece: Text, at: int, y: int) -> str:
    """A piece of a line in one style, exactly as wide as its columns."""
    if not piece.plain.strip():
        return ""
    styles = [Style.parse(str(span.style)) for span in piece.spans] or [Style.null()]
    style = Style.combine(styles)
    kind = "prompt" if style.color and style.color.name == "green" else ""
    kind = kind or ("bold" if style.bold else "dim" if style.dim else "")
    named = f' class="{kind}"' if kind else ""
    wide = f"{cell_len(piece.plain) * _COLUMN:.1f}"
    place = f'x="{_MARGIN + at * _COLUMN:.1f}" y="{y}" textLength="{wide}"'
    return f"<text{named} {place}>{escape(piece.plain, quote=False)}</text>"


def timeless(picture: str) -> str:
    """A picture without what differs from run to run: how long commands took, and how wide that is."""
    return re.sub(r' textLength="[\d.]+"', "", _TIMES.sub("…", picture))


def main() -> None:
    """Draw the picture anew, if commands print something else now."""
    picture = draw(session())
    if not PICTURE.exists() or timeless(picture) != timeless(PICTURE.read_text("utf-8")):
        PICTURE.write_text(picture, "utf-8")


if __name__ == "__main__":
    main()
