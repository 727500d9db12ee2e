from __future__ import annotations

import numpy as np
import pytest

from fairway import Problem, policy_of
from fairway.allocate.pairs import Pairs
from fairway.compat.gavel.interior import last_feasible
from fairway.compat.gavel.policies import Mechanism, compat_policy, mechanism_of
from fairway.errors import InputError
from tests.figures import policy_cases

TYPES = {"k80": 2, "p100": 2, "v100": 2}


def one_gpu_jobs(count: int, seed: int = 0) -> Problem:
    return Problem.of_arrays(TYPES, np.ones((count, 3)), seed=seed)


@pytest.mark.parametrize(
    ("policy", "pairs", "shuffled", "needs_priority"),
    [
        ("max-min-fairness", False, False, False),
        ("max-min-fairness:agnostic", False, True, False),
        ("max-min-fairness:space-sharing", True, False, False),
        ("finish-time-fairness:agnostic", False, True, False),
        ("makespan", False, False, False),
        ("water-filling:agnostic", False, True, False),
        ("max-throughput", False, False, False),
        ("fifo", False, False, True),
        ("fifo:agnostic", False, True, True),
        ("fifo:space-sharing", True, False, True),
        ("gandiva", True, False, False),
        ("allox", False, False, False),
        ("isolated", False, True, False),
    ],
)
def test_rounds_treat_a_policy_as_the_original_does(
    policy: str, pairs: bool, shuffled: bool, needs_priority: bool
) -> None:
    assert mechanism_of(policy) == Mechanism(pairs=pairs, shuffled=shuffled, needs_priority=needs_priority)
    assert compat_policy(policy).name == policy_of(policy).name


@pytest.mark.parametrize(
    "policy", ["min-cost", "fifo:agnostic,space-sharing", "allox:agnostic", "makespan:space-sharing"]
)
def test_what_the_original_does_not_run_is_refused(policy: str) -> None:
    with pytest.raises(InputError, match="not one that runs as in the original"):
        compat_policy(policy)


def test_a_reference_that_is_no_type_is_refused() -> None:
    problem = Problem.of_arrays({"a100": 1}, [[1.0]], steps_left=[10.0])
    with pytest.raises(InputError, match="reference=v100"):
        compat_policy("makespan:agnostic").allocate(problem)


def test_the_level_is_that_of_the_exact_policy() -> None:
    problem = Problem.of_arrays(
        {"k80": 1, "p100": 1, "v100": 2}, [[1, 2, 4], [1, 3, 4], [1, 2, 6]], scale_factors=[1, 1, 2]
    )
    compat = compat_policy("max-min-fairness").allocate(problem)
    assert compat.objective == pytest.approx(1.2706, abs=1e-4)
    expected = [[0, 0.2529, 0.7471], [0, 0.1882, 0.8118], [0.5, 0.2794, 0.2206]]
    assert compat.shares == pytest.approx(np.array(expected), abs=1e-3)


def test_an_agnostic_policy_gives_time_on_types_where_a_job_cannot_run() -> None:
    problem = Problem.of_arrays({"k80": 1, "v100": 1}, [[0.0, 1.0], [1.0, 2.0], [1.0, 2.0]])
    shares = compat_policy("max-min-fairness:agnostic").allocate(problem).shares
    assert shares[0, 0] == pytest.approx(1 / 3, abs=1e-3)


@pytest.mark.parametrize("policy", ["max-min-fairness", "max-min-fairness:agnostic"])
def test_equal_jobs_have_equal_shares_but_for_rounding_errors_in_those_of_the_first(policy: str) -> None:
    problem = one_gpu_jobs(9)
    shares = compat_policy(policy).allocate(problem).shares
    assert (shares[1:] == shares[1]).all()
    assert (shares[0] != shares[1]).all()
    assert shares[0] == pytest.approx(shares[1], rel=1e-9, abs=0)
    assert shares[0].sum() == pytest.approx(shares[1].sum(), rel=1e-13, abs=0)
    assert (compat_policy(policy).allocate(problem).shares == shares).all()
    later = compat_policy(policy).allocate(one_gpu_jobs(8)).shares
    assert ((later[0] > later[1]) != (shares[0] > shares[1])).any()  # not always the same types


def test_jobs_that_run_nowhere_and_types_without_workers_get_nothing() -> None:
    problem = Problem.of_arrays(
        {"k80": 0, "v100": 1}, [[1.0, 2.0], [0.0, 0.0], [1.0, 2.0]], steps_left=[100.0, 100.0, 100.0]
    )
    for policy in ("max-min-fairness", "water-filling", "makespan", "finish-time-fairness", "max-throughput"):
        shares = compat_policy(policy).allocate(problem).shares
        assert shares[:, 0] == pytest.approx(np.zeros(3), abs=1e-4), policy
        assert shares[0, 1] == pytest.approx(0.5, abs=1e-2), policy
    for policy in ("max-min-fairness", "makespan", "finish-time-fairness", "max-throughput", "gandiva", "fifo"):
        assert compat_policy(policy).allocate(Problem.of_arrays(TYPES, np.zeros((0, 3)))).shares.size == 0


