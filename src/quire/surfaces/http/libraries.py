"""The libraries behind a server: of documents and of memories, as each caller may see them."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path

from quire.config import Config
from quire.errors import SettingError
from quire.surfaces.http.access import Access
from quire.surfaces.jobs import Job
from quire.surfaces.threads import Deepening, Scopes, Threads, Watching


class Libraries:
    """Open libraries, by what callers may see, and what goes on in the background."""

    def __init__(
        self,
        url: str,
        config: Config,
        *,
        memory_url: str = "",
        read_only: bool = False,
        watch: bool = False,
        roots: Iterable[Path] = (),
    ) -> None:
        if url == ":memory:":
            raise SettingError("library", "a server needs one in a file: its threads could not share this")
        self.url, self.config, self.read_only = url, config, read_only
        self.roots = [root.resolve() for root in roots]
        deepening, watching = Deepening(url, config), Watching(url, config)
        self._background: list[Deepening | Watching] = [] if read_only else [deepening]
        self._background += [watching] if watch else []
        self.documents = Scopes(url, config, deepening.wake)
        deepening.show = self.documents.whole.jobs.remember
        is_apart = memory_url not in ("", url)
        self.memories = Scopes(memory_url, config) if is_apart else self.documents

    def of(self, access: Access) -> tuple[Threads, Threads]:
        """The documents and the memories that a caller may see."""
        return self.documents.threads(access.scope), self.memories.threads(access.scope)

    def jobs(self, access: Access) -> list[Job]:
        """The jobs that a caller may see: those of its scope, or all."""
        if access.level == "admin":
            return [job for one in self.documents.all() for job in one.jobs.all()]
        return self.documents.threads(access.scope).jobs.all()

    def start(self) -> None:
        """Begin what goes on in the background."""
        for one in self._background:
            one.start()

    def close(self, seconds: float) -> bool:
        """Stop all work between two transactions, and close all libraries; whether that was done in time."""
        for scopes in (self.documents, self.memories):
            for one in scopes.all():
                one.jobs.stop()
        closing = threading.Thread(target=self._close, daemon=True)
        closing.start()
        closing.join(seconds)
        return not closing.is_alive()

    def _close(self) -> None:
        for one in self._background:
            one.stop()
        self.documents.close()
        if self.memories is not self.documents:
            self.memories.close()
