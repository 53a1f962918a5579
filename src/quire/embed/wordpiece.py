"""Text to the word pieces of an uncased BERT vocabulary, as its own tokenizer makes them.

Always: the pieces are those of the reference tokenizer; time is linear in the text.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

_MAX_WORD = 100  # characters: a longer word is unknown to BERT as a whole
_MAX_KNOWN = 200_000  # words whose pieces are remembered
_DROPPED = ("Cc", "Cf", "Co", "Cs", "Mn")
_CJK = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


class WordPiece:
    """A vocabulary and the words seen so far."""

    def __init__(self, vocabulary: Iterable[str]) -> None:
        self.ids = {piece: number for number, piece in enumerate(vocabulary)}
        self.unknown, self.first, self.last = (self.ids[name] for name in ("[UNK]", "[CLS]", "[SEP]"))
        self._known: dict[str, tuple[int, ...]] = {}

    def pieces(self, text: str) -> list[int]:
        """The ids of a text's pieces, without the special tokens that a model needs around them."""
        text = text.lower()
        if not text.isascii():
            text = unicodedata.normalize("NFD", text)
        known, found = self._known, list[int]()
        for word in text.translate(_CHARACTERS).split():
            found += known.get(word) or self._learn(word)
        return found

    def _learn(self, word: str) -> tuple[int, ...]:
        if len(self._known) > _MAX_KNOWN:  # bounded, whatever is read
            self._known.clear()
        self._known[word] = pieces = tuple(self._cut(word))
        return pieces

    def _cut(self, word: str) -> list[int]:
        """The pieces of a word, each the longest known from the left; unknown if no piece fits."""
        if len(word) > _MAX_WORD:
            return [self.unknown]
        found, start = list[int](), 0
        while start < len(word):
            mark = "##" if start else ""
            for end in range(len(word), start, -1):
                if (number := self.ids.get(mark + word[start:end])) is not None:
                    break
            else:
                return [self.unknown]
            found.append(number)
            start = end
        return found


class _Characters(dict[int, str]):
    """A table for characters: signs and Chinese become single words, accents and controls are dropped."""

    def __missing__(self, code: int) -> str:
        self[code] = made = _character(chr(code))
        return made


def _character(char: str) -> str:
    code, category = ord(char), unicodedata.category(char)
    if char in "\t\n\r" or category == "Zs":
        return " "
    if code == 0xFFFD or category in _DROPPED:
        return ""
    is_sign = category[0] == "P" or (code < 128 and not char.isalnum())
    return f" {char} " if is_sign or any(low <= code <= high for low, high in _CJK) else char


_CHARACTERS = _Characters()
