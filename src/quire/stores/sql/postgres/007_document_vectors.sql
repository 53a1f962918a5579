-- A document of several chunks has a vector of its own, the mean of theirs, once all of them have one.
ALTER TABLE quire.embedded ADD COLUMN vector halfvec;
ALTER TABLE quire.embedded ALTER COLUMN vector SET STORAGE MAIN;
UPDATE quire.embedded AS e SET vector = (
    SELECT l2_normalize(avg(v.vector)) FROM quire.chunks AS c JOIN quire.vectors AS v USING (document, digest)
    WHERE c.document = e.document AND v.model = e.model
) FROM quire.documents AS d WHERE d.seq = e.document AND e.chunks = d.chunk_count AND e.chunks > 1;
DO $$
DECLARE
    model record;
BEGIN
    FOR model IN SELECT id, dimension FROM quire.models WHERE dimension <= 4000 LOOP
        EXECUTE format('CREATE INDEX embedded_%s ON quire.embedded USING hnsw'
            ' ((vector::halfvec(%s)) halfvec_ip_ops) WITH (m = 16, ef_construction = 64) WHERE model = %s',
            model.id, model.dimension, model.id);
    END LOOP;
END $$;

-- Few documents are promoted, and every search asks which.
CREATE INDEX documents_promoted ON quire.documents (promotion) WHERE promotion <> 'standard';
