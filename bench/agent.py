"""What an agent pays for an answer: calls and tokens of scripted tasks over the MCP server.

    pip install -e '.[tokens]'
    python -m bench.agent [--data FOLDER] [--cache FOLDER] [--model static|deep] [--show]

The library has the Kubernetes and the Rust docs, each as a collection. Each task is a question in the words
of someone who does not know the page, and a pattern that only an exact answer matches. The agent is a script:
it calls search, looks for the answer in what it gets, and reads the results in their order until it has it,
three at most. If the server says that nothing matches well, it reads nothing. The last two tasks have no
answer in these documents: they are done if the agent is told so. One is about something else altogether, the
other is in the documents' own words.

Tokens are those of o200k: of the arguments of each call, and of the content that comes back. tools/list,
which a client sends once, is counted apart.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from mcp import Client
from rs_bpe.bpe import openai

from bench.mcp import connected, servers
from quire.config import DEFAULT, override
from quire.library import Library

COLLECTIONS = {"kubernetes": "docs_links_kubernetes/docs", "rust": "docs_links_rust/docs"}
READS = 3  # results that the agent reads at most
GOAL = 12_000  # tokens, with every answer found
_ADDRESS = re.compile(r"\b(?:kubernetes|rust):[^\s)>]+")
_NO_MATCH = "No good match"


class Task(NamedTuple):
    """A question, and what its answer says; "" if there is none."""

    question: str
    answer: str


TASKS = [
    Task("How much data may a ConfigMap hold at most?", r"1 MiB"),
    Task(
        "Which annotation marks a storage class as the default?",
        r"storageclass\.kubernetes\.io/is-default-class",
    ),
    Task(
        "How do I put a Deployment back to an earlier revision?",
        r"kubectl rollout undo deployment\S* --to-revision",
    ),
    Task(
        "How do I evict all pods from a node before maintenance?",
        r"kubectl drain [^\n]*<node name>|kubectl drain [^\n]*\$NODE",
    ),
    Task("How can finished Jobs be deleted automatically after some time?", r"ttlSecondsAfterFinished"),
    Task("How do I run my tests one after another instead of in parallel?", r"--test-threads=1"),
    Task("How do I see the call stack when my program panics?", r"RUST_BACKTRACE=1"),
    Task("Which resolver does Cargo use in the 2021 edition?", r'resolver = "2"'),
    Task("Which compiler flag turns checks for integer overflow on or off?", r"-C overflow-checks"),
    Task("How do I tune a guitar?", ""),
    Task("What does a managed control plane cost per hour?", ""),
]


class Done(NamedTuple):
    """What a task took, and whether it was done."""

    calls: int
    tokens: int
    found: bool


class Agent:
    """A script that looks for an answer, and counts what that takes."""

    def __init__(self, client: Client, show: bool) -> None:
        self.client, self.show, self.count = client, show, openai.o200k_base().count
        self.calls = self.tokens = 0

    async def call(self, tool: str, **arguments: Any) -> str:
        """The content of an answer."""
        result = await self.client.call_tool(tool, arguments)
        text = "\n".join(getattr(part, "text", "") for part in result.content)
        self.calls += 1
        self.tokens += self.count(json.dumps({"name": tool, "arguments": arguments})) + self.count(text)
        if self.show:
            print(f"\n--- {tool} {arguments}\n{text}")
        return text

    async def do(self, task: Task) -> Done:
        self.calls = self.tokens = 0
        found = await self._look(task)
        return Done(self.calls, self.tokens, found)

    async def _look(self, task: Task) -> bool:
        shown = await self.call("search", query=task.question)
        if _NO_MATCH in shown:
            return not task.answer
        if task.answer and re.search(task.answer, shown):
            return True
        for address in list(dict.fromkeys(_ADDRESS.findall(shown)))[:READS]:
            text = await self.call("read", address=address)
            if task.answer and re.search(task.answer, text):
                return True
        return False


def index(data: Path, path: Path, model: str) -> None:
    """Make the library, unless it is there."""
    config = override(DEFAULT, {"embed": {"model": model}})
    with Library.open(path, create=True, config=config) as library:
        for name, folder in COLLECTIONS.items():
            library.add(data / folder, collection=name)
        if model == "deep":
            library.embed()


async def run(path: Path, tasks: Sequence[Task], show: bool) -> list[Done]:
    async with connected(servers(path)["quire"]) as client:
        agent = Agent(client, show)
        tools = await client.list_tools()
        sent = {"tools": [tool.model_dump(by_alias=True, exclude_none=True) for tool in tools.tools]}
        size = agent.count(json.dumps(sent, separators=(",", ":")))
        print(f"{len(tools.tools)} tools, {size:,} tokens\n")
        return [await agent.do(task) for task in tasks]


def report(tasks: Sequence[Task], done: Sequence[Done]) -> None:
    print("| question | calls | tokens | done |\n|---|---|---|---|")
    for task, one in zip(tasks, done, strict=True):
        print(f"| {task.question} | {one.calls} | {one.tokens:,} | {'yes' if one.found else 'no'} |")
    asked = [one for task, one in zip(tasks, done, strict=True) if task.answer]
    calls, tokens = sum(one.calls for one in asked), sum(one.tokens for one in asked)
    print(
        f"\n{sum(one.found for one in asked)} of {len(asked)} found with {calls} calls and {tokens:,} tokens",
        end="",
    )
    told = [one.found for task, one in zip(tasks, done, strict=True) if not task.answer]
    print(f" (goal: all within {GOAL:,}); {sum(told)} of {len(told)} without an answer were told so")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "eval")
    parser.add_argument("--cache", type=Path, help="keep the library in this folder")
    parser.add_argument("--model", choices=["static", "deep"], default="static")
    parser.add_argument("--show", action="store_true", help="print every answer")
    args = parser.parse_args()
    place = nullcontext(str(args.cache)) if args.cache else tempfile.TemporaryDirectory()
    with place as folder:
        path = Path(folder) / f"agent-{args.model}.db"
        index(args.data, path, args.model)
        report(TASKS, asyncio.run(run(path, TASKS, args.show)))


if __name__ == "__main__":
    main()
