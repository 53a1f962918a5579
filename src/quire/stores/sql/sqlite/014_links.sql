-- The links of documents, numbered from 0 in each. What a link leads to is found when someone asks: it may be
-- added later. `section` is the position of the section that it stands in; `form` is wikilink, embed or
-- markdown; a `target` of "" is the document itself; `anchor` has the terms of the text; `key` is the last name
-- in the target, which is one of the names of the document that it leads to.
CREATE TABLE links (
    document INTEGER NOT NULL REFERENCES documents (seq) ON DELETE CASCADE,
    number   INTEGER NOT NULL,
    section  INTEGER NOT NULL,
    start    INTEGER NOT NULL,
    line     INTEGER NOT NULL,
    form     TEXT    NOT NULL,
    target   TEXT    NOT NULL,
    fragment TEXT    NOT NULL,
    text     TEXT    NOT NULL,
    anchor   TEXT    NOT NULL,
    key      TEXT    NOT NULL,
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

-- The values of front matter, folded. A list has a row for each of its values. `number` is of a number, and
-- `date` of a date, as ISO writes it.
CREATE TABLE fields (
    document INTEGER NOT NULL REFERENCES documents (seq) ON DELETE CASCADE,
    name     TEXT    NOT NULL,
    value    TEXT    NOT NULL,
    number   REAL,
    date     TEXT,
    PRIMARY KEY (document, name, value)
) STRICT, WITHOUT ROWID;
CREATE INDEX fields_name ON fields (name, value);
