CREATE TABLE models (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used again: other processes remember it
    name      TEXT    NOT NULL,
    dimension INTEGER NOT NULL,
    active    INTEGER NOT NULL DEFAULT 0,  -- 1 for the one that is searched
    UNIQUE (name, dimension)
) STRICT;

-- A slot outlives its chunk: the vector serves the next chunk with the same text, until its place is
-- needed. A model's slots begin at model << 32, so that each has blocks of its own.
CREATE TABLE vectors (
    slot   INTEGER PRIMARY KEY,
    chunk  INTEGER,                        -- NULL once the chunk is gone
    digest BLOB    NOT NULL,               -- of the text that was embedded
    vector BLOB    NOT NULL                -- a float32 scale, then int8
) STRICT;
CREATE INDEX vectors_chunk ON vectors (chunk);
CREATE INDEX vectors_digest ON vectors (digest);

-- What a search scans: 1,024 slots in a row.
CREATE TABLE blocks (
    block      INTEGER PRIMARY KEY,        -- slot >> 10
    generation INTEGER NOT NULL,           -- of the library when it was last written
    chunks     BLOB    NOT NULL,           -- int64 for each slot, 0 for one that is free
    signatures BLOB    NOT NULL            -- the signs of each vector, one bit for each number
) STRICT;
CREATE INDEX blocks_generation ON blocks (generation);

-- Documents that a model could not embed, and why.
CREATE TABLE embedding_failures (
    document INTEGER PRIMARY KEY REFERENCES documents (seq) ON DELETE CASCADE,
    reason   TEXT    NOT NULL
) STRICT;
