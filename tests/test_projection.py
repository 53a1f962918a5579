"""Places by meaning: what a picture of vectors holds, and what its regions are called."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from quire import projection, regions
from quire.projection import Floats

FEW = effort(max_examples=40)


@st.composite
def vectors(draw: st.DrawFn) -> Floats:
    """A few vectors of any numbers; some may be equal, zero, huge, tiny, or no numbers at all."""
    shape = draw(st.integers(0, 24)), draw(st.integers(1, 6))
    some: Floats = draw(arrays(np.float32, shape, elements=st.floats(width=32)))
    if len(some) > 2 and draw(st.booleans()):
        some[1:3] = some[0]
    return some


def clusters(sizes: tuple[int, ...] = (40, 40, 40), spread: float = 0.25) -> tuple[Floats, Floats]:
    """Vectors around a few directions, and the number of the direction of each."""
    random = np.random.default_rng(5)
    middles = np.eye(len(sizes), 32)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    found = middles[groups] + spread * random.normal(size=(len(groups), 32)) / np.sqrt(32)
    return found.astype(np.float32), groups.astype(np.float32)


@FEW
@given(vectors())
def test_every_vector_has_a_place_in_the_square(some: Floats) -> None:
    """Map: one place for each document, finite, from -1 to 1, whatever the vectors are."""
    found = projection.project(some)
    assert found.places.shape == (len(some), 2)
    assert np.isfinite(found.places).all()
    assert np.abs(found.places).max(initial=0) <= 1
    assert found.near.rows.shape == found.near.cosines.shape
    assert all(row not in near for row, near in enumerate(found.near.rows.tolist()))


@FEW
@given(vectors(), st.randoms(use_true_random=False))
def test_the_order_of_the_vectors_does_not_matter(some: Floats, random: object) -> None:
    """Map: the same vectors give the same picture, in whatever order they come."""
    order = np.random.default_rng(len(some)).permutation(len(some))
    one, other = projection.project(some).places, projection.project(some[order]).places
    assert sorted(map(tuple, one[order].tolist())) == sorted(map(tuple, other.tolist()))


def test_another_process_draws_the_same_picture() -> None:
    """Map: a fixed seed, so that people find things where they were."""
    code = (
        "from tests.test_projection import clusters; from quire import projection;"
        "print(projection.project(clusters()[0]).places.tobytes().hex())"
    )
    done = [subprocess.run([sys.executable, "-c", code], capture_output=True, check=True) for _ in range(2)]
    assert done[0].stdout == done[1].stdout
    assert done[0].stdout.decode().strip() == projection.project(clusters()[0]).places.tobytes().hex()


@pytest.mark.parametrize("count", [0, 1, 2, 3])
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_few_equal_vectors_are_near_the_middle_and_apart(count: int, value: float) -> None:
    """Map: 0 to 3 documents, equal ones and ones of zeros are shown."""
    places = projection.project(np.full((count, 4), value, np.float32)).places
    assert len({tuple(place) for place in places.tolist()}) == count
    assert np.abs(places).max(initial=0) < 0.9


def test_three_obvious_clusters_come_out_apart() -> None:
    """Map: people see clusters. Every place is nearer to the middle of its own than to any other."""
    some, groups = clusters()
    places = projection.project(some).places
    middles = np.array([places[groups == number].mean(axis=0) for number in range(3)])
    distances = np.linalg.norm(places[:, None] - middles, axis=2)
    assert (distances.argmin(axis=1) == groups).all()
    within = max(np.median(distances[groups == number, number]) for number in range(3))
    between = min(np.linalg.norm(middles[one] - middles[other]) for one, other in ((0, 1), (0, 2), (1, 2)))
    assert between > 3 * within


def test_neighbours_are_exact() -> None:
    """Map: all are compared with all, over several blocks; the nearest comes first."""
    random = np.random.default_rng(2)
    units = projection._units(random.normal(size=(1100, 8)).astype(np.float32))
    found = projection.neighbours(units, 5)
    cosines = units @ units.T
    np.fill_diagonal(cosines, -2)
    best = -np.sort(-cosines, axis=1)[:, :5]
    assert np.allclose(found.cosines, best, atol=1e-5)
    assert np.allclose(np.take_along_axis(cosines, found.rows, 1), found.cosines, atol=1e-5)


def test_more_neighbours_are_kept_than_by_two_components() -> None:
    """Map: plain PCA is a blob. 12 clusters overlap in two components, and not in the picture."""
    some, _ = clusters((25,) * 12, spread=0.8)

    def kept(places: Floats) -> float:
        near, truth = _nearest_places(places), projection.project(some).near.rows[:, :10]
        return float(np.mean([len(set(a) & set(b)) / 10 for a, b in zip(near, truth.tolist(), strict=True)]))

    assert kept(projection.project(some).places) > 2 * kept(projection.components(some))


def _nearest_places(places: Floats) -> list[list[int]]:
    distances = np.linalg.norm(places[:, None] - places, axis=2)
    np.fill_diagonal(distances, np.inf)
    found: list[list[int]] = np.argsort(distances, axis=1)[:, :10].tolist()
    return found


# ---------------------------------------------------------------------------------------------- regions

TOPICS = {"soup": "Cooking", "engine": "Cars", "rose": "Gardens"}


def named() -> tuple[Floats, list[tuple[str, str]]]:
    """Places of three groups, and titles and paths of what is there."""
    some, groups = clusters()
    places, topics = projection.project(some).places, list(TOPICS)
    kinds = [topics[int(group)] for group in groups]
    return places, [
        (f"{row}: the {kind}", f"docs/{TOPICS[kind]}/page{row}.md") for row, kind in enumerate(kinds)
    ]


def test_a_region_is_called_by_its_own_words() -> None:
    """Map: labels make sense to a person, and stand at the documents that they name."""
    places, names = named()
    found = regions.labels(places, names)
    assert {word for label in found for word in label.text.split(", ")} <= {*TOPICS, *TOPICS.values()}
    assert {label.text.split(", ")[0] for label in found} == set(TOPICS)
    for label in found:
        at = np.abs(places - (label.x, label.y)).sum(axis=1).argmin()
        assert label.text.split(", ")[0] in names[int(at)][0]


@FEW
@given(
    st.lists(st.tuples(st.floats(-1, 1, width=32), st.floats(-1, 1, width=32)), max_size=60),
    st.lists(st.tuples(st.text(max_size=12), st.text(max_size=12)), min_size=60, max_size=60),
)
def test_labels_are_few_short_and_in_the_picture(
    some: list[tuple[float, float]], names: list[tuple[str, str]]
) -> None:
    """Map: whatever documents are called, labels are short texts at one of their places."""
    places = np.array(some, np.float32).reshape(-1, 2)
    found = regions.labels(places, names[: len(places)])
    assert len(found) <= regions.MOST_LABELS
    assert all(label.text and -1 <= label.x <= 1 and -1 <= label.y <= 1 for label in found)
    assert found == regions.labels(places, names[: len(places)])


def test_names_without_words_give_no_labels() -> None:
    """Map: numbers and stop words name nothing."""
    places, _ = named()
    assert regions.labels(places, [("The 12", "docs/index.md")] * len(places)) == ()
