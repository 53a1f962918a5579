-- Tags as they are compared: without a sign, and in any script without case. SQLite folds only ASCII.
ALTER TABLE tags ADD COLUMN folded TEXT NOT NULL DEFAULT '';
UPDATE tags SET folded = tag_key(tag);
