-- The links of documents. What a link leads to is found when someone asks: it may be added later.
CREATE TABLE quire.links (
    document   bigint  NOT NULL REFERENCES quire.documents ON DELETE CASCADE,
    number     integer NOT NULL,  -- in the document, from 0
    collection text    COLLATE "C" NOT NULL,
    section    integer NOT NULL,  -- the position of the section that it stands in
    start      integer NOT NULL,
    line       integer NOT NULL,
    form       text    COLLATE "C" NOT NULL,  -- wikilink, embed or markdown
    target     text    COLLATE "C" NOT NULL,  -- "" is the document itself
    fragment   text    COLLATE "C" NOT NULL,
    text       text    COLLATE "C" NOT NULL,
    anchor     text    COLLATE "C" NOT NULL,  -- the terms of the text
    key        text    COLLATE "C" NOT NULL,  -- the last name in the target: one of the names of the document
    PRIMARY KEY (document, number)
);
CREATE INDEX links_key ON quire.links (key);
CREATE INDEX links_anchor ON quire.links (anchor) WHERE anchor <> '';

-- The names in documents' paths that links find them by.
CREATE TABLE quire.names (
    document   bigint NOT NULL REFERENCES quire.documents ON DELETE CASCADE,
    name       text   COLLATE "C" NOT NULL,
    collection text   COLLATE "C" NOT NULL,
    PRIMARY KEY (document, name)
);
CREATE INDEX names_name ON quire.names (name);

-- The values of front matter, folded. A list has a row for each of its values.
CREATE TABLE quire.fields (
    document   bigint NOT NULL REFERENCES quire.documents ON DELETE CASCADE,
    name       text   COLLATE "C" NOT NULL,
    value      text   COLLATE "C" NOT NULL,
    number     double precision,               -- of a number
    date       text   COLLATE "C",             -- of a date, as ISO writes it
    collection text   COLLATE "C" NOT NULL,
    PRIMARY KEY (document, name, value)
);
CREATE INDEX fields_name ON quire.fields (name, value);

DO $$
DECLARE
    held text;
    who text;
    own text := '(SELECT quire.setting()) IS NULL OR collection = ANY ((SELECT quire.setting())::text[])';
    granted text := 'collection = ANY ((SELECT quire.scope())::text[])';
BEGIN
    FOREACH held IN ARRAY ARRAY['links', 'names', 'fields']
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
