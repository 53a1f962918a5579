"""What is compared with a search: grep and plain BM25, each as simple as it is usually used.

Input: a store and which documents. Output: spans, best first. grep returns the sections with the most
different words of the question, whole words in any case; of as many words, those with more matching lines.
BM25 is that of SQLite over the same chunks and the same stems, for any of the question's words.
"""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Sequence

from quire import analyze
from quire.document import text_of
from quire.errors import Damaged
from quire.evaluation.measures import TextSpan
from quire.progress import Progress
from quire.stores import MAX_CHUNKS, DocumentRow, Store

MOST_CHUNKS = 200_000  # of larger libraries, no second index is made in memory


def grep_words(text: str) -> list[str]:
    """The words of a text in lower case; in a script without spaces, pairs of characters."""
    found = list[str]()
    for word in analyze.words_in(text.lower()):
        found += analyze.terms(word) if analyze.is_spaceless(word) else [word]
    return found


def _telling(words: Sequence[str], text: str) -> list[str]:
    """The words that someone would look for: no stop words, unless there are no others."""
    kept = [word for word in words if not analyze.STOP.issuperset(analyze.terms(word))]
    return list(dict.fromkeys(kept or words or [text]))


class Grep:
    """Finds sections by the words that stand in them."""

    def __init__(self) -> None:
        self._sections = list[TextSpan]()
        self._lines: dict[str, dict[int, int]] = defaultdict(dict)  # of each word, by section

    def add(self, store: Store, row: DocumentRow, text: str) -> None:
        """Read the sections of a document, each without its subsections."""
        for section in store.sections(row.seq):
            number = len(self._sections)
            self._sections.append(TextSpan(row.address, section.start, section.own_end))
            counts = Counter[str]()
            for line in text[section.start : section.own_end].splitlines():
                counts.update(set(grep_words(line)))
            for word, lines in counts.items():
                self._lines[word][number] = lines

    def search(self, question: str, limit: int) -> list[TextSpan]:
        """The sections with the most words of a question."""
        words, lines = Counter[int](), Counter[int]()
        for word in _telling(grep_words(question), question):
            for section, count in self._lines.get(word, {}).items():
                words[section] += 1
                lines[section] += count
        ranked = sorted(words, key=lambda section: (-words[section], -lines[section], section))
        return [self._sections[section] for section in ranked[:limit]]


class PlainBm25:
    """Finds chunks by BM25."""

    def __init__(self) -> None:
        self._db = sqlite3.connect(":memory:", check_same_thread=False)
        self._db.execute("CREATE VIRTUAL TABLE words USING fts5 (terms, content='', tokenize='unicode61')")
        self._chunks = list[TextSpan]()

    def add(self, store: Store, row: DocumentRow, text: str) -> None:
        """Read the chunks of a document."""
        first = row.seq * MAX_CHUNKS
        for _, chunk in sorted(store.chunks(range(first, first + row.chunk_count)).items()):
            terms = " ".join(analyze.terms(analyze.readable(text[chunk.start : chunk.end])))
            self._db.execute("INSERT INTO words (rowid, terms) VALUES (?, ?)", (len(self._chunks), terms))
            self._chunks.append(TextSpan(row.address, chunk.start, chunk.end))

    def search(self, question: str, limit: int) -> list[TextSpan]:
        """The chunks that match any word of a question."""
        terms = _telling(analyze.terms(question), question)
        wanted = " OR ".join('"' + term.replace('"', '""') + '"' for term in terms)
        sql = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY bm25(words), rowid LIMIT ?"
        return [self._chunks[number] for (number,) in self._db.execute(sql, (wanted, limit))]

    def close(self) -> None:
        """Give the memory back."""
        self._db.close()


def read_all(
    store: Store, documents: Sequence[DocumentRow], ways: Sequence[Grep | PlainBm25], shown: Progress
) -> int:
    """Read documents for all ways; returns how many were left out because they are damaged."""
    shown.begin("reading documents for grep and BM25", len(documents), "documents")
    left_out = 0
    for row in documents:
        try:
            text = text_of(store.source(row.seq))
            for way in ways:
                way.add(store, row, text)
        except Damaged:
            left_out += 1
        shown.advance(1)
    return left_out
