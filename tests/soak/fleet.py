"""Workers of a fleet, and the process that leads it, killed at random: no document is lost or doubled."""

from __future__ import annotations

import atexit
from functools import cache
from pathlib import Path

from quire.fleet import Fleet, driver
from tests import fleets, postgres
from tests.soak.rounds import LOST, WRITES, Round, require

_KILLS = 8  # of workers, each time that the folder is added


@cache
def _fleet() -> Fleet:
    """One cluster for all rounds: starting it takes longer than a round."""
    driver._FILES = 8  # so that many batches are on their way
    found = Fleet("local:2")
    found.start()
    atexit.register(found.close)
    return found


def turn(one: Round) -> None:
    """Add a folder and change it, while workers and the leading process are killed."""
    if not (fleets.IS_INSTALLED and postgres.IS_INSTALLED):
        return
    fleet, urls = _fleet(), [postgres.borrow(), postgres.borrow()]
    folder = fleets.folder_of(one.place / "docs", one.rng.randint(40, 160), one.rng)
    _add_under_fire(one, fleet, urls[0], folder)
    for path in folder.glob("part[0-4]/*.md"):
        path.write_text(f"{path.read_text()}\nMore of {path.stem}.\n")
    one.faults += fleets.killed_driver(urls[0], folder, one.rng.randint(1, 40)) == -9
    _add_under_fire(one, fleet, urls[0], folder)
    doubled, lost = fleets.doubled_and_lost(urls[0], folder)
    require(lost == 0, LOST, f"{lost}")
    require(doubled == 0, LOST, f"{doubled} doubled")
    fleets.add(urls[1], folder, None)
    require(not (found := fleets.differences(*urls)), WRITES, f"{found}")
    for url in urls:
        postgres.give_back(url)


def _add_under_fire(one: Round, fleet: Fleet, url: str, folder: Path) -> None:
    fire = fleets.Killing(one.rng, every=one.rng.randint(3, 12), most=_KILLS)
    fleets.add(url, folder, fleet, progress=fire)
    one.faults += fire.kills
