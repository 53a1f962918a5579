-- Documents that were converted: a checksum of the original, and where parts of the text are in it.
CREATE TABLE quire.originals (
    document   bigint PRIMARY KEY REFERENCES quire.documents ON DELETE CASCADE,
    collection text   COLLATE "C" NOT NULL,
    checksum   text   COLLATE "C" NOT NULL,  -- SHA-256 of the original's bytes; '' if it is not known
    places     bytea                         -- packed; NULL if the original has no places
);

DO $$
DECLARE
    who text;
    own text := '(SELECT quire.setting()) IS NULL OR collection = ANY ((SELECT quire.setting())::text[])';
    granted text := 'collection = ANY ((SELECT quire.scope())::text[])';
BEGIN
    ALTER TABLE quire.originals ENABLE ROW LEVEL SECURITY;
    ALTER TABLE quire.originals FORCE ROW LEVEL SECURITY;
    EXECUTE format('CREATE POLICY owner ON quire.originals TO CURRENT_USER USING (%s)', own);
    EXECUTE format('CREATE POLICY granted ON quire.originals USING (%s)', granted);
    FOR who IN SELECT DISTINCT g.role FROM quire.grants AS g JOIN pg_roles AS r ON r.rolname = g.role
    LOOP
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON quire.originals TO %I', who);
    END LOOP;
END
$$;
