"""The examples of README.md and docs/, run: python -m tests.examples writes what they print now."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import tempfile
from pathlib import Path

from tests import forks

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


def blocks(page: Path) -> list[str]:
    """The console blocks of a page."""
    return _BLOCK.findall(page.read_text("utf-8"))


def commands(block: str) -> list[tuple[str, str]]:
    """Each command of a block, and what it is said to print."""
    return _COMMAND.findall(block)


def printed(command: str, place: Path) -> str:
    """What a command prints, in a home and with a library of its own."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("QUIRE_", "XDG_"))}
    env |= {"QUIRE_LIBRARY": str(place / "library.db"), "COLUMNS": "100", "HOME": str(place)}
    path = shlex.quote(str(Path(forks.command()).parent))
    done = subprocess.run(
        f"PATH={path}:$PATH; {command}",
        shell=True,
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout.replace(str(ROOT), "/home/you/quire").replace(str(place), "/home/you")


def timeless(text: str) -> str:
    """A text without what differs from run to run: how long a command took, and when a source was checked."""
    return re.sub(r"checked [\w ]+ ago", "checked …", re.sub(r"in \d+\.\d s", "in …", text))


def _now(block: re.Match[str]) -> str:
    """A block with what its commands print now; the same block if only times differ."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name).resolve()
        told = "".join(f"$ {command}\n{printed(command, place)}" for command, _ in commands(block[1]))
    return block[0] if timeless(told) == timeless(block[1]) else f"```console\n{told}```"


def main() -> None:
    """Write the pages anew until nothing changes: the docs are what the examples search."""
    for _ in range(4):
        before = [page.read_text("utf-8") for page in PAGES]
        for page in PAGES:
            page.write_text(_BLOCK.sub(_now, page.read_text("utf-8")), "utf-8")
        if before == [page.read_text("utf-8") for page in PAGES]:
            return


if __name__ == "__main__":
    main()
