"""Plain text to its headings, where they are unmistakable, as character spans.

Input: text whose lines end in line feeds (`Document.markup`). Output: a markdown.Outline without opaque
spans. Two kinds of lines are headings:

- a line with a line of `=`, `-`, `~` or `*` of its own length under it;
- a numbered line between blank lines: `2.1 Scope`, `CHAPTER IV`, `Appendix A`. Their numbers must form a
  sequence, and they must have text under them, as the entries of lists and tables of contents have not.

A missed heading costs little; an invented one misleads. In doubt a line is text.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Callable, Iterator
from itertools import groupby, pairwise, takewhile, zip_longest
from typing import NamedTuple

from quire.markdown import Heading, Outline
from quire.numerals import from_roman, from_word

_MAX_TITLE = 100  # characters: a longer line is a sentence
_MIN_SEQUENCE = 3  # numbered headings
_MAX_STEP = 3  # from one number to the next: some headings are not recognized
_MOST_OPEN = 8  # sequences that a section number may continue: lists begin in between
_BLANK = re.compile(r"\n[ \t\f]*(?=\n)")


def scan(text: str, start: int = 0) -> Outline:
    """The outline of `text[start:]`."""
    # As in markdown.py: the position of the line feed before a line is that of the line in the text.
    padded = f"\n{text[start:]}\n\n"
    headings = _underlined(padded)
    if len(headings) < 2:
        headings += _numbered(padded, headings[0].end if headings else 0)
    size = len(text) - start
    return Outline([Heading(h.level, h.start + start, min(h.end, size) + start) for h in headings], [])


def title(text: str, heading: Heading) -> str:
    """The text of a heading, white space folded."""
    lines = text[heading.start : heading.end].split("\n")
    return " ".join(" ".join(line for line in lines if not _RULE.fullmatch(line)).split())


def _is_blank_before(text: str, line: int) -> bool:
    """Whether a blank line, a page break or nothing is above a line."""
    return text.startswith("\f", line + 1) or not _line_before(text, line).strip()


def _line_before(text: str, line: int) -> str:
    return text[text.rfind("\n", 0, line) + 1 : line] if line else ""


def _has_text(text: str, start: int, end: int) -> bool:
    return _TEXT.search(text, start, end) is not None


_TEXT = re.compile(r"\S")

# ---------------------------------------------------------------------------------- underlined

_RULE = re.compile(r"([=\-~*])\1{2,}[ \t]*")
_RUN = re.compile(rf"\n{_RULE.pattern}(?=\n)")
_NUMBER = re.compile(r"[\d.]+ +")
_NO_TITLE = re.compile(r"[\s>|#]|[-*+•] |.*(?:\t|\||\S   *\S|[,;]\s*$)")


def _underlined(text: str) -> list[Heading]:
    """Two or more underlined headings, or one at the top."""
    runs = list(_RUN.finditer(text))
    styles: dict[tuple[str, bool], int] = {}
    found: list[Heading] = []
    for run, after in zip_longest(runs, runs[1:]):
        start = _title_start(text, run, found[-1] if found else None)
        if start is None or (after and _is_table(text, run, after)):
            continue
        overlined = text.startswith(run[1] * 3, start + 1)
        level = styles.setdefault((run[1], overlined), len(styles) + 1)
        found.append(Heading(level, start, run.end()))
    is_top = found and not _has_text(text, 0, found[0].start)
    return found if len(found) > 1 or is_top else []


def _is_table(text: str, rule: re.Match[str], after: re.Match[str]) -> bool:
    """Whether two lines of the same character are in one block, as in a table."""
    return rule[1] == after[1] and not _BLANK.search(text, rule.end(), after.end())


def _title_start(text: str, run: re.Match[str], last: Heading | None) -> int | None:
    """Where a heading begins whose underline this is; None if it is no underline."""
    line = _line_before(text, run.start())
    start, rule = run.start() - len(line) - 1, run[0].strip()
    if start < 0 or abs(len(line.strip()) - len(rule)) > 2 or not _may_be_title(line.lstrip("\f")):
        return None
    if _is_blank_before(text, start) or (last and last.end == start and text[last.end - 1] != rule[0]):
        return start
    over = _line_before(text, start)
    above = start - len(over) - 1
    return above if over.strip() == rule and above >= 0 and _is_blank_before(text, above) else None


def _may_be_title(line: str) -> bool:
    """Whether a line is short and neither a row of a table, nor an item of a list, nor part of a sentence."""
    number = _NUMBER.match(line)
    rest = line[number.end() if number else 0 :].rstrip()
    return len(line) <= _MAX_TITLE and any(map(str.isalnum, line)) and not _NO_TITLE.match(rest)


# ------------------------------------------------------------------------------------ numbered


class _Line(NamedTuple):
    """A line that may be a numbered heading."""

    rank: int  # how deep it is, as in _RANKS
    numbers: tuple[int, ...]
    start: int
    end: int
    name: str  # what follows the number


_RANKS = {"volume": 0, "book": 0, "part": 1, "chapter": 2, "appendix": 3, "article": 4, "section": 5}
_CHAPTER, _APPENDIX, _DECIMAL = 2, 3, 6
_DECIMALS = re.compile(
    r"\n\f?(?P<number>\d{1,3}(?:\.\d{1,3}){1,5}\.?|\d{1,3}\.)[ \t]{1,8}(?P<name>[^\W\d][^\n]{0,100})"
    r"(?=\n[ \t\f]*\n)"
)
_WORDS = "|".join(form for word in _RANKS for form in (word.title(), word.upper()))
_WORDED = re.compile(
    rf"\n[ \t\f]{{0,40}}(?P<word>{_WORDS})[ \t]+(?P<number>\d{{1,3}}|[A-Z]+|[A-Z][a-z]+)\b"
    r"(?P<mark>[ \t]*[.:—–-]|[ \t]{2,}|)[ \t]*(?P<name>[^\n]{0,100})(?=\n)"
)
_SECOND = re.compile(r"\n[ \t]*\w[^\n]{0,100}(?=\n[ \t\f]*\n)")
_ORDINAL = r"FIRST|SECOND|THIRD|FOURTH|First|Second|Third|Fourth"
_UNCOUNTED = "prologue preface foreword introduction conclusion epilogue afterword"
_ASIDE = re.compile(
    rf"\n[ \t\f]{{0,40}}(?P<ordinal>(?:{_ORDINAL})[ \t]+)?"
    rf"(?:{'|'.join(f'{word.title()}|{word.upper()}' for word in _UNCOUNTED.split())})"
    r"(?:\.?|:[^\n]{0,60})[ \t]*(?=\n[ \t\f]*\n)"
)
_LEADER = re.compile(r"\.{3}|(?:\. ){3}|\t|\||\S {3,}\S")


def _numbered(text: str, start: int) -> list[Heading]:
    """The numbered headings from `start` on. Level 1 is left to the document's title."""
    lines = sorted([*_worded(text, start), *_decimals(text, start)], key=lambda line: line.start)
    lines = _without_lists(text, _without_contents(lines))
    kept = _counted(text, lines)
    asides = _asides(text, start, kept) if kept else []
    above = sorted(line.start for line in kept)
    kept += asides + _sections(text, [line for line in lines if line.rank >= _DECIMAL], above)
    kept += _appendices(lines, kept)
    levels = {rank: level for level, rank in enumerate(sorted({line.rank for line in kept}), 2)}
    return sorted((Heading(levels[line.rank], line.start, line.end) for line in kept), key=lambda h: h.start)


