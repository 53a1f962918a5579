"""The founding numbers and their tests. Writes docs/founding.md: python -m tests.founding"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
ACCEPTANCE = ROOT / "tests" / "acceptance"
PAGE = ROOT / "docs" / "founding.md"
_TEST = re.compile(r"test_([a-z]\d+)_")


@dataclass(frozen=True)
class Part:
    """The demands of one founding document."""

    letter: str
    name: str  # of its files: test_NAME.py and mutants/NAME.toml
    title: str
    count: int  # of its numbers; 0 if they are those of its tests


PARTS = (
    Part("T", "tome", "T: sections of documents and sites", 16),
    Part("B", "brain", "B: overlapping chunks of memories and knowledge", 16),
    Part("D", "documents", "D: documents, their chunks and their updates", 25),
    Part("H", "header_chunks", "H: chunks of long documents by their headings", 20),
    Part("R", "ra", "R: the tree of headings, and merging", 24),
    Part("S", "siblings", "S: demands from the specifications beside them", 0),
)


@dataclass(frozen=True)
class Case:
    """The test of one number."""

    number: str
    file: Path
    name: str  # of the function
    docstring: str

    @property
    def sentence(self) -> str:
        """What holds."""
        return " ".join(self.docstring.split()).partition(": ")[2]


def cases(part: Part) -> list[Case]:
    """The tests of a part, in the order of their numbers."""
    file = ACCEPTANCE / f"test_{part.name}.py"
    if not file.exists():
        return []
    found = []
    for one in ast.parse(file.read_text("utf-8")).body:
        if isinstance(one, ast.FunctionDef) and (name := _TEST.match(one.name)):
            told = ast.get_docstring(one) or ""
            found.append(Case(name[1].upper(), file, one.name, told))
    return sorted(found, key=lambda case: int(case.number[1:]))


def numbers(part: Part) -> list[str]:
    """The numbers that a part must have."""
    count = part.count or max((int(case.number[1:]) for case in cases(part)), default=0)
    return [f"{part.letter}{number}" for number in range(1, count + 1)]


INTRODUCTION = """\
# Founding numbers

Quire began as five descriptions of document memories, which became one product. Everything that they ask
for has a number: a letter for the document, and a count. Together the numbers are the acceptance list of
Quire. Each has one test, which fails if the sentence beside it stops being true. The tests use the public
Python API, the command line or MCP, and run on SQLite and on PostgreSQL where storage or search is concerned.

Run the test of one number, or all:

```sh
scripts/test tests/acceptance -k test_t3_
scripts/test tests/acceptance
```

`tests/acceptance/mutants` lists bugs, at least one for each number. This command puts each of them into a
copy of the code, and checks that the test of its number fails:

```sh
scripts/soak mutants T3 R19   # of two numbers
scripts/soak mutants          # of all
```

`python -m tests.founding` writes this page from the tests.
"""


def table(part: Part) -> str:
    """A row for each number of a part."""
    rows = [f"## {part.title}", "", "| number | what holds | test |", "|---|---|---|"]
    for case in cases(part):
        link = f"[{case.file.name}](../{case.file.relative_to(ROOT).as_posix()})"
        rows.append(f"| {case.number} | {case.sentence.replace('|', chr(92) + '|')} | {link} |")
    return "\n".join(rows) + "\n"


def page() -> str:
    """docs/founding.md as the tests are now."""
    return "\n".join([INTRODUCTION, *(table(part) for part in PARTS if cases(part))])


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
