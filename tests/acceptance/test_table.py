"""The founding numbers are all there: a test, a bug that it finds, and a row in the docs for each."""

from __future__ import annotations

import pytest

from tests import founding
from tests.founding import PARTS, ROOT, Part
from tests.mutants import Mutant, mutants

every_part = pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)


@every_part
def test_every_number_has_one_test(part: Part) -> None:
    """Its name is its number and a few words; its docstring is its number and a sentence."""
    found = founding.cases(part)
    assert [case.number for case in found] == founding.numbers(part) != []
    assert [case.name for case in found if not case.docstring.startswith(f"{case.number}: ")] == []
    assert [case.name for case in found if not case.docstring.endswith(".")] == []


@every_part
def test_every_number_has_a_mutant(part: Part) -> None:
    """A test that cannot fail proves nothing."""
    assert {mutant.number for mutant in mutants(part)} == set(founding.numbers(part))


@every_part
def test_every_mutant_fits_the_code(part: Part) -> None:
    """The text that it replaces is in its file exactly once."""

    def occurs(mutant: Mutant) -> int:
        return (ROOT / mutant.file).read_text("utf-8").count(mutant.old)

    assert [(one.number, one.old) for one in mutants(part) if occurs(one) != 1 or one.old == one.new] == []


def test_the_page_of_the_docs_is_current() -> None:
    """Write it with: python -m tests.founding"""
    assert founding.PAGE.read_text("utf-8") == founding.page()
