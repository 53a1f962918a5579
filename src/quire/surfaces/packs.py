"""Context packs as Markdown, XML and JSON."""

from __future__ import annotations

import html
from dataclasses import asdict
from typing import Any

from quire import context
from quire.context import Context, Passage, one_line, safe_lines


def as_markdown(found: Context) -> str:
    """A context pack as Markdown: its `tokens` count this text."""
    return context.markdown(found.passages, found.good_match)


def as_values(found: Context) -> dict[str, Any]:
    """A context pack with the exact text of every passage."""
    return asdict(found)


def as_xml(found: Context) -> str:
    """A context pack as XML."""
    lines = ["<documents>" if found.good_match else '<documents good_match="false">']
    for passage in found.passages:
        place = _escaped(passage.breadcrumb.removeprefix("> "))
        lines += [
            f'<document index="{passage.number}" address="{_escaped(passage.address)}"'
            f' {_where(passage)} place="{place}">',
            f"<source>{_escaped(passage.link or passage.path)}</source>",
            f"<content>{html.escape(safe_lines(passage.text), quote=False)}</content>",
            "</document>",
        ]
    return "\n".join([*lines, "</documents>\n"])


def _where(passage: Passage) -> str:
    if passage.location:
        return f'location="{_escaped(passage.location)}"'
    return f'lines="{passage.start_line}–{passage.end_line}"'


def _escaped(text: str) -> str:
    return html.escape(one_line(text))
