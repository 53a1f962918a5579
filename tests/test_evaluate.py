"""`quire eval` and `Library.evaluate`: questions, what answers them, and figures, on each database."""

from __future__ import annotations

import asyncio
import json
import math
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quire import AsyncLibrary, Evaluation, Library, search_log
from quire.config import DEFAULT, Config, override
from quire.errors import NoResults, SettingError
from quire.evaluation import measures
from quire.evaluation.crosslinks import from_links
from quire.evaluation.measures import TextSpan
from quire.evaluation.questions import read_rows
from tests.commands import run, user_settings
from tests.mcp_client import call, parameters, talk
from tests.words import WORDS

GUIDE = (
    "# Guide\n\nWelcome to the machine.\n\n"
    "## Cleaning\n\nWipe the drum with a dry cloth once a week.\n\n### Filters\n\nRinse both filters.\n\n"
    "## Noise\n\nA rattling sound comes from loose screws.\n\n"
    "## Warranty\n\nKeep the receipt for two years.\n"
)
FAQ = (
    "# Questions\n\n## Dust\n\nWhoever finds grey flakes should do the\n"
    "[quarterly fluff removal](guide.md#cleaning) before calling us. Nobody else reads this.\n\n"
    "## Other\n\n- Rattles and squeaks at night are [not dangerous at all](guide.md#noise).\n"
    "- [here](guide.md#warranty)\n\nSee the [printed leaflet about our washing machines](guide.md).\n"
)


@pytest.fixture
def library(library_url: str, tmp_path: Path) -> Iterator[Library]:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "guide.md").write_text(GUIDE)
    (folder / "faq.md").write_text(FAQ)
    with Library.open(library_url, create=True, config=WORDS) as opened:
        opened.add(folder)
        yield opened


def written(place: Path, *rows: Any, name: str = "questions.jsonl") -> Path:
    file = place / name
    file.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))
    return file


def asked(text: str, *answers: str, **more: Any) -> dict[str, Any]:
    return {"question": text, "answers": list(answers)} | more


# --------------------------------------------------------------------------------------- measures


def test_a_result_answers_if_it_starts_in_the_answer_or_is_mostly_the_answer() -> None:
    """Issue: strict nDCG, where overlap alone does not count."""
    gold = TextSpan("d", 100, 200)
    assert TextSpan("d", 199, 900).is_answer(gold)
    assert TextSpan("d", 50, 150).is_answer(gold)
    assert not TextSpan("d", 40, 150).is_answer(gold)
    assert not TextSpan("e", 100, 200).is_answer(gold)
    assert not TextSpan("d", 200, 300).is_answer(gold)


def test_ndcg_counts_each_answer_once_and_by_its_rank() -> None:
    """The first of two answers is found twice at rank 2 and 3, the second never."""
    gold = [TextSpan("d", 0, 10), TextSpan("d", 50, 60)]
    found = [TextSpan("x", 0, 5), TextSpan("d", 0, 10), TextSpan("d", 5, 9)]
    best = 1 + 1 / math.log2(3)
    assert measures.span_ndcg(found, gold) == pytest.approx(1 / math.log2(3) / best)
    assert measures.span_ndcg(gold, gold) == 1
    assert measures.span_ndcg([TextSpan("x", 0, 5)] * 10 + gold, gold) == 0
    assert (measures.first_rank(found, gold), measures.first_rank([], gold)) == (2, None)
    assert measures.found_share(found, gold) == 0.5


def test_an_interval_holds_the_mean_and_is_the_same_each_time() -> None:
    """Issue: 95 % intervals by resampling."""
    values = [0.0] * 50 + [1.0] * 50
    low, high = measures.interval(values)
    assert 0.38 < low < 0.44 < 0.5 < 0.56 < high < 0.62
    assert measures.interval(values) == (low, high)
    assert measures.interval([0.3] * 9) == pytest.approx((0.3, 0.3))


# ---------------------------------------------------------------------------- questions in a file


