-- What people named to be held. Refreshing follows these, and nothing else.
CREATE TABLE sources (
    seq        INTEGER PRIMARY KEY,  -- from type, collection, kind and place
    type       TEXT    NOT NULL,     -- file, folder, page, site or text
    place      TEXT    NOT NULL,     -- an absolute path, a URL, or the path of a text
    root       TEXT,                 -- the folder or URL that documents' paths start from; NULL for a text
    collection TEXT    NOT NULL,
    kind       TEXT    NOT NULL,
    options    TEXT    NOT NULL,     -- JSON
    added_at   INTEGER NOT NULL,     -- milliseconds
    checked_at INTEGER NOT NULL,
    problem    TEXT    NOT NULL      -- what was wrong when it was last read
) STRICT;

-- Which documents a source holds. A document goes with its last source.
CREATE TABLE members (
    source   INTEGER NOT NULL REFERENCES sources (seq) ON DELETE CASCADE,
    document INTEGER NOT NULL REFERENCES documents (seq) ON DELETE CASCADE,
    seen     INTEGER NOT NULL,       -- ctime of the file when it was read; below 0 if it may have changed since
    PRIMARY KEY (source, document)
) STRICT, WITHOUT ROWID;
CREATE INDEX members_document ON members (document);

-- Documents of before have no source yet: the next one who may write finds out what they came from.
INSERT INTO facts SELECT 'adopt', 'yes' WHERE EXISTS (SELECT 1 FROM documents);
