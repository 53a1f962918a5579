"""Libraries of before: statements that take away what a later schema added."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from tests import postgres

BEFORE_IDS = (  # SQLite, schema 6
    "ALTER TABLE chunks DROP COLUMN headings",
    "DROP INDEX sections_key",
    "DROP INDEX chunks_key",
    "ALTER TABLE sections DROP COLUMN key",
    "ALTER TABLE chunks DROP COLUMN key",
    "DROP INDEX documents_promoted",
    "DELETE FROM facts WHERE name = 'document_vectors'",
    "PRAGMA user_version = 6",
)
BEFORE_IDS_POSTGRES = (  # schema 4
    "ALTER TABLE quire.chunks DROP COLUMN headings",
    "ALTER TABLE quire.sections DROP COLUMN key",
    "ALTER TABLE quire.chunks DROP COLUMN key",
    "ALTER TABLE quire.embedded DROP COLUMN vector",
    "DROP INDEX quire.documents_promoted",
    "DELETE FROM quire.migrations WHERE number > 4",
)


def make_older(url: str) -> None:
    """Make a library as it was before it had keys."""
    if url.startswith("postgres"):
        for statement in BEFORE_IDS_POSTGRES:
            postgres.execute(url, statement)
        return
    with closing(sqlite3.connect(url, isolation_level=None)) as db:
        for statement in BEFORE_IDS:
            db.execute(statement)
