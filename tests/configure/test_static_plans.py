"""Plans made before anything runs: what growth, descent, exact and Bayesian search find."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from fairway import Application, Configuration, ConfigurationSpace, Platform, SyntheticFunction, configurator_of
from fairway.configure.configurators.orion import grown
from fairway.configure.search.bayesian import trained_plan
from fairway.configure.search.exact_plan import cheapest_in_time, first_in_time
from fairway.configure.search.static_plan import Samples, replaced, steps, with_batches

SPACE = ConfigurationSpace((1, 2, 4), (1, 2, 4), (1, 2, 3))
NOISY = Platform(noise=0.08)


def application(slo: float, *edges: tuple[str, str]) -> Application:
    functions = {"a": SyntheticFunction(0.1, 0.2), "b": SyntheticFunction(0.3, 0.1), "c": SyntheticFunction(0.2)}
    profiles = {name: function.profile(SPACE) for name, function in functions.items()}
    return Application.of(profiles, edges or (("a", "b"), ("b", "c")), slo)


def samples(slo: float, *edges: tuple[str, str]) -> Samples:
    return Samples.drawn(application(slo, *edges), NOISY, np.random.default_rng(0))


def test_the_percentile_is_of_the_longest_way() -> None:
    fork = samples(1.0, ("a", "b"), ("a", "c"))
    plan = (Configuration(1, 1, 1),) * 3
    times = fork.factors * np.array([0.1, 0.3, 0.2]) + fork.added
    ends = times[:, 0] + np.maximum(times[:, 1], times[:, 2])
    assert fork.latency(plan) == pytest.approx(np.quantile(ends, 0.95))
    assert fork.cost(plan) == pytest.approx(0.704 * 0.6 / 3600)


def test_a_plan_grows_until_it_is_in_time() -> None:
    assert grown(samples(9.0)) == (Configuration(1, 1, 1),) * 3
    tight = samples(0.55)
    plan = grown(tight)
    assert tight.in_time(plan)
    assert plan != (Configuration(1, 1, 1),) * 3
    assert grown(samples(0.01)) == (Configuration(1, 4, 3),) * 3


def test_steps_go_one_size_up_where_there_is_one() -> None:
    app = application(1.0)
    assert steps(app, 0, Configuration(1, 1, 2), "cpu", "gpu") == [Configuration(1, 2, 2), Configuration(1, 1, 3)]
    assert steps(app, 0, Configuration(4, 4, 3), "batch", "cpu", "gpu") == []


@pytest.mark.parametrize("slo", [0.5, 0.6, 0.7])
def test_the_exact_plan_is_the_cheapest_of_all(slo: float) -> None:
    judged = samples(slo)
    single = [each for each in judged.application.profiles[0].configurations() if each.batch == 1]
    best = min((plan for plan in product(single, repeat=3) if judged.in_time(plan)), key=judged.cost)
    assert judged.cost(cheapest_in_time(judged)) == pytest.approx(judged.cost(best))


def test_a_graph_is_descended_from_the_fastest() -> None:
    judged = samples(0.45, ("a", "b"), ("a", "c"))
    plan = cheapest_in_time(judged)
    assert judged.in_time(plan)
    assert judged.cost(plan) < judged.cost((Configuration(1, 4, 3),) * 3)
    assert cheapest_in_time(samples(0.01)) == (Configuration(1, 4, 3),) * 3


@pytest.mark.parametrize("slo", np.linspace(0.3, 0.8, 21).round(3).tolist())
def test_every_step_of_the_descent_is_the_one_that_saves_most_and_stays_in_time(slo: float) -> None:
    judged = samples(slo, ("a", "b"), ("a", "c"))
    single = [each for each in judged.application.profiles[0].configurations() if each.batch == 1]
    fronts: list[list[Configuration]] = []
    for stage, profile in enumerate(judged.application.profiles):
        front: list[Configuration] = []
        for each in sorted(single, key=lambda c: (profile.seconds_of(*c), judged.stage_cost(stage, c))):
            if not front or judged.stage_cost(stage, each) < judged.stage_cost(stage, front[-1]):
                front.append(each)
        fronts.append(front)
    at = [0, 0, 0]
    while True:
        ways = []
        for stage in range(3):
            if at[stage] + 1 < len(fronts[stage]):
                then = [place + (number == stage) for number, place in enumerate(at)]
                plan = tuple(front[place] for front, place in zip(fronts, then, strict=True))
                if judged.in_time(plan):
                    ways.append((judged.cost(plan), stage))
        if not ways:
            break
        at[min(ways)[1]] += 1
    assert cheapest_in_time(judged) == tuple(front[place] for front, place in zip(fronts, at, strict=True))


def test_the_first_plan_in_time_is_found_by_the_quantile_of_its_samples() -> None:
    for seed in range(60):
        draws = np.random.default_rng(seed)
        factors = draws.integers(1, 4, (int(draws.integers(1, 9)), 2)).astype(float)
        seconds = draws.integers(1, 5, 6).astype(float)
        picks = draws.integers(0, [3, 3], (6, 2)) + np.array([0, 3])
        quantile, limit = float(draws.choice([0.0, 0.5, 0.8, 0.95, 1.0])), float(draws.integers(3, 16))
        ends = [np.quantile((seconds[pick] * factors).sum(axis=1), quantile) for pick in picks]
        wanted = next((number for number, end in enumerate(ends) if end <= limit), len(picks) - 1)
        assert first_in_time(picks, seconds, factors, limit, (len(factors) - 1) * quantile) == wanted


def test_batches_are_raised_where_a_job_saves_most() -> None:
    for slo in (0.7, 0.8, 0.9, 1.0, 1.2, 1.6):
        judged = samples(slo)
        plan = cheapest_in_time(judged)
        while True:
            ways = []
            for stage, (batch, cpu, gpu) in enumerate(plan):
                then = replaced(plan, stage, Configuration(2 * batch, cpu, gpu))
                if batch < 4 and judged.in_time(then) and judged.cost(then) < judged.cost(plan):
                    ways.append((judged.cost(then), stage, then))
            if not ways:
                break
            plan = min(ways)[2]
        assert with_batches(judged, cheapest_in_time(judged)) == plan


def test_batches_are_raised_while_that_saves_and_is_in_time() -> None:
    judged = samples(2.0)
    plan = with_batches(judged, cheapest_in_time(judged))
    assert judged.in_time(plan)
    assert max(configuration.batch for configuration in plan) == 4
    strict = samples(0.62)
    assert with_batches(strict, grown(strict)) == grown(strict)


def test_bayesian_optimisation_finds_a_good_plan_and_repeats_itself() -> None:
    pytest.importorskip("sklearn", reason="the rival Aquatope needs the extra `aquatope`")
    judged = samples(0.8)
    plans = [trained_plan(judged.application, NOISY, np.random.default_rng(3), 30, 6) for _ in range(2)]
    assert plans[0] == plans[1]
    assert judged.latency(plans[0]) <= 0.8 * 1.1
    single = judged.cost(cheapest_in_time(judged))
    assert judged.cost(plans[0]) < 1.5 * single


def test_what_cannot_be_in_time_gets_the_fastest_trial() -> None:
    pytest.importorskip("sklearn", reason="the rival Aquatope needs the extra `aquatope`")
    hopeless = application(0.01)
    plan = trained_plan(hopeless, NOISY, np.random.default_rng(3), 10, 2)
    assert all(configuration in hopeless.profiles[0].configurations() for configuration in plan)


def test_a_plan_runs_what_the_queue_has() -> None:
    from fairway import Candidates, Capacity, Queue  # noqa: PLC0415

    prepared = configurator_of("aquatope:exact").prepare(application(2.0), NOISY, np.random.default_rng(0))
    decision = prepared.decide(Queue(0, 1, 1.0), Capacity.idle(2))
    assert isinstance(decision, Candidates)
    ((configuration, kind),) = decision.choices
    assert configuration.batch > 1, "it does not wait until its batch is full"
    assert kind == "planned"