def _decimals(text: str, start: int) -> Iterator[_Line]:
    """`2.1 Scope`, not indented, between blank lines."""
    for found in _DECIMALS.finditer(text, start):
        name = found["name"].strip()
        clear = not name[0].islower() and name[-1] not in ".,;:!" and not _LEADER.search(name)
        if clear and len(found[0]) <= _MAX_TITLE and _is_blank_before(text, found.start()):
            numbers = tuple(map(int, found["number"].strip(".").split(".")))
            yield _Line(_DECIMAL + len(numbers), numbers, found.start(), found.end(), name)


def _worded(text: str, start: int) -> Iterator[_Line]:
    """`CHAPTER IV. The Title`, between blank lines; the title may be, or go on, on the next line."""
    for found in _WORDED.finditer(text, start):
        name, rank = found["name"].strip(), _RANKS[found["word"].lower()]
        number = _value(found["number"], is_letter=rank == _APPENDIX)
        end = _heading_end(text, found) if _is_clear(found["mark"], name) else None
        if number and end and len(found[0]) <= _MAX_TITLE:
            yield _Line(rank, (number,), found.start(), end, name)


def _heading_end(text: str, found: re.Match[str]) -> int | None:
    """Where a heading ends that stands between blank lines; None for one that does not."""
    if not _is_blank_before(text, found.start()):
        return None
    if _BLANK.match(text, found.end()):
        return found.end()
    may_go_on = found["word"].isupper() or not found["name"]
    second = _SECOND.match(text, found.end()) if may_go_on else None
    is_title = second and not _WORDED.match(text, second.start()) and not _LEADER.search(second[0].strip())
    return second.end() if second and is_title else None


def _is_clear(mark: str, name: str) -> bool:
    """Whether what follows a number is a title, and no sentence about that chapter or article."""
    if not name:
        return True
    is_title = not name[0].islower() and name[-1] not in ",;:" and not _LEADER.search(name)
    return is_title and bool(mark or (name[0].isalpha() and name[-1] != "."))


def _value(number: str, *, is_letter: bool) -> int | None:
    if number.isdecimal():
        return int(number)
    if is_letter and len(number) == 1:
        return ord(number) - ord("A") + 1
    return from_roman(number) or from_word(number)


