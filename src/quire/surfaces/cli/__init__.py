"""The command line: one file for each task.

Commands import what they need when they run, so that `quire --help` is instant.
"""

from quire.surfaces.cli import (  # noqa: F401  (their commands join the group when they are imported)
    adding,
    chunking,
    configuring,
    evaluating,
    finding,
    keys,
    linking,
    locating,
    maintenance,
    reading,
    remembering,
    serving,
    sources,
    starting,
    trusting,
    watching,
)
from quire.surfaces.cli.group import main, quire, run

__all__ = ["main", "quire", "run"]
