"""Jobs keep their places where no other job gets less by it."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fairway.allocate.mechanism.places import keep_places


def places(
    to: list[int],
    on: list[int],
    rates: list[list[float]],
    left: list[int],
    *,
    scale: list[int] | None = None,
    single: list[bool] | None = None,
) -> list[int]:
    """Where the jobs go in the end, if every faster type is a gain to them."""
    speeds = np.array(rates)
    here = speeds[np.arange(len(on)), np.maximum(on, 0)]
    gains = np.where(np.array(on)[:, None] >= 0, np.sign(speeds - here[:, None]), 0).astype(np.int64)
    final = np.array(to)
    keep_places(
        final, np.array(on), np.array(single or [True] * len(to)), np.array(scale or [1] * len(to)), speeds, gains,
        np.array(left),
    )  # fmt: skip
    result: list[int] = final.tolist()
    return result


def test_two_jobs_that_are_as_fast_on_both_types_do_not_change_places() -> None:
    assert places([1, 0], [0, 1], [[1.0, 1.0]] * 2, [0, 0]) == [0, 1]


def test_two_jobs_change_places_if_one_of_them_gains_by_it() -> None:
    assert places([1, 0], [0, 1], [[1.0, 1.0], [2.0, 1.0]], [0, 0]) == [1, 0]


def test_a_job_that_starts_takes_the_free_worker_instead_of_one_that_is_held() -> None:
    assert places([1, 0], [0, -1], [[1.0, 1.0]] * 2, [0, 0]) == [0, 1]


def test_a_job_that_starts_takes_a_held_worker_if_it_is_slower_elsewhere() -> None:
    assert places([1, 0], [0, -1], [[1.0, 1.0], [2.0, 1.0]], [0, 0]) == [1, 0]


def test_gangs_of_other_sizes_do_not_change_places_either() -> None:
    assert places([1, 0, 0], [0, 1, 1], [[1.0, 1.0]] * 3, [0, 0], scale=[2, 1, 1]) == [0, 1, 1]


def test_a_ring_of_three_comes_to_rest_though_no_two_of_them_could_change() -> None:
    rates = [[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, 1.0]]
    assert places([1, 2, 0], [0, 1, 2], rates, [0, 0, 0]) == [0, 1, 2]


def test_a_job_stays_by_a_chain_of_changes_though_others_have_to_move() -> None:
    # The last job gains by taking the place of the fourth, so not all can stay. The first one can: the second, which
    # was to have its place, takes that of the third instead, and the third the one that the first was to go to.
    rates = [[1, 0, 1, 0, 0], [1, 0, 0, 0, 1], [0, 0, 1, 0, 1], [0, 1, 0, 1, 0], [0, 1, 0, 2, 0]]
    speeds = [[float(rate) for rate in row] for row in rates]
    assert places([2, 0, 4, 1, 3], [0, -1, -1, 3, 1], speeds, [0] * 5) == [0, 4, 2, 1, 3]


def test_jobs_that_share_are_left_alone() -> None:
    assert places([1, 0], [0, 1], [[1.0, 1.0]] * 2, [0, 0], single=[False, True]) == [1, 0]


JOB = st.tuples(
    st.lists(st.sampled_from([1.0, 2.0]), min_size=3, max_size=3),
    st.sampled_from([1, 1, 2]),
    st.integers(-1, 2),
    st.integers(0, 2),
)


@given(st.lists(JOB, min_size=1, max_size=8))
def test_no_job_gets_less_than_was_chosen_no_job_moves_more_and_all_fit(
    cases: list[tuple[list[float], int, int, int]],
) -> None:
    rates, scale, on, to = ([case[part] for case in cases] for part in range(4))
    room = [
        max(
            sum(size for size, held in zip(scale, on, strict=True) if held == column),
            sum(size for size, goes in zip(scale, to, strict=True) if goes == column),
        )
        for column in range(3)
    ]
    left = [
        room[column] - sum(size for size, goes in zip(scale, to, strict=True) if goes == column) for column in range(3)
    ]
    final = places(to, on, rates, left, scale=scale)  # type: ignore[arg-type]
    for job, column in enumerate(final):
        assert rates[job][column] >= rates[job][to[job]] or column == on[job]
        assert column == on[job] or to[job] != on[job], "a job that was to stay stays"
    for column in range(3):
        assert sum(size for size, goes in zip(scale, final, strict=True) if goes == column) <= room[column]


@given(st.lists(JOB, min_size=1, max_size=8))
def test_nothing_moves_where_no_job_gains_by_it(cases: list[tuple[list[float], int, int, int]]) -> None:
    scale, on, to = ([case[part] for case in cases] for part in range(1, 4))
    on = [max(held, 0) for held in on]
    both = [
        [sum(size for size, at in zip(scale, places_, strict=True) if at == column) for column in range(3)]
        for places_ in (on, to)
    ]
    left = [max(held, given) - given for held, given in zip(*both, strict=True)]
    assert places(to, on, [[1.0] * 3] * len(cases), left, scale=scale) == on