# ---------------------------------------------------------------------- what is a sequence of them


def _without_lists(text: str, lines: list[_Line]) -> list[_Line]:
    """Lines without those that follow each other without text, as in lists and tables of contents."""
    runs: list[list[_Line]] = []
    for line in lines:
        last = runs[-1][-1] if runs else line
        if (line[:2] <= last[:2] and line.rank == last.rank) or _has_text(text, last.end, line.start):
            runs.append([line])  # numbers that begin again are of the chapters after their contents
        else:
            runs[-1].append(line)
    return [line for run in runs if sum(a.rank >= b.rank for a, b in pairwise(run)) < 2 for line in run]


def _without_contents(lines: list[_Line]) -> list[_Line]:
    """Lines without those that come once again: the first is in a table of contents."""
    places: dict[tuple[int, tuple[int, ...], str], list[int]] = {}
    for number, (rank, numbers, _, _, name) in enumerate(lines):
        places.setdefault((rank, numbers, name.casefold()), []).append(number)
    first = {at[0] for (_, _, name), at in places.items() if name and len(at) == 2}
    return [line for number, line in enumerate(lines) if number not in first]


def _chains(lines: list[_Line], follows: Callable[[_Line, _Line], bool], most: int) -> list[list[_Line]]:
    """Lines whose numbers follow each other. The last `most` chains can go on, the longest first.

    A 1 that continues none begins a chain; other lines are left out.
    """
    chains: list[list[_Line]] = []
    for line in lines:
        going_on = [chain for chain in chains[-most:] if follows(chain[-1], line)]
        if going_on:
            max(going_on, key=len).append(line)
        elif set(line.numbers) <= {0, 1}:
            chains.append([line])
    return chains


def _is_sequence(text: str, chain: list[_Line]) -> bool:
    """Whether a chain is long enough and has more text than titles."""
    said = sum(len(text[line.end : after.start].strip()) for line, after in pairwise(chain))
    return len(chain) >= _MIN_SEQUENCE and said >= sum(line.end - line.start for line in chain)


def _counted(text: str, lines: list[_Line]) -> list[_Line]:
    """The chapters, books and so on; each kind counts by itself, and may begin again."""
    chains = []
    for rank in sorted(set(_RANKS.values()) - {_APPENDIX}):
        chains += _chains([line for line in lines if line.rank == rank], _counts_on, 1)
    found = any(_is_sequence(text, chain) for chain in chains)
    return [line for chain in chains if len(chain) > 1 for line in chain] if found else []


def _counts_on(before: _Line, line: _Line) -> bool:
    return 0 < line.numbers[0] - before.numbers[0] <= _MAX_STEP


def _sections(text: str, lines: list[_Line], above: list[int]) -> list[_Line]:
    """The decimal headings: one sequence in the document, or one under each of the headings above them."""
    if found := _longest(text, lines):
        return found
    groups = groupby(lines, key=lambda line: bisect(above, line.start))
    return [line for _, group in groups for line in _longest(text, list(group))] if above else []


def _longest(text: str, lines: list[_Line]) -> list[_Line]:
    """The longest sequence; none if another is half as long, as one of them would be a list."""
    chains = sorted(_chains(lines, _goes_on, _MOST_OPEN), key=len)
    if not chains or not _is_sequence(text, chains[-1]):
        return []
    other = len(chains[-2]) if len(chains) > 1 else 0
    return chains[-1] if other < 2 or 2 * other < len(chains[-1]) else []


def _goes_on(before: _Line, line: _Line) -> bool:
    """Whether a decimal number may come after another: 2.3 after 2.2, 2.2.4 or 1.9; 2.2.1 after 2.2."""
    old, new = before.numbers, line.numbers
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    if same == len(new):
        return False
    step = new[same] - (old[same] if same < len(old) else 0)
    return 0 < step <= _MAX_STEP and set(new[same + 1 :]) <= {0, 1}


def _appendices(lines: list[_Line], kept: list[_Line]) -> list[_Line]:
    """Appendices, if there are other headings before them: as deep as chapters."""
    ranks = [line.rank for line in kept if line.rank >= _CHAPTER]
    if not ranks:
        return []
    chains = _chains([line for line in lines if line.rank == _APPENDIX], _counts_on, 1)
    return [line._replace(rank=min(ranks)) for line in chains[-1]] if chains else []


def _asides(text: str, start: int, kept: list[_Line]) -> list[_Line]:
    """`Epilogue` and the like in a book: as deep as a chapter; `SECOND EPILOGUE` as deep as a book."""
    ranks = sorted({line.rank for line in kept})
    lower = _CHAPTER if _CHAPTER in ranks else ranks[0]
    return [
        _Line(ranks[0] if found["ordinal"] else lower, (), found.start(), found.end(), "")
        for found in _ASIDE.finditer(text, start)
        if _is_blank_before(text, found.start())
    ]