def test_rows_of_json_and_of_tables_are_questions() -> None:
    """Issue: a questions file, JSON lines and CSV; wrong rows are reported and skipped."""
    lines = '{"question": "a b", "answers": ["d:x.md", "d:y.md#z"]}\n\n{"query": "c", "answer": "d:x.md"}\n'
    found, problems = read_rows(lines, "q.jsonl")
    assert [(one.text, [place.name for place in one.answers]) for one in found] == [
        ("a b", ["d:x.md", "d:y.md#z"]),
        ("c", ["d:x.md"]),
    ]
    assert problems == []
    for table in (
        "question,answer\na b,d:x.md,d:y.md#z\n",
        "a b;d:x.md;d:y.md#z\n",
        "a b\td:x.md\td:y.md#z\n",
    ):
        found, problems = read_rows(f"\ufeff{table}", "q.CSV")
        assert [(one.text, len(one.answers)) for one in found] == [("a b", 2)]
        assert problems == []
    assert read_rows('"a, b",d:x.md\n', "q.csv")[0][0].text == "a, b"


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("not json", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[1]", "is not an object"),
        ('{"answers": ["d:x.md"]}', "has no question"),
        ('{"question": "   ", "answers": ["d:x.md"]}', "has no question"),
        ('{"question": "a"}', "names no answer"),
        ('{"question": "a", "answers": [3]}', "a place is an address"),
        ('{"question": "a", "answers": [{"address": "d:x.md", "start": 9, "end": 2}]}', "start and end"),
        (json.dumps(asked("a" * 10_001, "d:x.md")), "10,001 characters"),
    ],
)
def test_a_wrong_row_is_reported_with_its_line(row: str, said: str) -> None:
    found, problems = read_rows(f'{{"question": "a", "answers": "d:x.md"}}\n{row}\n', "q.jsonl")
    assert [one.text for one in found] == ["a"]
    assert len(problems) == 1
    assert problems[0].startswith("q.jsonl, line 2: ")
    assert said in problems[0]


def test_the_questions_of_a_file_are_asked(library: Library, tmp_path: Path) -> None:
    """An address means what `quire read` prints; what is not in the library is reported and skipped."""
    file = written(
        tmp_path,
        asked("where does a rattling sound come from", "docs:guide.md#noise"),
        asked("what does the warranty need", "docs:guide.md#Warranty"),
        asked("penguins", "docs:guide.md#noise"),
        asked("lost", "docs:gide.md#noise"),
        asked("lost", "docs:guide.md#nois"),
    )
    found = library.evaluate(file)
    assert [question.text for question in found.questions][-1] == "penguins"
    quire, grep, bm25 = found.scores
    assert (quire.name, grep.name, bm25.name) == ("quire", "grep", "BM25")
    assert quire.ranks == bm25.ranks == (1, 1, None)
    assert grep.ranks == (1, 2, None)  # a heading and a line elsewhere have as many words
    assert quire.ndcg == pytest.approx(2 / 3)
    assert quire.ndcg_interval[0] <= quire.ndcg <= quire.ndcg_interval[1]
    assert quire.used == "keyword"
    assert [problem.partition(": ")[0] for problem in found.problems] == [
        "questions.jsonl, line 4",
        "questions.jsonl, line 5",
    ]
    assert "Did you mean" in found.problems[0]
    assert found.difference is None


def test_part_0_of_a_section_is_its_own_text(library: Library, tmp_path: Path) -> None:
    """The whole section has its subsections, its own text has not."""
    rows = [asked("rinse both filters", f"docs:guide.md#cleaning{part}") for part in ("", "~0")]
    whole, own = (library.evaluate(written(tmp_path, row)).scores[0].ndcg for row in rows)
    assert (whole, own) == (1, 0)


def test_places_may_be_written_in_characters(library: Library, tmp_path: Path) -> None:
    """A place of other people's sets of questions: a document, and where in it."""
    start = GUIDE.index("## Noise")
    place = {"doc": "docs/guide.md", "start": start, "end": start + 20}
    row = {"query": "loose screws rattling", "gold": [place]}
    found = library.evaluate(written(tmp_path, row))
    assert found.scores[0].ranks == (1,)
    assert found.questions[0].addresses == ("docs:guide.md#noise",)
    beyond = {"query": "loose screws", "gold": [place | {"end": 10**6}]}
    assert "has no such characters" in library.evaluate(written(tmp_path, row, beyond)).problems[0]


