"""Squishy bin packing and the split of SLOs: cases worked out by hand, and what always holds."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.configure.budgets.query_split import split_slo
from fairway.configure.squishy import ModelSession, pack
from fairway.workflows import Stage, Workflow

# Three models, batches of 4, 8 and 16, and their times in seconds.
A = ((4, 0.050), (8, 0.075), (16, 0.100))
B = ((4, 0.050), (8, 0.090), (16, 0.125))
C = ((4, 0.060), (8, 0.095), (16, 0.125))


def test_saturated_sessions_run_in_batches_of_16_on_accelerators_of_their_own() -> None:
    sessions = [ModelSession(160, 0.2, A), ModelSession(128, 0.25, B), ModelSession(128, 0.25, C)]
    bins = pack(sessions)
    assert [each.batches for each in bins] == [{0: 16}, {1: 16}, {2: 16}]
    assert [each.most_rate for each in sessions] == pytest.approx([160, 128, 128])


def test_residual_sessions_share_an_accelerator_if_their_batches_fit_the_duty_cycle() -> None:
    bins = pack([ModelSession(64, 0.2, A), ModelSession(32, 0.25, B), ModelSession(32, 0.25, C)])
    assert [each.batches for each in bins] == [{0: 8, 1: 4}, {2: 4}]
    assert [each.duty for each in bins] == pytest.approx([0.125, 0.125])


def test_requests_that_come_too_seldom_to_wait_for_each_other_run_one_by_one_in_time() -> None:
    (seldom,) = pack([ModelSession(0.1, 1.0, ((1, 0.2), (8, 0.9)))])
    assert (seldom.batches, seldom.duty) == ({0: 1}, pytest.approx(0.8)), "0.8 s until its turn, and 0.2 s to run"
    (tight,) = pack([ModelSession(0.1, 0.3, ((1, 0.2),))])
    assert (tight.batches, tight.duty) == ({0: 1}, 0.2), "it cannot come round sooner than it runs"


def test_what_is_left_of_a_saturated_session_is_what_its_own_accelerators_do_not_serve() -> None:
    """160/s fill one accelerator; the other 10/s come too seldom for any batch to fill in 0.2 s."""
    bins = pack([ModelSession(170, 0.2, A)])
    assert [each.batches for each in bins] == [{0: 16}, {0: 4}]
    assert [each.duty for each in bins] == pytest.approx([0.1, 0.15])


def test_a_rest_that_small_batches_are_too_slow_for_has_an_accelerator_to_itself() -> None:
    """8 of 20/s are together only after 0.4 s of 0.25; one at a time, each of 0.1 s, makes 10/s."""
    (alone,) = pack([ModelSession(20.0, 0.25, ((1, 0.1), (8, 0.12)))])
    assert (alone.batches, alone.duty) == ({0: 8}, 0.12)


def test_models_that_do_not_fit_one_memory_do_not_share() -> None:
    sessions = [ModelSession(64, 0.2, A, 0, 6e9), ModelSession(32, 0.25, B, 1, 6e9)]
    assert len(pack(sessions, 16e9)) == 1
    assert len(pack(sessions, 10e9)) == 2
    same = [ModelSession(64, 0.2, A, 0, 6e9), ModelSession(32, 0.25, A, 0, 6e9)]
    assert len(pack(same, 10e9)) == 1, "one copy will do for both"


TIMES = st.lists(st.tuples(st.floats(0.005, 0.05), st.floats(0.001, 0.02)), min_size=1, max_size=1).map(
    lambda each: tuple((size, each[0][0] + size * each[0][1]) for size in (1, 2, 4, 8, 16))
)


@given(
    st.lists(
        st.tuples(st.floats(0.1, 300), st.floats(0.2, 1.0), TIMES).map(lambda each: ModelSession(*each)), max_size=5
    )
)
@settings(max_examples=50, deadline=None)
def test_all_rates_are_served_and_no_accelerator_has_more_than_it_can_do(sessions: list[ModelSession]) -> None:
    bins = pack(sessions)
    served = [0.0] * len(sessions)
    for each in bins:
        assert each.occupancy(sessions) <= 1 + 1e-6
        for number, batch in each.batches.items():
            served[number] += batch / each.duty
            if 2 * sessions[number].times[0][1] <= sessions[number].seconds:
                waits = each.duty + sessions[number].time_of(batch)
                assert waits <= sessions[number].seconds * (1 + 1e-6), "a request that just missed a batch is in time"
    for session, rate in zip(sessions, served, strict=True):
        assert rate >= session.rate * (1 - 1e-6)


def _workflow(names: str, edges: list[tuple[str, str]]) -> Workflow:
    return Workflow(tuple(Stage.of(name, 0.01) for name in names), tuple(edges), name="w")


def test_the_stage_that_gains_most_from_batches_gets_the_time() -> None:
    flat = ((1, 0.01), (8, 0.08))  # a batch saves nothing
    steep = ((1, 0.03), (8, 0.05))
    flat_share, steep_share = split_slo(_workflow("ab", [("a", "b")]), [flat, steep], 0.2)
    assert flat_share + steep_share == pytest.approx(0.2)
    assert steep_share >= 2 * 0.05
    assert 2 * 0.01 <= flat_share < 2 * 0.08


@given(TIMES, TIMES, TIMES, st.floats(0.05, 2.0))
@settings(max_examples=50, deadline=None)
def test_no_way_through_a_workflow_may_take_longer_than_its_slo(
    a: tuple[tuple[int, float], ...], b: tuple[tuple[int, float], ...], c: tuple[tuple[int, float], ...], slo: float
) -> None:
    for edges in ([("a", "b"), ("b", "c")], [("a", "b"), ("a", "c")], [("a", "c"), ("b", "c")]):
        workflow = _workflow("abc", edges)
        budgets = split_slo(workflow, [a, b, c], slo)
        assert workflow.critical_path(budgets).seconds <= slo * (1 + 1e-6)
        assert all(math.isfinite(each) and each > 0 for each in budgets)
