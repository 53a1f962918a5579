-- The beginning of the id of a section, or of a part of one, to find it by. A chunk that is a whole section
-- has the id of its section, and no key. Python makes the keys of documents of before: see schema.py.
ALTER TABLE quire.sections ADD COLUMN key bigint;
ALTER TABLE quire.chunks ADD COLUMN key bigint;
CREATE INDEX sections_key ON quire.sections (key);
CREATE INDEX chunks_key ON quire.chunks (key) WHERE key IS NOT NULL;
