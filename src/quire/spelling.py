"""A word that no document has to the close word that was probably meant.

Input: a query and a store. Output: the query with words of the library, and a note that names them. Always:
a word that some chunk has is kept; a replacement is a word of a document that is searched, at most
`most_edits` away, and begins with the same letter (or with the first two swapped). An edit inserts, deletes
or substitutes a letter, or swaps two neighbours.

The index holds stems, and a typing error often changes the stem: `configuraton` is far from `configur`. So
Quire makes the words that are one edit away, and looks up their stems. Two edits away there are too many
words: of these it makes the likely ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from quire import analyze, later
from quire.query import Query, Term
from quire.stores import Filters, Store

_ALPHABETS = (
    "abcdefghijklmnopqrstuvwxyz",
    "αβγδεζηθικλμνξοπρσςτυφχψω",
    "абвгдежзиклмнопрстуфхцчшщъыьэюя",  # folding makes и of й, and е of ё
)
_VOWELS = "aeiouαεηιουωаеиоуыэюя"
_SHORTEST, _LONGEST = 4, 32  # letters of a word that is replaced, or replaces one
_SUBSTITUTED = 6  # letters from which on one may be another: `stop` and `step`, `port` and `part` are words
_TWICE = range(8, 17)  # letters of a word with two edits: more would take long, fewer make another word
_REPLACED = 4  # words of one query
_TRIED = 4  # terms that may be the one that was meant, those of most chunks
_SAMPLE = 20  # chunks in which the words of a term are read
_EVERYWHERE = Filters()
_PLAIN = later.pattern(r"[(\['‘]*(?P<word>[^\W\d_]+)[)\]'’.,;:!?…]*")


def respelled(store: Store, asked: Query, within: Filters = _EVERYWHERE) -> tuple[Query, str]:
    """A query with close words for those that no chunk has, and a note; "" if nothing was replaced.

    The close words are those of documents within the filters.
    """
    plain = {term: word for group in asked.groups for term in group if (word := plain_word(term))}
    # All words are counted at once: a store may keep the counts, and the search needs them next.
    known = store.term_counts(_terms(asked)) if plain else {}
    absent = [term for term, word in plain.items() if _term(word) not in known]
    close = {term: word for term in absent[:_REPLACED] if (word := _closest(store, plain[term], within))}
    if not close:
        return asked, ""
    right = {term: replace(term, text=word) for term, word in close.items()}
    groups = tuple(tuple(right.get(term, term) for term in group) for group in asked.groups)
    wrong = _listed((plain[term] for term in close), "or")
    note = f"No document has {wrong}. Searched for {_listed(close.values(), 'and')} instead."
    return replace(asked, groups=groups), note


def plain_word(term: Term) -> str:
    """The word of a term that may be misspelled; "" for phrases, fields, prefixes, names and stop words.

    A capital letter inside a word makes it a name in code, or an abbreviation.
    """
    found = _PLAIN.fullmatch(term.text)
    if not found or term.phrase or term.prefix or term.field:
        return ""
    word, size = found["word"], len(found["word"])
    is_plain = _SHORTEST <= size <= _LONGEST and word[1:].islower() and _alphabet(analyze.fold(word))
    return word if is_plain and _term(word) not in {"", *analyze.STOP} else ""


def most_edits(word: str) -> int:
    """How many edits a word may be away."""
    return 2 if len(word) in _TWICE else 1


def distance(a: str, b: str, most: int) -> int:
    """The number of edits between two words; `most` + 1 if there are more. No letter is edited twice."""
    far = most + 1
    if abs(len(a) - len(b)) > most:
        return far
    before, row = [far] * (len(b) + 1), [min(at, far) for at in range(len(b) + 1)]
    for i, letter in enumerate(a, 1):
        last, before, row = before, row, [min(i, far)] + [far] * len(b)
        for j in range(max(1, i - most), min(len(b), i + most) + 1):
            row[j] = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != b[j - 1]), far)
            if i > 1 and j > 1 and (a[i - 2], letter) == (b[j - 1], b[j - 2]):
                row[j] = min(row[j], last[j - 2] + 1)
    return row[-1]


def one_edit(word: str) -> Iterator[str]:
    """All words that are one edit away and begin with the same letter, or with the first two swapped."""
    yield word[1::-1] + word[2:]
    letters = _alphabet(word)
    for at in range(1, len(word) + 1):
        head, tail = word[:at], word[at:]
        yield from _shorter(head, tail)
        yield from (head + letter + tail for letter in letters)
        yield from (head + letter + tail[1:] for letter in letters if tail and len(word) >= _SUBSTITUTED)


def two_edits(word: str) -> Iterator[str]:
    """Likely words that are two edits away: with other vowels, or letters missing, doubled or swapped."""
    for at, once in _likely(word, 1):
        yield from (twice for _, twice in _likely(once, at))


def _likely(word: str, start: int) -> Iterator[tuple[int, str]]:
    """Words that are one likely edit away, each with the place of its edit, from a place on."""
    vowels = [letter for letter in _VOWELS if letter in _alphabet(word)]
    for at in range(start, len(word) + 1):
        head, tail = word[:at], word[at:]
        yield from ((at, made) for made in _shorter(head, tail))
        yield from ((at, head + letter + tail) for letter in {*vowels, head[-1]})
        yield from ((at, head + letter + tail[1:]) for letter in vowels if tail[:1] in vowels)


def _shorter(head: str, tail: str) -> Iterator[str]:
    """The words without the first letter of the tail, and with its first two swapped."""
    if tail:
        yield head + tail[1:]
    if len(tail) > 1:
        yield head + tail[1::-1] + tail[2:]


def _alphabet(word: str) -> str:
    """The letters of a word's script; "" if Quire does not know them."""
    return next((letters for letters in _ALPHABETS if word[:1] in letters), "")