def test_a_question_is_joined_with_others_of_the_same_text(library: Library, tmp_path: Path) -> None:
    rows = [asked("weekly cleaning", f"docs:guide.md#{name}") for name in ("noise", "cleaning", "noise")]
    found = library.evaluate(written(tmp_path, *rows))
    assert [len(question.answers) for question in found.questions] == [2]


def test_pages_of_a_pdf_and_slides_are_answers(library_url: str, tmp_path: Path) -> None:
    """A place of the original is written as the fragment of a link that opens it."""
    pytest.importorskip("kreuzberg")
    documents = Path(__file__).parent / "fixtures" / "documents"
    with Library.open(library_url, create=True, config=WORDS) as library:
        for name in ("plant.pdf", "handbook.pptx"):
            library.add(documents / name, collection="d")
        addresses = [row.address for row in library.documents()]
        pdf = next(address for address in addresses if address.endswith("plant.pdf"))
        chunk = library.chunks(pdf)[-1]
        page = (chunk.location or "").removeprefix("page ").partition("–")[0]
        rows = [asked(" ".join(chunk.text.split()[:12]), f"{pdf}#page={page}"), asked("x", f"{pdf}#page=999")]
        found = library.evaluate(written(tmp_path, *rows), baselines=False)
        assert found.questions[0].answers[0].start <= chunk.start < found.questions[0].answers[0].end
        assert found.scores[0].ranks == (1,)
        assert len(found.problems) == 1


@pytest.mark.parametrize(("content", "said"), [("", "is empty"), ("{}\n", "line 1: has no question")])
def test_a_file_without_questions_says_what_is_wrong(
    library: Library, tmp_path: Path, content: str, said: str
) -> None:
    (tmp_path / "q.jsonl").write_text(content)
    with pytest.raises(NoResults, match=said):
        library.evaluate(tmp_path / "q.jsonl")


# --------------------------------------------------------------------------- questions from links


def test_links_between_documents_become_questions(library: Library) -> None:
    """Issue: the sentence around a link asks for the section it points to; a bare "here" asks nothing."""
    found = library.evaluate()
    assert found.source == "links"
    texts = {question.text: question.addresses for question in found.questions}
    assert texts == {
        "quarterly fluff removal. Whoever finds grey flakes should do the quarterly fluff removal before"
        " calling us": ("docs:guide.md#cleaning~0",),
        "not dangerous at all. Rattles and squeaks at night are not dangerous at all": (
            "docs:guide.md#noise",
        ),
        "printed leaflet about our washing machines. See the printed leaflet about our washing machines": (
            "docs:guide.md",
        ),
    }
    assert "1 of 3 questions are about a whole document: few links lead to a section." in found.notes


def test_the_place_of_a_link_does_not_count(library: Library) -> None:
    """Issue: the linking place is left out; without that, it would be first of all."""
    found = library.evaluate(baselines=False)
    dust = next(question for question in found.questions if "fluff" in question.text)
    assert library.search(dust.text).results[0].path == "faq.md"
    assert dust.exclude == (TextSpan("docs:faq.md", FAQ.index("## Dust"), FAQ.index("## Other")),)


def test_the_text_of_the_link_is_no_evidence(library: Library) -> None:
    """Issue: anchor texts of that very link must not leak, and the library is not changed."""
    before = library.store.version()
    search = [result.address for result in library.search("quarterly fluff removal").results]
    assert any(address.startswith("docs:guide.md#cleaning") for address in search)
    found = library.evaluate(baselines=False)
    number = next(n for n, question in enumerate(found.questions) if "fluff" in question.text)
    assert found.scores[0].ranks[number] is None
    assert library.store.version() == before
    assert [result.address for result in library.search("quarterly fluff removal").results] == search


