"""Vectors to places in a picture: what is near there is alike.

Input: a vector for each document. Output: a place in the square from -1 to 1 for each, and its neighbours.
Pure: numpy and nothing else. Each vector is tied to its nearest others. It moves towards them and away from
a random sample of all, as in LargeVis and UMAP, beginning with the two main components. Always: the same
vectors get the same places, in any process and in any order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]

NEIGHBOURS = 15  # that each vector is tied to
_BLOCK = 512  # vectors that are compared with all others at a time
_ROUNDS = 300
_SAMPLED = 10  # others that a vector is moved away from, in each round
_PUSH = (5.0, 1.5)  # how strongly, in the first round and the last: then groups close up
_SOFT = 0.2  # keeps the push between two that are at the same place small
_PULL = 0.008  # to the middle, so that what has no tie to the rest stays near
_STEP = 0.5  # the largest step of the first round; a tie wants to be about 1 long
_SMALLEST = 2.0  # the least size of a picture: a few documents that are alike are near its middle
_SEED = 1
_SPREAD = 0.01  # of the first places, so that equal vectors come apart
_HALVINGS = 30  # of a width that is searched for
_NARROWEST = 1e-3
_DIGITS = 4
_NOWHERE = np.zeros((1, 2), np.float32)


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The nearest others of each vector, nearest first."""

    rows: Rows
    cosines: Floats


@dataclass(frozen=True, slots=True)
class Projection:
    """Where vectors are in a picture (x and y of each, -1 to 1), and what is nearest to them."""

    places: Floats
    near: Neighbours


def project(vectors: Floats) -> Projection:
    """Place vectors of any length; one of zeros, or with what is no number, is like no other."""
    units = _units(vectors)
    order = np.array(sorted(range(len(units)), key=lambda row: units[row].tobytes()), np.int64)
    units = units[order]
    near = neighbours(units)
    back = np.argsort(order, kind="stable")
    places = _fitted(_Layout(units, near).places()) if len(units) > 1 else _NOWHERE[: len(units)]
    return Projection(places[back], Neighbours(order[near.rows][back], near.cosines[back]))


def _units(vectors: Floats) -> Floats:
    """Vectors with length 1, or 0."""
    clean = np.nan_to_num(np.asarray(vectors, np.float32), posinf=0, neginf=0)
    largest = np.abs(clean).max(axis=1, keepdims=True, initial=np.finfo(np.float32).tiny)
    scaled = clean / largest  # so that no square is too large or too small
    units: Floats = scaled / np.maximum(np.linalg.norm(scaled, axis=1, keepdims=True), 1e-6)
    return units + np.float32(0)  # which makes -0 the same as 0


def neighbours(units: Floats, count: int = NEIGHBOURS) -> Neighbours:
    """The nearest others of each vector of length 1. All are compared with all, so none is missed."""
    count = max(0, min(count, len(units) - 1))
    found = list(_compared(units, count))
    rows = [rows for rows, _ in found] or [np.empty((0, 0), np.int64)]
    cosines = [cosines for _, cosines in found] or [np.empty((0, 0), np.float32)]
    return Neighbours(np.concatenate(rows), np.concatenate(cosines))


def _compared(units: Floats, count: int) -> Iterator[tuple[Rows, Floats]]:
    """Some vectors at a time: the rows of their nearest others, and the cosines."""
    for start in range(0, len(units), _BLOCK):
        cosines = units[start : start + _BLOCK] @ units.T
        own = np.arange(len(cosines))
        cosines[own, start + own] = -2  # no vector is its own neighbour
        rows = np.argpartition(-cosines, count - 1, axis=1)[:, :count] if count else own[:, None][:, :0]
        near = np.take_along_axis(cosines, rows, axis=1)
        order = np.argsort(-near, axis=1, kind="stable")
        yield np.take_along_axis(rows, order, axis=1), np.take_along_axis(near, order, axis=1)


def components(vectors: Floats) -> Floats:
    """The two main components of vectors, as places."""
    middle = vectors - vectors.mean(axis=0)
    _, axes = np.linalg.eigh(middle.T @ middle)
    axes = axes[:, ::-1][:, :2]
    longest = np.take_along_axis(axes, np.abs(axes).argmax(axis=0)[None, :], axis=0)
    places: Floats = middle @ (axes * np.where(longest < 0, -1, 1))  # or each run might choose its own sign
    return np.pad(places, ((0, 0), (0, 2 - places.shape[1]))).astype(np.float32)


