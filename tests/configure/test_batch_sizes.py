"""How many requests that wait for the same stage run together."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.configure.batch_sizes import BatchSize, batch_sizes
from fairway.workflows import Stage


def sizes(times: dict[int, float], budget: float = math.inf) -> list[BatchSize]:
    stage = Stage.of("stage", {"*": times})
    return list(batch_sizes(lambda count: stage.seconds_on("gpu", count), max(times), budget))


def test_more_run_together_as_long_as_each_gets_cheaper() -> None:
    assert sizes({1: 1.0, 2: 1.2, 4: 1.6}) == [(1, 1.0), (2, 1.2), (3, 1.6), (4, 1.6)]


def test_a_batch_that_is_no_faster_than_single_runs_does_not_pay() -> None:
    assert sizes({1: 1.0, 2: 2.0, 4: 4.0}) == [(1, 1.0)]
    assert sizes({1: 1.0, 2: 2.5, 4: 3.0}) == [(1, 1.0), (1, 1.0), (1, 1.0), (4, 3.0)]
    assert sizes({1: 1.0, 2: 1.98}) == [(1, 1.0)], "measured times differ by more from run to run"


def test_what_was_measured_goes_before_what_takes_as_long_as_a_larger_batch() -> None:
    """Five would take as long as eight: four of them now and one more later is sooner done."""
    found = sizes({1: 1.0, 4: 2.0, 8: 4.0})
    assert found == [(1, 1.0), (1, 1.0), (3, 2.0), (4, 2.0)]
    assert sizes({1: 1.0, 4: 2.0, 8: 3.0})[4:] == [(4, 2.0), (4, 2.0), (7, 3.0), (8, 3.0)]


def test_a_batch_has_to_end_within_the_budget() -> None:
    times = {1: 1.0, 2: 1.2, 4: 1.6}
    assert sizes(times, 1.6)[-1] == (4, 1.6)
    assert sizes(times, 1.5) == [(1, 1.0), (2, 1.2)]
    assert sizes(times, 0.5) == [(1, 1.0)], "a single one runs in any case"


@pytest.mark.parametrize("times", [{1: 0.3}, {4: 0.3}, {1: 0.0, 8: 0.0}])
def test_one_time_and_no_time_need_no_special_care(times: dict[int, float]) -> None:
    found = sizes(times)
    assert found[0] == (1, times[min(times)])
    assert len(found) == (4 if times == {4: 0.3} else 1)


@given(
    st.dictionaries(st.integers(1, 40), st.floats(0.001, 10.0), min_size=1, max_size=6),
    st.floats(0.001, 20.0),
)
def test_what_holds_for_any_times(times: dict[int, float], budget: float) -> None:
    stage = Stage.of("stage", {"*": times})
    single = stage.seconds_on("gpu", 1)
    found = sizes(times, budget)
    assert 1 <= len(found) <= max(times)
    assert len(found) == found[-1].requests
    for waiting, (count, seconds) in enumerate(found, 1):
        assert 1 <= count <= waiting
        assert seconds == stage.seconds_on("gpu", count)
        assert count == 1 or (seconds <= budget and seconds / count < single)
    counts = [size.requests for size in found]
    assert counts == sorted(counts), "one more that waits never makes a batch smaller"
