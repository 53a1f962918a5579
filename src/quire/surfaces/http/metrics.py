"""What a server counts, for Prometheus; and its access log, one JSON object on a line.

Always: neither holds a query, a key or a text, unless the settings ask for queries in the log.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

from quire.surfaces import render

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """Requests, by route and status, and how long they took."""

    def __init__(self) -> None:
        self.begun_at, self.running = time.time(), 0
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._buckets: dict[str, list[int]] = defaultdict(lambda: [0] * (len(_BOUNDS) + 1))
        self._seconds: Counter[str] = Counter()

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests[method, route, status] += 1
        place = next((at for at, bound in enumerate(_BOUNDS) if seconds <= bound), len(_BOUNDS))
        self._buckets[route][place] += 1
        self._seconds[route] += seconds  # type: ignore[assignment]

    def text(self, gauges: Mapping[str, float]) -> str:
        """All counts in the format of Prometheus, and some gauges."""
        lines = [*self._counters(), *self._histogram()]
        gauges = {"requests_running": self.running, "start_time_seconds": self.begun_at, **gauges}
        for name, value in gauges.items():
            lines += [f"# TYPE quire_{name} gauge", f"quire_{name} {value:g}"]
        return "\n".join([*lines, ""])

    def _counters(self) -> Iterator[str]:
        yield "# HELP quire_requests_total Requests, by method, route and status."
        yield "# TYPE quire_requests_total counter"
        for (method, route, status), number in sorted(self._requests.items()):
            yield f'quire_requests_total{{method="{method}",route="{route}",status="{status}"}} {number}'

    def _histogram(self) -> Iterator[str]:
        yield "# HELP quire_request_seconds How long requests took."
        yield "# TYPE quire_request_seconds histogram"
        for route, buckets in sorted(self._buckets.items()):
            name, so_far = f'route="{route}"', 0
            for bound, number in zip((*_BOUNDS, "+Inf"), buckets, strict=True):
                so_far += number
                yield f'quire_request_seconds_bucket{{{name},le="{bound}"}} {so_far}'
            yield f"quire_request_seconds_sum{{{name}}} {self._seconds[route]:.6f}"
            yield f"quire_request_seconds_count{{{name}}} {so_far}"


class AccessLog:
    """One line for each request."""

    def __init__(self, out: TextIO | None) -> None:
        self._out = out

    def write(self, **told: Any) -> None:
        """Write a line, if there is a log."""
        if self._out is not None:
            at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
            self._out.write(f"{render.as_json({'at': f'{at}Z', **told})}\n")
            self._out.flush()
