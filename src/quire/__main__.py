"""`python -m quire` is the command `quire`."""

from quire.surfaces.cli import run

run()
