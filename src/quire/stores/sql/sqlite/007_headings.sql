-- Headings in a chunk besides its section's: those without text have no chunk of their own.
ALTER TABLE chunks ADD COLUMN headings TEXT NOT NULL DEFAULT '';
