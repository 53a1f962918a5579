"""Index on many processes or machines: Ray runs the same stages, and PostgreSQL takes what they make.

with Fleet("local:4") as fleet, Library.open("postgresql://…") as library:
    library.add("docs", fleet=fleet)

Always: the library has the same rows afterwards as if one machine had done it; a worker that dies costs its
batch, which is done again; a document is written once, however often its batch is tried.
"""

from __future__ import annotations

from quire.fleet.driver import Fleet

__all__ = ["Fleet"]
