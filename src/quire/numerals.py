"""Roman numerals and English number words to integers, as they count chapters and list items."""

from __future__ import annotations

from quire import later

_ROMAN = (
    *((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL")),
    *((10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")),
)
_ROMAN_FORM = later.pattern(r"(?=.)M{0,4}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")
_WORDS = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    " seventeen eighteen nineteen twenty"
)
_ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth"
    " fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
)
_VALUES = {word: n for words in (_WORDS, _ORDINALS) for n, word in enumerate(words.split(), 1)}


def to_roman(number: int) -> str:
    """A number from 1 to 4999 in capital Roman numerals."""
    parts = []
    for value, letters in _ROMAN:
        count, number = divmod(number, value)
        parts.append(letters * count)
    return "".join(parts)


def from_roman(text: str) -> int | None:
    """The value of capital Roman numerals; None if the text is no such number."""
    if not _ROMAN_FORM.fullmatch(text):
        return None
    total = at = 0
    for value, letters in _ROMAN:
        while text.startswith(letters, at):
            total, at = total + value, at + len(letters)
    return total


def from_word(text: str) -> int | None:
    """The value of an English number word or ordinal, up to 20, in any case."""
    return _VALUES.get(text.lower())
