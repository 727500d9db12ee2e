"""Every search finds the same: ESG_1Q in both forms, the front, and brute force, on 2,000 random problems."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fairway import Answer, ConfigurationProblem, configure
from fairway.configure.search.esg_search import search_group
from fairway.configure.search.front import first_configurations, search_front
from tests.configure.problems import chain, graph

CHUNK = 125
KS = (1, 3, 5)


def agree(problem: ConfigurationProblem, answer: Answer, truth: Answer) -> None:
    assert answer.feasible == truth.feasible
    assert costs(answer) == pytest.approx(costs(truth), rel=1e-9)
    first = problem.application.entries[0]
    starts = [candidate.plan[first] for candidate in answer.candidates]
    assert len(set(starts)) == len(starts), "two candidates with the same first configuration"
    assert all(start.batch <= problem.queue_length for start in starts)
    for candidate in answer.candidates:
        assert candidate.seconds <= problem.application.slo_seconds + 1e-9 or not answer.feasible
        assert end_and_cost(problem, candidate.plan) == pytest.approx((candidate.seconds, candidate.cost_dollars))


def costs(answer: Answer) -> list[float]:
    return [candidate.cost_dollars for candidate in answer.candidates]


def end_and_cost(problem: ConfigurationProblem, plan: dict[int, tuple[int, int, int]]) -> tuple[float, float]:
    """By the definition alone."""
    finish: dict[int, float] = {}
    cost = 0.0
    workflow = problem.application.workflow
    for stage in workflow.topological_order:
        batch, cpu, gpu = plan[stage]
        seconds = problem.application.profiles[stage].seconds_of(batch, cpu, gpu)
        finish[stage] = max((finish[before] for before in workflow.predecessors[stage]), default=0.0) + seconds
        cost += (cpu * 0.034 + gpu * 0.67) * seconds / batch / 3600
    return max(finish.values()), cost


@pytest.mark.parametrize("begin", range(0, 1000, CHUNK))
def test_all_searches_agree_on_chains(begin: int) -> None:
    for seed in range(begin, begin + CHUNK):
        for k in KS:
            problem = chain(seed, k)
            truth = configure("brute-force", problem)
            for algorithm in ("front", "esg", "esg:a-star"):
                agree(problem, configure(algorithm, problem), truth)


@pytest.mark.parametrize("begin", range(0, 1000, CHUNK))
def test_front_and_brute_force_agree_on_graphs(begin: int) -> None:
    for seed in range(begin, begin + CHUNK):
        for k in KS:
            problem = graph(seed, k)
            agree(problem, configure("front", problem), configure("brute-force", problem))


def test_without_the_guard_against_duplicate_bounds_answers_are_lost() -> None:
    wrong = dict.fromkeys(KS, 0)
    for seed in range(150):
        for k in KS:
            problem = chain(seed, k)
            truth = configure("brute-force", problem)
            if not truth.feasible:
                continue
            group = tuple(range(len(problem.application)))
            unguarded, guarded = (
                search_group(
                    problem.tables, group, problem.queue_length, problem.application.slo_seconds, k, _guard=guard
                )
                for guard in (False, True)
            )
            assert costs(guarded) == pytest.approx(costs(truth))
            wrong[k] += costs(unguarded) != pytest.approx(costs(truth))
    assert wrong[1] == 0  # with one answer wanted, two bounds of the same path do no harm
    assert wrong[3] > 20
    assert wrong[5] > 20


@pytest.mark.parametrize("search", ["front", "layered", "a-star"])
def test_batches_that_may_not_grow_are_searched_alike(search: str) -> None:
    for seed in range(60):
        problem = chain(seed)
        application = problem.application
        tables = replace(problem.tables, same_batch=True, _rests={}, _firsts={}, _fronts={})
        stages = tuple(range(len(application)))
        if search == "front":
            answer = search_front(tables, 0, stages[1:], 4, application.slo_seconds, 3)
        else:
            answer = search_group(tables, stages, 4, application.slo_seconds, 3, form=search)  # type: ignore[arg-type]
        for candidate in answer.candidates:
            batches = [candidate.plan[stage].batch for stage in stages]
            assert max(batches) == batches[0]
        best = _cheapest_without_growth(problem)
        assert (costs(answer)[0] if answer.feasible else np.inf) == pytest.approx(best)


def _cheapest_without_growth(problem: ConfigurationProblem) -> float:
    best = np.inf
    for size in (1, 2, 4):
        application = problem.application
        masks = [profile.batch == size if stage == 0 else profile.batch <= size for stage, profile in _all(problem)]
        if not all(mask.any() for mask in masks):
            continue
        profiles = tuple(profile.only(mask) for (_, profile), mask in zip(_all(problem), masks, strict=True))
        smaller = ConfigurationProblem(replace(application, profiles=profiles), 4, 1, 10)
        answer = configure("brute-force", smaller)
        if answer.feasible:
            best = min(best, costs(answer)[0])
    return best


def _all(problem: ConfigurationProblem) -> list[tuple[int, object]]:
    return list(enumerate(problem.application.profiles))


def test_groups_cost_more_than_the_whole_at_once_and_stay_in_time() -> None:
    dearer = 0
    for seed in range(100):
        problem = graph(seed)
        grouped = configure("esg", replace(problem, group_size=1))
        best = configure("front", problem)
        assert set(grouped.candidates[0].plan) == set(range(len(problem.application)))
        if grouped.feasible:
            assert grouped.candidates[0].seconds <= problem.application.slo_seconds + 1e-9
            assert grouped.candidates[0].cost_dollars >= best.candidates[0].cost_dollars * (1 - 1e-9)
            dearer += grouped.candidates[0].cost_dollars > best.candidates[0].cost_dollars * 1.001
    assert dearer > 5


@pytest.mark.parametrize("algorithm", ["front", "esg", "esg:a-star", "brute-force"])
def test_an_slo_that_nothing_meets_gets_the_fastest_plan(algorithm: str) -> None:
    for seed in range(20):
        problem = chain(seed)
        hopeless = replace(problem, application=replace(problem.application, slo_seconds=0.01))
        answer = configure(algorithm, hopeless)
        assert not answer.feasible
        assert answer.candidates[0].seconds == pytest.approx(hopeless.fastest_seconds)
        times = [candidate.seconds for candidate in answer.candidates]
        assert times == sorted(times)


def test_several_entries_get_one_plan_of_all() -> None:
    from fairway import Application  # noqa: PLC0415
    from tests.configure.problems import profile_of  # noqa: PLC0415

    for seed in range(40):
        generator = np.random.default_rng(seed)
        profiles = {name: profile_of(generator, 4) for name in "abcd"}
        edges = [("a", "c"), ("b", "c"), ("b", "d")]
        application = Application.of(profiles, edges, float(generator.uniform(0.3, 1.5)))
        problem = ConfigurationProblem(application, 2, 5)
        front, truth, esg = (configure(name, problem) for name in ("front", "brute-force", "esg"))
        assert front.feasible == truth.feasible
        assert [len(answer.candidates) for answer in (front, truth, esg)] == [1, 1, 1]
        assert costs(front) == pytest.approx(costs(truth))
        assert front.candidates[0].plan[1].batch <= 2
        if esg.feasible:
            assert costs(esg)[0] >= costs(truth)[0] * (1 - 1e-9)


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_an_answer_that_is_kept_is_the_one_that_a_new_search_finds_to_the_last_digit_of_the_time_left(
    first: int,
) -> None:
    for seed in range(first, first + 20):
        problem, draws = chain(seed), np.random.default_rng(seed)
        tables, profile = problem.tables, problem.application.profiles[0]
        after = tuple(range(1, len(problem.application)))
        layer = tables.first_layer(0, after, 4)
        edges = (layer.run_seconds[:, None] + layer.rest_seconds[None, :]).ravel()
        budgets = [*draws.choice(edges, 40), *draws.uniform(0.0, 2.0 * edges.max(), 40)]
        budgets += [np.nextafter(each, to) for each in budgets for to in (-np.inf, np.inf)]
        for budget in draws.permutation(np.repeat(budgets, 2)).tolist():
            for added in (0.0, 0.1):
                found = search_front(tables, 0, after, 4, budget + added, 2, added)
                expected = [candidate.plan[0] for candidate in found.candidates]
                kept = first_configurations(tables, 0, after, 4, budget + added, 2, added)
                assert [profile.configuration(number) for number in kept] == expected
        assert len(layer.steps[0.0, 2]._since) < 60, "answers hold for more than one time left"
