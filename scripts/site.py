"""What mkdocs does beside its own work: pages from outside docs/, and links to files that the site lacks."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
ADDED = ("CHANGELOG.md", "CONTRIBUTING.md", "bench/README.md")
_PICTURES = ("bench/confidence.svg", "bench/frontier.svg", "bench/sizes.svg")
_FENCE = re.compile(r"(^```+.*?^```+$)", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def slug(title: str, separator: str) -> str:
    """The anchor of a heading, as the places that show Markdown files make it."""
    text = unicodedata.normalize("NFC", title).lower().strip()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", separator)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Leave pages out of the navigation that are not there."""
    config.nav = _present(config.nav)
    return config


def _present(entry: object) -> object:
    if isinstance(entry, list):
        return [one for one in map(_present, entry) if one]
    if isinstance(entry, dict):
        return {title: below for title, one in entry.items() if (below := _present(one))}
    return entry if (ROOT / "docs" / str(entry)).exists() or entry in ADDED else None


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages and pictures that are elsewhere in the repository."""
    for name in (*ADDED, *_PICTURES):
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Page, files: Files, **_: object) -> str:
    """Lead links to where the site has their targets; name files that it does not have."""
    folder = "docs" if (ROOT / "docs" / page.file.src_uri).exists() else posixpath.dirname(page.file.src_uri)
    parts = _FENCE.split(markdown)
    for place in range(0, len(parts), 2):
        parts[place] = _LINK.sub(lambda found: _led(found, folder, page.file.src_uri, files), parts[place])
    return "".join(parts)


def _led(link: re.Match[str], folder: str, source: str, files: Files) -> str:
    sign, text, target, anchor = link[1], link[2], link[3], link[4] or ""
    if re.match(r"[a-z]+:", target):
        return link[0]
    path = posixpath.normpath(posixpath.join(folder, target))
    there = "index.md" if path == "README.md" else path.removeprefix("docs/")
    if files.get_file_from_path(there):
        return f"{sign}[{text}]({posixpath.relpath(there, posixpath.dirname(source))}{anchor})"
    return text if text in (path, f"`{path}`") else f"{text} (`{path}`)"
