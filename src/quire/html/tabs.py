"""Tabs: the label of each panel is put at its start, because a text shows all panels, one after another."""

from __future__ import annotations

from quire.html.elements import Element, words

_LABELS = words("label li button a")


def label_panels(root: Element) -> None:
    """Move the labels of every row of tabs into the panels. A row that does not match its panels stays."""
    for element in (root, *root.elements()):
        if any(map(_is_row, _inner(element))):
            _label(element)


def _inner(element: Element) -> list[Element]:
    return [child for child in element.children if isinstance(child, Element)]


def _is_row(element: Element) -> bool:
    return element.get("role") == "tablist" or element.means("tabs")


def _label(around: Element) -> None:
    row: Element | None = None
    panels: list[Element] = []
    for child in [*_inner(around), None]:
        if child is not None and row and child.get("role") == "tabpanel":
            panels.append(child)  # panels beside the row
            continue
        if row and panels:
            _move(row, panels)
            row, panels = None, []
        elif row and child is not None and not _is_row(child):
            _move(row, _inner(child))  # panels in a box beside the row
            row = None
        if child is not None and _is_row(child):
            row = child


def _move(row: Element, panels: list[Element]) -> None:
    labels = [text for child in _inner(row) if child.tag in _LABELS and (text := child.text())]
    if not labels or len(labels) != len(panels):
        return
    row.children = []
    for label, panel in zip(labels, panels, strict=True):
        title = Element("summary", {}, panel)
        title.children = [label]
        panel.children.insert(0, title)
