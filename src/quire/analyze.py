"""Text to index terms, the same for every database and for queries.

A term holds no white space, and of ASCII only a–z and 0–9, so that any full-text index stores it
unchanged. Words are folded and stemmed by the rules of their script's language; scripts without
spaces give pairs of adjacent characters, and a single character gives itself.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from functools import cache
from typing import Any

from quire import later

RULES = 2  # version of the rules in this file: raise it whenever they give other terms

# Terms of English stop words: they only rank what other words match.
STOP = frozenset(
    "a about all also am an and ani are as at be been but by can could did do doe each for from had has have"
    " he her his how i if in into is it just like me more most my no not of on onli or other our out s she"
    " should so some such t than that the their them then there these they this to up us was we were what"
    " when where which who whi will with would you your".split()
)
_SPACELESS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"  # Japanese, Chinese
    "\u1100-\u11ff\uac00-\ud7af"  # Korean, whose words are long and inflected
    "\U00020000-\U0003ffff"
)
# Marks that are written on letters: vowel signs, accents, points. They are part of a word.
_AMONG_MARKS = range(0x300, 0xE00)
_INDIC = "\u0900"  # from here on, marks are vowels and distinguish words; before, they are accents and points
# Every ASCII character that is not part of a word becomes a space: the fastest way to split words.
_ASCII_WORDS = "".join(chr(code) if chr(code).isalnum() or code == 39 else " " for code in range(128))
_ASCII_WORD = later.pattern("[A-Za-z0-9']+")
# Signs that are in many English texts, each as one of ASCII: then the faster way can be taken.
_SIGNS = (range(0x80, 0xC0), range(0x2000, 0x2070), range(0x2190, 0x2600))
_IS_SPACELESS = later.pattern(rf"[{_SPACELESS}]")
_LINK_TARGET = later.pattern(r"\]\([^)\s]*\)")
_ENDING = 4  # letters that a stemmer may remove from the end of a word
_MAX_LENGTH = 64  # characters: nobody types a longer word


@cache
def _marks() -> str:
    return "".join(chr(code) for code in _AMONG_MARKS if unicodedata.category(chr(code))[0] == "M")


def _words() -> str:
    letters = rf"[^\W_{_SPACELESS}][{_marks()}]*"
    return rf"[{_SPACELESS}]+|(?:{letters})+(?:['’](?:{letters})+)*"


@cache
def _punctuation() -> dict[int, str]:
    signs = (code for codes in _SIGNS for code in codes if not _WORD.search(chr(code)))
    return dict.fromkeys(signs, " ") | {ord("’"): "'"}


_WORD, _NO_LETTER = later.pattern(_words), later.pattern(lambda: rf"[^\w{_marks()}]|_")

# Words whose stems depend on the rules of a stemmer.
_PROBES = (
    "internal emergency generously community organization evening inning yearly skiing sky dying early only"
    " added relational conditional hopefulness sensibility goodness proceed national universal past arsenic"
    " университет экстренные бегущий δύναμη εσωτερικός τρέχοντας المدرسة والكتاب मकानों लड़कियाँ வீடுகள் மரங்களில்"
)
# The language whose rules fit most text in a script, by the first letter of a word.
_LANGUAGES = (
    ("\u0370", "\u03ff", "greek"),
    ("\u0400", "\u052f", "russian"),
    ("\u0600", "\u06ff", "arabic"),
    ("\u0900", "\u097f", "hindi"),
    ("\u0b80", "\u0bff", "tamil"),
)


def terms(text: str) -> list[str]:
    """The terms of a text, in order."""
    if text.isascii():
        return [term for term in map(_TERMS.__getitem__, text.translate(_ASCII_WORDS).split()) if term]
    if not unicodedata.is_normalized("NFC", text):
        text = unicodedata.normalize("NFC", text)
    found: list[str] = []
    for word in _WORD.findall(text):
        if _IS_SPACELESS.match(word):
            found += _pairs(word)
        elif term := _TERMS[word]:
            found.append(term)
    return found


@cache
def fingerprint() -> str:
    """The versions of what makes the terms. Terms with another fingerprint may differ."""
    import Stemmer

    # Several releases of PyStemmer report the same version: some stems distinguish them.
    stems = " ".join(_stem(word) for word in _PROBES.split())
    told = f"{Stemmer.version()}-{zlib.crc32(stems.encode()):08x}"
    return f"terms {RULES}, PyStemmer {told}, Unicode {unicodedata.unidata_version}"


def loose_terms(text: str) -> list[str]:
    """The terms of a text, and those that other stemmers probably make: stems are mostly prefixes."""
    found = terms(text)
    for word in _WORD.findall(text):
        if not _IS_SPACELESS.match(word):
            plain = letters_of(fold(word[:_MAX_LENGTH]))
            found += [plain[:size] for size in range(max(3, len(plain) - _ENDING), len(plain) + 1)]
    return list(dict.fromkeys(found))


def words_in(text: str) -> list[str]:
    """The words of a text as they are written; a run of a script without spaces is one."""
    return _WORD.findall(text)


def is_spaceless(text: str) -> bool:
    """Whether some of a text is in a script without spaces, whose terms are pairs."""
    return _IS_SPACELESS.search(text) is not None


def readable(text: str) -> str:
    """Markdown without the targets of its links, whose words are not part of the text."""
    return _LINK_TARGET.sub("]", text) if "](" in text else text


def word_spans(text: str) -> list[tuple[int, int, str]]:
    """Each word or pair with its place: start, end, term."""
    spans: list[tuple[int, int, str]] = []
    for found in _WORD.finditer(text):
        start, word = found.start(), found[0]
        if _IS_SPACELESS.match(word):
            size = min(2, len(word))
            pairs = [unicodedata.normalize("NFC", pair) for pair in _pairs(word)]
            spans += [(start + i, start + i + size, pair) for i, pair in enumerate(pairs)]
        elif term := _TERMS[word]:
            spans.append((start, found.end(), term))
    return spans


def matches(text: str, wanted: frozenset[str]) -> list[tuple[int, int, str]]:
    """The words or pairs whose term is wanted: start, end, term."""
    if not text.isascii():
        text = text.translate(_punctuation())
        if not text.isascii():
            return [span for span in word_spans(text) if span[2] in wanted]
    # Words repeat, so it is faster to find which of them match, and then their places.
    words = {word: _TERMS[word] for word in set(text.translate(_ASCII_WORDS).split())}
    words = {word: term for word, term in words.items() if term in wanted}
    found = _ASCII_WORD.finditer(text) if words else ()
    return [(*_within_quotes(word), words[word[0]]) for word in found if word[0] in words]


def _within_quotes(word: re.Match[str]) -> tuple[int, int]:
    """The place of a word without apostrophes around it."""
    if "'" not in word[0]:
        return word.span()
    inner = word[0].strip("'")
    start = word.start() + word[0].index(inner)
    return start, start + len(inner)


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


class _Terms(dict[str, str]):
    """A cache of the terms of words: texts repeat their words."""

    def __missing__(self, word: str) -> str:
        term = _stem(fold(word[:_MAX_LENGTH]))
        if len(self) > 500_000:  # bounded, whatever is read
            self.clear()
        self[word] = term
        return term


_TERMS = _Terms()


def fold(word: str) -> str:
    """Lower case, without accents and outer apostrophes."""
    word = word.lower().replace("’", "'").strip("'")
    if not word.isascii():
        plain = unicodedata.normalize("NFKD", word)
        kept = (char for char in plain if char >= _INDIC or not unicodedata.combining(char))
        word = "".join(kept).casefold()
        word = unicodedata.normalize("NFC", word)
    return word


def stems(words: list[str]) -> list[str]:
    """The terms of folded words that begin in the same script and are letters only; not cached."""
    found: list[str] = _stemmer(_language(words[0])).stemWords(words) if words else []
    return found


def _stem(word: str) -> str:
    stemmed: str = _stemmer(_language(word)).stemWord(word)
    return letters_of(stemmed)


def _language(word: str) -> str:
    first = word[:1]
    return next((name for low, high, name in _LANGUAGES if low <= first <= high), "english")


def letters_of(word: str) -> str:
    """A word without punctuation."""
    return _NO_LETTER.sub("", word)


@cache
def _stemmer(language: str) -> Any:
    import Stemmer

    return Stemmer.Stemmer(language, 0)  # without its own cache: we have ours
