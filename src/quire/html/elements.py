"""An element of a page, and the meaning of tag names."""

from __future__ import annotations

from collections.abc import Iterator

from quire.html.class_names import meaning_of


def words(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())


HEADINGS = words("h1 h2 h3 h4 h5 h6")
BLOCKS = HEADINGS | words(
    "address article aside blockquote center dd details dialog dir div dl dt fieldset figcaption figure"
    " footer form header hgroup hr li main menu nav ol p pre search section summary table ul"
)
TABLE_PARTS = words("caption thead tbody tfoot tr td th")
NOTHING = words("")
GAPS = dict.fromkeys(BLOCKS | TABLE_PARTS | {"br"}, " ")


class Element:
    """An element of the page. Its weight and `holds` are known after the sweep."""

    __slots__ = (
        "anchor",
        "attributes",
        "children",
        "holds",
        "is_furniture",
        "linked",
        "names",
        "parent",
        "plain",
        "tag",
    )

    def __init__(self, tag: str, attributes: dict[str, str], parent: Element | None) -> None:
        self.tag, self.attributes, self.parent = tag, attributes, parent
        self.children: list[Element | str] = []
        named = "class" in attributes or "id" in attributes
        self.names = f"{self.get('id')} {self.get('class')}".lower().split() if named else ()
        self.is_furniture = False
        self.anchor = ""  # the id that a permalink in it names, which is dropped
        self.plain = self.linked = 0  # characters of text, outside and inside links
        self.holds = NOTHING  # the tags in it that matter to its ancestors

    @property
    def weight(self) -> int:
        """The amount of its text. A link's text counts a tenth, because menus are made of links."""
        return self.plain + self.linked // 10

    @property
    def size(self) -> int:
        """Characters of text."""
        return self.plain + self.linked

    @property
    def path(self) -> list[Element]:
        """From the root to this one."""
        line, element = [self], self
        while element.parent is not None:
            element = element.parent
            line.append(element)
        return line[::-1]

    def means(self, meaning: str) -> bool:
        """Whether one of its classes or ids has a meaning, such as furniture."""
        return bool(self.names) and any(meaning_of(name) == meaning for name in self.names)

    def get(self, name: str) -> str:
        """An attribute, or ""."""
        return self.attributes.get(name, "")

    def elements(self) -> Iterator[Element]:
        """All elements in it, in the order of the page."""
        waiting = self.children[::-1]
        while waiting:
            child = waiting.pop()
            if isinstance(child, Element):
                yield child
                waiting += child.children[::-1]

    def text(self) -> str:
        """Its text, white space folded."""
        parts, waiting = [], self.children[::-1]
        while waiting:
            child = waiting.pop()
            if isinstance(child, str):
                parts.append(child)
            else:
                gap = GAPS.get(child.tag, "")
                waiting += (gap, *child.children[::-1], gap)
        return " ".join("".join(parts).split())