def _strengths(near: Neighbours) -> Floats:
    """How strong the tie to each neighbour is: 1 to the nearest, and to all together the same for all.

    So a vector among many and one that is alone are both tied to about as many others.
    """
    distances = np.sqrt(np.maximum(0, 2 - 2 * near.cosines))
    beyond = distances - distances[:, :1]
    low, high = np.zeros((len(beyond), 1)), np.full((len(beyond), 1), 4.0)
    for _ in range(_HALVINGS):
        width = np.maximum((low + high) / 2, _NARROWEST)
        is_wide = np.exp(-beyond / width).sum(axis=1, keepdims=True) > np.log2(max(2, beyond.shape[1]))
        low, high = np.where(is_wide, low, width), np.where(is_wide, width, high)
    strengths: Floats = np.exp(-beyond / width).astype(np.float32)
    return strengths


def rounded(place: Floats) -> tuple[float, float]:
    """The x and y of a place, with as many digits as a picture needs."""
    return round(float(place[0]), _DIGITS), round(float(place[1]), _DIGITS)


def _fitted(places: Floats) -> Floats:
    """Places moved and scaled to the square from -1 to 1."""
    low, high = places.min(axis=0), places.max(axis=0)
    size = max(float((high - low).max()), _SMALLEST)
    fitted: Floats = np.clip((places - (low + high) / 2) / (size / 2), -1, 1)
    return fitted.astype(np.float32) + np.float32(0)


def _mixed(old: Floats, new: Floats, share: float) -> Floats:
    """Numbers of which a share is new."""
    mixed: Floats = (1 - share) * old + share * new
    return mixed


class _Layout:
    """Ties between vectors, and the rounds in which they find their places."""

    def __init__(self, units: Floats, near: Neighbours) -> None:
        count = len(units)
        self.random = np.random.default_rng(_SEED)
        first = components(units)
        spread = self.random.normal(0, _SPREAD, first.shape).astype(np.float32)
        self.now: Floats = first / (first.std() or 1) + spread
        self._tie(near, count)

    def _tie(self, near: Neighbours, count: int) -> None:
        """Tie each to its neighbours and to those whose neighbour it is, by row."""
        one = np.repeat(np.arange(count), near.rows.shape[1])
        other, strength = near.rows.ravel(), _strengths(near).ravel() / 2
        pairs, places = np.unique(
            np.concatenate([one * count + other, other * count + one]), return_inverse=True
        )
        self.strength = np.bincount(places, np.tile(strength, 2)).astype(np.float32)
        self.one, self.other = np.divmod(pairs, count)
        self.starts = np.searchsorted(self.one, np.arange(count))
        self.weight = np.add.reduceat(self.strength, self.starts)[:, None]

    def places(self) -> Floats:
        """The places after all rounds. Each number has steps of its own size, as in Adam."""
        speed, square = np.zeros_like(self.now), np.zeros_like(self.now)
        for number in range(_ROUNDS):
            done = number / _ROUNDS
            slope = self._towards() - self._away(_PUSH[0] + (_PUSH[1] - _PUSH[0]) * done) + _PULL * self.now
            speed = _mixed(speed, slope, 0.1)
            square = _mixed(square, slope * slope, 0.001)
            mean, size = speed / (1 - 0.9 ** (number + 1)), square / (1 - 0.999 ** (number + 1))
            self.now = self.now - _STEP * (1 - done) * mean / (np.sqrt(size) + 1e-7)
        return self.now

    def _towards(self) -> Floats:
        """The slope by the ties of each."""
        apart = self.now[self.one] - self.now[self.other]
        share = self.strength / (1 + np.einsum("ij,ij->i", apart, apart))
        slope: Floats = np.add.reduceat(apart * share[:, None], self.starts, axis=0)
        return slope

    def _away(self, push: float) -> Floats:
        """The slope by a random sample of others for each."""
        sample = self.random.integers(0, len(self.now), size=(_SAMPLED, len(self.now)))
        apart = self.now - self.now[sample]
        square = np.einsum("ijk,ijk->ij", apart, apart)
        share = 1 / ((np.float32(_SOFT) + square) * (1 + square))
        slope: Floats = np.einsum("ijk,ij->jk", apart, share)
        return slope * self.weight * np.float32(push / _SAMPLED)
