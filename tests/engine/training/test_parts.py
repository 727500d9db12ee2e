"""Parts of workers: jobs that ask for less than a whole one share it, and no worker is held by more than a whole."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.allocate.packing.packer import RULES, Rule
from fairway.allocate.registry import policy_of
from fairway.cluster import Cluster, nodes_as_machines
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.explanation import explain
from fairway.engine.training.messages import (
    Command,
    Event,
    Grant,
    JobArrived,
    JobFinished,
    Revoke,
    RoundBegan,
    WorkersLeft,
    WorkersReturned,
)
from fairway.engine.training.options import EngineOptions
from fairway.jobs import Job

POLICIES = (
    "max-min-fairness", "water-filling", "finish-time-fairness", "fifo", "shortest-job-first", "allox", "gandiva",
    "isolated", "proportional", "max-throughput", "min-cost", "makespan", "nash-welfare", "min-jct",
)  # fmt: skip


class Watched:
    """An engine, and how much of each worker its leases hold."""

    def __init__(self, cluster: Cluster, policy: str = "max-min-fairness", packing: Rule = "fgd") -> None:
        self.cluster = cluster
        self.engine = TrainingEngine(cluster, policy_of(policy), EngineOptions(60.0, packing=packing))
        self.held: dict[int, Grant] = {}
        self.now = 0.0

    def handle(self, *events: Event) -> list[Command]:
        commands = self.engine.handle(self.now, events)
        for command in commands:
            if isinstance(command, Revoke):
                self.held.pop(command.lease, None)
            elif isinstance(command, Grant):
                self.held[command.lease] = command
        self.engine.validate()
        used: dict[tuple[str, int], Fraction] = defaultdict(Fraction)
        for grant in self.held.values():
            for worker in grant.workers:
                used[grant.accelerator, worker] += Fraction(grant.part).limit_denominator(1000)
        assert all(part <= 1 for part in used.values()), "no more than the whole of a worker is held"
        return commands

    def rounds(self, count: int = 1) -> None:
        for _ in range(count):
            self.handle(RoundBegan())
            self.now += 60.0

    def where(self, job: str) -> tuple[int, ...]:
        return next(grant.workers for grant in self.held.values() if job in grant.jobs)

    @property
    def running(self) -> set[str]:
        return {job for grant in self.held.values() for job in grant.jobs}


def arrives(name: str, part: float = 1.0, *, scale: int = 1, **more: float) -> JobArrived:
    return JobArrived(Job(name, {"a100": 1.0}, scale_factor=scale, steps_left=1e6, part=part, **more))  # type: ignore[arg-type]


@pytest.mark.parametrize("policy", POLICIES)
def test_two_halves_run_on_one_worker_under_every_policy(policy: str) -> None:
    world = Watched(Cluster({"a100": 1}, {"a100": 2.0}), policy)
    world.handle(arrives("a", 0.5), arrives("b", 0.5))
    world.rounds(2)
    assert world.running == {"a", "b"}
    assert world.where("a") == world.where("b") == (0,)


def test_parts_are_packed_so_that_whole_workers_stay_whole() -> None:
    world = Watched(Cluster({"a100": 4}, workers_per_node={"a100": 4}))
    world.handle(*(arrives(f"p{number}", 0.25) for number in range(4)), arrives("gang", scale=3))
    world.rounds()
    assert world.running == {"p0", "p1", "p2", "p3", "gang"}
    assert len({world.where(f"p{number}") for number in range(4)}) == 1


def test_without_sharing_each_part_takes_a_whole_worker() -> None:
    world = Watched(Cluster({"a100": 2}), packing="whole")
    world.handle(arrives("a", 0.5), arrives("b", 0.5), arrives("c", 0.5))
    world.rounds()
    assert len(world.running) == 2
    assert {grant.part for grant in world.held.values()} == {1.0}


def test_a_gang_of_parts_gets_as_many_workers() -> None:
    world = Watched(Cluster({"a100": 2}, workers_per_node={"a100": 2}))
    world.handle(arrives("a", 0.5, scale=2), arrives("b", 0.5, scale=2))
    world.rounds()
    assert world.where("a") == world.where("b") == (0, 1)


def test_a_tenth_ten_times_fills_a_worker_and_no_more() -> None:
    world = Watched(Cluster({"a100": 1}), "fifo")
    world.handle(*(arrives(f"p{number:02}", 0.1) for number in range(11)))
    world.rounds(2)
    assert len(world.running) == 10


def test_a_part_that_ends_leaves_its_room_at_once() -> None:
    world = Watched(Cluster({"a100": 1}))
    world.handle(arrives("a", 0.6), arrives("b", 0.4))
    world.rounds()
    world.now -= 30
    world.handle(arrives("c", 0.4))
    assert world.running == {"a", "b"}
    world.handle(JobFinished("b"))
    assert world.running == {"a", "c"}


def test_policies_count_parts_as_such() -> None:
    """Five jobs on two workers: a half counts half, so that all of the time of both is given."""
    world = Watched(Cluster({"a100": 2}))
    world.handle(*(arrives(f"p{number}", 0.5) for number in range(4)))
    world.rounds()
    assert world.engine.allocation is not None
    assert world.engine.allocation.problem.scale_factors.tolist() == [0.5] * 4
    assert world.engine.jobs.shares.sum() == pytest.approx(4.0)


def test_a_whole_worker_that_only_adds_up_is_not_there_and_explain_says_so() -> None:
    world = Watched(Cluster({"a100": 2}), "fifo")
    fixed = [JobArrived(Job(name, {"a100": 1.0}, steps_left=1e6, part=0.5, preemptible=False)) for name in "abc"]
    world.handle(*fixed)
    world.rounds()
    world.handle(JobFinished("b" if world.where("a") == world.where("b") else "c"))
    parts = {world.where(job) for job in world.running}
    assert len(parts) == 2, "a half of each worker is free"
    world.handle(arrives("whole"))
    world.rounds()
    assert "whole" not in world.running
    told = explain(world.engine, "whole")
    assert told.code == "NotEnoughWorkers"
    assert told.reason.startswith("it asks for 1 a100, but the 1 a100 that are free are in parts, none larger than 0.5")
    world.handle(arrives("more", 0.6))
    assert "it asks for 0.6 a100" in explain(world.engine, "more").reason


def test_a_drained_worker_loses_all_its_parts_and_gives_none_away() -> None:
    world = Watched(Cluster({"a100": 2}))
    world.handle(arrives("a", 0.5), arrives("b", 0.4))
    world.rounds()
    (worker,) = world.where("a")
    world.handle(WorkersLeft("a100", (worker,), drain=True))
    assert all(worker not in grant.workers for grant in world.held.values())
    world.handle(WorkersReturned("a100", (worker,)))
    world.rounds()
    assert world.running == {"a", "b"}


def test_a_job_that_must_not_be_stopped_keeps_its_part_of_a_drained_worker_to_its_end() -> None:
    world = Watched(Cluster({"a100": 1}))
    world.handle(
        JobArrived(Job("fixed", {"a100": 1.0}, steps_left=1e6, part=0.5, preemptible=False)), arrives("other", 0.3)
    )
    world.rounds()
    world.handle(WorkersLeft("a100", (0,), drain=True))
    assert world.running == {"fixed"}
    world.handle(arrives("late", 0.2))
    world.rounds()
    assert world.running == {"fixed"}
    world.handle(JobFinished("fixed"))
    assert world.engine.workers.present[0] == 0


def test_another_engine_goes_on_with_the_same_parts() -> None:
    world = Watched(Cluster({"a100": 2}))
    world.handle(arrives("a", 0.5), arrives("b", 0.3), arrives("c"))
    world.rounds()
    other = TrainingEngine(world.cluster, policy_of("max-min-fairness"), EngineOptions(60.0))
    other.handle(world.now, world.engine.resumption())
    other.validate()
    assert other.workers.room.tolist() == world.engine.workers.room.tolist() == [200]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_whatever_comes_and_goes_no_more_than_the_whole_of_a_worker_is_held(data: st.DataObject) -> None:
    rule = data.draw(st.sampled_from(RULES))
    sizes, nodes = {"a100": 4, "v100": 2}, {"a100": 2, "v100": 2}
    machines = nodes_as_machines(sizes, nodes, {"a100": 8.0}, {}) if data.draw(st.booleans()) else ((), {})
    world = Watched(Cluster(sizes, {}, nodes, *machines), data.draw(st.sampled_from(POLICIES[:5])), rule)
    names: list[str] = []
    for step in range(data.draw(st.integers(3, 14))):
        match data.draw(st.sampled_from(["arrive", "arrive", "finish", "round", "leave", "return"])):
            case "arrive":
                names.append(f"j{step}")
                world.handle(
                    JobArrived(
                        Job(
                            names[-1],
                            {"a100": 2.0, "v100": 1.0},
                            scale_factor=data.draw(st.integers(1, 2)),
                            steps_left=1e6,
                            part=data.draw(st.sampled_from([1.0, 0.5, 0.333, 0.1, 0.75])),
                            preemptible=data.draw(st.booleans()),
                            cpus=data.draw(st.sampled_from([0.0, 2.0])),
                        )
                    )
                )
            case "finish" if running := sorted(world.running):
                name = data.draw(st.sampled_from(running))
                world.handle(JobFinished(name))
            case "leave":
                world.handle(WorkersLeft("a100", (data.draw(st.integers(0, 3)),), drain=data.draw(st.booleans())))
            case "return":
                world.handle(WorkersReturned("a100", (data.draw(st.integers(0, 3)),)))
            case _:
                world.rounds()
    world.rounds(2)
