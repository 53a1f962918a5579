"""Puts bugs into copies of the code, and checks that tests fail: python -m tests.mutants [NUMBER …]

Each bug is an entry of tests/acceptance/mutants: the number whose test must fail, a file, the text to replace
and what replaces it. A bug is dead if the test fails, alive if it passes, and broken if the test did not run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.founding import ACCEPTANCE, PARTS, ROOT, Part, cases

_AT_ONCE = 2
# Raised by code that does not run at all: that is no bug which a test can find.
_NO_BUG = re.compile(
    r"^E +(?:\w+\.)*(?:SyntaxError|IndentationError|NameError|ImportError|ModuleNotFoundError)\b",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Mutant:
    """A bug, and the number whose test must find it."""

    number: str
    file: str
    old: str
    new: str
    database: str = ""  # postgres: only its test fails

    @property
    def part(self) -> Part:
        """The part that its number belongs to."""
        return next(part for part in PARTS if part.letter == self.number[0])

    @property
    def line(self) -> int:
        """Where the bug is."""
        return (ROOT / self.file).read_text("utf-8").partition(self.old)[0].count("\n") + 1

    def apply(self, root: Path) -> None:
        """Put the bug into a copy of the code."""
        path = root / self.file
        text = path.read_text("utf-8")
        assert text.count(self.old) == 1, (
            f"{self.number}: {self.old!r} is {text.count(self.old)} times in {path}"
        )
        path.write_text(text.replace(self.old, self.new), "utf-8")


def mutants(part: Part) -> list[Mutant]:
    """The bugs of a part."""
    path = ACCEPTANCE / "mutants" / f"{part.name}.toml"
    entries = tomllib.loads(path.read_text("utf-8"))["mutant"] if path.exists() else []
    return [Mutant(**entry) for entry in entries]


def ended(mutant: Mutant) -> tuple[str, float, str]:
    """Whether a bug is dead, alive or broken, the seconds that took, and what pytest printed."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="quire-mutant-") as folder:
        shutil.copytree(ROOT / "src", Path(folder) / "src")
        mutant.apply(Path(folder))
        done = subprocess.run(
            _pytest(mutant, folder),
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": f"{folder}/src"},
            capture_output=True,
            text=True,
            check=False,
        )
    end = {0: "alive", 1: "dead"}.get(done.returncode, "broken")
    if end == "dead" and _NO_BUG.search(done.stdout):
        end = "broken"
    return end, time.monotonic() - started, done.stdout + done.stderr


def _pytest(mutant: Mutant, folder: str) -> list[str]:
    """The command that runs the test of a bug."""
    which = "postgres" if mutant.database == "postgres" else "not postgres"
    chosen = f"test_{mutant.number.lower()}_ and {which}"
    file = str(ACCEPTANCE / f"test_{mutant.part.name}.py")
    plain = [
        "-n0",
        "-x",
        "-p",
        "no:cacheprovider",
        "--tb=short",
        f"--basetemp={folder}/tests",
        "--timeout=120",
    ]
    return [sys.executable, "-m", "pytest", file, "-k", chosen, *plain]


def main(wanted: list[str]) -> int:
    """Try the bugs of some numbers, or all. Returns 0 if every one is dead."""
    every = [mutant for part in PARTS for mutant in mutants(part)]
    unknown = {number.upper() for number in wanted} - {mutant.number for mutant in every}
    if unknown:
        print(f"No mutants of {', '.join(sorted(unknown))}", file=sys.stderr)
        return 1
    chosen = [m for m in every if not wanted or m.number in {number.upper() for number in wanted}]
    tests = {case.number: case.name for part in PARTS for case in cases(part)}
    ends = []
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for mutant, (end, seconds, output) in zip(chosen, pool.map(ended, chosen), strict=True):
            place, test = (
                f"{mutant.file.removeprefix('src/quire/')}:{mutant.line}",
                tests.get(mutant.number, ""),
            )
            print(f"{mutant.number:4} {place:36} {test:68} {end:6} {seconds:5.1f} s", flush=True)
            if end == "broken" or (end == "alive" and wanted):
                print(output)
            ends.append(end)
    counts = {end: ends.count(end) for end in ("dead", "alive", "broken")}
    print(", ".join(f"{count} {end}" for end, count in counts.items()))
    return 0 if counts["dead"] == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
