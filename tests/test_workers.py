"""Work in other processes: what dies, what is interrupted, what is left behind."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from quire import workers
from quire.errors import SourceError, WorkerDied
from quire.workers import Workers, spread


def lost(item: int, error: WorkerDied) -> int:
    assert "ended" in str(error)
    return -item


def square(number: int) -> int:
    return number * number


def squares(numbers: list[int]) -> list[int]:
    return list(map(square, numbers))


def fatal_at_thirteen(numbers: list[int]) -> list[int]:
    if 13 in numbers:
        os.kill(os.getpid(), signal.SIGKILL)
    return numbers


def refused(path: str) -> str:
    raise SourceError(path, "is not there")


def loud(number: int) -> int:
    print("not an answer")
    return number


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def gone(pids: list[int]) -> bool:
    """Whether processes end within a while."""
    until = time.monotonic() + 30
    while any(map(alive, pids)) and time.monotonic() < until:
        time.sleep(0.02)
    return not any(map(alive, pids))


def test_answers_come_in_order() -> None:
    """More items than may be under way at once."""
    assert list(spread(squares, range(2000), lost)) == [n * n for n in range(2000)]
    assert list(spread(squares, (), lost)) == []


def test_an_item_that_ends_its_process_costs_nothing_but_itself() -> None:
    """Bad data in a batch never stops the rest."""
    assert list(spread(fatal_at_thirteen, range(100), lost)) == [-13 if n == 13 else n for n in range(100)]


def test_what_a_function_raises_is_raised_here() -> None:
    """With its own type and text, and where it came from as a note."""
    with Workers(1) as pool:
        with pytest.raises(SourceError, match="is not there") as caught:
            pool.call(refused, "a.md")
        assert "in refused" in "".join(caught.value.__notes__)
        assert pool.call(square, 3) == 9


def test_what_is_printed_is_not_taken_for_an_answer(capfd: pytest.CaptureFixture[str]) -> None:
    """Nor does it reach standard output, which may be a protocol's."""
    with Workers(1) as pool:
        assert pool.call(loud, 5) == 5
    out, err = capfd.readouterr()
    assert out == ""
    assert "not an answer" in err


def test_leaving_early_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever stops asking ends the work."""
    started = list[int]()
    begin = subprocess.Popen.__init__

    def noted(self: subprocess.Popen[bytes], *arguments: object, **named: object) -> None:
        begin(self, *arguments, **named)  # type: ignore[call-overload]
        started.append(self.pid)

    monkeypatch.setattr(subprocess.Popen, "__init__", noted)
    answers: Iterator[int] = spread(squares, range(100_000), lost)
    assert list(islice(answers, 3)) == [0, 1, 4]
    answers.close()  # type: ignore[attr-defined]
    assert len(started) == workers.COUNT
    assert gone(started)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_with_the_one_that_started_them(how: signal.Signals) -> None:
    """However that ended."""
    code = (
        "import time; from quire.workers import Workers; pool = Workers()\n"
        "print(*(w._process.pid for w in pool._all), flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout
        pids = [int(pid) for pid in process.stdout.readline().split()]
        assert all(map(alive, pids))
        process.send_signal(how)
    assert len(pids) == workers.COUNT
    assert gone(pids)


def test_no_file_of_the_folder_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents are data: one called pickle.py is not run."""
    (tmp_path / "pickle.py").write_text("raise SystemExit('run!')")
    monkeypatch.chdir(tmp_path)
    with Workers(1) as pool:
        assert pool.call(square, 4) == 16


def test_where_no_process_starts_the_work_is_still_done(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An interpreter inside another program has no executable of its own, or a strange one."""
    for name in ("/bin/false", "/nowhere/python"):
        monkeypatch.setattr(sys, "executable", name)
        with caplog.at_level(logging.WARNING, "quire"):
            assert list(spread(squares, range(40), lost)) == [n * n for n in range(40)]
        assert "this process reads alone" in caplog.text
        caplog.clear()
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    assert list(spread(squares, range(4), lost)) == [0, 1, 4, 9]
    assert not caplog.text
