"""The part of Library that measures how well it answers."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from quire import policy, reading, search_log
from quire.address import of_document, of_section
from quire.config import DEFAULT, Config, with_setting
from quire.errors import NoResults, SettingError, TooLarge, Unreadable, nearest, no_collection
from quire.library.base import reads
from quire.library.finding import Finding
from quire.library.passages import newest_versions
from quire.progress import Progress, Silent
from quire.sources import entries
from quire.stores import DocumentRow, Filters, Store

if TYPE_CHECKING:
    from quire.evaluation.measures import TextSpan
    from quire.evaluation.questions import EvalQuestion, WrittenPlace
    from quire.evaluation.scoring import AskedWay, Evaluation

_WITHOUT_EFFECT = ("search.limit", "search.fresh", "search.log")  # here, where ten results count
_LOCATION = re.compile(r"(page|slide|cell|row|chapter)[ =](\d{1,9})")
_HOW = "How to write questions in a file: quire eval --help"
_NO_LINKS = f"No link leads from one document to another, so no questions can be made from links. {_HOW}"
_NO_LOG = (
    "Nothing is logged of this library. With search.log = true in your quire.toml, each search counts "
    f"after which you read a result. {_HOW}"
)


class _Asked:
    """The questions of an evaluation: those that are asked, and those whose links say nothing."""

    def __init__(self, source: str) -> None:
        self.source, self.questions, self.every = source, list["EvalQuestion"](), list["EvalQuestion"]()
        self.problems, self.notes = list[str](), list[str]()

    def choose(self, found: Sequence[EvalQuestion], limit: int, seed: int) -> Self:
        """Ask some of the questions, from all over, in order."""
        import random

        draw = random.Random(seed)  # noqa: S311  not for secrets
        places = sorted(draw.sample(range(len(found)), min(limit, len(found))))
        self.questions, self.every = [found[place] for place in places], list(found)
        return self


class Evaluating(Finding):
    """Asking questions whose answers are known."""

    @reads
    def evaluate(
        self,
        questions: str | os.PathLike[str] | None = None,
        *,
        from_log: bool = False,
        collection: str | None = None,
        compare: Sequence[str] = (),
        limit: int | None = None,
        seed: int | None = None,
        baselines: bool = True,
        progress: Progress | None = None,
    ) -> Evaluation:
        """How well searches find what answers questions, with intervals, and grep and BM25 to compare with.

        The questions are those of a file, those of your log, or made from the links between documents. The
        texts of these links do not count then, nor do results where they stand. `compare` names two settings,
        as in `["search.mode=keyword", "search.mode=hybrid"]`. Raises NoResults if there are no questions.
        """
        from quire.evaluation import hiding, scoring  # which searches do not need

        shown, configs = progress or Silent(), self._compared(compare)
        rows, notes = self._evaluated(collection)
        asked = self._asked(questions, from_log, rows, self._chosen(limit, seed))
        hidden = hiding.asked_links(self.store, asked.every)
        with ExitStack() as stack:
            ways = [self._way(stack, name, config, hidden, collection) for name, config in configs.items()]
            if baselines:
                others, left_out = _baselines(stack, self.store, rows, shown)
                ways, notes = ways + others, notes + left_out
            shown.begin(
                f"asking {len(asked.questions):,} questions", len(asked.questions) * len(ways), "answers"
            )
            scores = tuple(scoring.score(way, asked.questions, lambda: shown.advance(1)) for way in ways)
        difference = scoring.compared(*scores[:2]) if len(configs) > 1 else None
        told = [*asked.notes, *notes, *(note for one in scores for note in one.notes)]
        problems, said = tuple(asked.problems), tuple(dict.fromkeys(told))
        return scoring.Evaluation(asked.source, tuple(asked.questions), scores, difference, problems, said)

    # ------------------------------------------------------------------------------ what is asked

    def _chosen(self, limit: int | None, seed: int | None) -> tuple[int, int]:
        """How many questions are asked, and the seed. Raises SettingError for a number out of range."""
        given = {"limit": limit, "seed": seed}
        settings = replace(self.config.eval, **{name: it for name, it in given.items() if it is not None})
        return settings.limit, settings.seed

    def _evaluated(self, collection: str | None) -> tuple[list[DocumentRow], list[str]]:
        """The documents that searches look at, and notes. Raises NoResults if there are none."""
        known = self.store.collections()
        if collection and known and not self._has_collection(collection):
            raise no_collection(collection, known)
        filters, notes = newest_versions(self.store, Filters(collection, entries.DOCUMENTS))
        rows = self.store.documents(filters)
        if not rows:
            raise NoResults("The library is empty. Add documents with: quire add ./docs", missing="documents")
        return rows, list(notes)

    def _asked(
        self,
        file: str | os.PathLike[str] | None,
        from_log: bool,
        rows: Sequence[DocumentRow],
        chosen: tuple[int, int],
    ) -> _Asked:
        if file is not None and from_log:
            raise SettingError("questions", "come from a file or from the log. Name one of them")
        if file is not None:
            return self._asked_in_file(Path(file), chosen)
        return self._asked_in_log(chosen) if from_log else self._asked_by_links(rows, chosen)

    def _asked_in_file(self, file: Path, chosen: tuple[int, int]) -> _Asked:
        from quire.evaluation import questions

        asked = _Asked(str(file))
        written, problems = questions.read_rows(_content(file, self.config), file.name)
        found, others = questions.resolved(written, self._find_place)
        asked.problems = problems + others
        if not found:
            why = asked.problems[0] if asked.problems else f"{file} is empty. {_HOW}"
            raise NoResults(f"There is no question to ask. {why}", missing="questions", name=str(file))
        return asked.choose(questions.merged_by_text(found), *chosen)

    def _asked_in_log(self, chosen: tuple[int, int]) -> _Asked:
        from quire.evaluation import questions
        from quire.evaluation.questions import WrittenPlace, WrittenQuestion

        asked, entries = _Asked("log"), search_log.logged(self.store.library_id())
        written = [
            WrittenQuestion(f"the search for {one.query!r}", one.query, (WrittenPlace(one.address),))
            for one in entries
        ]
        found, asked.problems = questions.resolved(written, self._find_place)
        if not found:
            raise NoResults(_NO_LOG, missing="questions")
        return asked.choose(questions.merged_by_text(found), *chosen)

    def _asked_by_links(self, rows: Sequence[DocumentRow], chosen: tuple[int, int]) -> _Asked:
        from quire.evaluation import crosslinks, questions

        asked, (limit, seed) = _Asked("links"), chosen
        found = crosslinks.from_links(self.store, rows, limit, seed)
        if len(found) < min(crosslinks.FEW, limit):
            more = crosslinks.from_links(self.store, rows, limit - len(found), seed, whole=True)
            asked.notes += [_whole(len(more), len(found))] if more else []
            found += more
        found = questions.merged_by_text(found)
        if not found:
            raise NoResults(_NO_LINKS, missing="questions")
        return asked.choose(found, limit, seed)

    # ------------------------------------------------------------------------------ what answers

    def _find_place(self, place: WrittenPlace) -> tuple[str, TextSpan]:
        """The address of a place that someone wrote, and its span. Raises NoResults."""
        from quire.evaluation.measures import TextSpan

        row, rest = self._place_of(place.name)
        sections = self.store.sections(row.seq)
        length = sections[0].end
        if place.start is not None and place.end is not None:
            inner = [section for section in sections if section.start <= place.start]
            start, end, address = place.start, place.end, of_section(row.address, inner[-1].slug)
        else:
            start, end = self._located(row, rest, length) or reading.span(self.store, row, rest, self.config)
            address = f"{row.address}#{rest}" if rest else row.address
        if not start < end <= length:
            raise NoResults(f"{address} has no such characters.", missing="section", name=address)
        return address, TextSpan(row.address, start, end)

    def _place_of(self, name: str) -> tuple[DocumentRow, str]:
        """The document of an address, or of a path that begins with its collection."""
        collection, slash, path = name.partition("/")
        found = self.store.document(collection, path) if slash and ":" not in collection else None
        return (found, "") if found else self._document(name)

    def _located(self, row: DocumentRow, rest: str, length: int) -> tuple[int, int] | None:
        """Where a page, slide or the like of the original is in the text, as in report.pdf#page=12."""
        found = _LOCATION.fullmatch(rest)
        places = self.store.places([row.seq]).get(row.seq) if found else None
        return places.span(int(found[2]), length) if found and places and places.unit == found[1] else None

    # ------------------------------------------------------------------------------ who is asked

    def _compared(self, compare: Sequence[str]) -> dict[str, Config]:
        """The settings to ask with, by name: the library's own, or the two that are compared."""
        if isinstance(compare, str) or len(compare) not in (0, 2) or len(set(compare)) != len(compare):
            raise SettingError(
                "compare", "takes two different settings, as in search.mode=keyword search.mode=hybrid"
            )
        quiet = replace(self.config, search=replace(self.config.search, fresh=False, log=False))
        for setting in compare:
            _check_matters(setting.partition("=")[0])
        return {one: with_setting(quiet, one) for one in compare} or {"quire": quiet}

    def _way(
        self,
        stack: ExitStack,
        name: str,
        config: Config,
        hidden: set[tuple[int, int]],
        collection: str | None,
    ) -> AskedWay:
        """Searching with some settings, as if the hidden links said nothing."""
        from quire.evaluation.hiding import WithoutLinks
        from quire.evaluation.measures import TextSpan
        from quire.evaluation.scoring import AskedWay, FoundSpans

        store: Any = WithoutLinks(self.store, hidden)
        view = stack.enter_context(closing(type(self)(store, self.url, config, self._scope)))

        def find(text: str, limit: int) -> FoundSpans:
            found = view.search(text, collection=collection, limit=limit)
            spans = [
                TextSpan(of_document(one.collection, one.path), one.start, one.end) for one in found.results
            ]
            return FoundSpans(spans, ", ".join(filter(None, (found.mode, found.model))), found.notes)

        return AskedWay(name, find)


