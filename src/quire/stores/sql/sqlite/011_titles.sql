-- A checksum of each document's title: a damaged one is noticed. The connection has the function row_check.
ALTER TABLE documents ADD COLUMN title_crc INTEGER;
UPDATE documents SET title_crc = row_check(checksum, title);
