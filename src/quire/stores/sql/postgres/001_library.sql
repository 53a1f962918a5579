-- Every primary key begins with the document, and a document's number comes from its id: the tables can be
-- distributed by document. Text is compared by its bytes, as in SQLite.

CREATE TABLE quire.documents (
    seq           bigint  PRIMARY KEY,  -- the first 43 bits of the id, or the next number that is free
    id            text    COLLATE "C" NOT NULL,
    collection    text    COLLATE "C" NOT NULL,
    kind          text    COLLATE "C" NOT NULL,
    path          text    COLLATE "C" NOT NULL,
    url           text    COLLATE "C",
    root          text    COLLATE "C",  -- the folder that the path is in; NULL for content with no file
    format        text    COLLATE "C" NOT NULL,
    title         text    COLLATE "C" NOT NULL,
    checksum      text    COLLATE "C" NOT NULL,
    size          bigint  NOT NULL,     -- of the file when it was read; with mtime_ns it tells a changed one
    mtime_ns      bigint  NOT NULL,
    made_by       text    COLLATE "C" NOT NULL,
    promotion     text    COLLATE "C" NOT NULL DEFAULT 'standard',
    chunk_count   integer NOT NULL,
    section_count integer NOT NULL,
    term_count    bigint  NOT NULL,     -- of all chunks: what ranking needs of the library is a sum of these
    created_at    bigint  NOT NULL,     -- milliseconds
    updated_at    bigint  NOT NULL,
    source        bytea   NOT NULL
);
ALTER TABLE quire.documents ALTER COLUMN source SET STORAGE EXTERNAL;  -- a part is read without the rest
CREATE INDEX documents_collection ON quire.documents (collection);
CREATE INDEX documents_path ON quire.documents USING hash (path);  -- a path may be longer than a btree's key

CREATE TABLE quire.sections (
    document     bigint  NOT NULL REFERENCES quire.documents ON DELETE CASCADE,
    position     integer NOT NULL,
    collection   text    COLLATE "C" NOT NULL,
    parent       integer NOT NULL,      -- position; -1 for the root
    level        integer NOT NULL,
    children     integer NOT NULL,
    title        text    COLLATE "C" NOT NULL,
    slug         text    COLLATE "C" NOT NULL,
    trail        text    COLLATE "C" NOT NULL,  -- JSON
    header_path  text    COLLATE "C" NOT NULL,
    start        integer NOT NULL,
    own_end      integer NOT NULL,
    "end"        integer NOT NULL,
    byte_start   integer NOT NULL,
    byte_own_end integer NOT NULL,
    byte_end     integer NOT NULL,
    start_line   integer NOT NULL,
    own_end_line integer NOT NULL,
    end_line     integer NOT NULL,
    tokens       integer NOT NULL,
    PRIMARY KEY (document, position)
);

CREATE TABLE quire.chunks (
    document   bigint  NOT NULL REFERENCES quire.documents ON DELETE CASCADE,
    index      integer NOT NULL,        -- a chunk's number is document << 20 | index
    collection text    COLLATE "C" NOT NULL,
    section    integer NOT NULL,
    part       integer NOT NULL,
    start      integer NOT NULL,
    "end"      integer NOT NULL,
    byte_start integer NOT NULL,
    byte_end   integer NOT NULL,
    start_line integer NOT NULL,
    end_line   integer NOT NULL,
    tokens     integer NOT NULL,
    context    text    COLLATE "C" NOT NULL,
    digest     bytea   NOT NULL,        -- of what is embedded
    PRIMARY KEY (document, index)
);
CREATE INDEX chunks_digest ON quire.chunks (document, digest);

-- Terms as analyze.py makes them. The first score of a chunk reads its whole row: it stays in the table.
CREATE TABLE quire.words (
    document   bigint   NOT NULL REFERENCES quire.documents ON DELETE CASCADE,
    index      integer  NOT NULL,
    collection text     COLLATE "C" NOT NULL,
    size       integer  NOT NULL,       -- terms
    terms      tsvector NOT NULL,
    PRIMARY KEY (document, index)
) WITH (toast_tuple_target = 8160);
ALTER TABLE quire.words ALTER COLUMN terms SET STORAGE MAIN;
CREATE INDEX words_terms ON quire.words USING gin (terms);

-- What a server said of a page, to ask it again only if that has changed.
CREATE TABLE quire.fetches (
    document      bigint PRIMARY KEY REFERENCES quire.documents ON DELETE CASCADE,
    collection    text   COLLATE "C" NOT NULL,
    etag          text   COLLATE "C",
    last_modified text   COLLATE "C"
);

CREATE TABLE quire.tags (
    document   bigint NOT NULL REFERENCES quire.documents ON DELETE CASCADE,
    collection text   COLLATE "C" NOT NULL,
    tag        text   COLLATE "C" NOT NULL,
    PRIMARY KEY (document, tag)
);
CREATE INDEX tags_tag ON quire.tags (tag);

CREATE TABLE quire.models (
    id        integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name      text    COLLATE "C" NOT NULL,
    dimension integer NOT NULL,
    active    boolean NOT NULL,         -- true for the one that is searched
    UNIQUE (name, dimension)
);

