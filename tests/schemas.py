"""Libraries of before: statements that take away what a later schema added."""

from __future__ import annotations

BEFORE_IDS = (  # SQLite, schema 6
    "ALTER TABLE chunks DROP COLUMN headings",
    "DROP INDEX sections_key",
    "DROP INDEX chunks_key",
    "ALTER TABLE sections DROP COLUMN key",
    "ALTER TABLE chunks DROP COLUMN key",
    "PRAGMA user_version = 6",
)
BEFORE_IDS_POSTGRES = (  # schema 4
    "ALTER TABLE quire.chunks DROP COLUMN headings",
    "ALTER TABLE quire.sections DROP COLUMN key",
    "ALTER TABLE quire.chunks DROP COLUMN key",
    "DELETE FROM quire.migrations WHERE number IN (5, 6)",
)
