-- The earlier texts of memories and knowledge. Searches do not look here.
CREATE TABLE quire.versions (
    document   bigint NOT NULL REFERENCES quire.documents ON DELETE CASCADE,
    written_at bigint NOT NULL,  -- milliseconds
    collection text   COLLATE "C" NOT NULL,
    text       text   COLLATE "C" NOT NULL,
    PRIMARY KEY (document, written_at)
);

DO $$
DECLARE
    who text;
    own text := '(SELECT quire.setting()) IS NULL OR collection = ANY ((SELECT quire.setting())::text[])';
    granted text := 'collection = ANY ((SELECT quire.scope())::text[])';
BEGIN
    ALTER TABLE quire.versions ENABLE ROW LEVEL SECURITY;
    ALTER TABLE quire.versions FORCE ROW LEVEL SECURITY;
    EXECUTE format('CREATE POLICY owner ON quire.versions TO CURRENT_USER USING (%s)', own);
    EXECUTE format('CREATE POLICY granted ON quire.versions USING (%s)', granted);
    FOR who IN SELECT DISTINCT g.role FROM quire.grants AS g JOIN pg_roles AS r ON r.rolname = g.role
    LOOP
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON quire.versions TO %I', who);
    END LOOP;
END
$$;
