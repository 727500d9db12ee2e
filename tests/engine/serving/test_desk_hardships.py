"""The desk when things go wrong: every request gets one answer, whichever worker dies and whatever fails."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from fairway import Configuration, Model, Profile, Stage, Worker, Workflow
from fairway.engine.protocol import like
from fairway.engine.serving.desk import MOST_LOSSES
from fairway.engine.serving.messages import (
    FAILED,
    IMPOSSIBLE,
    LATE,
    BatchArrived,
    Cancelled,
    Forget,
    Load,
    PeerCopies,
    Pin,
    Refuse,
    Restarted,
    Run,
    Send,
)
from fairway.links import NO_TRANSFERS
from fairway.place.fleet import OUTSIDE
from fairway.sim.scenario import ColdStarts, Scenario
from tests.engine.serving.driver import Cluster
from tests.engine.serving.test_desk import DIAMOND, PAIRS, served


def test_a_request_that_fails_in_a_batch_fails_alone() -> None:
    cluster = Cluster(served(profile=PAIRS, workers=1), "esg")
    cluster.fails = lambda run: {1: "no luck"} if run.stage == 0 and run.mates else {}
    cluster.ask(0)
    cluster.ask(1, 2, at=0.01)
    cluster.run()
    assert [1, 2] in [ran.keys for ran in cluster.ran]
    assert cluster.refusals == {2: Refuse(2, "no luck", FAILED)}
    assert cluster.replies.keys() == {0, 1}
    assert cluster.is_quiet()


def test_batches_of_a_lost_worker_go_back_to_the_front_and_their_requests_run_alone() -> None:
    cluster = Cluster(served(stages="a", profile=PAIRS, workers=1), "esg")
    cluster.takes = lambda _: 1.0
    cluster.ask(0, 1, due=9.0)
    cluster.ask(2, 3, at=0.05, due=9.0)
    cluster.run(0.1)
    cluster.lose(0)
    cluster.run(0.2)
    assert (len(cluster.desk.batches), cluster.desk.waiting) == (0, 4)
    assert len(cluster.ran) == 1
    cluster.bring_back(0)
    cluster.run()
    assert [ran.keys for ran in cluster.ran] == [[0, 1], [0], [1], [2, 3]]
    assert cluster.replies.keys() == {0, 1, 2, 3}


def test_nothing_is_started_where_no_worker_is() -> None:
    cluster = Cluster(served(profile=PAIRS, workers=3, cold=ColdStarts()), "esg")
    cluster.lose(1)
    cluster.lose(2)
    cluster.run(0.1)
    cluster.ask(*range(5))
    cluster.run()
    sent = {command.worker for _, _, command in cluster.commands if isinstance(command, Send)}
    assert sent == {OUTSIDE, 0}
    assert {ran.worker for ran in cluster.ran} == {0}
    assert len(cluster.replies) == 5
    assert cluster.is_quiet()


def test_requests_with_output_on_a_lost_worker_begin_again() -> None:
    cluster = Cluster(served(*DIAMOND, stages="abcd"), "esg")
    cluster.takes = lambda _: 1.0
    cluster.ask(7)
    cluster.run(1.5)
    first, left, right = cluster.ran
    cluster.lose(first.worker)
    cluster.run(1.6)
    assert cluster.of_kind(Restarted) == [Restarted(7)]
    assert (len(cluster.desk.batches), cluster.desk.waiting) == (1, 1), "what the other worker does is of no use now"
    cluster.run(2.1)
    assert (cluster.ran[3].stage, cluster.ran[3].start) == (0, 2.0)
    assert cluster.ran[3].worker != first.worker
    cluster.run()
    assert [ran.stage for ran in cluster.ran[3:]] == [0, 1, 2, 3]
    assert cluster.answers == {7: 1}
    assert {left.stage, right.stage} == {1, 2}


def test_a_request_that_costs_too_many_workers_is_given_up() -> None:
    cluster = Cluster(served(workers=1), "esg")
    cluster.takes = lambda _: 10.0
    cluster.ask(3)
    for loss in range(MOST_LOSSES):
        cluster.run(loss + 0.1)
        assert len(cluster.ran) == loss + 1
        assert not cluster.answers
        cluster.lose(0)
        cluster.run(loss + 0.2)
        cluster.bring_back(0)
    assert cluster.refusals == {3: like(Refuse, key=3, code=FAILED)}
    assert f"lost {MOST_LOSSES} times" in cluster.refusals[3].reason
    assert cluster.is_quiet()


def test_a_cancelled_request_leaves_the_queues_and_ends_for_nothing() -> None:
    cluster = Cluster(served(workers=1), "esg")
    cluster.ask(0)
    cluster.ask(1, at=0.01)
    cluster.run(0.02)
    assert cluster.tell(OUTSIDE, Cancelled(0), Cancelled(1), Cancelled(99)) == [Send(0, Forget(0))]
    assert (len(cluster.desk.batches), cluster.desk.waiting) == (1, 0)
    cluster.ask(2, at=0.2)
    cluster.run()
    assert cluster.answers == {2: 1}
    assert [ran.keys for ran in cluster.ran] == [[0], [2], [2]]


def test_deadlines_of_clients_are_kept() -> None:
    cluster = Cluster(served(workers=1), "esg")
    cluster.takes = lambda _: 0.6
    cluster.ask(0, deadline=0.15)
    cluster.run(0.0)
    assert cluster.refusals == {0: like(Refuse, code=IMPOSSIBLE)}
    assert "it would take 0.2 s at least, but has 0.15 s" in cluster.refusals[0].reason
    cluster.ask(1)
    cluster.ask(2, deadline=0.5)
    cluster.run(0.5)
    assert 2 not in cluster.refusals
    cluster.run(0.55)
    assert cluster.refusals[2] == like(Refuse, code=LATE)
    assert cluster.desk.waiting == 0
    cluster.run()
    assert cluster.replies.keys() == {1}


def test_a_request_whose_time_is_over_while_it_runs_is_refused_then_and_once() -> None:
    cluster = Cluster(served(workers=1), "esg")
    cluster.takes = lambda _: 5.0
    cluster.ask(0, deadline=1.0)
    cluster.run()
    ((at, _, refused),) = [each for each in cluster.commands if isinstance(each[2], Refuse)]
    assert (at, refused) == (pytest.approx(1.0), like(Refuse, key=0, code=LATE))
    assert cluster.of_kind(Forget) == [Forget(0)], "the worker that runs it may stop"
    assert cluster.answers == {0: 1}
    assert cluster.is_quiet()


def test_a_model_that_cannot_be_loaded_fails_the_jobs_that_wait_for_it() -> None:
    cluster = Cluster(served(cold=ColdStarts()), "esg")
    cluster.copy_fails = lambda model: "no file" if model == 0 else None
    cluster.ask(0, 1)
    cluster.run()
    assert cluster.of_kind(Load).count(like(Load, model=0)) == 2
    assert cluster.refusals == {key: Refuse(key, "no file", FAILED) for key in (0, 1)}
    assert cluster.is_quiet()


def test_a_copy_that_fails_is_no_matter_if_another_one_came() -> None:
    cluster = Cluster(served(cold=ColdStarts()), "esg")
    problems = iter([None, "no file"])
    cluster.copy_fails = lambda model: next(problems, None) if model == 0 else None
    cluster.ask(0, 1, 2, due=9.0)
    cluster.run()
    assert cluster.of_kind(PeerCopies).count(like(PeerCopies, model=0, there=0, failed="no file")) == 1
    assert not cluster.refusals
    assert cluster.replies.keys() == {0, 1, 2}


def test_a_held_batch_whose_model_cannot_be_loaded_fails_alone_and_gives_its_share_back() -> None:
    cluster = Cluster(served(cold=ColdStarts(held=True)), "esg")
    problems = iter(["no file"])
    cluster.copy_fails = lambda _: next(problems, None)
    cluster.ask(0, 1)
    cluster.run(1.0)
    cluster.ask(2)
    cluster.run()
    assert cluster.refusals == {0: Refuse(0, "no file", FAILED)}
    assert cluster.replies.keys() == {1, 2}
    assert cluster.desk.capacity.free_gpu.tolist() == [1, 1]
    assert cluster.is_quiet()


# Chance

TIMES = Profile.of({Configuration(batch, 1, 1): 0.1 + 0.02 * batch for batch in (1, 2, 4)})
SIZES = Profile.of(
    {
        Configuration(batch, cpu, gpu): (0.1 + 0.02 * batch) / (0.5 + 0.3 * cpu + 0.2 * gpu)
        for batch in (1, 2, 4)
        for cpu in (1, 2)
        for gpu in (1, 2)
    }
)
MODELS = {name: Model(name, 10, 0.5) for name in "fghi"}
SCHEDULERS = ("esg", "infless", "fast-gshare", "orion", "front", "esg+compass", "front+hash", "infless+jit", "esg+heft")


def mixed(draws: np.random.Generator) -> Scenario:
    """A diamond and a chain that share models, on workers with room for few of them, whole or divided."""

    def workflow(name: str, edges: tuple[tuple[str, str], ...], **needs: str | None) -> Workflow:
        stages = tuple(Stage.of(stage, 0.1, model) for stage, model in needs.items())
        return Workflow(stages, edges, MODELS, name)

    workflows = (
        workflow("diamond", DIAMOND, a="f", b="g", c="h", d=None),
        workflow("chain", (("a", "b"),), a="g", b="i"),
    )
    divided = bool(draws.integers(2))
    memory = int(draws.choice([20, 30, 1000]))
    cpus, slices = (4, 3) if divided else (1, 1)
    count = int(draws.choice([1, 2, 4]))
    workers = tuple(Worker(f"w{each}", memory, "gpu", None, cpus, slices) for each in range(count))
    profile = SIZES if divided else TIMES
    cold = ColdStarts(
        initial=int(draws.integers(2)),
        prewarms=bool(draws.integers(2)),
        held=bool(draws.random() < 0.3),
        keep_alive_seconds=float(draws.choice([0.7, 5.0, np.inf])),
    )
    return Scenario(
        "mixed",
        workflows,
        workers,
        NO_TRANSFERS,
        slo_seconds={each.name: 1.0 for each in workflows},
        profiles={each.name: (profile,) * len(each) for each in workflows},
        cold=cold,
    )


class Fate:
    """Drives a cluster through chance: clients that ask and change their minds, workers and runs that fail."""

    def __init__(self, seed: int, **options: Any) -> None:
        self.draws = draws = np.random.default_rng([seed, 7])
        scheduler = str(draws.choice(SCHEDULERS))
        self.cluster = cluster = Cluster(mixed(draws), scheduler, seed=seed, **options)
        self.workers = len(cluster.fleet)
        self.keys = 0
        self.cancelled: set[int] = set()
        self.gone: set[int] = set()
        self.pins = bool(draws.random() < 0.3) and cluster.fleet.memory[0] > 20
        cluster.latency = lambda: float(draws.choice([0.0, 0.01, 0.2]))
        cluster.takes = lambda run: run.seconds * float(draws.choice([1.0, draws.exponential(2.0)]))
        cluster.fails = self._fails
        cluster.copy_fails = lambda _: "no file" if draws.random() < 0.1 else None
        for worker in range(self.workers):
            self._pin(worker)

    def _fails(self, run: Run) -> dict[int, str]:
        return {each: "no luck" for each in range(1 + len(run.mates)) if self.draws.random() < 0.05}

    def _pin(self, worker: int) -> None:
        if self.pins and worker != OUTSIDE:
            self.cluster.put(worker, Pin(1))

    @property
    def absent(self) -> list[int]:
        return [worker for worker in range(self.workers) if self.cluster.engines[worker] is None]

    def bring_back(self, number: int) -> None:
        self.cluster.bring_back(number)
        self._pin(number)

    def step(self, *, planners: bool) -> None:
        cluster, draws = self.cluster, self.draws
        cluster.run(cluster.now + float(draws.choice([0.0, 0.01, 0.1, 0.6])))
        planner = cluster.engines[OUTSIDE] is not None
        chance = draws.random()
        if chance < 0.4 and planner:
            expires = cluster.now + float(draws.choice([0.05, 0.5, 2.0, 1e9]))
            cluster.ask(self.keys, workflow=int(draws.integers(2)), deadline=expires)
            self.keys += 1
        elif chance < 0.45 and len(self.absent) < self.workers:
            cluster.lose(int(draws.choice([each for each in range(self.workers) if each not in self.absent])))
        elif chance < 0.55 and self.absent:
            number = int(draws.choice(self.absent))
            if cluster.can_come_back(number):
                self.bring_back(number)
        elif chance < 0.6 and planner and cluster.desk.open:
            key = int(draws.choice(sorted(cluster.desk.open)))
            self.cancelled.add(key)
            cluster.tell(OUTSIDE, Cancelled(key))
        elif chance < 0.62 and planners and planner:
            self.gone |= set(range(self.keys)) - set(cluster.answers) - self.cancelled
            cluster.lose(OUTSIDE)
        elif chance < 0.7 and not planner and cluster.can_come_back(OUTSIDE):
            cluster.bring_back(OUTSIDE)

    def calm_down(self) -> None:
        """Let everything end that can."""
        cluster = self.cluster
        cluster.run(cluster.now + 1.0)
        cluster.copy_fails = lambda _: None
        for number in (*self.absent, *([OUTSIDE] if cluster.engines[OUTSIDE] is None else [])):
            self.bring_back(number)
        cluster.run()

    def check(self) -> None:
        cluster = self.cluster
        assert max(cluster.answers.values(), default=1) == 1
        assert set(cluster.answers) | self.cancelled | self.gone == set(range(self.keys))
        assert not set(cluster.answers) & self.cancelled
        assert not set(cluster.answers) & self.gone
        assert cluster.is_quiet()
        fleet = cluster.fleet.workers[0]
        assert cluster.desk.capacity.free_gpu.tolist() == [fleet.slices] * self.workers
        assert cluster.desk.capacity.free_cpu.tolist() == [fleet.cpus] * self.workers


@pytest.mark.parametrize("seed", range(60))
def test_every_request_gets_one_answer_whatever_happens(seed: int) -> None:
    fate = Fate(seed)
    for _ in range(250):
        fate.step(planners=False)
    fate.calm_down()
    fate.check()


@pytest.mark.parametrize("seed", range(60, 90))
def test_so_it_is_for_those_that_came_after_a_planner_was_lost(seed: int) -> None:
    fate = Fate(seed)
    for _ in range(250):
        fate.step(planners=True)
    fate.calm_down()
    fate.check()


@pytest.mark.parametrize("seed", range(90, 105))
def test_so_it_is_where_rows_travel_as_messages(seed: int) -> None:
    fate = Fate(seed, publishes=True)
    for _ in range(150):
        fate.step(planners=True)
    fate.calm_down()
    fate.check()


def test_what_was_planned_together_is_what_ran() -> None:
    fate = Fate(3)
    for _ in range(200):
        fate.step(planners=False)
    fate.calm_down()
    planned = {batch.number: batch for batch in fate.cluster.of_kind(BatchArrived)}
    counted = Counter(ran.run.batch.number for ran in fate.cluster.ran if ran.run.batch is not None)
    assert counted
    assert max(counted.values()) == 1
    for ran in fate.cluster.ran:
        batch = ran.run.batch
        assert batch is not None
        assert batch is planned[batch.number]
        assert ran.keys == [flow.request.key for flow in batch.flows]
        assert len(ran.keys) <= batch.configuration.batch