@pytest.mark.parametrize("least", [50.0, 101.0, 1234.5, 71608.9, 999_999.0, 1_000_001.0, 3e7])
def test_the_search_for_the_makespan_ends_within_five_percent(least: float) -> None:
    found = last_feasible(least)
    assert found >= least
    assert found <= max(1.05 * least, 105.0) * (1 + 1e-9)


def test_fifo_without_rates_takes_the_last_type_of_its_list_whatever_it_draws() -> None:
    assert compat_policy("fifo:agnostic").allocate(one_gpu_jobs(8, seed=0)).shares.sum(axis=0).tolist() == [0, 0, 8]
    assert compat_policy("fifo:agnostic").allocate(one_gpu_jobs(8, seed=1)).shares.sum(axis=0).tolist() == [2, 2, 2]


def test_fifo_without_rates_remembers_who_has_what() -> None:
    policy = compat_policy("fifo:agnostic")
    before = policy.allocate(one_gpu_jobs(8, seed=1))
    later = Problem.of_arrays(TYPES, np.ones((7, 3)), ids=[str(number) for number in range(1, 8)], seed=1)
    after = policy.allocate(later)
    assert after.shares[:5].tolist() == before.shares[1:6].tolist()
    assert after.shares[5].tolist() == before.shares[0].tolist()  # the first in the queue follows the one that is gone


def test_fifo_passes_over_a_job_that_cannot_run_on_what_is_left() -> None:
    problem = Problem.of_arrays({"k80": 1, "v100": 1}, [[1.0, 2.0], [0.0, 2.0], [1.0, 2.0]])
    assert compat_policy("fifo").allocate(problem).shares.tolist() == [[0, 1], [0, 0], [1, 0]]


def test_gandiva_keeps_pairs_for_which_sharing_pays() -> None:
    pairs = Pairs(*np.triu_indices(4, 1), np.full((6, 1, 2), 0.8))
    policy = compat_policy("gandiva")
    problem = Problem.of_arrays({"v100": 2}, np.ones((4, 1)), pairs=pairs)
    first, again = policy.allocate(problem), policy.allocate(problem)
    assert len(first.first) == 2
    assert first.second.tolist() == again.second.tolist()
    assert first.shares == pytest.approx(np.ones((2, 1)))


def test_finish_time_fairness_counts_isolated_time_from_decision_to_decision() -> None:
    def problem(steps: list[float], elapsed: float) -> Problem:
        return Problem.of_arrays({"v100": 1}, [[1.0], [1.0]], steps_left=steps, elapsed=[elapsed, elapsed])

    policy = compat_policy("finish-time-fairness")
    policy.allocate(problem([100.0, 100.0], 0.0))
    # Job 0 did 50 steps in 50 s, which take 100 s on half of the worker; job 1 did nothing.
    told = Problem.of_arrays(
        {"v100": 1}, [[1.0], [1.0]], steps_left=[50.0, 100.0], elapsed=[50.0, 50.0], isolated_elapsed=[100.0, 0.0]
    )
    counted = policy.allocate(problem([50.0, 100.0], 50.0))
    assert counted.objective == pytest.approx(policy_of("finish-time-fairness").allocate(told).objective, rel=1e-6)


CASES = [case for case in policy_cases() if not case.wider_than_some_type]

SAME_ANSWERS = {
    "fifo": "fifo:agnostic",
    "fifo_perf": "fifo",
    "fifo_packed": "fifo:space-sharing",
    "min_total_duration": "makespan:agnostic",
    "min_total_duration_perf": "makespan",
    "max_sum_throughput_perf": "max-throughput",
    "max_min_fairness": "max-min-fairness:agnostic",
    "max_min_fairness_perf": "max-min-fairness",
}


def test_answers_are_those_of_the_original_on_recorded_cases() -> None:
    for case in CASES:
        problem = case.problem()
        for theirs, ours in SAME_ANSWERS.items():
            result = case.results.get(theirs)
            if result is None or (theirs == "min_total_duration" and "v100" not in problem.types):
                continue
            answer = compat_policy(ours).allocate(problem)
            got = {
                str(a) if b < 0 else f"{a},{b}": row
                for a, b, row in zip(answer.first.tolist(), answer.second.tolist(), answer.shares, strict=True)
            }
            for key in got.keys() | result["allocation"].keys():
                given = result["allocation"].get(key, {})
                expected = [given.get(name, 0.0) for name in problem.types]
                assert got.get(key, np.zeros(len(expected))) == pytest.approx(expected, abs=1e-2), (case.id, ours)


OPTIMA = {
    "finish_time_fairness_perf": "finish-time-fairness",
    "finish_time_fairness": "finish-time-fairness:agnostic",
    "max_min_fairness_packed": "max-min-fairness:space-sharing",
    "max_min_fairness_water_filling_perf": "water-filling",
}


def test_objectives_are_the_optima_of_recorded_cases() -> None:
    for case in CASES:
        problem = case.problem()
        for theirs, ours in OPTIMA.items():
            result = case.results.get(theirs)
            if result is None or (theirs == "finish_time_fairness" and "v100" not in problem.types):
                continue
            objective = compat_policy(ours).allocate(problem).objective
            assert objective == pytest.approx(result["optimum"], rel=1e-3), (case.id, ours)