def _check_matters(name: str) -> None:
    """Raise SettingError for a setting that makes no difference to searches."""
    known = [path for path in map(".".join, policy.paths(DEFAULT)) if path.startswith("search.")]
    known = [path for path in known if path not in _WITHOUT_EFFECT] + ["embed.model"]
    if name not in known:
        which = f"{name} does not change what a search finds. {nearest(name, known)}"
        raise SettingError("compare", f"{which} To compare how documents are cut, make two libraries")


def _whole(number: int, others: int) -> str:
    of_all = f"{number:,} of {number + others:,} questions are" if number > 1 or others else "The question is"
    return f"{of_all} about a whole document: few links lead to a section."


def _content(file: Path, config: Config) -> str:
    """The text of a file of questions. Raises Unreadable or TooLarge."""
    try:
        if (size := file.stat().st_size) > config.document.max_bytes:
            raise TooLarge(str(file), config.document.over_cap(size))
        return file.read_bytes().decode("utf-8", "replace")
    except OSError as problem:
        raise Unreadable(str(file), f"cannot be read: {problem.strerror}") from None


def _baselines(
    stack: ExitStack, store: Store, rows: Sequence[DocumentRow], shown: Progress
) -> tuple[list[AskedWay], list[str]]:
    """Grep and BM25 over the documents, and notes. Large libraries have neither."""
    from quire.evaluation import baselines
    from quire.evaluation.scoring import AskedWay, FoundSpans

    if sum(row.chunk_count for row in rows) > baselines.MOST_CHUNKS:
        return [], [f"grep and BM25 are left out above {baselines.MOST_CHUNKS:,} chunks."]
    made: dict[str, Any] = {"grep": baselines.Grep()}
    notes = list[str]()
    try:
        made["BM25"] = stack.enter_context(closing(baselines.PlainBm25()))
    except sqlite3.Error:  # this SQLite was built without full-text search
        notes.append("BM25 is left out: this Python's SQLite has no FTS5.")
    if left_out := baselines.read_all(store, rows, list(made.values()), shown):
        notes.append(
            f"grep and BM25 did not read {left_out:,} damaged documents. To repair: quire doctor --repair"
        )
    asked = {
        name: lambda text, limit, way=way: FoundSpans(way.search(text, limit)) for name, way in made.items()
    }
    return [AskedWay(name, find) for name, find in asked.items()], notes