def test_links_that_repeat_a_heading_give_way_to_others(library_url: str, tmp_path: Path) -> None:
    """No search misses a section whose heading is the question: such links only fill up."""
    folder = tmp_path / "d"
    folder.mkdir()
    parts = "".join(f"## Part number {n}\n\nAbout thing {n}.\n\n" for n in range(60))
    (folder / "a.md").write_text(f"# A\n\n{parts}")
    said = (f"[Part number {n}](a.md#part-number-{n}) tells all of it.\n\n" for n in range(30))
    other = (f"Some {n} kinds of [tools for thing {n}](a.md#part-number-{n}).\n\n" for n in range(30, 60))
    (folder / "b.md").write_text(f"# B\n\n{''.join(said)}{''.join(other)}")
    with Library.open(library_url, create=True, config=WORDS) as library:
        library.add(folder)
        found = from_links(library.store, library.documents(), 100, 1)
        assert len(found) == 30
        assert all(question.text.startswith("tools for") for question in found)
        assert from_links(library.store, library.documents(), 5, 1) == from_links(
            library.store, library.documents(), 5, 1
        )
        assert len(library.evaluate(limit=5, baselines=False).questions) == 5


def test_a_library_without_links_says_what_to_do(library_url: str) -> None:
    """Issue: it must work on a library with no links, with a clear message."""
    with Library.open(library_url, create=True, config=WORDS) as library:
        with pytest.raises(NoResults, match="empty"):
            library.evaluate()
        library.add(content="# A\n\nNo link.\n", path="a.md", collection="c")
        with pytest.raises(NoResults, match=r"No link leads from one document to another.*quire eval --help"):
            library.evaluate()
        with pytest.raises(NoResults, match=r"search\.log = true"):
            library.evaluate(from_log=True)
        with pytest.raises(NoResults, match="No collection 'x'"):
            library.evaluate(collection="x")


def test_wikilinks_ask_for_notes(library_url: str, tmp_path: Path) -> None:
    """In a vault, most links lead to whole notes."""
    folder = tmp_path / "vault"
    folder.mkdir()
    (folder / "Bread.md").write_text("# Bread\n\nFlour, water and salt rest overnight.\n")
    (folder / "Day.md").write_text("# Day\n\nGuests liked the [[Bread|slow sourdough loaf]] with olives.\n")
    with Library.open(library_url, create=True, config=WORDS) as library:
        library.add(folder)
        found = library.evaluate()
        assert [question.addresses for question in found.questions] == [("vault:Bread.md",)]
        assert (
            found.questions[0].text == "slow sourdough loaf. Guests liked the slow sourdough loaf with olives"
        )


# ------------------------------------------------------------------------------ settings compared


def test_two_settings_are_compared_on_the_same_questions(library_url: str, tmp_path: Path) -> None:
    """Issue: --compare, with a paired interval that says whether the difference is more than noise."""
    words = [f"{a}{b}x" for a in "abcdefgh" for b in "klmnop"]
    body = "".join(f"## {w}\n\nOnly here is {w} explained.\n\n" for w in words)
    rows = [asked(f"{word} explained", f"c:a.md#{word}") for word in words[:30]]
    with Library.open(library_url, create=True, config=WORDS) as library:
        library.add(content=f"# A\n\n{body}", path="a.md", collection="c")
        file = written(tmp_path, *rows)
        settings = ["search.min_cosine=0.1", "search.min_cosine=0.2"]
        same = library.evaluate(file, compare=settings, baselines=False).difference
        assert same is not None
        assert (same.points, same.interval, same.better, same.worse, same.is_noise) == (0, (0, 0), 0, 0, True)
        settings = ["search.max_result_tokens=100000", "search.max_result_tokens=16"]
        found = library.evaluate(file, compare=settings)
        assert [score.name for score in found.scores] == [*settings, "grep", "BM25"]


