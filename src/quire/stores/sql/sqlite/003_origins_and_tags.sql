-- What a server said of a page, to ask it again only if that has changed. Not among the documents'
-- columns: SQLite would read through the source to reach them.
CREATE TABLE fetches (
    document      INTEGER PRIMARY KEY REFERENCES documents (seq) ON DELETE CASCADE,
    etag          TEXT,
    last_modified TEXT
) STRICT;

CREATE TABLE tags (
    document INTEGER NOT NULL REFERENCES documents (seq) ON DELETE CASCADE,
    tag      TEXT    NOT NULL,
    PRIMARY KEY (document, tag)
) STRICT, WITHOUT ROWID;
CREATE INDEX tags_tag ON tags (tag);
