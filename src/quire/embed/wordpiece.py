"""Text to the word pieces of a BERT vocabulary, as its own tokenizer makes them.

Always: the pieces are those of the reference tokenizer; time is linear in the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import chain, count

_MAX_WORD = 100  # characters: a longer word is unknown to BERT as a whole
_MAX_KNOWN = 200_000  # words whose pieces are remembered
# A word with the controls in it, which are dropped later; or a sign.
_ASCII = re.compile(r"[a-z0-9\x00-\x08\x0b\x0c\x0e-\x1f\x7f]+|[!-/:-@\[-`{-~]")
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
    """A vocabulary and the words seen so far. A cased one keeps capitals and accents."""

    def __init__(self, vocabulary: Iterable[str], *, cased: bool = False) -> None:
        self.ids = dict(zip(vocabulary, count()))
        self.unknown, self.first, self.last = (self.ids[name] for name in ("[UNK]", "[CLS]", "[SEP]"))
        self._cased, self._known = cased, _Words(self.cut)

    @cached_property
    def _rests(self) -> tuple[dict[str, int], int]:
        """The pieces that a word goes on with, without their mark, and the length of the longest piece."""
        found = {piece[2:]: number for piece, number in self.ids.items() if piece.startswith("##")}
        return found, max(map(len, self.ids))

    def pieces(self, text: str) -> list[int]:
        """The ids of a text's pieces, without the special tokens that a model needs around them."""
        if self._cased:
            words = text.translate(_ACCENTED).split()
        elif (text := text.lower()).isascii():
            words = _ASCII.findall(text)
        else:
            words = unicodedata.normalize("NFD", text).translate(_PLAIN).split()
        return list(chain.from_iterable(map(self._known.__getitem__, words)))

    def cut(self, word: str) -> Sequence[int]:
        """The pieces of a lower-case word, each the longest known from the left; unknown if none fits."""
        if word.isascii() and not word.isprintable():
            word = "".join(filter(str.isprintable, word))
        if len(word) > _MAX_WORD:
            return [self.unknown]
        if (whole := self.ids.get(word)) is not None:
            return [whole]
        found, start, ids = list[int](), 0, self.ids
        rests, longest = self._rests
        while start < len(word):
            for end in range(min(len(word), start + longest), start, -1):
                if (number := ids.get(word[start:end])) is not None:
                    break
            else:
                return [self.unknown]
            found.append(number)
            start, ids = end, rests
        return found


class _Words(dict[str, Sequence[int]]):
    """Words and their pieces, as many as there is room for."""

    def __init__(self, cut: Callable[[str], Sequence[int]]) -> None:
        self._cut = cut

    def __missing__(self, word: str) -> Sequence[int]:
        if len(self) > _MAX_KNOWN:  # bounded, whatever is read
            self.clear()
        self[word] = pieces = self._cut(word)
        return pieces


def is_cased(vocabulary: Iterable[str]) -> bool:
    """Whether a vocabulary has words with capitals. Names in brackets are not words."""
    return any(piece != piece.lower() and piece[:1] != "[" for piece in vocabulary)


class _Characters(dict[int, str]):
    """A table for characters: signs and Chinese become single words, controls are dropped, or accents too."""

    def __init__(self, *dropped: str) -> None:
        self._dropped = dropped

    def __missing__(self, code: int) -> str:
        self[code] = made = self._made(chr(code))
        return made

    def _made(self, char: str) -> str:
        code, category = ord(char), unicodedata.category(char)
        if char in "\t\n\r" or category == "Zs":
            return " "
        if code == 0xFFFD or category in self._dropped:
            return ""
        is_sign = category[0] == "P" or (code < 128 and not char.isalnum())
        return f" {char} " if is_sign or any(low <= code <= high for low, high in _CJK) else char


_ACCENTED = _Characters("Cc", "Cf", "Co", "Cs")
_PLAIN = _Characters("Cc", "Cf", "Co", "Cs", "Mn")
