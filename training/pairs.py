"""Repositories of Markdown to training pairs: sections, and queries that should find them.

    git clone https://github.com/OWNER/NAME clones/OWNER/NAME     # at the commit that sources.toml names
    python -m training.pairs clones training/pairs

Out come `sections.jsonl.xz` (id, repo, path, trail, text) and `pairs.jsonl.xz` (query, section, kind):

heading    a heading after up to two of its parents, and the text below it
title      a page's title, or its description, and its first section
question   a heading that asks something, and the text below it
anchor     the words of a link, and the section it leads to
link       the sentence around a link, and that section

Always: a section has prose; at most MOST_OF_SECTION pairs lead to one, and MOST_OF_QUERY come from a query.
"""

from __future__ import annotations

import json
import lzma
import posixpath
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import quire
from quire.tree import Section, Tree

CHARACTERS, SHORTEST = 1200, 60
MOST_OF_SECTION, MOST_OF_QUERY = 20, 3
LINK = re.compile(r"(?<!!)\[([^\]\n]{2,200})\]\(([^)\s]+)(?: \"[^\"]*\")?\)")
IMAGE = re.compile(r"!\[[^\]]*\]\([^)]*\)")
QUESTION = re.compile(r"(?:how|what|why|when|where|which|who|can|does|is|should)\b.*|.*\?$", re.IGNORECASE)
SENTENCE = re.compile(r"(?<=[.!?])\s+|\n\s*\n|\n(?=\s*[-*+] )")


class Page(NamedTuple):
    """A page of a repository."""

    repo: str
    path: str
    tree: Tree


class Pair(NamedTuple):
    """A query, the page and slug of the section that it should find, and its kind."""

    query: str
    page: str
    slug: str
    kind: str


def pages_of(folder: Path, repo: str) -> Iterator[Page]:
    """The Markdown files of a clone, but for those in hidden folders."""
    for path in sorted(folder.rglob("*.md")):
        inside = path.relative_to(folder)
        if not any(part.startswith(".") for part in inside.parts):
            text = path.read_text("utf-8", "replace")
            yield Page(repo, inside.as_posix(), quire.tree(text))


def plain(markup: str) -> str:
    """Markup without images and the addresses of links."""
    return LINK.sub(r"\1", IMAGE.sub("", markup)).strip()


def text_of(section: Section) -> str:
    return plain(section.body)[:CHARACTERS]


def has_prose(text: str) -> bool:
    words = re.findall(r"[A-Za-z]{2,}", text)
    return len(text) >= SHORTEST and len(words) >= 8


def pairs_of(page: Page) -> Iterator[Pair]:
    """The pairs that a page gives by itself, and those of its links."""
    sections = [section for section in page.tree.sections if has_prose(text_of(section))]
    if sections and page.tree.title:
        yield Pair(page.tree.title, page.path, sections[0].slug, "title")
    for section in sections:
        if section.heading:
            *above, own = section.trail
            yield Pair(" ".join([*above[-2:], own]), page.path, section.slug, "heading")
            if QUESTION.fullmatch(own):
                yield Pair(own, page.path, section.slug, "question")
        yield from links_of(page, section)


def links_of(page: Page, section: Section) -> Iterator[Pair]:
    for sentence in SENTENCE.split(section.body):
        for words, target in LINK.findall(sentence):
            path, _, slug = target.partition("#")
            if "://" in target or target.startswith("mailto:") or not path:
                continue
            place = posixpath.normpath(posixpath.join(posixpath.dirname(page.path), path.lstrip("/")))
            if len(words.split()) > 1:
                yield Pair(plain(words), place, slug, "anchor")
            if len(said := plain(sentence)) > len(words) + 20:
                yield Pair(said[:400], place, slug, "link")


class Builder:
    """Numbers sections, and keeps the pairs that lead to one."""

    def __init__(self) -> None:
        self.sections: list[dict[str, object]] = []
        self.pairs: list[dict[str, object]] = []
        self._of_section: Counter[int] = Counter()
        self._of_query: Counter[str] = Counter()

    def add(self, pages: list[Page]) -> None:
        """Add a repository."""
        numbers: dict[tuple[str, str], int] = {}
        for page in pages:
            for section in page.tree.sections:
                if has_prose(text := text_of(section)):
                    numbers[page.path, section.slug] = number = len(self.sections)
                    trail = list(section.trail)
                    about = {"id": number, "repo": page.repo, "path": page.path, "trail": trail}
                    self.sections.append({**about, "text": text})
        first: dict[str, str] = {}
        for path, slug in numbers:
            first.setdefault(path, slug)
        for page in pages:
            for pair in pairs_of(page):
                path = next((name for name in _names(pair.page) if name in first), "")
                number = numbers.get((path, pair.slug or first.get(path, "")))
                if number is not None and (pair.kind not in ("link", "anchor") or path != page.path):
                    self._keep(pair, number)

    def _keep(self, pair: Pair, section: int) -> None:
        query = " ".join(pair.query.split())
        is_full = self._of_query[query] >= MOST_OF_QUERY or self._of_section[section] >= MOST_OF_SECTION
        if 2 <= len(query.split()) <= 80 and not is_full:
            self._of_query[query] += 1
            self._of_section[section] += 1
            self.pairs.append({"query": query, "section": section, "kind": pair.kind})


def _names(path: str) -> Iterator[str]:
    """The files that the path of a link may mean."""
    yield from (path, f"{path}.md", f"{path}/index.md", f"{path}/_index.md", f"{path}/README.md")


def main() -> None:
    clones, target = Path(sys.argv[1]), Path(sys.argv[2])
    target.mkdir(parents=True, exist_ok=True)
    builder = Builder()
    for folder in sorted(path.parent for path in clones.glob("*/*/.git")):
        repo = folder.relative_to(clones).as_posix()
        before = len(builder.pairs)
        builder.add(list(pages_of(folder, repo)))
        print(f"{repo}: {len(builder.pairs) - before:,} pairs")
    for name, rows in (("sections", builder.sections), ("pairs", builder.pairs)):
        with lzma.open(target / f"{name}.jsonl.xz", "wt", encoding="utf-8") as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    print(f"{len(builder.sections):,} sections; {Counter(pair['kind'] for pair in builder.pairs)}")


if __name__ == "__main__":
    main()