-- One for each text of a document: chunks of the same text share it, and it outlives a rewriting.
CREATE TABLE quire.vectors (
    document   bigint  NOT NULL REFERENCES quire.documents ON DELETE CASCADE,
    digest     bytea   NOT NULL,
    model      integer NOT NULL REFERENCES quire.models ON DELETE CASCADE,
    collection text    COLLATE "C" NOT NULL,
    vector     halfvec NOT NULL,
    PRIMARY KEY (document, digest, model)
) WITH (toast_tuple_target = 8160);
ALTER TABLE quire.vectors ALTER COLUMN vector SET STORAGE MAIN;
CREATE INDEX vectors_digest ON quire.vectors (model, digest);

-- How many chunks of a document have a vector.
CREATE TABLE quire.embedded (
    document   bigint  NOT NULL REFERENCES quire.documents ON DELETE CASCADE,
    model      integer NOT NULL REFERENCES quire.models ON DELETE CASCADE,
    collection text    COLLATE "C" NOT NULL,
    chunks     integer NOT NULL,
    PRIMARY KEY (document, model)
);

-- Vectors of texts that are gone, for when they come back.
CREATE TABLE quire.remembered (
    model      integer NOT NULL REFERENCES quire.models ON DELETE CASCADE,
    digest     bytea   NOT NULL,
    collection text    COLLATE "C" NOT NULL,
    vector     halfvec NOT NULL,
    since      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (model, digest, collection)
);

-- Documents that a model could not embed, and why.
CREATE TABLE quire.embedding_failures (
    document   bigint PRIMARY KEY REFERENCES quire.documents ON DELETE CASCADE,
    collection text   COLLATE "C" NOT NULL,
    reason     text   COLLATE "C" NOT NULL
);

-- Terms that are in many chunks, and in what share of them: they rank what others match.
CREATE TABLE quire.common_terms (term text COLLATE "C" PRIMARY KEY, share double precision NOT NULL);

CREATE TABLE quire.facts (name text PRIMARY KEY, value text NOT NULL);
INSERT INTO quire.facts VALUES ('common_at', '0'), ('terms', '0');

-- The generation is the sum of them all, so that writers need not wait for one another's row.
CREATE TABLE quire.writes (slot integer PRIMARY KEY, generation bigint NOT NULL, chunks bigint NOT NULL);
INSERT INTO quire.writes SELECT slot, 0, 0 FROM generate_series(0, 31) AS slot;

-- ------------------------------------------------------------------------------------------------- tenants

-- A role, and the collections that it sees. The store's grant() writes it.
CREATE TABLE quire.grants (role text, collection text COLLATE "C", PRIMARY KEY (role, collection));

-- The collections that this transaction is kept to; NULL for all.
CREATE FUNCTION quire.setting() RETURNS text[] LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT nullif(current_setting('quire.collections', true), '')::text[] $$;

-- The collections that the role who asks may see, of those it is kept to. Within a function like the one
-- below, current_user is the owner: who asks is the role that was set, or who logged in.
CREATE FUNCTION quire.scope() RETURNS text[] LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
    WITH asking (role) AS (
        SELECT CASE current_setting('role') WHEN 'none' THEN session_user ELSE current_setting('role') END
    )
    SELECT CASE WHEN pg_has_role(asking.role, current_user, 'USAGE') THEN quire.setting() ELSE ARRAY(
        SELECT g.collection FROM quire.grants AS g JOIN pg_roles AS r ON r.rolname = g.role
        WHERE pg_has_role(asking.role, r.oid, 'USAGE')
        AND (quire.setting() IS NULL OR g.collection = ANY (quire.setting()))
    ) END FROM asking
$$;

-- The words of the scope that match. A policy keeps the full-text index from being used, as its operator
-- could tell what it sees; here there is no policy to pass, and the scope is kept to all the same.
CREATE FUNCTION quire.matches(wanted tsquery) RETURNS SETOF quire.words LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT w.* FROM quire.words AS w
    WHERE w.collection = ANY (quire.scope()) AND w.terms @@ (wanted && (
        SELECT string_agg(format('''@%s''', left(encode(sha256(convert_to(name, 'UTF8')), 'hex'), 16)), ' | ')::tsquery
        FROM unnest(quire.scope()) AS name
    ))
$$;

DO $$
DECLARE
    held text;
    own text := '(SELECT quire.setting()) IS NULL OR collection = ANY ((SELECT quire.setting())::text[])';
    granted text := 'collection = ANY ((SELECT quire.scope())::text[])';
BEGIN
    FOREACH held IN ARRAY ARRAY['documents', 'sections', 'chunks', 'words', 'vectors', 'embedded', 'remembered',
        'embedding_failures', 'fetches', 'tags']
    LOOP
        EXECUTE format('ALTER TABLE quire.%I ENABLE ROW LEVEL SECURITY', held);
        EXECUTE format('ALTER TABLE quire.%I FORCE ROW LEVEL SECURITY', held);
        -- Words: see matches(). What they find is only ever shown with its chunk, which has the other policy.
        EXECUTE format('CREATE POLICY owner ON quire.%I TO CURRENT_USER USING (%s)', held,
            CASE held WHEN 'words' THEN 'true' ELSE own END);
        EXECUTE format('CREATE POLICY granted ON quire.%I USING (%s)', held, granted);
    END LOOP;
END
$$;