def test_a_clear_difference_is_no_noise(library_url: str, tmp_path: Path) -> None:
    """Vectors of the instant model against words, for words that no document has."""
    texts = {"dog": "puppy kennel leash", "car": "engine wheels petrol", "sea": "ocean waves tide"}
    asks = {"dog": ["canine", "hound"], "car": ["automobile", "vehicle"], "sea": ["maritime", "marine"]}
    with Library.open(
        library_url, create=True, config=override(DEFAULT, {"embed": {"model": "static"}})
    ) as it:
        for name, text in texts.items():
            it.add(content=f"# {name}\n\n{text}\n", path=f"{name}.md", collection="c")
        rows = [asked(word, f"c:{name}.md") for name, words in asks.items() for word in words]
        settings = ["search.mode=keyword", "search.mode=semantic"]
        found = it.evaluate(written(tmp_path, *rows), compare=settings)
        assert found.difference is not None
        assert found.difference.points > 50
        assert not found.difference.is_noise
        assert (found.difference.better, found.difference.worse) == (6, 0)
        assert found.scores[1].used == "semantic, static"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["search.mode=keyword"], "two different settings"),
        (["search.mode=keyword"] * 2, "two different settings"),
        (["search.mode", "search.mode=hybrid"], "has no value"),
        (["search.mode=x", "search.mode=hybrid"], "there is no 'x'"),
        (["chunk.strategy=nodes", "search.mode=hybrid"], "does not change what a search finds"),
        (["search.limit=3", "search.limit=4"], "does not change what a search finds"),
    ],
)
def test_settings_that_cannot_be_compared_are_refused(
    library: Library, settings: list[str], said: str
) -> None:
    """No option does nothing: a setting that only acts when documents are added is refused."""
    with pytest.raises(SettingError, match=said):
        library.evaluate(compare=settings)


def test_numbers_out_of_range_are_refused(library: Library, tmp_path: Path) -> None:
    for given in ({"limit": 0}, {"seed": -1}):
        with pytest.raises(SettingError, match="outside"):
            library.evaluate(**given)  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="from a file or from the log"):
        library.evaluate(tmp_path / "q.jsonl", from_log=True)


def test_an_async_library_evaluates(library: Library) -> None:
    async def main() -> Evaluation:
        async with AsyncLibrary.open(library.url, config=WORDS) as opened:
            return await opened.evaluate()

    found = asyncio.run(main())
    assert found.scores[0].values == library.evaluate().scores[0].values


def test_a_view_of_some_collections_evaluates_them_alone(library: Library) -> None:
    """Of other collections, no link and no document counts."""
    library.add(
        content="# O\n\nOther texts [about very loose screws](x.md#noise).\n", path="o.md", collection="p"
    )
    with Library.open(library.url, config=WORDS, collections=["docs"]) as view:
        assert {question.exclude[0].document for question in view.evaluate().questions} == {"docs:faq.md"}


def test_a_library_that_cannot_be_written_to_is_evaluated(tmp_path: Path) -> None:
    """Issue: it must work on read-only libraries: nothing is written."""
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "guide.md").write_text(GUIDE)
    (folder / "faq.md").write_text(FAQ)
    file = tmp_path / "l" / "l.db"
    file.parent.mkdir()
    with Library.open(file, create=True, config=WORDS) as library:
        library.add(folder)
    before = file.read_bytes()
    file.chmod(0o444)
    file.parent.chmod(0o555)
    try:
        with Library.open(file, config=WORDS) as library:
            assert len(library.evaluate().questions) == 3
    finally:
        file.parent.chmod(0o755)
    assert file.read_bytes() == before


# ------------------------------------------------------------------------------ the log of searches

LOGGED = override(WORDS, {"search": {"log": True}})


@pytest.fixture
def log_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data" / "quire" / "searches.jsonl"


def opened(library: Library, config: Config) -> Library:
    return Library.open(library.url, config=config)


def test_nothing_is_logged_unless_it_is_switched_on(library: Library, log_file: Path) -> None:
    """Issue: only if switched on."""
    library.read(library.search("loose screws").results[0].address)
    assert not log_file.parent.exists()
    assert not DEFAULT.search.log


