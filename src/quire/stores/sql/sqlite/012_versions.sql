-- The earlier texts of memories and knowledge. Searches do not look here.
CREATE TABLE versions (
    document   INTEGER NOT NULL REFERENCES documents (seq) ON DELETE CASCADE,
    written_at INTEGER NOT NULL,  -- milliseconds
    text       TEXT    NOT NULL,
    crc        INTEGER NOT NULL,
    PRIMARY KEY (document, written_at)
) STRICT, WITHOUT ROWID;
