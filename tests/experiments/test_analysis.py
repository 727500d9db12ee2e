"""What follows of a sweep, with figures worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.errors import InputError
from fairway.experiments.analysis import Estimate, compared, curves, estimate, knee_of, page_curves, pareto


def row(policy: str, rate: float, seed: int, jct: float | None, **more: Any) -> dict[str, Any]:
    fields = {"policy": policy, "cluster": "v100=1", "rate": rate, "seed": seed, "fixed": "{}", "jct_mean": jct}
    return {**fields, "cost_dollars": 1.0, "hit_rate": 0.5, **more}


def test_an_interval_is_that_of_student() -> None:
    found = estimate([1.0, 2.0, 3.0])
    assert found.mean == 2.0
    # t of 2 degrees of freedom at 97.5 % is 4.3027 (any table), the standard error 1 / sqrt(3).
    assert found.half == pytest.approx(4.302653 / math.sqrt(3), rel=1e-6)
    assert math.isnan(estimate([1.0]).half)


def test_a_curve_has_the_means_over_seeds_at_each_load() -> None:
    rows = [row("a", 2, 0, 10.0), row("a", 2, 1, 20.0), row("a", 1, 0, 5.0), row("b", 1, 0, None)]
    found = curves(rows, "jct_mean")
    assert list(found) == ["a", "b"]
    assert [(rate, each.mean, each.count) for rate, each in found["a"].items()] == [(1, 5.0, 1), (2, 15.0, 2)]
    assert found["b"] == {}


def test_curves_are_told_apart_by_whatever_varies() -> None:
    rows = [row("a", 1, 0, 1.0), row("a", 1, 0, 2.0, cluster="v100=2")]
    assert list(curves(rows, "jct_mean")) == ["a, cluster v100=1", "a, cluster v100=2"]


def test_the_knee_is_where_the_time_has_doubled() -> None:
    curve = {rate: Estimate(mean, 0.0, 1) for rate, mean in ((1.0, 10.0), (2.0, 12.0), (4.0, 28.0), (8.0, 90.0))}
    assert knee_of(curve) == pytest.approx(3.0)  # 20 is half of the way from 12 to 28
    assert knee_of({1.0: Estimate(10.0, 0.0, 1), 2.0: Estimate(19.0, 0.0, 1)}) is None
    assert knee_of({}) is None


def test_the_front_has_what_no_other_beats() -> None:
    assert pareto({"a": (1.0, 0.5), "b": (2.0, 0.9), "c": (2.0, 0.8), "d": (3.0, 0.9)}) == ["a", "b"]
    assert pareto({"a": (1.0, 0.5), "b": (1.0, 0.5)}) == ["a", "b"]


@given(st.dictionaries(st.text(max_size=2), st.tuples(st.floats(0, 9), st.floats(0, 1)), min_size=1, max_size=8))
def test_every_point_is_beaten_by_one_of_the_front_or_on_it(points: dict[str, tuple[float, float]]) -> None:
    front = pareto(points)
    for cost, hits in points.values():
        assert any(points[name][0] <= cost and points[name][1] >= hits for name in front)


def test_two_policies_are_compared_run_by_run() -> None:
    rows = [row("a", 1, seed, 10.0 + seed) for seed in range(6)] + [
        row("b", 1, seed, 20.0 + 2 * seed) for seed in range(6)
    ]
    found = compared([*rows, row("a", 9, 0, 1.0)], "a", "b")
    assert (found.pairs, found.lower) == (6, 0)
    assert found.ratio == pytest.approx(2.0)
    assert (found.low, found.high) == (pytest.approx(2.0), pytest.approx(2.0))
    # All six differences have one sign: 2 of the 2**6 signs are as extreme.
    assert found.p == pytest.approx(2 / 64)


def test_policies_that_do_not_differ_have_no_difference() -> None:
    same = compared([row(name, 1, seed, 5.0) for name in "ab" for seed in range(3)], "a", "b")
    assert (same.ratio, same.p) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("names", "column", "message"),
    [
        (("a", "c"), None, "policy 'c' is not among the results; there are a, b"),
        (("a", "b"), "jct_men", "--metric: 'jct_men' is not known, did you mean 'jct_mean'"),
    ],
)
def test_what_cannot_be_compared_is_refused(names: tuple[str, str], column: str | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        compared([row(name, 1, 0, 5.0) for name in "ab"], *names, column)


def test_a_page_has_the_curves_knees_and_fronts() -> None:
    rows = [row("a", rate, 0, 10.0 * rate, cost_dollars=2.0) for rate in (1.0, 4.0)]
    rows += [row("b", rate, 0, 5.0, cost_dollars=1.0, hit_rate=None if rate == 4 else 0.5) for rate in (1.0, 4.0)]
    a, b = page_curves(rows)
    assert (a.knee, b.knee) == (pytest.approx(2.0), None)
    assert (a.best, b.best) == ((False, True), (True, False))
    assert math.isnan(b.hits[1])