def test_a_search_whose_result_was_read_is_logged(library: Library, log_file: Path) -> None:
    """Issue: only query, address read, time, library id; a file that only the user can read."""
    with opened(library, LOGGED) as logging:
        logging.search("rinse both filters")
        best = logging.search("loose screws").results[0]
        logging.read(best.address)
        best.read()  # a second time
        logging.read("docs:guide.md#warranty")  # which no search found
    (line,) = log_file.read_text().splitlines()
    told = json.loads(line)
    assert set(told) == {"query", "address", "time", "library"}
    assert (told["query"], told["address"]) == ("loose screws", "docs:guide.md#noise")
    assert told["library"] == library.store.library_id()
    for file in log_file.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert {file.name for file in log_file.parent.iterdir()} == {search_log.LOG_FILE, search_log.RECENT}


def test_the_latest_search_with_that_result_counts(library: Library, log_file: Path) -> None:
    with opened(library, LOGGED) as logging:
        for query in ("loose", "loose screws", "rinse both filters"):
            logging.search(query)
        logging.read("docs:guide.md#noise")
        assert [one.query for one in search_log.logged(library.store.library_id())] == ["loose screws"]
        assert search_log.logged("another") == []


def test_a_reading_long_after_the_search_does_not_count(
    library: Library, log_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue: within some minutes."""
    now = time.time()
    with opened(library, LOGGED) as logging:
        logging.search("loose screws")
        monkeypatch.setattr(time, "time", lambda: now + search_log.WITHIN + 5)
        logging.read("docs:guide.md#noise")
    assert not log_file.exists()


def test_the_log_asks_its_questions(library: Library, log_file: Path) -> None:
    """Issue: a log of your own searches with what was then read. Asking them logs nothing."""
    with opened(library, LOGGED) as logging:
        for query, address in (("loose screws", "#noise"), ("receipt years", "#warranty")):
            logging.search(query)
            logging.read(f"docs:guide.md{address}")
        before = log_file.read_bytes()
        log_file.write_bytes(before + b"not json\n{}\n")
        found = logging.evaluate(from_log=True)
        assert log_file.read_bytes().startswith(before)
        assert len(log_file.read_bytes().splitlines()) == 4
    assert (found.source, [question.text for question in found.questions]) == (
        "log",
        ["loose screws", "receipt years"],
    )
    assert found.scores[0].ranks == (1, 1)


def test_a_log_that_cannot_be_written_stops_no_search(
    library: Library, log_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log_file.parent.parent.write_text("a file where the folder would be")
    with opened(library, LOGGED) as logging:
        assert logging.read(logging.search("loose screws").results[0].address).text
    assert "the search is not logged" in caplog.text


def test_a_project_cannot_switch_the_log_on(tmp_path: Path) -> None:
    """A cloned project's settings file must not make Quire keep what you search for."""
    (tmp_path / "quire.toml").write_text("[search]\nlog = true\n")
    (tmp_path / "a.md").write_text("# A\n\nLoose screws.\n")
    run(tmp_path, "add", "a.md")
    _, err = run(tmp_path, "search", "loose", "screws")
    assert "search.log" in err
    assert not list(tmp_path.rglob("searches*"))


# ------------------------------------------------------------------------------------ the command


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "guide.md").write_text(GUIDE)
    (folder / "faq.md").write_text(FAQ)
    run(tmp_path, "add", "docs")
    return tmp_path


def test_the_command_prints_figures_and_bars(place: Path) -> None:
    """Issue: strict nDCG, found@10, characters, intervals, grep and BM25, and a plot."""
    out, err = run(place, "eval", "--misses", "5")
    lines = out.splitlines()
    assert lines[0] == "3 questions made from the links between documents:"
    assert lines[2].split() == ["strict", "nDCG@10", "found@10", "characters"]
    assert [line.split()[0] for line in lines[3:6]] == ["quire", "grep", "BM25"]
    assert all("┼" in line for line in lines[8:11])
    assert "Not answered in ten results, 1 of 1:" in lines
    assert "about a whole document" in err


def test_the_json_has_every_question(place: Path) -> None:
    found = json.loads(run(place, "eval", "--json", "--no-baselines", "-n", "2", "--seed", "3")[0])
    assert found["questions"] == len(found["asked"]) == 2
    assert [score["name"] for score in found["scores"]] == ["quire"]
    assert set(found["asked"][0]) == {"question", "answers", "ranks", "strict_ndcg_at_10"}
    assert found["difference"] is None


