"""Writes PACKAGE.md, the page of the package on an index, from README.md: python -m tests.package_page

An index shows one page without the files beside it. If pyproject.toml names the address of the repository
(`Repository` in `project.urls`), links and pictures lead there. Otherwise the page has no pictures, and names
files instead of linking them.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "PACKAGE.md"
_WHERE = "The files that are named here are in the source archive of this package."
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:|#)([^)]+)\)")
_FENCE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
_PICTURE = re.compile(r"!\[([^\]]*)\]\((?!https?:)([^)]+)\)\n*")


def repository() -> str:
    """The public address of the repository; empty if it has none yet."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return str(project.get("urls", {}).get("Repository", "")).rstrip("/")


def written(readme: str, address: str) -> str:
    """The README as an index can show it."""
    parts = _FENCE.split(readme)
    parts[::2] = [_led(part, address) for part in parts[::2]]
    return "".join(parts) + ("" if address else f"\n{_WHERE}\n")


def _led(text: str, address: str) -> str:
    """A text outside code with links that lead somewhere."""
    if address:
        shown = _PICTURE.sub(lambda found: f"![{found[1]}]({address}/raw/main/{found[2]})\n\n", text)
        return _LINK.sub(lambda found: f"[{found[1]}]({address}/blob/main/{found[2]})", shown)
    return _LINK.sub(_named, _PICTURE.sub("", text))


def _named(link: re.Match[str]) -> str:
    """A link as text: files in the source archive."""
    path = link[2].partition("#")[0]
    return f"`{path}`" if link[1] == path else f"{link[1]} (`{path}`)"


def main() -> None:
    """Write the page anew."""
    PAGE.write_text(written((ROOT / "README.md").read_text("utf-8"), repository()), "utf-8")


if __name__ == "__main__":
    main()
