-- Where spans of converted documents are in their originals.
CREATE TABLE quire.locations (
    document   bigint PRIMARY KEY REFERENCES quire.documents ON DELETE CASCADE,
    collection text   COLLATE "C" NOT NULL,
    places     bytea  NOT NULL
);

DO $$
DECLARE
    who text;
    own text := '(SELECT quire.setting()) IS NULL OR collection = ANY ((SELECT quire.setting())::text[])';
    granted text := 'collection = ANY ((SELECT quire.scope())::text[])';
BEGIN
    ALTER TABLE quire.locations ENABLE ROW LEVEL SECURITY;
    ALTER TABLE quire.locations FORCE ROW LEVEL SECURITY;
    EXECUTE format('CREATE POLICY owner ON quire.locations TO CURRENT_USER USING (%s)', own);
    EXECUTE format('CREATE POLICY granted ON quire.locations USING (%s)', granted);
    FOR who IN SELECT DISTINCT g.role FROM quire.grants AS g JOIN pg_roles AS r ON r.rolname = g.role
    LOOP
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON quire.locations TO %I', who);
    END LOOP;
END
$$;
