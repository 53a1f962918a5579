-- Where spans of converted documents are in their originals.
CREATE TABLE locations (document INTEGER PRIMARY KEY REFERENCES documents (seq) ON DELETE CASCADE, places BLOB NOT NULL) STRICT;
