"""InferLine's planner and tuner: the estimator by hand and by queueing theory, envelopes, copies, what plans keep."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.configure.application import Application
from fairway.configure.configuration import Configuration
from fairway.configure.configurators.inferline import InferLine, InferLinePlanner
from fairway.configure.fleet_plan import Demand, Machines
from fairway.configure.planners.envelope import envelope, exceeding_rate, most_within, windows
from fairway.configure.planners.estimator import Pipeline, Plan, in_time, latencies
from fairway.configure.planners.provisioning import PATIENCE_SECONDS, loads, provision, tuned
from fairway.configure.profile import Profile
from fairway.errors import InputError

BATCHES = {1: 0.02, 2: 0.03, 4: 0.05, 8: 0.09}
SLOW = {1: 0.06, 2: 0.08, 4: 0.12}


def application(slo: float, *tables: dict[int, float]) -> Application:
    names = "abcd"[: len(tables)]
    profiles = {
        name: Profile.of({Configuration(size, 1, 1): seconds for size, seconds in table.items()})
        for name, table in zip(names, tables, strict=True)
    }
    return Application.of(profiles, list(itertools.pairwise(names)), slo)


def pipeline(slo: float, arrivals: list[float], *tables: dict[int, float], models: tuple[int, ...] = ()) -> Pipeline:
    made = application(slo, *tables)
    times = tuple(tuple(sorted(table.items())) for table in tables)
    return Pipeline(made.workflow, models or tuple(range(len(tables))), times, slo, arrivals)


def poisson(rate: float, seconds: float, seed: int = 0) -> list[float]:
    draws = np.random.default_rng(seed)
    times = np.cumsum(draws.exponential(1 / rate, int(2 * rate * seconds) + 20))
    return [float(each) for each in times if each < seconds]


# The estimator


def test_by_hand_a_queue_on_one_worker() -> None:
    one = pipeline(1.0, [0.0, 0.005, 0.01, 0.2], BATCHES)
    # The first runs alone until 20 ms; the two that wait then run together for 30 ms; the last finds an idle worker.
    assert latencies([one], Plan({0: 1}, ((4,),)))[0] == pytest.approx([0.02, 0.045, 0.04, 0.02])
    # Without batches they follow each other.
    assert latencies([one], Plan({0: 1}, ((1,),)))[0] == pytest.approx([0.02, 0.035, 0.05, 0.02])
    assert latencies([one], Plan({0: 3}, ((1,),)))[0] == pytest.approx([0.02] * 4)


def test_by_hand_a_batch_goes_on_together() -> None:
    two = pipeline(1.0, [0.0, 0.001, 0.002], BATCHES, SLOW)
    taken = latencies([two], Plan({0: 1, 1: 1}, ((4, 4),)))[0]
    # 0 to 20 ms and 20 to 80 ms for the first; the others 20 to 50 ms, then they wait until 80 ms and end at 160 ms.
    assert taken == pytest.approx([0.08, 0.159, 0.158])


def test_a_join_waits_for_both_and_stages_of_one_model_share_its_workers() -> None:
    made = Application.of(
        {name: Profile.of({Configuration(1, 1, 1): 0.1}) for name in "abc"}, [("a", "c"), ("b", "c")], 1.0
    )
    times = (((1, 0.1),),) * 3
    apart = Pipeline(made.workflow, (0, 1, 2), times, 1.0, [0.0])
    assert latencies([apart], Plan({0: 1, 1: 1, 2: 1}, ((1, 1, 1),)))[0] == pytest.approx([0.2])
    shared = Pipeline(made.workflow, (0, 0, 1), times, 1.0, [0.0])
    assert latencies([shared], Plan({0: 1, 1: 1}, ((1, 1, 1),)))[0] == pytest.approx([0.3])


def test_the_mean_wait_is_that_of_queueing_theory() -> None:
    # M/D/1 at half load: rho · s / (2 (1 - rho)) = 0.5 s.
    arrivals = poisson(25.0, 2000.0)
    taken = latencies([pipeline(1.0, arrivals, {1: 0.02})], Plan({0: 1}, ((1,),)))[0]
    assert float(np.mean(taken)) - 0.02 == pytest.approx(0.01, rel=0.05)


@given(st.integers(0, 50), st.integers(1, 4), st.sampled_from([1, 2, 4]))
@settings(max_examples=40, deadline=None)
def test_no_request_is_sooner_than_its_stages(seed: int, copies: int, size: int) -> None:
    arrivals = poisson(60.0, 1.0, seed)
    taken = latencies([pipeline(1.0, arrivals, BATCHES, SLOW)], Plan({0: copies, 1: copies}, ((size, size),)))[0]
    assert len(taken) == len(arrivals)
    assert all(each >= 0.08 - 1e-9 for each in taken)


# Envelopes


def test_by_hand_the_most_within_a_window() -> None:
    arrivals = [0.0, 0.125, 0.1875, 1.0, 1.0625, 1.125, 1.1875]
    assert [most_within(arrivals, seconds) for seconds in (0.01, 0.125, 0.25, 2.0)] == [1, 2, 4, 7]
    assert windows(0.5, 5.0) == (0.5, 1.0, 2.0, 4.0)


@given(st.lists(st.floats(0, 10), max_size=40), st.floats(0.01, 5))
@settings(max_examples=100)
def test_a_window_has_as_many_as_any_that_begins_with_a_request(times: list[float], seconds: float) -> None:
    times.sort()
    expected = max((sum(first <= each < first + seconds for each in times) for first in times), default=0)
    assert abs(most_within(times, seconds) - expected) <= sum(
        abs(one - other - seconds) < 1e-9 for one in times for other in times
    )


def test_a_burst_exceeds_in_short_windows_only_and_long_ones_need_a_sample_as_long() -> None:
    lengths = windows(0.1, 6.4)
    even = [number * 0.1 for number in range(100)]
    burst = sorted([*even[:90], *[3.0 + number * 0.001 for number in range(10)]])
    planned = envelope(even, lengths)
    assert exceeding_rate(envelope(even, lengths), planned, lengths, 10.0) is None
    assert exceeding_rate(envelope(burst, lengths), planned, lengths, 10.0) == pytest.approx(110.0)
    assert exceeding_rate((1, 1, 500), (1, 1, 10), (0.1, 1.0, 10.0), 5.0) is None


# Plans


def test_by_hand_the_plan_of_a_light_load_is_a_worker_for_each_model() -> None:
    found = provision([pipeline(0.3, [0.0, 0.5, 1.0, 1.5], BATCHES, SLOW)], 2.0, 2.0, 20)
    assert found.feasible
    assert dict(found.copies) == {0: 1, 1: 1}


@pytest.mark.parametrize("seed", range(3))
def test_a_plan_is_in_time_and_no_worker_can_be_taken_from_it(seed: int) -> None:
    lines = [pipeline(0.3, poisson(60.0, 4.0, seed), BATCHES, SLOW)]
    found = provision(lines, 4.0, 4.0, 40)
    assert found.feasible
    assert in_time(lines, found.plan)
    singles = loads(lines, found.rates, ((1, 1),))
    assert sum(found.copies.values()) < sum(math.ceil(each) for each in singles.values()), "batches save workers"
    for model in found.copies:
        if found.copies[model] > 1:
            fewer = Plan({**found.copies, model: found.copies[model] - 1}, found.plan.batches)
            assert not in_time(lines, fewer)


def test_what_no_number_of_workers_can_do_is_not_feasible() -> None:
    assert not provision([pipeline(0.05, poisson(20.0, 2.0), BATCHES, SLOW)], 2.0, 2.0, 20).feasible


def test_the_tuner_adds_workers_in_proportion_and_takes_them_back_after_a_while() -> None:
    lines = [pipeline(0.4, poisson(40.0, 20.0), BATCHES)]
    planned = provision(lines, 20.0, 20.0, 20)
    assert tuned(planned, lines, 21.0) is planned, "the same traffic changes nothing"
    twice = [pipeline(0.4, sorted([*lines[0].arrivals, *poisson(100.0, 20.0, 7)]), BATCHES)]
    more = tuned(planned, twice, 21.0)
    busy = planned.utilisation(lines)[0]
    seen = exceeding_rate(
        envelope(twice[0].arrivals, planned.lengths[0]), planned.envelopes[0], planned.lengths[0], 20.0
    )
    assert seen is not None
    assert more.copies[0] == math.ceil(loads(lines, (seen,), planned.plan.batches)[0] / busy - 1e-9)
    assert more.copies[0] > planned.copies[0]
    quiet = [pipeline(0.4, [20.0 + number * 0.05 for number in range(600)], BATCHES)]
    assert tuned(more, quiet, 21.0 + PATIENCE_SECONDS - 0.1).copies == more.copies
    assert tuned(more, quiet, 50.0).copies[0] < more.copies[0]


# Plans for workers that there are


def demand(rate: float, seconds: float, seed: int = 0) -> Demand:
    return Demand(application(0.3, BATCHES, SLOW), (0, 1), rate, poisson(rate, seconds, seed))


def machines(workers: int, memory: float = 10e9) -> Machines:
    return Machines(np.full(workers, memory), np.array([4e9, 8e9]))


def test_each_copy_has_a_worker_and_the_rest_repeat_unless_the_plan_is_lean() -> None:
    (stages,) = InferLinePlanner().plan([demand(20.0, 4.0)], machines(6), None, 4.0)
    assert (stages[0].workers | stages[1].workers).all()
    assert not (stages[0].workers & stages[1].workers).any(), "a worker holds one model"
    assert [(stage.seconds, stage.later) for stage in stages] == [(0.02, 0.06), (0.06, 0.0)], "those of single requests"
    plan = InferLinePlanner(lean=True).plan([demand(20.0, 4.0)], machines(6), None, 4.0)
    assert plan.provision is not None
    used = sum(int(stage.workers.sum()) for stage in plan[0])
    assert used == sum(plan.provision.copies.values()) < 6


def test_too_few_workers_are_all_used_and_models_share_where_memory_allows() -> None:
    (stages,) = InferLinePlanner().plan([demand(400.0, 1.0)], machines(3), None, 1.0)
    assert (stages[0].workers | stages[1].workers).all()
    assert stages[1].workers.sum() == 2, "the slower model has more of them"
    (alone,) = InferLinePlanner().plan([demand(20.0, 1.0)], machines(1, 12e9), None, 1.0)
    assert alone[0].workers.all()
    assert alone[1].workers.all()
    (tight,) = InferLinePlanner().plan([demand(20.0, 1.0)], machines(1), None, 1.0)
    assert [stage.workers.any() for stage in tight] == [False, True]


@pytest.mark.parametrize(("slo", "batch"), [(0.05, 4), (0.0499, 2), (0.09, 8), (0.0199, 1)])
def test_with_too_few_workers_a_batch_may_take_all_of_its_share(slo: float, batch: int) -> None:
    busy = Demand(application(slo, BATCHES), (0,), 1000.0, poisson(1000.0, 1.0))
    ((stage,),) = InferLinePlanner().plan([busy], machines(1), None, 1.0)
    assert stage.batches.tolist() == [batch]


def test_a_plan_holds_until_the_sample_is_twice_as_long() -> None:
    planner = InferLinePlanner(tunes=False)
    first = planner.plan([demand(20.0, 2.0)], machines(6), None, 2.0)
    second = planner.plan([demand(20.0, 3.0)], machines(6), first, 3.0)
    assert second.provision is first.provision
    third = planner.plan([demand(20.0, 4.0)], machines(6), second, 4.0)
    assert third.provision is not first.provision


@pytest.mark.parametrize(("option", "text"), [("epoch=0", "epoch: 0 given"), ("sample=0", "sample: 0 given")])
def test_options_out_of_range_are_refused(option: str, text: str) -> None:
    name, value = option.split("=")
    with pytest.raises(InputError, match=text):
        InferLine(**{name: int(value)})
