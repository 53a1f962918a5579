-- The beginning of the id of a section, or of a part of one, to find it by. A chunk that is a whole section
-- has the id of its section, and no key. The connection has the function id_key.
ALTER TABLE sections ADD COLUMN key INTEGER;
ALTER TABLE chunks ADD COLUMN key INTEGER;
UPDATE sections SET key = (
    SELECT id_key(d.kind, d.collection, d.path, sections.slug, 0) FROM documents AS d
    WHERE d.seq = sections.document
);
UPDATE chunks SET key = (
    SELECT id_key(d.kind, d.collection, d.path, s.slug, chunks.part) FROM documents AS d
    JOIN sections AS s ON s.document = d.seq WHERE d.seq = chunks.document AND s.position = chunks.section
) WHERE part > 0;
CREATE INDEX sections_key ON sections (key);
CREATE INDEX chunks_key ON chunks (key) WHERE key IS NOT NULL;
