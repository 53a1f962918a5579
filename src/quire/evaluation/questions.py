"""Questions with their answers: as people write them in files, and as spans of stored documents.

Input: JSON lines, or a table with commas, semicolons or tabs. Output: questions, and what is wrong with each
row that is none. Nothing is looked up here: whether an answer is in the library is found out later.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from quire.errors import NoResults
from quire.evaluation.measures import TextSpan

_MAX_QUESTION = 10_000  # characters
_QUESTION = ("question", "query")  # what rows may call it
_ANSWERS = ("answers", "answer", "gold")
_NAME = ("address", "document", "doc")
_TABLES = (".csv", ".tsv")


class WrittenPlace(NamedTuple):
    """A place as someone wrote it: an address, or a document and characters of it."""

    name: str
    start: int | None = None
    end: int | None = None
    beside: tuple[int, int] | None = None  # where links stand that lead from there to the answer


class WrittenQuestion(NamedTuple):
    """A question as someone wrote it."""

    source: str  # where it was written, such as `questions.jsonl, line 3`
    text: str
    answers: tuple[WrittenPlace, ...]
    exclude: tuple[WrittenPlace, ...] = ()


class EvalQuestion(NamedTuple):
    """A question, the spans that answer it, and what must not count because it was taken from there."""

    text: str
    answers: tuple[TextSpan, ...]
    addresses: tuple[str, ...]  # of the answers
    exclude: tuple[TextSpan, ...] = ()
    beside: tuple[TextSpan, ...] = ()  # the links that stand here made the question


FindPlace = Callable[[WrittenPlace], tuple[str, TextSpan]]  # the address of a place, and its span


class _Wrong(Exception):
    """What is wrong with a row."""


def read_rows(content: str, name: str) -> tuple[list[WrittenQuestion], list[str]]:
    """The questions in the content of a file, and what is wrong with the rows that are none."""
    is_table = name.lower().endswith(_TABLES)
    rows = _table_rows(content) if is_table else _json_rows(content)
    questions, problems = list[WrittenQuestion](), list[str]()
    for line, row in rows:
        where = f"{name}, line {line}"
        try:
            questions.append(_question(where, row()))
        except _Wrong as problem:
            problems.append(f"{where}: {problem}")
    return questions, problems


def _json_rows(content: str) -> Iterator[tuple[int, Callable[[], Any]]]:
    for line, text in enumerate(content.removeprefix("\ufeff").split("\n"), 1):
        if text.strip():
            yield line, lambda text=text: _json(text)  # type: ignore[misc]


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise _Wrong("is not JSON. A line is one object, such as " + _EXAMPLE) from None


_EXAMPLE = '{"question": "How do I install it?", "answers": ["docs:guide.md#install"]}'


def _table_rows(content: str) -> Iterator[tuple[int, Callable[[], Any]]]:
    """The rows of a table: a question, then the addresses of its answers. Names of columns may come first."""
    text = content.removeprefix("\ufeff")
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    for cells in _cells(reader):
        told = [cell.strip() for cell in cells]
        is_heading = reader.line_num == 1 and told[0].lower() in _QUESTION
        if any(told) and not is_heading:
            row = {"question": told[0], "answers": [cell for cell in told[1:] if cell]}
            yield reader.line_num, lambda row=row: row  # type: ignore[misc]


def _cells(reader: Iterator[list[str]]) -> Iterator[list[str]]:
    """Rows until one cannot be read, such as one with a cell of a megabyte."""
    while True:
        try:
            yield next(reader) or [""]
        except (StopIteration, csv.Error):
            return


def _question(source: str, row: Any) -> WrittenQuestion:
    if not isinstance(row, Mapping):
        raise _Wrong(f"is not an object, such as {_EXAMPLE}")
    text = _value(row, _QUESTION)
    if not isinstance(text, str) or not text.strip():
        raise _Wrong("has no question")
    if len(text) > _MAX_QUESTION:
        raise _Wrong(f"its question has {len(text):,} characters; the most is {_MAX_QUESTION:,}")
    answers = tuple(_places(_value(row, _ANSWERS)))
    if not answers:
        raise _Wrong(
            "names no answer: give the address of a document or a section, as in docs:guide.md#install"
        )
    return WrittenQuestion(source, text.strip(), answers, tuple(_places(row.get("exclude"))))


def _value(row: Mapping[Any, Any], names: Iterable[str]) -> Any:
    return next((row[name] for name in names if row.get(name)), None)


def _places(value: Any) -> Iterator[WrittenPlace]:
    for one in value if isinstance(value, list) else [value] if value else []:
        if isinstance(one, str):
            yield WrittenPlace(one.strip())
        elif isinstance(one, Mapping) and isinstance(name := _value(one, _NAME), str):
            yield _span(name, one)
        else:
            raise _Wrong("a place is an address, or an object with address, start and end")


def _span(name: str, place: Mapping[Any, Any]) -> WrittenPlace:
    """A place in characters. If an answer has own_end, where its first subsection begins, it ends there.

    Of a place to exclude, section_start and section_end are the section, and start and end its sentence.
    """
    start, end = place.get("start"), place.get("own_end", place.get("end"))
    beside = None
    if "section_start" in place:
        beside, start, end = _pair(start, end), place["section_start"], place.get("section_end")
    if start is None and end is None:
        return WrittenPlace(name)
    return WrittenPlace(name, *_pair(start, end), beside)


def _pair(start: Any, end: Any) -> tuple[int, int]:
    if type(start) is not int or type(end) is not int or not 0 <= start < end:
        raise _Wrong("start and end of a place are numbers of characters, and the end is after the start")
    return start, end


def resolved(written: Iterable[WrittenQuestion], find: FindPlace) -> tuple[list[EvalQuestion], list[str]]:
    """Questions with the spans of their answers, and why others have none. `find` raises NoResults."""
    questions, problems = list[EvalQuestion](), list[str]()
    for one in written:
        try:
            questions.append(_resolved(one, find))
        except NoResults as problem:
            problems.append(f"{one.source}: {problem.message}")
    return questions, problems


def _resolved(written: WrittenQuestion, find: FindPlace) -> EvalQuestion:
    found, exclude = [find(one) for one in written.answers], [find(one)[1] for one in written.exclude]
    beside = [
        place if one.beside is None else TextSpan(place.document, *one.beside)
        for one, place in zip(written.exclude, exclude, strict=True)
    ]
    spans = tuple(dict.fromkeys(span for _, span in found))
    names = tuple(dict.fromkeys(name for name, _ in found))
    return EvalQuestion(written.text, spans, names, tuple(exclude), tuple(beside))


def merged_by_text(questions: Iterable[EvalQuestion]) -> list[EvalQuestion]:
    """Questions in which each text stands once, with all of its answers."""
    found: dict[str, EvalQuestion] = {}
    for one in questions:
        before = found.get(one.text)
        found[one.text] = _both(before, one) if before else one
    return list(found.values())


def _both(one: EvalQuestion, other: EvalQuestion) -> EvalQuestion:
    parts = (tuple(dict.fromkeys(mine + others)) for mine, others in zip(one[1:], other[1:], strict=True))
    return EvalQuestion(one.text, *parts)  # type: ignore[arg-type]
