"""Quire without onnxruntime: every command works, by words and instant meaning."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from quire.config import DEFAULT
from quire.library import Library
from tests import commands
from tests.mcp_client import ask, call, parameters, talk
from tests.test_embedding import ZOO

# Commands run in one process, each as `quire` would: starting Python takes longer than most of them.
EACH = """
import io, json, sys
from quire.surfaces import cli

answers, really = [], (sys.stdout, sys.stderr)
for args in json.loads(sys.argv[1]):
    said = [io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in really]
    sys.argv, (sys.stdout, sys.stderr) = ["quire", *args], said
    try:
        cli.main()
    except SystemExit as ended:
        answers.append([ended.code or 0, *(one.buffer.getvalue().decode() for one in said)])
    sys.stdout, sys.stderr = really
print(json.dumps(answers))
"""
NEEDS = "deep: needs onnxruntime, which is not installed: pip install onnxruntime"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with documents, and a library of them that was embedded where onnxruntime is installed."""
    place = tmp_path_factory.mktemp("light")
    (place / "zoo").mkdir()
    for name, text in ZOO.items():
        (place / "zoo" / name).write_text(text)
    with Library.open(place / "deep.db", create=True, config=DEFAULT) as library:
        library.add(place / "zoo")
        assert library.status().serving == "deep"
    (place / "site").mkdir()
    (place / "site" / "sitecustomize.py").write_text("import sys\nsys.modules['onnxruntime'] = None\n")
    return place


def path(place: Path) -> str:
    """PYTHONPATH for a Python that cannot import onnxruntime."""
    return os.pathsep.join([str(place / "site"), *filter(None, [os.environ.get("PYTHONPATH")])])


def run(place: Path, *asked: str, **more: str) -> list[tuple[int, str, str]]:
    """What commands say, without onnxruntime: exit codes, stdout and stderr. Words are parted by blanks."""
    env = commands.environment(place) | {"PYTHONPATH": path(place), "QUIRE_LIBRARY": str(place / "light.db")}
    del env["QUIRE_EMBED_MODEL"]
    done = subprocess.run(
        [sys.executable, "-c", EACH, json.dumps([one.split() for one in asked])],
        cwd=place,
        env=env | more,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return [tuple(one) for one in json.loads(done.stdout)]


COMMANDS = (
    "--version",
    "add zoo",
    "search automobile",
    "search automobile --mode semantic",
    "search automobile --mode keyword",  # no document has that word
    "search wheels --mode keyword",
    "read zoo:dogs.md",
    "toc zoo:cars.md",
    "chunks zoo:cars.md",
    "list",
    "sources",
    "status",
    "status --deep",
    "embed",
    "refresh",
    "refresh --check",
    "promote zoo:dogs.md important",
    "remember tea_is_preferred_to_coffee",
    "learn coffee_is_a_beverage",
    "recall beverage",
    "context automobile",
    "chunk zoo/cars.md",
    "trust --list",
    "doctor",
    "doctor --repair",
    "backup backup.db",
    "restore backup.db",
    "copy --to copy.db",
    "export memories.jsonl",
    "import memories.jsonl -L other.db",
    "forget -c memory",
    "remove zoo:boats.md",
    "embed --model deep",
)
OTHER_CODES = {"search automobile --mode keyword": 1, "embed --model deep": 4}


def test_every_command_works_without_onnxruntime(place: Path) -> None:
    """Issue: nothing needs it. A synonym is found by static; only who asks for deep is told what it needs."""
    found = dict(zip(COMMANDS, run(place, *COMMANDS), strict=True))
    for command, (code, out, err) in found.items():
        assert code == OTHER_CODES.get(command, 0), (command, out, err)
        assert "Traceback" not in err
        assert ("onnxruntime" in err) == (command == "embed --model deep"), (command, err)
    assert found["add zoo"][1].startswith("3 added, 0 updated, 0 unchanged: 4 chunks")
    for mode in ("search automobile", "search automobile --mode semantic"):
        assert "  1. zoo:cars.md#cars" in found[mode][1]
    assert "meaning: static serves; static has all chunks\n" in found["status"][1]
    assert found["embed"][1].startswith("0 chunks embedded with static")
    assert "beverage" in found["recall beverage"][1]
    assert "four wheels" in found["context automobile"][1]
    assert NEEDS in found["embed --model deep"][2]
    with Library.open(place / "copy.db") as copy:
        assert copy.status().instant == copy.status().chunks


def test_a_library_with_deep_vectors_is_searched_with_static(place: Path) -> None:
    """Issue: such a library works here too, and a note says what is missing."""
    asked = [f"search automobile --json --mode {mode}" for mode in ("hybrid", "semantic", "keyword")]
    asked += ["status --json", "doctor", "search wheels", "remember coffee_is_not"]
    deep = str(place / "deep.db")
    hybrid, semantic, keyword, status, doctor, _, remembered = run(place, *asked, QUIRE_LIBRARY=deep)
    assert (remembered[0], remembered[2]) == (0, "")  # who has onnxruntime may embed it later
    for code, out, _ in (hybrid, semantic):
        shown = json.loads(out)
        assert (code, shown["model"], shown["results"][0]["path"]) == (0, "static", "cars.md")
        assert shown["notes"] == [f"Searched with static. {NEEDS}"]
    assert (keyword[0], json.loads(keyword[1])["notes"][0].startswith("No match")) == (1, True)
    shown = json.loads(status[1])
    assert (shown["model"], shown["embedded"], shown["serving"]) == ("deep", 4, "static")
    assert "Searches use static until it works" in doctor[1]
    # Who sets the model to static is told nothing, and adds what others may embed.
    asked = ["search automobile --json", "add zoo", "remember tea_is_preferred"]
    searched, added, kept = run(place, *asked, QUIRE_LIBRARY=deep, QUIRE_EMBED_MODEL="static")
    assert (json.loads(searched[1])["notes"], added[0], added[2], kept[0]) == ([], 0, "", 0)


def test_the_server_for_agents_works_without_onnxruntime(place: Path) -> None:
    """Issue: the same for agents: add, search and status."""

    async def work(client: Client) -> Any:
        assert "3 added" in await ask(client, "add", sources=["."])
        assert "zoo:cars.md" in await ask(client, "search", query="automobile", mode="semantic")
        return (await call(client, "status")).structured_content

    options = {"PYTHONPATH": path(place), "QUIRE_EMBED_MODEL": ""}
    status = talk(parameters(place, "--root", str(place / "zoo"), **options), work)
    assert (status["serving"], status["instant"], status["model"]) == ("static", 4, "")
