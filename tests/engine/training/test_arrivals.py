"""What keeps coming, learned from jobs whose lengths and times are known here."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fairway.allocate.registry import policy_of
from fairway.cluster import Cluster
from fairway.engine.training.arrivals import Arrivals
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.messages import JobArrived, JobFinished, RoundBegan
from fairway.engine.training.options import EngineOptions
from fairway.engine.training.pair_rates import PairRates
from fairway.jobs import Job

TYPES = ("v100", "k80")


def arrivals() -> Arrivals:
    return Arrivals(TYPES, PairRates(TYPES, None))


def test_the_work_of_each_class_that_comes_in_a_second_is_learned() -> None:
    learned = arrivals()
    lm, gan = learned.class_of("lm", 1, np.array([4.0, 1.0])), learned.class_of("gan", 2, np.array([2.0, 1.0]))
    for number in range(101):
        assert (learned.demand is None) == (number < 50)
        learned.learn(gan if number % 4 == 0 else lm, 200.0 if number % 4 == 0 else 400.0, 10.0 * number)
    demand = learned.demand
    assert demand is not None
    # 100 s of work for every job; a job in 10 s, three quarters of them at 4 steps per second, the others at 2.
    assert demand.work == pytest.approx([0.75 * 40.0, 0.25 * 20.0], rel=0.05)
    assert demand.scale_factors.tolist() == [1.0, 2.0]


def test_another_engine_goes_on_from_what_was_learned() -> None:
    learned, other, elsewhere = arrivals(), arrivals(), Arrivals(("a100",), PairRates(("a100",), None))
    group = learned.class_of("lm", 1, np.array([4.0, 1.0]))
    for number in range(60):
        learned.learn(group, 400.0, 10.0 * number)
    other.resume(learned.resumption(), 0.0)
    assert other.demand is not None
    assert other.resumption() == learned.resumption()
    elsewhere.resume(learned.resumption(), 0.0)
    assert elsewhere.demand is None


def test_jobs_without_a_type_or_a_length_teach_nothing() -> None:
    learned = arrivals()
    assert learned.class_of(None, 1, np.array([1.0, 1.0])) == -1
    before = learned.resumption()
    learned.learn(-1, 100.0, 0.0)
    learned.learn(learned.class_of("lm", 1, np.array([1.0, 1.0])), math.inf, 5.0)
    assert (learned.resumption().seen, learned.resumption().span_seconds) == (before.seen, before.span_seconds)


def test_a_job_of_unknown_length_is_learned_from_when_it_ends_by_the_steps_it_has_done() -> None:
    engine = TrainingEngine(Cluster({"v100": 1}), policy_of("min-jct"), EngineOptions(10.0))
    engine.handle(0.0, [JobArrived(Job("a", {"v100": 2.0}, job_type="lm")), RoundBegan()])
    assert engine.arrivals.resumption().seen == 0
    engine.handle(30.0, [JobFinished("a")])
    (of_lm,) = engine.arrivals.resumption().classes
    assert of_lm == ("lm", 1, (2.0,), 1.0, 30.0)
