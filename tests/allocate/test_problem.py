"""What a problem knows about itself: where jobs run, its yardsticks, and how it looks without heterogeneity."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway import Cluster, Entity, InputError, Job, Pair, Pairs, Problem
from tests.allocate.problems import random_problem

seeds = st.integers(0, 10_000)


def two_types(*jobs: Job, pairs: tuple[Pair, ...] = ()) -> Problem:
    return Problem.of(Cluster({"v100": 2, "k80": 6}), jobs, pairs)


def test_a_job_runs_where_it_makes_progress_and_its_gang_fits() -> None:
    problem = two_types(
        Job("a", {"v100": 4.0}),
        Job("b", {"v100": 8.0, "k80": 2.0}, scale_factor=4),
        Job("c", {"v100": 8.0, "k80": 2.0}, scale_factor=8),
    )
    assert problem.runnable.tolist() == [[True, False], [False, True], [False, False]]
    assert problem.rates.tolist() == [[4.0, 0.0], [0.0, 2.0], [0.0, 0.0]]
    assert problem.can_run.tolist() == [True, True, False]
    assert problem.fastest.tolist() == [4.0, 2.0, 0.0]


def test_the_proportional_rate_is_the_mean_over_all_workers() -> None:
    problem = two_types(Job("a", {"v100": 4.0, "k80": 1.0}), Job("b", {"v100": 8.0}, scale_factor=2))
    assert problem.proportional_throughputs.tolist() == [(2 * 4.0 + 6 * 1.0) / 8, 2 * 8.0 / 8]


def test_the_proportional_rate_depends_neither_on_other_jobs_nor_on_the_gang() -> None:
    one = two_types(Job("a", {"v100": 4.0, "k80": 1.0}))
    more = two_types(*(Job(name, {"v100": 4.0, "k80": 1.0}, scale_factor=2) for name in "abc"))
    assert set(more.proportional_throughputs.tolist()) == set(one.proportional_throughputs.tolist())


def test_the_isolated_share_is_the_nth_part_of_each_type() -> None:
    gangs = {"a": 1, "b": 1, "c": 2, "d": 2}
    problem = two_types(*(Job(name, {"v100": 4.0, "k80": 1.0}, scale_factor=size) for name, size in gangs.items()))
    # 8 workers for 4 jobs: 0.5 V100 and 1.5 K80 each; a job on one worker can use half of that, a gang of two all.
    assert problem.isolated_shares.tolist() == [[0.25, 0.75]] * 4
    assert problem.isolated_throughputs.tolist() == [0.25 * 4 + 0.75] * 4


def test_jobs_that_cannot_run_have_no_part_in_the_isolated_shares() -> None:
    alone = two_types(Job("a", {"v100": 4.0}))
    beside = two_types(Job("a", {"v100": 4.0}), Job("idle", {}), Job("huge", {"k80": 1.0}, scale_factor=64))
    assert beside.isolated_throughputs.tolist() == [*alone.isolated_throughputs.tolist(), 0.0, 0.0]


@given(seeds, st.sampled_from([(1,), (1, 2, 4)]), st.sampled_from([0.0, 0.4]))
def test_isolated_shares_always_fit(seed: int, gangs: tuple[int, ...], zeros: float) -> None:
    problem = random_problem(seed, jobs=7, gangs=gangs, zeros=zeros, workers=(0, 5))
    shares = problem.isolated_shares
    assert (shares.sum(axis=1) <= 1 + 1e-12).all()
    assert (problem.scale_factors @ shares <= problem.workers + 1e-12).all()
    assert (shares[~problem.runnable] == 0).all()


def test_an_agnostic_view_has_one_rate_per_job_wherever_it_runs() -> None:
    problem = two_types(Job("a", {"v100": 4.0, "k80": 1.0}), Job("b", {"k80": 3.0}), Job("c", {}))
    view = problem.agnostic()
    assert view.rates.tolist() == [[1.75, 1.75], [0.0, 3.0], [0.0, 0.0]]
    assert view.proportional_throughputs.tolist() == [1.75, 3.0, 0.0]
    assert view.isolated_throughputs.tolist() == [1.75, 3.0, 0.0]


def test_an_agnostic_view_by_reference_takes_the_rates_of_that_type() -> None:
    problem = two_types(Job("a", {"v100": 4.0, "k80": 1.0}), Job("b", {"v100": 2.0, "k80": 3.0}))
    assert problem.agnostic("v100").rates.tolist() == [[4.0, 4.0], [2.0, 2.0]]


def test_a_reference_must_be_a_type_that_runs_every_job() -> None:
    problem = two_types(Job("a", {"v100": 4.0}), Job("b", {"k80": 3.0}))
    with pytest.raises(InputError, match="job 'b' does not run on it"):
        problem.agnostic("v100")
    with pytest.raises(InputError, match=r"no such accelerator type; known: v100, k80"):
        problem.agnostic("a100")


def test_in_an_agnostic_view_pairs_keep_the_mean_part_of_their_rates() -> None:
    pair = Pair(("a", "b"), {"v100": (2.0, 1.0), "k80": (0.9, 1.5)})
    problem = two_types(Job("a", {"v100": 4.0, "k80": 1.0}), Job("b", {"v100": 2.0, "k80": 3.0}), pairs=(pair,))
    view = problem.agnostic()
    kept_a, kept_b = (2 * 0.5 + 6 * 0.9) / 8, (2 * 0.5 + 6 * 0.5) / 8
    assert view.pairs is not None
    assert view.pairs.rates[0] == pytest.approx(np.array([[1.75 * kept_a, 2.75 * kept_b]] * 2))


@given(seeds)
def test_a_homogeneous_problem_is_its_own_agnostic_view(seed: int) -> None:
    problem = random_problem(seed, rates="homogeneous", gangs=(1, 2), pairs=True)
    view = problem.agnostic()
    assert view.rates == pytest.approx(problem.rates)
    if problem.can_run.all() and problem.runnable.all():
        assert view.proportional_throughputs == pytest.approx(problem.proportional_throughputs)
        assert view.isolated_throughputs == pytest.approx(problem.isolated_throughputs)


def test_only_equal_gangs_that_both_run_can_share() -> None:
    rates = {"v100": (1.0, 1.0), "k80": (1.0, 0.0)}
    problem = two_types(
        Job("a", {"v100": 4.0, "k80": 1.0}),
        Job("b", {"v100": 4.0, "k80": 1.0}),
        Job("gang", {"v100": 4.0, "k80": 1.0}, scale_factor=2),
        Job("k80 only", {"k80": 1.0}),
        pairs=tuple(Pair(("a", other), rates) for other in ("b", "gang", "k80 only")),
    )
    shareable = problem.shareable
    assert shareable is not None
    assert (shareable.first.tolist(), shareable.second.tolist()) == ([0], [1])
    assert shareable.rates.tolist() == [[[1.0, 1.0], [0.0, 0.0]]]


def test_a_pair_may_name_its_jobs_in_any_order() -> None:
    problem = two_types(Job("a", {}), Job("b", {}), pairs=(Pair(("b", "a"), {"k80": (2.0, 1.0)}),))
    assert problem.pairs is not None
    assert (problem.pairs.first.tolist(), problem.pairs.second.tolist()) == ([0], [1])
    assert problem.pairs.rates.tolist() == [[[0.0, 0.0], [1.0, 2.0]]]


def test_a_gang_that_spans_nodes_has_its_spread_rates() -> None:
    cluster = Cluster({"v100": 8}, workers_per_node={"v100": 4})
    rates = [
        Problem.of(cluster, [Job("a", {"v100": 9.0}, size, spread_throughputs={"v100": 5.0})]).rates.item()
        for size in (2, 4, 8)
    ]
    assert rates == [9.0, 9.0, 5.0]


@pytest.mark.parametrize(
    ("jobs", "pairs", "entities", "message"),
    [
        ([Job("a", {}), Job("a", {})], (), {}, "'a' is also the id of"),
        (
            [Job("b", {}), Job("a", {}), Job("c", {}), Job("a", {})],
            (),
            {},
            r"jobs\[3\].id: 'a' is also the id of jobs\[1\]",
        ),
        ([Job("a", {})], (Pair(("a", "b"), {}),), {}, "'b' is not the id of a job"),
        ([Job("a", {})], (Pair(("a", "a"), {}),), {}, "cannot share with itself"),
        ([Job("a", {}), Job("b", {})], (Pair(("a", "b"), {}), Pair(("b", "a"), {})), {}, "given twice"),
        ([Job("a", {}, entity="x")], (), {"y": Entity()}, "'x' is not one of the entities"),
        ([], (), {"x": Entity(parent="y")}, "'y' is not one of the entities"),
        ([], (), {"x": Entity(parent="y"), "y": Entity(parent="x")}, "must form a tree"),
    ],
)
def test_what_does_not_fit_together_is_refused(
    jobs: list[Job], pairs: tuple[Pair, ...], entities: dict[str, Entity], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        Problem.of(Cluster({"v100": 1}), jobs, pairs, entities)


def test_entities_that_are_only_mentioned_have_weight_one() -> None:
    problem = two_types(Job("a", {}, entity="x"), Job("b", {}), Job("c", {}, entity="y"))
    assert dict(problem.entities) == {"x": Entity(), "y": Entity()}
    assert problem.team.tolist() == [0, -1, 1]


def test_arrays_and_objects_make_the_same_problem() -> None:
    by_objects = Problem.of(
        Cluster({"v100": 2, "k80": 6}, {"v100": 2.0, "k80": 0.5}),
        [Job("a", {"v100": 4.0}, 2, 3.0, 100.0, 5.0, 4.0, 50.0), Job("b", {"v100": 1.0, "k80": 2.0})],
        [Pair(("a", "b"), {"v100": (1.0, 0.5)})],
    )
    by_arrays = Problem.of_arrays(
        {"v100": 2, "k80": 6},
        [[4.0, 0.0], [1.0, 2.0]],
        scale_factors=[2, 1],
        weights=[3.0, 1.0],
        steps_left=[100.0, np.nan],
        elapsed=[5.0, 0.0],
        isolated_elapsed=[4.0, 0.0],
        slo_seconds=[50.0, np.nan],
        ids=["a", "b"],
        prices={"v100": 2.0, "k80": 0.5},
        pairs=Pairs(np.array([0]), np.array([1]), np.array([[[1.0, 0.5], [0.0, 0.0]]])),
    )
    assert by_objects.ids == by_arrays.ids
    for name in ("workers", "throughputs", "scale_factors", "weights", "steps_left", "slo_seconds", "dollars_per_hour"):
        assert np.array_equal(getattr(by_objects, name), getattr(by_arrays, name), equal_nan=True), name
    assert by_objects.pairs is not None
    assert by_arrays.pairs is not None
    assert np.array_equal(by_objects.pairs.rates, by_arrays.pairs.rates)


def test_rates_that_are_no_rates_are_refused() -> None:
    for rate in (-1.0, np.nan, np.inf):
        with pytest.raises(InputError, match="for job '1', expected rates >= 0"):
            Problem.of_arrays({"a": 1}, [[1.0], [rate]])


def test_a_policy_that_needs_steps_says_which_job_has_none() -> None:
    problem = two_types(Job("a", {}, steps_left=1.0), Job("b", {}))
    with pytest.raises(InputError, match="'b' has no steps_left, which policy 'makespan' needs"):
        problem.needs_steps("makespan")


def test_a_cluster_without_types_or_jobs_is_a_problem_too() -> None:
    for problem in (
        Problem.of(Cluster({}), [Job("a", {"v100": 1.0})]),
        Problem.of(Cluster({"v100": 1}), []),
        Problem.of_arrays({}, np.zeros((3, 0))),
        Problem.of_arrays({"v100": 0}, np.ones((2, 1))),
    ):
        assert not problem.can_run.any()
        assert not problem.proportional_throughputs.any()
        assert not problem.isolated_throughputs.any()
        assert not problem.agnostic().rates.any()
