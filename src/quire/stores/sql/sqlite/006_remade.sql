-- Documents whose terms are in the index that is being made beside the one in use, and their versions.
CREATE TABLE remade (document INTEGER PRIMARY KEY, updated_at INTEGER NOT NULL) STRICT;
