-- A checksum of each row that says where a text is: a damaged one is noticed when it is read.
-- The connection has the function row_check.
ALTER TABLE sections ADD COLUMN crc INTEGER;
ALTER TABLE chunks ADD COLUMN crc INTEGER;
UPDATE sections SET crc = row_check(
    document, position, parent, level, children, title, slug, trail, header_path, start, own_end, "end",
    byte_start, byte_own_end, byte_end, start_line, own_end_line, end_line, tokens
);
UPDATE chunks SET crc = row_check(
    id, document, section, part, start, "end", byte_start, byte_end, start_line, end_line, tokens, context,
    headings
);
