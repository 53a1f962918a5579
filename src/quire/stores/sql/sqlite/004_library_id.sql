-- The id tells this library from all others. The history names its last writes, the newest first: a file
-- whose history lacks the last write that was seen in it has been replaced.
INSERT INTO facts VALUES
    ('id', lower(hex(randomblob(16)))),
    ('history', '0:' || lower(hex(randomblob(4))));
