"""Writes the tables and the exchange in docs/mcp.md, and the schema of answers: python -m tests.mcp_docs"""

from __future__ import annotations

import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from pydantic import BaseModel

from quire.surfaces.mcp.results import ResultData, Results
from quire.surfaces.mcp.text import fenced
from quire.surfaces.mcp.tools import TOOLS
from tests import forks
from tests.mcp_client import ask

PAGE = Path(__file__).parents[1] / "docs" / "mcp.md"
SCHEMA = PAGE.with_name("results.schema.json")
DOCUMENTS = {
    "guide.md": "# Lamp\n\nLamp is a small web server.\n\n## Install\n\n```\npip install lamp\n```\n\n"
    "## Deploy\n\nCopy the folder to the server and run `lamp start`.\n\n### Rolling back\n\n"
    "Every release is kept. `lamp use 41` goes back to release 41 within a second.\n",
    "faq.md": "# Questions\n\n## Is it fast?\n\nIt answers 20,000 requests a second on one core.\n",
}
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("add", {"sources": ["lamp"]}),
    ("search", {"query": "how do I undo a release", "limit": 2}),
    ("toc", {"address": "lamp:guide.md"}),
    ("read", {"address": "lamp:guide.md#rolling-back"}),
    ("context", {"query": "how do I undo a release", "max_tokens": 700}),
]


def table() -> str:
    """A row for each tool."""
    rows = ["| tool | what it does | arguments |", "|---|---|---|"]
    for tool in TOOLS:
        schema = tool.arguments.schema_of()
        names = [name if name in schema.get("required", ()) else f"[{name}]" for name in schema["properties"]]
        rows.append(f"| `{tool.name}` | {tool.arguments.__doc__} | {' '.join(names)} |")
    return "\n".join(rows)


def fields(head: str, model: type[BaseModel]) -> str:
    """A row for each field of a model."""
    rows = [f"| {head} | what it is |", "|---|---|"]
    rows += [f"| `{name}` | {field.description} |" for name, field in model.model_fields.items()]
    return "\n".join(rows)


def schema() -> str:
    """The JSON schema of answers in `_meta`."""
    return json.dumps(Results.model_json_schema(), indent=2) + "\n"


async def until_embedded(client: Client) -> None:
    """Wait for a thread of the server: what it embeds decides how strong results are."""
    with anyio.fail_after(60):
        while (await client.call_tool("status", {})).structured_content["goes_on"]:
            await anyio.sleep(0.05)


async def exchange(folder: Path) -> str:
    """What a client and a server say to each other about two small documents."""
    (folder / "lamp").mkdir()
    for name, text in DOCUMENTS.items():
        (folder / "lamp" / name).write_text(text)
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    args = ["mcp", "-L", str(folder / "library.db"), "--root", str(folder)]
    server = StdioServerParameters(command=forks.QUIRE, args=args, env=kept)
    told = []
    with (folder / "log").open("w") as log:
        async with Client(stdio_client(server, errlog=log)) as client:
            for name, arguments in CALLS:
                answer = re.sub(r"in \d+\.\d s", "in 0.0 s", await ask(client, name, **arguments))
                told.append(f"**{name}** `{json.dumps(arguments)}`\n\n{fenced(answer)}")
                await until_embedded(client)
    return "\n\n".join(told)


def written(page: str) -> str:
    """The page with what the code says in it."""
    with tempfile.TemporaryDirectory() as folder:
        told = anyio.run(exchange, Path(folder))
    tables = {"tool": table(), "field": fields("field", Results)}
    tables["field of a result"] = fields("field of a result", ResultData)
    for head, shown in tables.items():
        start = page.index(f"| {head} |")
        page = page[:start] + shown + page[page.index("\n\n", start) :]
    return re.sub(r"\*\*add\*\* .*(?=\n\n## Over HTTP)", lambda _: told, page, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
    SCHEMA.write_text(schema(), "utf-8")
