"""One turn at watching: from taking the lease until it is lost, or a person stops it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable

from quire import sync
from quire.plural import counted
from quire.sources import files
from quire.stores import Lease, SourceRow
from quire.watcher.folders import Folders
from quire.watcher.listener import Listener
from quire.watcher.slow import Slow
from quire.watcher.telling import Ended, Problems, Reporter, Voice, Watched

Mark = tuple[int, ...] | None  # what tells one state of a place from another; None if nothing is there
_TICK = 1.0  # seconds between looks at the places of sources, each of which costs a stat
_LOOK = 5.0  # seconds between looks for new sources
_MANY = 100  # changed paths of a source; if there are more, all of it is compared
_REST = 50  # after a comparison that is repeated often, a pause of so many times its length


class Turn:
    """Updates sources as they change."""

    def __init__(self, watched: Watched, voice: Voice, lease: Lease, stop: threading.Event) -> None:
        self.watched, self.store, self.config = watched, watched.store, watched.config
        self.voice, self.lease, self.stop = voice, lease, stop
        self.problems, self.reporter = Problems(voice), Reporter(voice, self._goes_on)
        self.slow, self.listener = Slow(watched, voice), self._listener([])
        self.sources: dict[int, SourceRow] = {}  # files and folders
        self.marks: dict[int, Mark] = {}
        self.lacking: set[int] = set()  # sources that may lack files of documents that were kept
        self.next_look = self.next_comparison = self.next_poll = 0.0  # by the monotonic clock

    def run(self) -> None:
        """Listen, compare everything once, and then what changes."""
        try:
            self._follow()
            self._compare_all()
            self._greet()
            while self._goes_on():
                self._step()
        except Ended:
            pass
        finally:
            self.listener.close()
            self.slow.end()

    def _goes_on(self) -> bool:
        return not self.stop.is_set() and self.lease.renew()

    def _greet(self) -> None:
        number = len(self.store.sources())
        self.voice.note(f"Watching {counted(number, 'source')}.")
        if not number:
            self.voice.note("The library has no sources. Name one with: quire add ./docs")

    def _step(self) -> None:
        """Wait a little for changes, and compare what has changed."""
        changed = self.listener.wait(_TICK)
        changed |= self._look_for_sources()
        changed |= self._look_at_places()
        for number, within in self._dirty(changed).items():
            self._compare(self.sources[number], within)
        if time.monotonic() >= self.next_comparison:
            self._compare_all()
        if time.monotonic() >= self.next_poll:
            self._poll()

    # ------------------------------------------------------------------------------ comparing

    def _compare(self, source: SourceRow, within: frozenset[str] = frozenset()) -> None:
        """Compare a source with the library, or some paths of it."""
        if source.seq in self.lacking:  # one more that is gone may be too many
            within = frozenset()
        with self.store.writing():
            report = sync.refresh_source(self.store, source, self.config, within, self.reporter)
        if report.missing:
            self.lacking.add(source.seq)
        elif not within:
            self.lacking.discard(source.seq)
        self.problems.tell(report, is_whole=False)
        if report.documents:
            self.slow.wake()

    def _compare_all(self) -> None:
        """Compare every file and folder with the library."""
        with self.store.writing():
            report = sync.refresh(self.store, self.config, only=self.sources, progress=self.reporter)
        self.lacking = set(self.sources) if report.missing else set()
        self.problems.tell(report, is_whole=True)
        self.slow.wake()
        self.next_comparison = time.monotonic() + self.config.watch.reconcile
        self.next_poll = time.monotonic() + self.config.watch.poll

    def _poll(self) -> None:
        """Compare the folders whose changes may not be reported."""
        began = time.monotonic()
        for source in self._unheard():
            self._compare(source)
        took = time.monotonic() - began
        self.next_poll = began + max(self.config.watch.poll, _REST * took)

    def _unheard(self) -> list[SourceRow]:
        """The folders whose changes may not be reported; a person is told once."""
        again = f"Comparing every {self.config.watch.poll:g} s."
        if self.listener.problem:
            self.voice.once(f"The system does not report changes: {self.listener.problem}. {again}")
            return [source for source in self.sources.values() if source.type == "folder"]
        remote = self.folders.remote()
        for number, kind in remote.items():
            place = self.sources[number].place
            self.voice.once(f"{place} is on {kind}, which may not report changes. {again}")
        return [self.sources[number] for number in remote]

    # ------------------------------------------------------------------------ what is watched

    def _listener(self, folders: list[str]) -> Listener:
        return Listener(folders, self.config.watch.debounce, self.stop)

    def _stored(self) -> dict[int, SourceRow]:
        return {one.seq: one for one in self.store.sources() if one.type in ("file", "folder")}

    def _follow(self) -> set[str]:
        """Listen to the folders of all sources; returns the paths that changed meanwhile."""
        self.sources = self._stored()
        self.marks = {number: _mark(source) for number, source in self.sources.items()}
        self.folders = Folders(self.sources.values(), self.watched.url)
        before, self.listener = self.listener, self._listener(self.folders.outermost())
        self._unheard()
        self.next_look = time.monotonic() + _LOOK
        return before.close()

    def _look_for_sources(self) -> set[str]:
        """Follow the sources that others have added or changed."""
        if time.monotonic() < self.next_look:
            return set()
        if not self.lease.is_held():
            raise Ended
        before = {number: source.options for number, source in self.sources.items()}
        now = {number: source.options for number, source in self._stored().items()}
        self.next_look = time.monotonic() + _LOOK
        changed = self._follow() if before != now else set[str]()
        for number in self.sources:
            if before.get(number) != now.get(number):
                self._compare(self.sources[number])
        return changed

    def _look_at_places(self) -> set[str]:
        """Compare sources that are files, or whose folder is gone, back or another one."""
        marks = {number: _mark(source) for number, source in self.sources.items()}
        changed = [self.sources[number] for number, mark in marks.items() if mark != self.marks[number]]
        self.marks = marks
        found = self._follow() if any(source.type == "folder" for source in changed) else set[str]()
        for source in changed:
            self._compare(source)
        return found

    def _dirty(self, changed: Iterable[str]) -> dict[int, frozenset[str]]:
        """The sources that changed, each with its changed paths; without any, all of it is compared."""
        found = dict[int, set[str]]()
        for path in changed:
            for number, place in self.folders.places(path):
                found.setdefault(number, set()).add(place)
        return {
            number: frozenset() if "" in places or len(places) > _MANY else frozenset(places)
            for number, places in found.items()
        }


def _mark(source: SourceRow) -> Mark:
    """What tells one state of a place from another: of a folder, only which one it is."""
    try:
        found = os.stat(files.unprintable(source.place))  # noqa: PTH116
    except OSError:
        return None
    which = found.st_dev, found.st_ino
    return which if source.type == "folder" else (*which, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
