"""The tables of docs/scale.md are what bench/scale.py calculates."""

from __future__ import annotations

import math

import pytest
from bench import scale

TODAY, GOAL = scale.costs()


def test_the_tables_of_the_page_are_those_of_the_simulator() -> None:
    """Issue: every number with the formula it comes from. Write them with: python -m bench.scale --write"""
    page = scale.PAGE.read_text("utf-8")
    assert scale.written(page) == page
    assert all(f"<!-- {name} -->" in page for name in scale.TABLES)


def test_without_a_queue_a_search_takes_its_own_time() -> None:
    """The simulator adds nothing where nobody waits."""
    found = scale.waits(64, 0.001, TODAY, 10**6, 1)
    assert found[len(found) // 2] == pytest.approx(TODAY.at_million, rel=0.05)
    p95 = scale.quantile(found, 0.95, 1)
    assert p95 == pytest.approx(scale.m("search_p95"), rel=0.05)


def test_one_queue_waits_as_the_formula_of_pollaczek_and_khinchine_says() -> None:
    """One processor, half busy: the mean wait is load × mean × (1 + spread²) / (2 (1 - load))."""
    found, mean, load = scale.waits(1, 0.5, GOAL, 10**6, 1), GOAL.mean(10**6), 0.5
    spread = math.exp(GOAL.sigma**2) - 1  # the squared coefficient of variation
    wait = load * mean * (1 + spread) / (2 * (1 - load))
    assert sum(found) / len(found) == pytest.approx(mean + wait, rel=0.1)


def test_more_shards_and_more_load_never_make_a_search_faster() -> None:
    """The slowest shard decides, and so does the queue."""
    one, many = (scale.waits(8, 0.5, TODAY, 10**6, together) for together in (1, 8))
    assert scale.quantile(many, 0.5, 1) > scale.quantile(one, 0.5, 1)
    assert scale.quantile(one, 0.5, 8) > scale.quantile(one, 0.5, 1)
    busy = scale.waits(8, 0.9, TODAY, 10**6, 1)
    assert scale.quantile(busy, 0.99, 1) > scale.quantile(one, 0.99, 1)


def test_machines_are_enough_for_memory_and_for_processors() -> None:
    """No plan is busier than is assumed, and no index larger than the memory for it."""
    for plan in scale.PLANS:
        for cost in (TODAY, GOAL):
            found, price = scale.servers(plan, cost), scale.PRICES[plan.server]
            assert scale.answered(plan, cost)[2] <= scale.m("busy") + 0.001
            room = found.number * price.memory * 1e9 * scale.m("memory_share")
            assert plan.chunks * scale.hot_bytes() <= room
