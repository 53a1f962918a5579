-- The fingerprint of the analyzer that made the terms of a document.
ALTER TABLE quire.documents ADD COLUMN terms text COLLATE "C" NOT NULL DEFAULT '';
CREATE INDEX documents_terms ON quire.documents (terms);
DELETE FROM quire.facts WHERE name = 'terms';
