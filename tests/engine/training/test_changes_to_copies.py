"""What is tried on copies of the engine: other sizes, weights and types of one job."""

from __future__ import annotations

import pytest

from fairway.allocate.registry import policy_of
from fairway.cluster import Cluster
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.messages import JobArrived, RoundBegan
from fairway.engine.training.options import EngineOptions
from fairway.engine.training.what_if import accept, holds, resize, reweigh, snapshot, team_of
from fairway.jobs import Job


@pytest.fixture
def engine() -> TrainingEngine:
    found = TrainingEngine(Cluster({"v100": 3, "k80": 2}), policy_of("max-min-fairness"), EngineOptions(60.0, 0.0))
    fixed = Job("fixed", {"v100": 1.0}, scale_factor=2, steps_left=1e6, preemptible=False)
    found.handle(0.0, [JobArrived(fixed), RoundBegan()])
    waits = Job(
        "a", {"v100": 8.0}, scale_factor=2, steps_left=1e6, weight=3.0, entity="red", spread_throughputs={"v100": 6.0}
    )
    found.handle(1.0, [JobArrived(waits)])
    return found


def test_a_job_of_half_the_size_makes_half_the_steps_and_starts_if_it_fits(engine: TrainingEngine) -> None:
    trial = snapshot(engine)
    assert not holds(trial, "a")
    resize(trial, "a", 1)
    position = trial.jobs.position("a")
    assert trial.jobs.rates[position].tolist() == [4.0, 0.0]
    assert trial.jobs.spread[position].tolist() == [3.0, 0.0]
    assert (int(trial.jobs.scale[position]), trial.jobs.pooled[position]) == (1, 12.0)
    assert holds(trial, "a")
    assert not holds(engine, "a"), "nothing has happened to the job itself"
    assert engine.jobs.rates[engine.jobs.position("a")].tolist() == [8.0, 0.0]


def test_a_job_that_accepts_another_type_starts_there(engine: TrainingEngine) -> None:
    trial = snapshot(engine)
    accept(trial, "a", "k80", 2.0)
    position = trial.jobs.position("a")
    assert trial.jobs.rates[position].tolist() == [8.0, 2.0]
    assert trial.jobs.spread[position].tolist() == [6.0, 2.0]
    assert trial.jobs.pooled[position] == 3 * 8.0 + 2 * 2.0
    assert holds(trial, "a")


def test_a_weight_is_multiplied(engine: TrainingEngine) -> None:
    trial = snapshot(engine)
    reweigh(trial, "a", 1.5)
    assert trial.jobs.weight[trial.jobs.position("a")] == 4.5
    assert engine.jobs.weight[engine.jobs.position("a")] == 3.0


def test_a_job_is_of_its_team(engine: TrainingEngine) -> None:
    assert team_of(engine, engine.jobs.position("a")) == "red"
    assert team_of(engine, engine.jobs.position("fixed")) is None
