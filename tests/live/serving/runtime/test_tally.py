"""What a worker counts, and in which bucket of a histogram a time falls."""

from __future__ import annotations

from itertools import pairwise

import pytest

from fairway.engine.serving.messages import HIT, MISS, NO_MODEL, PARTIAL
from fairway.live.serving.runtime.tally import BOUNDS, PLANNING_BOUNDS, Histogram, Tally


def test_a_time_falls_into_the_first_bucket_that_it_does_not_exceed() -> None:
    histogram = Histogram((1.0, 2.0))
    for seconds in (0.5, 1.0, 1.5, 2.0, 3.0, 9.0):
        histogram.add(seconds)
    assert (histogram.counts, histogram.total) == ([2, 2, 2], 17.0)
    assert (len(Histogram().counts), Histogram().bounds) == (len(BOUNDS) + 1, BOUNDS)


@pytest.mark.parametrize("bounds", [BOUNDS, PLANNING_BOUNDS])
def test_buckets_get_wider(bounds: tuple[float, ...]) -> None:
    assert list(bounds) == sorted(set(bounds))
    assert max(later / earlier for earlier, later in pairwise(bounds)) <= 10.0


def test_at_first_nothing_has_happened() -> None:
    document = Tally().document()
    planning = document.pop("planning")
    assert not any(document.values())
    assert (planning["total"], sum(planning["counts"]), planning["bounds"]) == (0.0, 0, PLANNING_BOUNDS)


def test_runs_are_counted_by_what_they_found_and_how_many_ran_together() -> None:
    tally = Tally()
    for found, size in ((HIT, 1), (HIT, 2), (MISS, 2), (PARTIAL, 4), (NO_MODEL, 2)):
        tally.ran(3, 1, found, 0.2, size)
    tally.waited(3, 2, 0.7)
    tally.took(3, 1, 0.4)
    tally.took(3, 1, 0.6)
    assert (tally.hits, tally.misses, tally.batch) == (2, 2, {1: 1, 2: 3, 4: 1})
    assert {key: sum(each.counts) for key, each in tally.wait.items()} == {(3, 1): 5, (3, 2): 1}
    assert {key: (sum(each.counts), each.total) for key, each in tally.run.items()} == {(3, 1): (2, 1.0)}


def test_replies_are_in_time_up_to_their_slo_and_refusals_counted_by_code() -> None:
    tally = Tally()
    for seconds, slo in ((0.5, 1.0), (1.0, 1.0), (1.5, 1.0), (9.0, None)):
        tally.answered(2, seconds, slo)
    assert (tally.replied, tally.in_time, tally.late) == (4, 2, 1)
    assert sum(tally.latency[2].counts) == 4
    for code in ("late", "full", "late"):
        tally.refuse(code)
    assert tally.refused == {"late": 2, "full": 1}
