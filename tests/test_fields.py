"""The fields of front matter are found as they are written."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from quire import Library
from tests.words import WORDS

NOTE = """---
lang: no
vegan: yes
time: 10:30
zip: 01234
on: Monday
version: 1.10
half: .5
rating: 4
date: 2026-03-01
at: 2026-03-01T10:30:00Z
due: 2026-02-30
made: {{date}}
---
# Note
"""


@pytest.mark.parametrize(
    "condition",
    [
        *("lang=no", "vegan=yes", "time=10:30", "time>10:00", "zip=01234", "on=Monday", "version=1.10"),
        *("half=.5", "half>0.4", "rating=4", "rating<10", "date=2026-03-01", "date<2026-04", "made={{date}}"),
        *("at=2026-03-01T10:30:00Z", "at=2026-03-01", "at>2026-02", "due=2026-02-30"),
    ],
)
def test_a_value_is_found_as_it_is_written(fields: Library, condition: str) -> None:
    """Vaults: a filter has the words of the note, as in Obsidian; numbers and dates compare as such."""
    assert [row.path for row in fields.documents(where=[condition])] == ["note.md"]


@pytest.mark.parametrize("condition", ["lang=false", "vegan=true", "time=630", "zip=668", "rating>10"])
def test_a_value_is_not_found_as_something_else(fields: Library, condition: str) -> None:
    """Vaults: no value is turned into another one."""
    assert fields.documents(where=[condition]) == []


@pytest.fixture(scope="module")
def fields(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    place = tmp_path_factory.mktemp("fields") / "library.db"
    with Library.open(place, create=True, config=WORDS) as library:
        library.add(content=NOTE, path="note.md")
        yield library
