CREATE TABLE documents (
    seq         INTEGER PRIMARY KEY,
    id          TEXT    NOT NULL UNIQUE,
    collection  TEXT    NOT NULL,
    kind        TEXT    NOT NULL,
    path        TEXT    NOT NULL,
    url         TEXT,
    root        TEXT,               -- the folder that the path is in; NULL for content with no file
    format      TEXT    NOT NULL,
    title       TEXT    NOT NULL,
    checksum    TEXT    NOT NULL,
    size        INTEGER NOT NULL,   -- of the file when it was read; with mtime_ns it tells a changed one
    mtime_ns    INTEGER NOT NULL,
    made_by     TEXT    NOT NULL,   -- strategy and settings of the chunks
    promotion   TEXT    NOT NULL DEFAULT 'standard',
    chunk_count INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,   -- milliseconds
    updated_at  INTEGER NOT NULL,
    source      BLOB    NOT NULL,   -- last: SQLite reads through it to reach what stands behind
    UNIQUE (collection, kind, path)
) STRICT;
CREATE INDEX documents_root ON documents (root);
CREATE INDEX documents_checksum ON documents (checksum);

CREATE TABLE sections (
    document    INTEGER NOT NULL REFERENCES documents (seq) ON DELETE CASCADE,
    position    INTEGER NOT NULL,
    parent      INTEGER NOT NULL,   -- position; -1 for the root
    level       INTEGER NOT NULL,
    children    INTEGER NOT NULL,
    title       TEXT    NOT NULL,
    slug        TEXT    NOT NULL,
    trail       TEXT    NOT NULL,   -- JSON
    header_path TEXT    NOT NULL,
    start       INTEGER NOT NULL,
    own_end     INTEGER NOT NULL,
    end         INTEGER NOT NULL,
    byte_start  INTEGER NOT NULL,
    byte_own_end INTEGER NOT NULL,
    byte_end    INTEGER NOT NULL,
    start_line  INTEGER NOT NULL,
    own_end_line INTEGER NOT NULL,
    end_line    INTEGER NOT NULL,
    tokens      INTEGER NOT NULL,
    PRIMARY KEY (document, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE chunks (
    id          INTEGER PRIMARY KEY, -- document << 20 | index
    document    INTEGER NOT NULL REFERENCES documents (seq) ON DELETE CASCADE,
    section     INTEGER NOT NULL,
    part        INTEGER NOT NULL,
    start       INTEGER NOT NULL,
    end         INTEGER NOT NULL,
    byte_start  INTEGER NOT NULL,
    byte_end    INTEGER NOT NULL,
    start_line  INTEGER NOT NULL,
    end_line    INTEGER NOT NULL,
    tokens      INTEGER NOT NULL,
    context     TEXT    NOT NULL
) STRICT;
CREATE INDEX chunks_document ON chunks (document);

-- Terms as analyze.py makes them; the text itself is in documents.source.
CREATE VIRTUAL TABLE words USING fts5 (title, trail, body, content = '', tokenize = 'ascii');
CREATE VIRTUAL TABLE vocabulary USING fts5vocab (words, 'row');

-- Terms that are in many chunks: they rank what others match.
CREATE TABLE common_terms (term TEXT PRIMARY KEY, chunks INTEGER NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO facts VALUES ('generation', '0'), ('written', '0'), ('common_at', '0'), ('terms', '0');
