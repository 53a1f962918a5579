"""Generated markdown, and the real files that lie beside a checkout."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import strategies as st

SHARED = Path(__file__).parents[2] / "shared" / "eval"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the evaluation data is not here")
FULL_FILES = [  # llms-full.txt files of real sites: what begins each page, and pages before the first
    ("langwatch", r"^# FILE: ", 1),
    ("litellm", r"^## .*\n\[Skip to main content\]", 1),
    ("mistral", r"^Source: https://", 0),
    ("wormhole", r"^Doc-Content: ", 1),
    ("genaiscript", r"^# ", 1),
]

WORDS = st.sampled_from(
    [
        "alpha",
        "beta",
        "The pod",
        "runs.",
        "Dr. Who",
        "a_b",
        "`code`",
        "*em*",
        "[link](u)",
        "文档",
        "检索。",
        "🙂👍🏽",
        "é",
        "x" * 90,
    ]
)
PROSE = st.lists(WORDS, min_size=1, max_size=30).map(" ".join)
HEADING = st.builds(lambda level, text: f"{'#' * level} {text}", st.integers(1, 6), PROSE)
SETEXT = st.builds(lambda text, line: f"{text}\n{line}", PROSE, st.sampled_from(["===", "---"]))
FENCE = st.builds(
    lambda mark, lines: f"{mark}py\n" + "\n".join(lines) + f"\n{mark}",
    st.sampled_from(["```", "~~~~"]),
    st.lists(st.sampled_from(["# not a heading", "", "x = 1", "    y", "- z"]), max_size=12),
)
TABLE = st.integers(0, 12).map(lambda n: "| a | b |\n|---|---|\n" + "\n".join(["| 1 | two |"] * n))
LIST = st.lists(
    st.builds(lambda m, t: f"{m} {t}", st.sampled_from(["-", "1.", "*"]), PROSE), min_size=1, max_size=6
)
NESTED = PROSE.map(lambda text: f"1. {text}\n\n   ```sh\n   # nested\n\n   ls\n   ```\n\n   more")
QUOTE = PROSE.map(lambda text: f"> {text}\n> # quoted")
HTML = st.sampled_from(
    ["<div>\n# html\n</div>", "<!-- a\n\n# b\n-->", "<x>\n# y", "<details>", "<pre>\n\n# p\n</pre>"]
)
ODD = st.sampled_from(
    [
        "```",
        "---",
        "===",
        "    # code",
        "\t# tab",
        "[a]: /b",
        "***",
        "&amp;",
        "\\# no",
        " # one",
        "   ## three ##",
        "#",
        "- # item",
    ]
)
BLOCK = st.one_of(
    HEADING, HEADING, PROSE, SETEXT, FENCE, TABLE, LIST.map("\n".join), NESTED, QUOTE, HTML, ODD
)
FRONT = st.sampled_from(
    ["", "", "---\ntitle: Given\n---\n", "---\ntags: [a\n---\n", "+++\ntitle = 'T'\n+++\n", "\ufeff"]
)
NEWLINE = st.sampled_from(["\n", "\n", "\r\n", "\r"])


@st.composite
def markdown(draw: st.DrawFn) -> str:
    """A document made of every kind of block, with any line ends."""
    blocks = draw(st.lists(BLOCK, max_size=14))
    gaps = draw(
        st.lists(
            st.sampled_from(["\n\n", "\n\n", "\n", "\n\n\n", "\n \n"]),
            min_size=len(blocks),
            max_size=len(blocks),
        )
    )
    text = draw(FRONT) + "".join(block + gap for block, gap in zip(blocks, gaps, strict=True))
    return text.replace("\n", draw(NEWLINE))


def large_inputs() -> list[Path]:
    """Every large, foreign and odd file."""
    return sorted(p for p in (SHARED / "large_inputs").rglob("*") if p.suffix in {".md", ".mdx", ".txt"})


def corpus_files() -> list[Path]:
    """Every document of the evaluation data."""
    return sorted(p for p in SHARED.rglob("*") if p.suffix in {".md", ".mdx", ".txt"})
