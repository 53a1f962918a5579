"""What MCP tools answer to programs and cost models: data in `_meta`, advice that names tools, and sizes."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from quire import errors
from quire.library import Library
from quire.result import Result
from quire.surfaces.cli.group import quire as commands
from quire.surfaces.mcp.results import ResultData, Results
from quire.surfaces.mcp.server import _told
from quire.surfaces.mcp.text import failure, fenced, for_agents, visible
from quire.surfaces.mcp.tools import TOOLS
from tests.commands import run
from tests.mcp_client import GUIDE, ask, call, parameters, refused, said, some_docs, talk
from tests.mcp_docs import SCHEMA, schema
from tests.words import WORDS

SOURCE = Path(errors.__file__).parent
COMMAND = re.compile(rf"\bquire (?:{'|'.join(commands.commands)})\b|: -c NAME")
PERSON = re.compile(r"a person must (?:type|start it with): (?:quire [a-z]+|\S+)")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    some_docs(tmp_path)
    return tmp_path


# -------------------------------------------------------------------------------------- the data


def data(answer: Any) -> dict[str, Any]:
    """The data of an answer, checked by the type that the published schema is of."""
    assert answer.structured_content is None
    found: dict[str, Any] = answer.meta["quire/results"]
    Results.model_validate_json(json.dumps(found), strict=True)
    return found


def test_the_schema_in_the_docs_is_that_of_the_code() -> None:
    """Issue: one schema for search, recall, context and read, documented and typed; the names of --json."""
    assert SCHEMA.read_text() == schema()
    assert {*Result.__dataclass_fields__} - {"explain", "checksum"} <= {*ResultData.model_fields}


def test_programs_find_what_the_text_shows_in_meta(place: Path) -> None:
    """Issue: the same as data in `_meta`, one schema for search, recall, context and read."""

    async def work(client: Client) -> None:
        await ask(client, "add", sources=["."])
        await ask(client, "remember", text="Ada likes green tea.", tags=["ada"])
        answer = await call(client, "search", query="package manager OR penguins")
        found = data(answer)
        assert (found["tool"], found["total"], found["cursor"]) == ("search", 2, None)
        assert found["good_match"] is True
        assert [one["address"] for one in found["results"]] == re.findall(
            r"^> \d\. (\S+)", said(answer), re.M
        )
        install = next(one for one in found["results"] if one["heading"] == "Install")
        assert GUIDE.encode()[install["byte_start"] : install["byte_end"]].startswith(b"## Install")
        marked = [install["snippet"][start:end] for start, end in install["highlights"]]
        assert marked == ["package", "manager"]
        assert "explain" not in install
        (tea,) = data(await call(client, "recall", query="tea"))["results"]
        assert (tea["kind"], tea["tags"], tea["snippet"]) == ("memory", ["ada"], "Ada likes green tea.")
        assert tea["updated_at"] > 1_600_000_000_000
        pack = data(await call(client, "context", query="package manager"))
        assert [(one["number"], one["strength"]) for one in pack["results"]] == [(1, "strong")]
        assert "text" not in pack["results"][0]
        (read,) = data(await call(client, "read", address="docs:guide.md#install"))["results"]
        assert (read["start_line"], read["end_line"], read["tokens"]) == (5, 8, 15)
        chunks = data(await call(client, "read", address="docs:guide.md", chunks=True))
        assert chunks["total"] == len(chunks["results"]) == 3
        assert len({one["chunk_ids"][0] for one in chunks["results"]}) == 3
        assert data(await call(client, "search", query="zebra"))["results"] == []

    talk(parameters(place), work)


def test_the_names_and_values_are_those_of_json_on_the_command_line(place: Path) -> None:
    """Issue: one vocabulary."""
    run(place, "add", "docs", "-L", "l.db", QUIRE_EMBED_MODEL="none")
    out, _ = run(place, "search", "penguins", "--json", "-L", "l.db", QUIRE_EMBED_MODEL="none")
    (shown,) = json.loads(out)["results"]
    answer = talk(parameters(place), lambda client: call(client, "search", query="penguins"))
    assert data(answer)["results"] == [shown]


def test_a_page_has_the_data_of_what_it_shows_and_its_cursor(place: Path) -> None:
    """Issue: `_meta` is bounded as the text is: the same results, and no text but snippets."""
    for i in range(25):
        (place / "docs" / f"p{i:02}.md").write_text(
            f"# Penguin {i}\n\n{'word ' * 300}\n\nIt eats fish {i}.\n"
        )

    async def work(client: Client) -> None:
        await ask(client, "add", sources=["."])
        cursor, seen = "", list[str]()
        while cursor is not None:
            answer = await call(client, "search", query="fish", limit=30, max_tokens=600, cursor=cursor)
            found = data(answer)
            assert found["total"] == 25
            shown = re.findall(r"^> \d+\. (\S+)", said(answer), re.M)
            assert [one["address"] for one in found["results"]] == shown
            assert len(json.dumps(answer.meta)) < 12 * len(said(answer))
            cursor = found["cursor"]
            assert (f'cursor="{cursor}"' in said(answer)) == bool(cursor)
            seen += shown
        assert len(set(seen)) == len(seen) == 25

    talk(parameters(place), work)


def test_each_page_of_a_passage_has_its_own_span(place: Path) -> None:
    """The spans of the pages join to the document, also where codes stand for invisible characters."""
    source = "# Odd\r\n\r\n" + "".join(f"Zero\u200bwidth é {i}.\r\n" for i in range(200))
    (place / "docs" / "odd.md").write_bytes(source.encode())

    async def work(client: Client) -> None:
        await ask(client, "add", sources=["."])
        cursor, end, byte_end, line, pages = "", 0, 0, 1, 0
        while cursor is not None:
            answer = await call(client, "read", address="docs:odd.md", max_tokens=300, cursor=cursor)
            cursor, (page,) = data(answer)["cursor"], data(answer)["results"]
            assert (page["start"], page["byte_start"], page["start_line"]) == (end, byte_end, line)
            end, byte_end, line = page["end"], page["byte_end"], page["end_line"] + 1
            exact = source[page["start"] : end]
            assert source.encode()[page["byte_start"] : byte_end] == exact.encode()
            assert fenced(visible(exact)) in said(answer)
            assert f"> lines {page['start_line']}–{page['end_line']}, " in said(answer)
            pages += 1
        assert (end, byte_end) == (len(source), len(source.encode()))
        assert pages > 5

    talk(parameters(place), work)


def test_an_outline_answers_in_both_forms_each_complete(place: Path) -> None:
    """Issue: list, toc and status in both forms: some clients forward only one of the two."""
    (place / "docs" / "long.md").write_text(
        "# Long\n\n" + "".join(f"## Part {i}\n\nA.\n\n" for i in range(60))
    )

    async def work(client: Client) -> None:
        await ask(client, "add", sources=["."])
        answer = await call(client, "toc", address="docs:guide.md")
        told = answer.structured_content
        assert [told.pop(name) for name in ("total", "cursor")] == [3, None]
        listed = [tuple(one.values()) for one in (told, *told.pop("sections"))]
        assert list(told) == ["address", "title", "depth", "start_line", "tokens"]
        assert listed == [
            ("docs:guide.md", "Guide", 0, 1, 32),
            ("docs:guide.md#guide", "Guide", 1, 1, 32),
            ("docs:guide.md#install", "Install", 2, 5, 15),
            ("docs:guide.md#use", "Use", 2, 9, 12),
        ]
        seen, cursor = list[str](), ""
        while cursor is not None:
            answer = await call(client, "toc", address="docs:long.md", max_tokens=500, cursor=cursor)
            told = answer.structured_content
            slugs = re.findall(r"^> +- #(\S+)", said(answer), re.M)
            assert [one["address"] for one in told["sections"]] == [f"docs:long.md#{slug}" for slug in slugs]
            seen, cursor = seen + slugs, told["cursor"]
        assert len(set(seen)) == len(seen) == 61

    talk(parameters(place), work)


# -------------------------------------------------------------------------------------- the tools


@pytest.mark.parametrize("vocabulary", ["o200k_base", "cl100k_base"])
def test_all_tools_together_take_few_tokens(vocabulary: str) -> None:
    """Issue: stay under 2,600 tokens, counted over all that a client is sent."""
    bpe = pytest.importorskip("rs_bpe.bpe").openai
    sent = {"tools": [_told(tool).model_dump(by_alias=True, exclude_none=True) for tool in TOOLS]}
    tokens = getattr(bpe, vocabulary)().encode(json.dumps(sent, separators=(",", ":")))
    assert len(tokens) < 2600


def test_a_list_is_narrowed_by_path_tag_and_kind(place: Path) -> None:
    """Issue: `list` narrowed by path, tag and kind."""
    (place / "docs" / "draft.md").write_text("---\ntags: [draft]\n---\n# Draft\n\nNot yet.\n")

    async def work(client: Client) -> None:
        await ask(client, "add", sources=["."])
        await ask(client, "remember", text="Ada likes green tea.", tags=["ada"])

        async def listed(**narrowed: Any) -> list[str]:
            found = (await call(client, "list", **narrowed)).structured_content["documents"]
            return [one["title"] for one in found]

        assert await listed(paths=["*aft*", "faq*"]) == ["Draft", "FAQ"]
        assert await listed(tags=["draft"]) == ["Draft"]
        assert await listed(kind="memory") == ["Ada likes green tea."]
        assert await listed(kind="memory", tags=["draft"]) == []
        assert len(await listed(kind="document")) == 3
        assert "0 documents." in await ask(client, "list", collection="docs", kind="memory")
        assert "kind must be" in await refused(client, "list", kind="poem")

    talk(parameters(place), work)
    out, _ = run(
        place,
        "list",
        "-L",
        "l.db",
        "--tag",
        "draft",
        "--path",
        "*f*",
        "--kind",
        "document",
        QUIRE_EMBED_MODEL="none",
    )
    assert out == "docs:draft.md  Draft  (about 14 tokens)\n"
    _, err = run(place, "list", "-L", "l.db", "--tag", "none", QUIRE_EMBED_MODEL="none", code=1)
    assert err == "No document is within these filters: tag none.\n"
    _, err = run(place, "list", "-L", "l.db", "--kind", "poem", QUIRE_EMBED_MODEL="none", code=2)
    assert "there is no 'poem'" in err


def test_add_answers_with_the_address_it_made(place: Path) -> None:
    """Issue: `add` answers with the address it made; with a collection for more than one document."""

    async def work(client: Client) -> None:
        assert "> - its address: docs:faq.md" in await ask(client, "add", sources=["faq.md"])
        assert "> - 2 documents in docs" in await ask(client, "add", sources=["."])
        assert "> - its address: content:a.md" in await ask(client, "add", content="A fact.", path="a.md")
        named = re.search(r"its address: (\S+)", await ask(client, "add", content="Another fact."))
        assert named
        assert "Another fact." in await ask(client, "read", address=named[1])

    talk(parameters(place), work)


def test_memories_are_not_removed_but_forgotten(tmp_path: Path) -> None:
    """Issue: `remove` refuses memories, and names what deletes them."""
    with Library.open(tmp_path / "l.db", create=True, config=WORDS) as library:
        kept = library.remember("Ada likes green tea.", name="tea")
        for named in ((kept.address, None), (kept.id, None), (None, "memory")):
            with pytest.raises(errors.SettingError, match="To delete it: quire forget"):
                library.remove(*filter(None, named[:1]), collection=named[1])
        library.add(content="# A\n", path="a.md", collection="docs")
        with pytest.raises(errors.SettingError, match="quire forget memory:tea"):
            library.remove("docs:a.md", kept.address)
        assert len(library.documents()) == 2
    _, err = run(tmp_path, "remove", kept.address, "-L", "l.db", code=2)
    assert f"quire forget -L l.db {kept.address}" in err


def test_one_is_told_from_many(tmp_path: Path) -> None:
    """`1 token`, `line 1` and `2 of 3`; what is wrong with an empty list, and the kinds that there are."""
    for number in range(3):
        (tmp_path / f"{number}.md").write_text("a\n" if number else f"# {'Long title ' * 40}\n")
    with Library.open(tmp_path / "l.db", create=True, config=WORDS) as library:
        library.add(tmp_path, collection="docs")
        tools = {tool.name: tool for tool in TOOLS}

        def told(name: str, **arguments: Any) -> str:
            tool = tools[name]
            assert tool.run
            return tool.run(library, tool.arguments.checked(arguments)).text

        assert "(document, about 1 token, 1 chunk)" in told("list")
        assert "> line 1, about " in told("read", address="docs:1.md")
        first = told("list", max_tokens=200)
        assert "Cut at max_tokens: 1 of 3 shown." in first
        assert "0 documents. Paths are those within a collection" in told("list", paths=["docs/1.md"])
        with pytest.raises(errors.SettingError, match="kind must be 'document', 'external'"):
            told("list", kind="x")


# ----------------------------------------------------------------------------------------- advice


def messages(*, of_all: bool = False) -> Iterator[tuple[str, str]]:
    """Every text that names a command, with a word in place of what is filled in: of agents, or of all."""
    outside = (
        ()
        if of_all
        else (
            "surfaces/cli/",
            "surfaces/http/",
            "surfaces/user_service",
            "surfaces/clients",
            "surfaces/completion",
            "library/evaluating",  # no tool evaluates
            "surfaces/insertions",
            "__main__",
        )
    )
    for file in SOURCE.rglob("*.py"):
        name = file.relative_to(SOURCE).as_posix()
        if name.startswith(outside):
            continue
        tree = ast.parse(file.read_text("utf-8"))
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        inner = {
            id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                parts = [part.value if isinstance(part, ast.Constant) else "X" for part in node.values]
                text = "".join(map(str, parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
                text = node.value
            else:
                continue
            if id(node) not in docstrings and COMMAND.search(text):
                yield name, text


def test_advice_names_tools_or_says_that_a_person_must_act() -> None:
    """Issue: advice names tools, not shell commands."""
    found = list(messages())
    assert len(found) > 30
    for name, text in found:
        told = PERSON.sub("", for_agents(text))
        assert not COMMAND.search(told) or name.startswith("surfaces/mcp/text"), (name, text, told)
        assert for_agents(for_agents(text)) == for_agents(text)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Add documents with: quire add ./docs", "Add documents with: the tool add"),
        ("See what there is with: quire list", "Call list to see what there is"),
        ("Bring them up to date: quire refresh", "Bring them up to date: the tool refresh"),
        (
            "To remove them: quire refresh --prune",
            "To remove them: a person must type: quire refresh --prune",
        ),
        ("To remove it: quire remove docs:a b.md", "To remove it: the tool remove"),
        ("To repair it: quire doctor --repair", "To repair it: a person must type: quire doctor --repair"),
        (
            "If it was moved, type: quire sources move",
            "If it was moved, a person must type: quire sources move",
        ),
        ("Name another collection: -c NAME. If", "Name another collection. If"),
        (
            "No match in quire lists or in the quire folder.",
            "No match in quire lists or in the quire folder.",
        ),
    ],
)
def test_commands_become_tools(said: str, told: str) -> None:
    """What no tool does, a person must; other words stay."""
    assert for_agents(said) == told


def test_no_error_tells_an_agent_to_type_a_command() -> None:
    """Issue: the same for every class of error, in the text and in `_meta`."""
    moved = errors.SourceMoved("/old", "/new")
    damaged = errors.Damaged("l.db", "docs:a.md")
    setting = errors.SettingError("a", "no: quire embed --model deep")
    for error in (moved, damaged, setting, errors.NoResults("None. See what there is with: quire list")):
        answer = failure(error)
        assert answer.error
        for shown in (answer.text, answer.error["message"], *answer.error["details"].values()):
            assert not COMMAND.search(PERSON.sub("", shown)), shown
