"""Regions of a picture, and what to call them.

Input: the places of documents, and their titles and paths. Output: a few labels. Pure. A region is what is
around a place where documents are dense. It is called by the words that more of its titles and paths have
than those of the rest. Always: the same input gives the same labels; a label is at one of its documents.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from quire import analyze
from quire.projection import rounded

MOST_LABELS = 20  # labels of a picture
_FEWEST = 8  # documents that are worth a label
_GRID = 96  # cells of a side
_WIDTHS = tuple(0.03 * 1.12**step for step in range(22))  # of what is one place; half a side is 1
_WORDS = 3  # of a label
_LONGEST = 32  # characters of a label, unless one word has more
_IN_PATH = (0.5, 0.5, 0.25)  # what a word of the file's name, of its folder and of those above counts
_IN_TITLE = 1.0
_SHORTEST = 3  # letters of a word in a path, where shorter ones are mostly numbers of chapters
_PHRASE = 1.4  # two words tell more than one
_WORTH = 0.35  # the least share of the first word's score that another needs
_SHARE = 0.07  # of a region's documents that must have a word
_NO_NAMES = analyze.STOP | frozenset(("doc", "html", "index", "page", "readm", "use", "www"))
_ENDING = re.compile(r"\.\w{1,8}$")


@dataclass(frozen=True, slots=True)
class Label:
    """What a region of a picture is about, and where it is."""

    x: float
    y: float
    text: str


def labels(places: NDArray[np.float32], names: Sequence[tuple[str, str]]) -> tuple[Label, ...]:
    """Labels of the regions of a picture, the largest first; names are the title and path of each place."""
    groups = _regions(places)
    words = [_words_of(*name) for name in names]
    everywhere = _counted(words)
    found = [_label(places, group, words, everywhere) for group in groups]
    return tuple(label for label in found if label.text)


# -------------------------------------------------------------------------------------------- regions


def _regions(places: NDArray[np.float32]) -> list[NDArray[np.int64]]:
    """The rows of each region that is worth a label, the largest first: at most so many."""
    found: list[NDArray[np.int64]] = []
    for width in _WIDTHS if len(places) else ():
        peaks = _peaks(places, width)
        groups = [np.flatnonzero(peaks == peak) for peak in np.unique(peaks)]
        fewest = min(len(places), max(3, min(_FEWEST, len(places) // 6)))
        found = sorted((one for one in groups if len(one) >= fewest), key=lambda one: (-len(one), one[0]))
        covered = sum(map(len, found))
        if len(found) <= MOST_LABELS and 2 * covered >= len(places):
            break
    return found[:MOST_LABELS]


def _peaks(places: NDArray[np.float32], width: float) -> NDArray[np.int64]:
    """The cell of the peak that each place is on the slope of, where places are as dense as they get."""
    cells = np.clip(((places + 1) / 2 * _GRID).astype(np.int64), 0, _GRID - 1)
    counts = np.zeros((_GRID, _GRID))
    np.add.at(counts, (cells[:, 0], cells[:, 1]), 1)
    along = np.arange(_GRID) * 2 / _GRID
    blur = np.exp(-(((along[:, None] - along[None, :]) / width) ** 2) / 2)
    above = _uphill(blur @ counts @ blur)
    while (above[above] != above).any():
        above = above[above]
    found: NDArray[np.int64] = above[cells[:, 0] * _GRID + cells[:, 1]]
    return found


def _uphill(heights: NDArray[np.float64]) -> NDArray[np.int64]:
    """The highest cell beside each, or itself."""
    around = np.pad(heights, 1, constant_values=-1)
    steps = [(0, 0), *((x, y) for x in (-1, 0, 1) for y in (-1, 0, 1) if (x, y) != (0, 0))]
    near = [around[1 + x : 1 + x + _GRID, 1 + y : 1 + y + _GRID] for x, y in steps]
    best = np.array(steps)[np.argmax(near, axis=0)]
    rows, columns = np.indices(heights.shape)
    found: NDArray[np.int64] = ((rows + best[..., 0]) * _GRID + columns + best[..., 1]).ravel()
    return found


# ---------------------------------------------------------------------------------------------- names


@dataclass(frozen=True, slots=True)
class _Word:
    """A word or two of a title or a path, as it is written there, and what it counts."""

    written: str
    weight: float


def _words_of(title: str, path: str) -> dict[str, _Word]:
    """The words and pairs of words of a document, by their terms."""
    found: dict[str, _Word] = {}
    for term, written in _phrases(title):
        found.setdefault(term, _Word(written, _IN_TITLE))
    for depth, part in enumerate(reversed(_ENDING.sub("", path).split("/"))):
        for term, written in _phrases(re.sub(r"\d+", " ", part), _SHORTEST):
            found.setdefault(term, _Word(written, _IN_PATH[min(depth, len(_IN_PATH) - 1)]))
    return found


def _phrases(text: str, shortest: int = 2) -> Iterator[tuple[str, str]]:
    """Words, and pairs of words that stand together, with their terms."""
    words = [("".join(analyze.terms(word)), word) for word in analyze.words_in(text.replace("_", " "))]
    names = [term if len(word) >= shortest and _is_name(term) else "" for term, word in words]
    yield from ((term, word) for term, (_, word) in zip(names, words, strict=True) if term)
    for (term, after), ((_, word), (_, other)) in zip(pairwise(names), pairwise(words), strict=True):
        if term and after and term != after:
            yield f"{term} {after}", f"{word} {other}"


def _is_name(term: str) -> bool:
    return len(term) > 1 and not term.isdigit() and term not in _NO_NAMES


def _counted(documents: Iterable[Mapping[str, _Word]]) -> Counter[str]:
    """How much each term counts in some documents."""
    found: Counter[str] = Counter()
    for words in documents:
        for term, word in words.items():
            found[term] += word.weight  # type: ignore[assignment]
    return found


def _label(
    places: NDArray[np.float32],
    group: NDArray[np.int64],
    words: Sequence[Mapping[str, _Word]],
    everywhere: Counter[str],
) -> Label:
    """The label of a region, at its document that is nearest to the middle."""
    own = [words[row] for row in group]
    middle = np.median(places[group], axis=0)
    at = places[group[np.abs(places[group] - middle).sum(axis=1).argmin()]]
    terms = _chosen(_scores(own, everywhere, len(words)))
    return Label(*rounded(at), _text([_written(term, own) for term in terms]))


def _scores(
    own: Sequence[Mapping[str, _Word]], everywhere: Counter[str], documents: int
) -> list[tuple[float, str]]:
    """What tells a region from the rest, best first."""
    found = []
    for term, count in _counted(own).items():
        share, rest = count / len(own), (everywhere[term] - count + 0.5) / (documents - len(own) + 1)
        is_common = share >= _SHARE and (count > 1 or len(own) == 1)
        if is_common and share > rest:
            found.append((share * math.log(share / rest) * (_PHRASE if " " in term else 1), term))
    return sorted(found, key=lambda one: (-one[0], one[1]))


def _chosen(scores: Sequence[tuple[float, str]]) -> list[str]:
    """The best terms of which none says the same again."""
    chosen: list[str] = []
    for score, term in scores:
        is_worth = score >= _WORTH * scores[0][0] and len(chosen) < _WORDS
        if is_worth and not any(_are_alike(term, one) for one in chosen):
            chosen.append(term)
    return chosen


def _are_alike(one: str, other: str) -> bool:
    """Whether a word of one begins with a word of the other."""
    pairs = ((word, known) for word in one.split() for known in other.split())
    return any(word.startswith(known) or known.startswith(word) for word, known in pairs)


def _written(term: str, own: Sequence[Mapping[str, _Word]]) -> str:
    """How most titles write a term."""
    forms: Counter[str] = Counter()
    for words in own:
        if term in words:
            forms[words[term].written] += 1 + (words[term].weight == _IN_TITLE)
    return min(forms, key=lambda form: (-forms[form], form))


def _text(words: Sequence[str]) -> str:
    """The words of a label, as many as are short enough."""
    text = words[0] if words else ""
    for word in words[1:]:
        text = f"{text}, {word}" if len(text) + len(word) < _LONGEST else text
    return text
