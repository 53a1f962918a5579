"""Arguments over HTTP and MCP that are wrong: what is said of them."""

from __future__ import annotations

from typing import Any

import pytest

from quire.errors import SettingError
from quire.surfaces.checking import checked_arguments
from quire.surfaces.http.asked import Searching


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "q is needed"),
        ({"q": ""}, "q must not be empty"),
        ({"q": 3}, "q must be a string"),
        ({"q": "a" * 10_001}, "q must have at most 10,000 characters"),
        ({"q": "a", "limit": "ten"}, "limit must be a whole number"),
        ({"q": "a", "limit": 2.5}, "limit must be a whole number"),
        ({"q": "a", "limit": 0}, "limit must be at least 1"),
        ({"q": "a", "limit": 101}, "limit must be at most 100"),
        ({"q": "a", "rerank": "maybe"}, "rerank must be true or false"),
        ({"q": "a", "mode": "fast"}, "mode must be 'hybrid', 'keyword' or 'semantic'"),
        ({"q": "a", "path": "docs/"}, "path must be a list"),
        ({"q": "a", "path": ["b", 3]}, "path.1 must be a string"),
        ({"q": "a", "tag": ["b"] * 1001}, "tag must have at most 1,000 entries"),
        ({"q": "a", "limt": 3}, "there is no 'limt'. Did you mean 'limit'?"),
        ({"q": "a\0"}, "q: holds a NUL or an incomplete character"),
        ({"limit": 0}, "q is needed; limit must be at least 1"),
    ],
)
def test_what_is_wrong_is_said_in_our_words(given: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingError) as problem:
        checked_arguments(Searching, given)
    assert str(problem.value) == f"arguments: {said}"
