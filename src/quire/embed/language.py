"""Whether a text is in English, judged by an English vocabulary.

Input: a text, and the words that an English model has as whole pieces. Output: yes or no. Always: any text
gets an answer, in linear time. Text with too little evidence is taken for English: names, code, one word.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Container, Iterator

_WORD = re.compile(r"[^\W\d_]+")
# What code, paths, options and versions have inside a word: `tokio::select!`, `sp_addlogin`, `x86`.
_CODE = re.compile(r"[\d_./\\:=<>(){}\[\]@#$%&*|~^`+]")
_AROUND = "\"'“”„«».,:;!?()[]{}<>*`…-"  # punctuation around words
_LATIN = 0x24F  # the last code point of Latin letters with accents
_VIETNAMESE = range(0x1E00, 0x1F00)  # Latin letters with two accents
_GREEK = range(0x370, 0x400)  # English has Greek letters in formulas and in names of proteins
_LONG = 4  # letters: shorter words are too often the same in several languages
_OTHER_SCRIPTS = 0.3  # a text of which so many letters are of other scripts is not English
_DENSE = 3  # Latin letters that a Chinese, Japanese or Korean character stands for
_FEW = 4  # words: with fewer, unknown words alone are no evidence of another language
_ENDINGS = ("ing", "ed", "ly", "ness", "able")  # of English words that a vocabulary has only in pieces

_ENGLISH = frozenset(
    "and any are but can did for get had has how its may not off our out the use who why you".split()  # noqa: SIM905
)
# Frequent words of other languages without accents. English texts have none of them.
_OTHER = frozenset(
    "auf aus bei beim dem dass ein eine einem einen einer eines ich ist kann mit nach nicht oder sich"  # noqa: SIM905
    " sind und vom warum welche wenn werden wie wird wurde zum zur"  # German
    " aux avec cette dans que quel quelle qui sont une votre vous"  # French
    " como cuando donde para por puede una"  # Spanish
    " degli della delle gli nel nella quale questo sono"  # Italian
    " ao isso mais pela pelo seu sua uma"  # Portuguese
    " aan deze een het hoe naar niet ook uit voor waar wordt worden zijn"  # Dutch
    " det eller ett hur hvordan ikke inte och og vad"  # Swedish, Danish and Norwegian
    " aby dla jest jsou lub nebo nie oraz przez"  # Polish and Czech
    " egy este hogy nem ovat pentru sau"  # Hungarian, Finnish and Romanian
    " bir nedir olarak"  # Turkish
    " adalah atau bagaimana dalam dari dengan pada tidak untuk yang"  # Indonesian
    " khi theo trong".split()  # Vietnamese
)
# English texts have these too, in names: de facto, van der Waals, Los Angeles, CHO cells, NAS, EST.
_IN_NAMES = frozenset(
    "al alla che cho con da dan das de dei del den der des di die dos du el en es est il ini ja jak jos kun"  # noqa: SIM905
    " la las le les los na nas om op par pas po pour se si sie som su sur tai te un van voi von".split()
)


def is_english(text: str, vocabulary: Container[str]) -> bool:
    """Whether a text is in English; True where that cannot be told."""
    text = unicodedata.normalize("NFC", text)
    if _is_of_other_script(text):
        return False
    kinds = Counter(_kind(word, vocabulary) for word in _words(text))
    english, strange = kinds["english"], kinds["other"] + kinds["name"] + kinds["unknown"]
    if kinds["other"]:
        return english >= strange
    if kinds["name"]:
        return strange < _FEW - 1 or english >= strange / 3
    return strange < _FEW or english >= strange / 4


def _is_of_other_script(text: str) -> bool:
    latin = other = 0
    for char in text:
        code = ord(char)
        if not char.isalpha() or code in _GREEK:
            continue
        if code <= _LATIN or code in _VIETNAMESE:
            latin += 1
        else:
            other += _DENSE if code >= 0x2E80 else 1
    return other > 0 and other >= _OTHER_SCRIPTS * (latin + other)


def _words(text: str) -> Iterator[str]:
    """The words of a text that are not code, in lower case."""
    for token in text.split():
        if _CODE.search(token.strip(_AROUND)):
            continue
        for word in _WORD.findall(token):
            if word.isupper() or word[1:].islower():  # else `camelCase`
                yield word.lower()


def _kind(word: str, vocabulary: Container[str]) -> str:
    """What a word says of the language of its text; "" is nothing."""
    if word in _ENGLISH:
        return "english"
    if word in _OTHER:
        return "other"
    if word in _IN_NAMES:
        return "name"
    if not word.isascii():
        return "" if len(word) >= _LONG and _plain(word) in vocabulary else "other"
    if len(word) < _LONG:
        return ""
    if word in vocabulary or word.removesuffix("s") in vocabulary:
        return "english"
    return "" if word.endswith(_ENDINGS) else "unknown"


def _plain(word: str) -> str:
    """A word without its accents: `café` is an English word too."""
    return "".join(char for char in unicodedata.normalize("NFD", word) if not unicodedata.combining(char))