def _closest(store: Store, typed: str, within: Filters) -> str:
    """The word of the library that was probably meant; "" if none is close, or if it is a stop word."""
    word = analyze.fold(typed)
    for made in (one_edit, two_edits)[: most_edits(word)]:
        edits = sorted({edit for edit in made(word) if len(edit) >= _SHORTEST})
        edit_of = dict(zip(analyze.stems(edits), edits, strict=True))
        edit_of.pop("", None)
        counts = store.term_counts(edit_of)
        ranked = sorted(counts, key=lambda term: (-counts[term], term))[:_TRIED]
        if ranked and ranked[0] in analyze.STOP:
            return ""
        texts = {term: _sample(store, edit_of[term], within) for term in ranked}
        found = [near for term in ranked if (near := _as_written(term, texts[term], word))]
        if found:
            return min(found, key=lambda near: near[:2])[2]
    return ""


def _as_written(term: str, texts: Iterable[str], word: str) -> tuple[int, bool, str] | None:
    """The closest word that texts have for the term of an edit; None if it is far.

    Its distance comes first, and whether it is more than a swap behind the first letter, the surest error.
    """
    written = Counter(_words_of(term, texts))
    near = {found: _edits_to(analyze.fold(found), word) for found in written}
    best = min(near, key=lambda found: (near[found], -written[found], found), default="")
    if not best or near[best] > most_edits(word):
        return None
    folded = analyze.fold(best)
    return near[best], folded[0] != word[0] or not _is_anagram(folded, word), best


def _edits_to(found: str, word: str) -> int:
    """The distance of a word of a document; more than `most_edits` if it is not the one that was meant."""
    most = most_edits(word)
    is_begun = found[0] == word[0] or found[:2] == word[1::-1]
    is_other = len(found) == len(word) < _SUBSTITUTED and not _is_anagram(found, word)
    return distance(word, found, most) if is_begun and not is_other else most + 1


def _is_anagram(a: str, b: str) -> bool:
    return sorted(a) == sorted(b)


def _words_of(term: str, texts: Iterable[str]) -> Iterator[str]:
    """The words of texts that have a term, as they are written."""
    for text in map(analyze.readable, texts):
        found = (text[start:end] for start, end, _ in analyze.matches(text, frozenset({term})))
        yield from (word for word in found if word.isalpha() and len(word) >= _SHORTEST)


def _sample(store: Store, word: str, within: Filters) -> Iterator[str]:
    """Texts that have the term of a word: chunks, and the headings above them."""
    asked = Query(word, ((Term(word),),), (), (), ())
    hits = store.search_words(asked, within, _SAMPLE)
    for chunk in store.chunks(hit.chunk for hit in hits).values():
        yield store.passage(chunk.document, chunk.byte_start, chunk.byte_end)
    for section in store.lineages({(hit.document, hit.section) for hit in hits}).values():
        yield section.title


def _terms(asked: Query) -> set[str]:
    """The terms of the words of a query that only rank."""
    words = (term for group in asked.groups for term in group if not (term.phrase or term.prefix))
    return {found for term in words if not term.field for found in analyze.terms(term.text)}


def _term(word: str) -> str:
    return next(iter(analyze.terms(word)), "")


def _listed(words: Iterable[str], conjunction: str) -> str:
    *most, last = (f'"{word}"' for word in words)
    return f"{', '.join(most)} {conjunction} {last}" if most else last
