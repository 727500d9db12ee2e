"""Herd: models are grouped as in Shepherd's program, checked against all plans that there are."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.configure.planners.herd import Group, Stream, burst_tolerance, herd


def test_models_that_fit_one_worker_are_one_group_of_all() -> None:
    streams = [Stream(3.0, 1e9), Stream(1.0, 2e9), Stream(0.5, 1e9)]
    assert herd(streams, 8, 11e9) == [Group(8, frozenset({0, 1, 2}))]


def test_by_hand_two_models_that_do_not_fit_together_get_workers_by_what_they_need() -> None:
    # Sizes 6 and 2 give 6 / 3 = 2 / 1 = 2 times the rate of each; no other pair of sizes gives both as much.
    groups = herd([Stream(3.0, 8e9), Stream(1.0, 8e9)], 8, 11e9)
    assert groups == [Group(6, frozenset({0})), Group(2, frozenset({1}))]
    assert burst_tolerance(groups, [Stream(3.0, 8e9), Stream(1.0, 8e9)]) == pytest.approx(2.0)


def test_groups_are_no_larger_than_allowed_where_that_leaves_no_worker_out() -> None:
    streams = [Stream(3.0, 8e9), Stream(1.0, 8e9)]
    assert [group.workers for group in herd(streams, 8, 11e9, most=4)] == [4, 4]
    assert [group.workers for group in herd([Stream(1.0, 1e9)], 40, 11e9, most=12)] == [40]
    assert herd(streams, 0, 11e9) == herd([], 4, 11e9) == []


def test_where_not_all_have_room_those_that_need_most_are_served() -> None:
    groups = herd([Stream(0.5, 8e9), Stream(2.0, 8e9)], 1, 11e9)
    assert groups == [Group(1, frozenset({1}))]
    assert herd([Stream(1.0, 20e9)], 2, 11e9) == []


def best_by_trial(streams: list[Stream], workers: int, memory: float) -> float:
    """The best burst tolerance of any grouping and any sizes."""
    best, count = 0.0, min(len(streams), workers)
    for groups in itertools.product(range(count), repeat=len(streams)):
        members = [[model for model, group in enumerate(groups) if group == each] for each in range(count)]
        if any(sum(streams[model].bytes for model in own) > memory for own in members):
            continue
        for sizes in itertools.product(range(workers + 1), repeat=count):
            if sum(sizes) <= workers:
                found = [Group(size, frozenset(own)) for size, own in zip(sizes, members, strict=True) if own]
                best = max(best, burst_tolerance(found, streams))
    return best


@given(
    st.lists(st.tuples(st.floats(0.1, 5.0), st.sampled_from([2e9, 4e9, 6e9, 9e9])), min_size=1, max_size=4),
    st.integers(1, 5),
)
@settings(max_examples=40, deadline=None)
def test_no_other_grouping_tolerates_a_larger_burst(drawn: list[tuple[float, float]], workers: int) -> None:
    streams = [Stream(*each) for each in drawn]
    groups = herd(streams, workers, 10e9)
    held = [model for group in groups for model in group.models]
    assert len(held) == len(set(held)), "a model is in one group"
    assert sum(group.workers for group in groups) <= workers
    for group in groups:
        assert sum(streams[model].bytes for model in group.models) <= 10e9
    best = best_by_trial(streams, workers, 10e9)
    if best > 0:
        assert len(held) == len(streams)
        assert math.isclose(burst_tolerance(groups, streams), best, rel_tol=2e-3) or (
            burst_tolerance(groups, streams) > best
        )
    assert herd(streams, workers, 10e9) == groups, "the same question has the same answer"
