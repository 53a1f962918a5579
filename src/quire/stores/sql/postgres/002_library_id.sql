-- Tells this library from all others.
INSERT INTO quire.facts VALUES ('id', replace(gen_random_uuid()::text, '-', ''));
