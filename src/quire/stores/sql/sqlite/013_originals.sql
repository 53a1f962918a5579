-- Documents that were converted: a checksum of the original, and where parts of the text are in it.
CREATE TABLE originals (
    document INTEGER PRIMARY KEY REFERENCES documents (seq) ON DELETE CASCADE,
    checksum TEXT    NOT NULL,  -- SHA-256 of the original's bytes; '' if it is not known
    places   BLOB               -- packed; NULL if the original has no places
) STRICT;
