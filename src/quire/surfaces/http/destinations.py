"""Destinations of links, as documents write them, to what a link of the web page opens.

Input: the tree of a document, and the addresses that its links lead to in the library. Output: routes.
Always: a route leads to a section of the document, to a document of the library, to http, https or mailto, or
nowhere; one that leads nowhere says why.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple
from urllib.parse import quote, unquote

from markdown_it.common.normalize_url import normalizeLink

from quire.links import folded
from quire.tree import Section, Tree, slugify

_OUTSIDE = re.compile(r"https?://[^\s/]|mailto:[^\s]", re.IGNORECASE)
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]{0,30})\s*:", re.IGNORECASE)
_APART = re.compile(r"[\W_]+")
_ASCII = re.compile(r"[a-zA-Z0-9]")
_TOP = "top"  # as browsers read it, if no heading has this name


class LinkTarget(NamedTuple):
    """What a link opens: a URL, or nothing for a reason."""

    href: str
    is_outside: bool = False
    reason: str = ""


def section_anchor(section: Section) -> str:
    """The id of a section's heading in the HTML of its document: `s-` and its slug, `s-` for the root."""
    return f"s-{section.slug}"


class LinkTargets:
    """The routes of the links in one document."""

    def __init__(self, tree: Tree, targets: Mapping[str, str]) -> None:
        self._tree = tree
        self._targets = targets

    def markdown(self, written: str) -> LinkTarget:
        """What a Markdown link opens, by its destination."""
        written = written.strip()
        if address := next(filter(None, map(self._targets.get, (written, _decoded(written)))), None):
            return LinkTarget(self._inside(address))
        if written.startswith("#"):
            return self._within(_decoded(written[1:]))
        if _OUTSIDE.match(written):
            return LinkTarget(normalizeLink(written), is_outside=True)
        return LinkTarget("", reason=_reason(written))

    def wikilink(self, written: str) -> LinkTarget | None:
        """What a wikilink opens; None if the library has nothing of its name."""
        path, mark, fragment = written.removesuffix("\\").partition("#")
        name = " ".join(path.split()) + (f"#{fragment.strip()}" if fragment.strip() else "")
        spellings = (name, written, f"[[{written}]]")
        if address := next(filter(None, map(self._targets.get, spellings)), None):
            return LinkTarget(self._inside(address))
        found = self._within(fragment.rpartition("#")[2].strip()) if mark and not path.strip() else None
        return found if found and found.href else None

    def _inside(self, address: str) -> str:
        if anchor := self._anchors.get(address):
            return f"#{anchor}"
        return f"/read?address={quote(address, safe='', errors='replace')}"

    def _within(self, name: str) -> LinkTarget:
        for spelling in (name, name.lower(), _plain(name) or name, _slug(name) or name):
            if anchor := self._names.get(spelling):
                return LinkTarget(f"#{anchor}")
        return LinkTarget("", reason="This document has no heading of this name.")

    @cached_property
    def _anchors(self) -> dict[str, str]:
        """The anchor of each section, by its address."""
        return {section.address: section_anchor(section) for section in self._tree.sections}

    @cached_property
    def _names(self) -> dict[str, str]:
        """The anchor of each section, by the names that links give it; a slug comes before other names."""
        found = {section.slug: section_anchor(section) for section in self._tree.sections}
        for section in self._tree.sections[1:]:
            for name in (slugify(section.title, "github"), _plain(section.title)):
                found.setdefault(name, section_anchor(section))
        found.setdefault(_TOP, section_anchor(self._tree.root))
        return found


def _slug(name: str) -> str:
    """The slug of a name; "" if it has no letter of one."""
    return slugify(name, "ascii") if _ASCII.search(name) else ""


def _plain(title: str) -> str:
    return _APART.sub(" ", folded(title)).strip()


def _decoded(written: str) -> str:
    """A destination without its percent escapes, if they are UTF-8."""
    try:
        return unquote(written, errors="strict")
    except UnicodeDecodeError:
        return written


def _reason(written: str) -> str:
    """Why a link opens nothing."""
    if not written:
        return "This link has no destination."
    if scheme := _SCHEME.match(written):
        return f"Quire does not open {scheme[1].lower()}: links."
    return "The library has no document at this link."
