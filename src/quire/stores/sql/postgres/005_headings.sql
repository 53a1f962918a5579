-- Headings in a chunk besides its section's: those without text have no chunk of their own.
ALTER TABLE quire.chunks ADD COLUMN headings text COLLATE "C" NOT NULL DEFAULT '';
