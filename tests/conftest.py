"""Hypothesis: new examples on every run of a developer, the same ones on a build machine.

HYPOTHESIS_PROFILE=thorough looks sixty times as hard. What takes `library_url` runs on every database.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings

from tests import postgres

settings.register_profile("default", deadline=None, max_examples=100)
settings.register_profile("ci", deadline=None, max_examples=75, derandomize=True)
settings.register_profile("thorough", deadline=None, max_examples=6000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "default"))


@pytest.fixture(scope="session", autouse=True)
def _no_settings_of_the_developer(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tests, and what they start, see neither settings, library nor cache of whoever runs them."""
    place = tmp_path_factory.mktemp("user")
    os.environ |= {f"XDG_{name}_HOME": str(place / name.lower()) for name in ("CONFIG", "DATA", "CACHE")}


@pytest.fixture(params=postgres.DATABASES)
def fresh_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], str]]:
    """Makes URLs of libraries that are not there yet, on each database in turn."""
    if request.param == "sqlite":
        numbers = count()
        yield lambda: str(tmp_path / f"library{next(numbers)}.db")
        return
    made: list[str] = []

    def fresh() -> str:
        made.append(postgres.borrow())
        return made[-1]

    yield fresh
    for url in made:
        postgres.give_back(url)


@pytest.fixture
def library_url(fresh_url: Callable[[], str]) -> str:
    """The URL of a library that is not there yet, on each database in turn."""
    return fresh_url()
