-- The bytes of documents in compressed pieces: see pieces.py. Python fills them: see compact.py.
ALTER TABLE quire.documents ADD COLUMN pieces bytea;
ALTER TABLE quire.documents ALTER COLUMN pieces SET STORAGE EXTERNAL;  -- a part is read without the rest
ALTER TABLE quire.documents ADD COLUMN ends integer[];
ALTER TABLE quire.documents ADD COLUMN pieces_sum bytea;  -- SHA-256
ALTER TABLE quire.documents ADD COLUMN length bigint;

-- Terms as numbers: see terms.py. The first score of a chunk reads its row: it stays in the table.
DROP FUNCTION quire.matches(tsquery);
DROP TABLE quire.words, quire.common_terms;
CREATE TABLE quire.words (
    document   bigint    NOT NULL REFERENCES quire.documents ON DELETE CASCADE,
    index      integer   NOT NULL,
    collection text      COLLATE "C" NOT NULL,
    size       integer   NOT NULL,      -- terms
    terms      integer[] NOT NULL,
    counts     bytea     NOT NULL,
    places     text      COLLATE "C" NOT NULL,
    PRIMARY KEY (document, index)
) WITH (toast_tuple_target = 8160);
ALTER TABLE quire.words ALTER COLUMN terms SET STORAGE MAIN;
ALTER TABLE quire.words ALTER COLUMN counts SET STORAGE MAIN;
ALTER TABLE quire.words ALTER COLUMN places SET STORAGE EXTERNAL;
CREATE INDEX words_terms ON quire.words USING gin (terms);

-- What the beginning of a word may stand for. Words of documents that are gone stay until a purge.
CREATE TABLE quire.vocabulary (
    collection text    COLLATE "C" NOT NULL,
    term       text    COLLATE "C" NOT NULL,
    number     integer NOT NULL
);
CREATE INDEX vocabulary_term ON quire.vocabulary (term, collection);

-- Terms that are in many chunks, and in what share of them: they rank what others match.
CREATE TABLE quire.common_terms (number integer PRIMARY KEY, share double precision NOT NULL);

-- The number of the sign of a collection, as terms.py has it.
CREATE FUNCTION quire.collection_sign(name text) RETURNS integer LANGUAGE sql IMMUTABLE STRICT
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT (1610612736 + ('x' || encode(substring(sha256(convert_to('@' || name, 'UTF8')), 1, 4), 'hex'))
        ::bit(32)::bigint % 536870912)::integer
$$;

-- The words of the scope that have one of the terms. A policy keeps the index from being used, as its operator
-- could tell what it sees; here there is no policy to pass, and the scope is kept to all the same.
CREATE FUNCTION quire.matches(wanted integer[]) RETURNS SETOF quire.words LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT w.* FROM quire.words AS w WHERE w.collection = ANY (quire.scope()) AND w.terms && wanted
    AND w.terms && ARRAY(SELECT quire.collection_sign(name) FROM unnest(quire.scope()) AS name)
$$;

DO $$
DECLARE
    held text;
    who text;
    own text := '(SELECT quire.setting()) IS NULL OR collection = ANY ((SELECT quire.setting())::text[])';
    granted text := 'collection = ANY ((SELECT quire.scope())::text[])';
    model record;
BEGIN
    FOREACH held IN ARRAY ARRAY['words', 'vocabulary']
    LOOP
        EXECUTE format('ALTER TABLE quire.%I ENABLE ROW LEVEL SECURITY', held);
        EXECUTE format('ALTER TABLE quire.%I FORCE ROW LEVEL SECURITY', held);
        -- Words: see matches(). What they find is only ever shown with its chunk, which has the other policy.
        EXECUTE format('CREATE POLICY owner ON quire.%I TO CURRENT_USER USING (%s)', held,
            CASE held WHEN 'words' THEN 'true' ELSE own END);
        EXECUTE format('CREATE POLICY granted ON quire.%I USING (%s)', held, granted);
        FOR who IN SELECT DISTINCT g.role FROM quire.grants AS g JOIN pg_roles AS r ON r.rolname = g.role
        LOOP
            EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON quire.%I TO %I', held, who);
        END LOOP;
    END LOOP;

    -- Long vectors are found by the signs of their numbers, and compared in full: see vectors.py.
    FOR model IN SELECT id, dimension FROM quire.models WHERE dimension >= 1000
    LOOP
        FOREACH held IN ARRAY ARRAY['vectors', 'embedded']
        LOOP
            EXECUTE format('DROP INDEX IF EXISTS quire.%I', held || '_' || model.id);
            EXECUTE format('CREATE INDEX %I ON quire.%I USING hnsw'
                ' ((binary_quantize(vector::halfvec(%s))::bit(%s)) bit_hamming_ops)'
                ' WITH (m = 16, ef_construction = 64) WHERE model = %s',
                held || '_' || model.id, held, model.dimension, model.dimension, model.id);
        END LOOP;
    END LOOP;
END $$;
