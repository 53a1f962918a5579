-- The links of documents. What a link leads to is found when someone asks: it may be added later.
CREATE TABLE links (
    document INTEGER NOT NULL REFERENCES documents (seq) ON DELETE CASCADE,
    number   INTEGER NOT NULL,  -- in the document, from 0
    section  INTEGER NOT NULL,  -- the position of the section that it stands in
    start    INTEGER NOT NULL,
    line     INTEGER NOT NULL,
    form     TEXT    NOT NULL,  -- wikilink, embed or markdown
    target   TEXT    NOT NULL,  -- "" is the document itself
    fragment TEXT    NOT NULL,
    text     TEXT    NOT NULL,
    anchor   TEXT    NOT NULL,  -- the terms of the text
    key      TEXT    NOT NULL,  -- the last name in the target: one of the names of the document it leads to
    crc      INTEGER NOT NULL,
    PRIMARY KEY (document, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX links_key ON links (key);
CREATE INDEX links_anchor ON links (anchor) WHERE anchor <> '';

-- The names in documents' paths that links find them by.
CREATE TABLE names (
    document INTEGER NOT NULL REFERENCES documents (seq) ON DELETE CASCADE,
    name     TEXT    NOT NULL,
    PRIMARY KEY (document, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX names_name ON names (name);

-- The values of front matter, folded. A list has a row for each of its values.
CREATE TABLE fields (
    document INTEGER NOT NULL REFERENCES documents (seq) ON DELETE CASCADE,
    name     TEXT    NOT NULL,
    value    TEXT    NOT NULL,
    number   REAL,               -- of a number
    date     TEXT,               -- of a date, as ISO writes it
    PRIMARY KEY (document, name, value)
) STRICT, WITHOUT ROWID;
CREATE INDEX fields_name ON fields (name, value);
