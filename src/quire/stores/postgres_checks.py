"""What must hold in a PostgreSQL library: each problem, and a statement that counts where it is found."""

from __future__ import annotations

CHECKS = {
    "chunks that documents do not count": """
        SELECT count(*) FROM quire.documents AS d LEFT JOIN (
            SELECT document, count(*) AS chunks FROM quire.chunks GROUP BY 1
        ) AS c ON c.document = d.seq WHERE d.chunk_count <> coalesce(c.chunks, 0)""",
    "documents whose sections are not those they count": """
        SELECT count(*) FROM quire.documents AS d LEFT JOIN (
            SELECT document, count(*) AS sections FROM quire.sections GROUP BY 1
        ) AS s ON s.document = d.seq WHERE d.section_count <> coalesce(s.sections, 0)""",
    "documents whose terms are not those they count": """
        SELECT count(*) FROM quire.documents AS d LEFT JOIN (
            SELECT document, sum(size) AS terms FROM quire.words GROUP BY 1
        ) AS w ON w.document = d.seq WHERE d.term_count <> coalesce(w.terms, 0)""",
    "chunks without terms, or terms without a chunk": """
        SELECT count(*) FROM quire.chunks AS c FULL JOIN (
            SELECT * FROM quire.words WHERE quire.setting() IS NULL OR collection = ANY (quire.setting())
        ) AS w USING (document, index) WHERE c.document IS NULL OR w.document IS NULL""",
    "chunks in a section that is not there": """
        SELECT count(*) FROM quire.chunks AS c LEFT JOIN quire.sections AS s
        ON s.document = c.document AND s.position = c.section WHERE s.document IS NULL""",
    "vectors of texts that are not there": """
        SELECT count(*) FROM quire.vectors AS v WHERE NOT EXISTS (
            SELECT 1 FROM quire.chunks AS c WHERE c.document = v.document AND c.digest = v.digest)""",
    "documents whose embedded chunks are not those they count": """
        SELECT count(*) FROM (
            SELECT c.document, v.model, count(*) AS chunks FROM quire.chunks AS c
            JOIN quire.vectors AS v USING (document, digest) GROUP BY 1, 2
        ) AS c FULL JOIN quire.embedded AS e USING (document, model)
        WHERE c.chunks IS DISTINCT FROM e.chunks::bigint""",
    "documents that share a path": """
        SELECT count(*) FROM (
            SELECT 1 FROM quire.documents GROUP BY collection, kind, path HAVING count(*) > 1) AS twins""",
}
