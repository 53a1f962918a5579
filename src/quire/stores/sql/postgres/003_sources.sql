-- What people named to be held. Refreshing follows these, and nothing else.
CREATE TABLE quire.sources (
    seq        bigint PRIMARY KEY,           -- from type, collection, kind and place
    type       text   COLLATE "C" NOT NULL,  -- file, folder, page, site or text
    place      text   COLLATE "C" NOT NULL,  -- an absolute path, a URL, or the path of a text
    root       text   COLLATE "C",           -- the folder or URL that paths start from; NULL for a text
    collection text   COLLATE "C" NOT NULL,
    kind       text   COLLATE "C" NOT NULL,
    options    text   COLLATE "C" NOT NULL,  -- JSON
    added_at   bigint NOT NULL,              -- milliseconds
    checked_at bigint NOT NULL,
    problem    text   COLLATE "C" NOT NULL   -- what was wrong when it was last read
);

-- Which documents a source holds. A document goes with its last source.
CREATE TABLE quire.members (
    document   bigint NOT NULL REFERENCES quire.documents ON DELETE CASCADE,
    source     bigint NOT NULL REFERENCES quire.sources ON DELETE CASCADE,
    collection text   COLLATE "C" NOT NULL,
    seen       bigint NOT NULL,              -- ctime of the file when it was read; below 0 if it may have changed since
    PRIMARY KEY (document, source)
);
CREATE INDEX members_source ON quire.members (source);

-- Documents of before have no source yet: the next one who may write finds out what they came from.
INSERT INTO quire.facts SELECT 'adopt', 'yes' WHERE EXISTS (SELECT 1 FROM quire.documents);

DO $$
DECLARE
    held text;
    who text;
    own text := '(SELECT quire.setting()) IS NULL OR collection = ANY ((SELECT quire.setting())::text[])';
    granted text := 'collection = ANY ((SELECT quire.scope())::text[])';
BEGIN
    FOREACH held IN ARRAY ARRAY['sources', 'members']
    LOOP
        EXECUTE format('ALTER TABLE quire.%I ENABLE ROW LEVEL SECURITY', held);
        EXECUTE format('ALTER TABLE quire.%I FORCE ROW LEVEL SECURITY', held);
        EXECUTE format('CREATE POLICY owner ON quire.%I TO CURRENT_USER USING (%s)', held, own);
        EXECUTE format('CREATE POLICY granted ON quire.%I USING (%s)', held, granted);
        FOR who IN SELECT DISTINCT g.role FROM quire.grants AS g JOIN pg_roles AS r ON r.rolname = g.role
        LOOP
            EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON quire.%I TO %I', held, who);
        END LOOP;
    END LOOP;
END
$$;
