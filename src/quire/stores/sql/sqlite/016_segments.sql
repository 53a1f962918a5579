-- The keyword index as arrays: a segment has the terms of some chunks and is never changed. Searches read all
-- segments; those that are small, or of which much was removed, are merged. `chunks` has the ids of its chunks in
-- order (int64), `sizes` how many terms each has (uint32), `firsts` the first term of each of its blocks.
CREATE TABLE word_segments (
    id     INTEGER PRIMARY KEY,
    count  INTEGER NOT NULL,   -- of chunks; at most 65,536
    low    INTEGER NOT NULL,   -- the first of its chunks, and the last
    high   INTEGER NOT NULL,
    chunks BLOB    NOT NULL,
    sizes  BLOB    NOT NULL,
    firsts TEXT    NOT NULL
) STRICT;

-- The chunks of a segment that were removed since: one bit for each of its chunks.
CREATE TABLE word_removed (
    segment INTEGER PRIMARY KEY,
    count   INTEGER NOT NULL,
    bits    BLOB    NOT NULL
) STRICT;

-- The terms of a segment in order. `ends` (uint32) says where the chunks of each term end in `ordinals`
-- (uint16: their places in the segment), and `weights` (uint8) how much the term is in each of them.
CREATE TABLE word_blocks (
    id       INTEGER PRIMARY KEY,  -- segment << 20 | number
    terms    TEXT NOT NULL,
    ends     BLOB NOT NULL,
    ordinals BLOB NOT NULL,
    weights  BLOB NOT NULL
) STRICT;

-- The terms of each chunk in their order, as numbers of two bytes: whether words follow each other is read here.
CREATE TABLE word_orders (chunk INTEGER PRIMARY KEY, codes BLOB NOT NULL) STRICT;

DROP TABLE vocabulary;
DROP TABLE words;
DROP TABLE IF EXISTS words_next;
DROP TABLE common_terms;
DELETE FROM remade;
DELETE FROM facts WHERE name IN ('written', 'common_at', 'removed', 'tidied', 'terms_next', 'last_segment');
INSERT INTO facts VALUES ('last_segment', '0');
-- Python makes the index of libraries that have documents.
INSERT OR REPLACE INTO facts SELECT 'terms', '' WHERE EXISTS (SELECT 1 FROM documents);
