-- Tags as they are compared: without a sign, and in any script without case, whatever the server's locale.
ALTER TABLE quire.tags ADD COLUMN folded text COLLATE "C" NOT NULL DEFAULT '';