def test_questions_that_were_written_give_the_same_figures(place: Path) -> None:
    """What --write saves asks the same questions: the places that do not count are in it."""
    made = json.loads(run(place, "eval", "--json", "--write", "q.jsonl")[0])
    again = json.loads(run(place, "eval", "q.jsonl", "--json")[0])
    for figures in (made, again):
        figures["scores"] = [{**one, "milliseconds": 0} for one in figures["scores"]]
    assert again["scores"] == made["scores"]
    assert again["asked"] == made["asked"]
    assert "is there already" in run(place, "eval", "--write", "q.jsonl", code=2)[1]


def test_a_file_with_wrong_rows_is_partly_done(place: Path) -> None:
    """Wrong rows are on stderr, with their lines."""
    written(place, "question,answer", "loose screws,docs:guide.md#noise", "x,docs:nothing.md", name="q.csv")
    out, err = run(place, "eval", "q.csv", "--no-baselines", code=3)
    assert out.startswith("1 question of q.csv:")
    assert "q.csv, line 3: No document 'docs:nothing.md' is indexed." in err
    assert "cannot be read" in run(place, "eval", "missing.jsonl", code=4)[1]


def test_settings_are_compared_on_the_command_line(place: Path) -> None:
    out, _ = run(place, "eval", "--compare", "search.neighbours=0", "search.neighbours=0.1", "--no-baselines")
    assert "search.neighbours=0.1 against search.neighbours=0: +0.0 points" in out
    assert "Chance may explain this difference" in out


def test_the_page_draws_the_figures(place: Path) -> None:
    """Issue: --html, drawn by own code; texts of documents are no markup."""
    (place / "docs" / "x.md").write_text(
        "# X\n\nOdd <b>&bold</b> words [that nobody knows](guide.md#noise).\n"
    )
    run(place, "refresh")
    _, err = run(place, "eval", "--html", "e.html")
    page = (place / "e.html").read_text()
    assert "Wrote e.html" in err
    assert page.count("<svg ") == page.count("</svg>") == 2
    assert page.count("<rect ") == 6
    assert "<script" not in page
    assert "src=" not in page
    assert "&amp;bold" in page
    run(place, "eval", "--html", "e.html")
    (place / "mine.html").write_text("mine")
    assert "not a page that Quire wrote" in run(place, "eval", "--html", "mine.html", code=2)[1]


def test_searching_and_reading_on_the_command_line_are_logged(place: Path) -> None:
    """Issue: the command line feeds the log through one place; `quire where` shows it."""
    assert json.loads(run(place, "where", "--json")[0])["searches"] is None
    user_settings(place, "[search]\nlog = true\n")
    run(place, "search", "loose", "screws")
    run(place, "read", "docs:guide.md#noise")
    found = json.loads(run(place, "where", "--json")[0])["searches"]
    assert found == {
        "path": str(place / ".local/share/quire/searches.jsonl"),
        "entries": 1,
        "on": True,
    }
    assert "log of searches: " in run(place, "where")[0]
    out, _ = run(place, "eval", "--log", "--no-baselines")
    assert out.startswith("1 question from the log of your searches:")
    user_settings(place, "")
    assert "switched off, and kept until you delete it" in run(place, "where")[0]
    Path(found["path"]).unlink()
    assert "No" not in run(place, "search", "loose")[1]
    assert "search.log = true" in run(place, "eval", "--log", code=1)[1]


def test_agents_are_logged_too(place: Path) -> None:
    """Issue: MCP feeds the log through the same place."""

    async def work(client: Any) -> None:
        await call(client, "search", query="loose screws")
        await call(client, "read", address="docs:guide.md#noise")

    run(place, "copy", "--to", "l.db")
    data = place / "data"
    talk(parameters(place, QUIRE_SEARCH_LOG="true", XDG_DATA_HOME=str(data)), work)
    (line,) = (data / "quire" / "searches.jsonl").read_text().splitlines()
    assert json.loads(line)["query"] == "loose screws"
