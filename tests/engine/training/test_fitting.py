"""CPUs and memory: jobs run beside each other only where their machines have what all of them ask for."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.allocate.registry import policy_of
from fairway.cluster import Cluster, Machine, nodes_as_machines
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.explanation import explain, reasons
from fairway.engine.training.messages import (
    Command,
    Event,
    Grant,
    JobArrived,
    JobFinished,
    Refuse,
    Revoke,
    RoundBegan,
    WorkersJoined,
    WorkersLeft,
)
from fairway.engine.training.options import EngineOptions
from fairway.jobs import Job

GB = 10**9
ONE = Cluster({"v100": 4, "k80": 2}, machines=(Machine(8, 64 * GB),), machine_of={"v100": (0,) * 4, "k80": (0,) * 2})
SIZES = {"v100": 4, "k80": 4}
NODES = {"v100": 2, "k80": 1}
NODED = Cluster(
    SIZES, {}, NODES, *nodes_as_machines(SIZES, NODES, {"v100": 8, "k80": 4}, {"v100": 32 * GB, "k80": 16 * GB})
)


class Watched:
    """An engine, and what its leases take of each machine."""

    def __init__(self, cluster: Cluster, policy: str = "max-min-fairness", round_seconds: float = 60.0) -> None:
        self.cluster, self.jobs = cluster, dict[str, Job]()
        self.engine = TrainingEngine(cluster, policy_of(policy), EngineOptions(round_seconds))
        self.held: dict[int, Grant] = {}
        self.now = 0.0

    def handle(self, *events: Event) -> list[Command]:
        self.jobs.update((event.job.id, event.job) for event in events if isinstance(event, JobArrived))
        commands = self.engine.handle(self.now, events)
        for command in commands:
            if isinstance(command, Revoke):
                self.held.pop(command.lease, None)
            elif isinstance(command, Grant):
                self.held[command.lease] = command
        self.check()
        self.engine.validate()
        return commands

    def rounds(self, count: int) -> set[str]:
        """Let so many rounds pass; the jobs that have run in one of them."""
        seen: set[str] = set()
        for _ in range(count):
            self.now = max(self.now, self.engine.round_end or 0.0)
            self.handle(RoundBegan())
            seen |= self.running
        return seen

    @property
    def running(self) -> set[str]:
        return {job for grant in self.held.values() for job in grant.jobs}

    def check(self) -> None:
        """No machine has given away more than it has."""
        cpus, memory = defaultdict[int, float](float), defaultdict[int, float](float)
        for grant in self.held.values():
            for worker in grant.workers:
                machine = int(self.engine.workers.machine_of(self.engine.types.index(grant.accelerator))[worker])
                for name in grant.jobs:
                    cpus[machine] += self.jobs[name].cpus / len(grant.workers)
                    memory[machine] += self.jobs[name].memory_bytes / len(grant.workers)
        for number, size in enumerate(self.engine.workers.machines):
            assert cpus[number] <= size.cpus + 1e-6
            assert memory[number] <= size.memory_bytes + 1.0


def job(name: str, cpus: float = 0.0, memory: float = 0.0, scale: int = 1, **fields: object) -> Job:
    fields.setdefault("throughputs", {"v100": 4.0, "k80": 1.0})
    return Job(name, scale_factor=scale, steps_left=1e6, cpus=cpus, memory_bytes=memory, **fields)  # type: ignore[arg-type]


def test_a_job_waits_while_the_cpus_are_taken_and_starts_when_they_are_given_back() -> None:
    world = Watched(ONE)
    world.handle(JobArrived(job("a", 6)), JobArrived(job("b", 4)), JobArrived(job("c", 2)))
    world.rounds(1)
    assert world.running == {"a", "c"}
    world.handle(JobFinished("a"))
    assert world.running == {"b", "c"}


def test_memory_counts_as_cpus_do_and_jobs_that_ask_for_nothing_are_never_in_the_way() -> None:
    world = Watched(ONE)
    asking = [JobArrived(job(name, memory=40 * GB)) for name in "ab"]
    world.handle(*asking, *(JobArrived(job(name)) for name in "cdef"))
    world.rounds(1)
    assert len(world.running & {"a", "b"}) == 1
    assert {"c", "d", "e", "f"} <= world.running


def test_jobs_that_do_not_fit_beside_each_other_take_turns() -> None:
    world = Watched(ONE)
    world.handle(*(JobArrived(job(name, 8)) for name in "abc"))
    assert world.rounds(60) == {"a", "b", "c"}


@pytest.mark.parametrize(
    "policy", ["max-min-fairness", "fifo", "makespan", "hierarchical", "max-min-fairness:agnostic"]
)
def test_where_all_fit_nothing_moves_for_the_sake_of_cpus(policy: str) -> None:
    world = Watched(ONE, policy)
    rates = {"v100": 1.0, "k80": 1.0}
    world.handle(*(JobArrived(job(name, 1, GB, throughputs=rates)) for name in "abcdef"))
    world.rounds(1)
    before = dict(world.held)
    world.rounds(20)
    assert world.held == before


def test_a_job_goes_to_the_node_that_has_room() -> None:
    world = Watched(NODED)
    world.handle(JobArrived(job("a", 7, throughputs={"v100": 1.0})))
    world.rounds(1)
    world.handle(JobArrived(job("b", 7, throughputs={"v100": 1.0})))
    assert world.running == {"a", "b"}
    nodes = {worker // 2 for grant in world.held.values() for worker in grant.workers}
    assert nodes == {0, 1}


def test_a_job_that_does_not_fit_on_its_best_type_runs_on_another() -> None:
    world = Watched(NODED)
    world.handle(*(JobArrived(job(name, 8)) for name in "ab"), JobArrived(job("c", 4)))
    world.rounds(1)
    assert {grant.jobs[0]: grant.accelerator for grant in world.held.values()} == {
        "a": "v100",
        "b": "v100",
        "c": "k80",
    }


def test_what_a_gang_asks_for_is_divided_among_its_workers() -> None:
    world = Watched(NODED)
    world.handle(JobArrived(job("gang", 16, scale=4, throughputs={"v100": 1.0})))  # 4 for each: 8 on each node
    world.rounds(1)
    assert world.running == {"gang"}
    assert world.handle(JobArrived(job("more", 20, scale=4, throughputs={"v100": 1.0}))) == [
        Refuse(
            "more",
            "job 'more' asks for 20 CPUs, but the largest machine of this cluster has 8 CPUs and 29.8 GiB of memory",
        )
    ]


def test_a_job_that_no_machine_could_hold_is_refused() -> None:
    (refused,) = Watched(ONE).handle(JobArrived(job("a", 9)))
    assert isinstance(refused, Refuse)
    assert "9 CPUs" in refused.reason
    assert "8 CPUs" in refused.reason


def test_the_reason_names_what_is_missing() -> None:
    world = Watched(ONE)
    world.handle(JobArrived(job("a", 8, preemptible=False)))
    world.rounds(1)
    world.handle(JobArrived(job("b", 2, 3 * 2**30)))
    world.rounds(1)
    found = reasons(world.engine)["b"]
    assert found.code == "NotEnoughResources"
    assert "2 CPUs and 3 GiB of memory" in found.sentence
    explained = explain(world.engine, "b")
    assert (explained.code, explained.position) == ("NotEnoughResources", 1)


def test_nodes_that_join_are_as_large_as_those_before() -> None:
    world = Watched(NODED)
    world.handle(*(JobArrived(job(name, 8, throughputs={"v100": 1.0})) for name in "abc"))
    world.rounds(1)
    assert len(world.running) == 2
    world.handle(WorkersJoined("v100", 2))
    assert world.running == {"a", "b", "c"}


def test_jobs_that_ask_for_cpus_share_their_accelerator_with_no_other() -> None:
    class Together:
        def pair_rates(self, job_type: str, partner: str, scale_factor: int) -> dict[str, tuple[float, float]]:  # noqa: ARG002
            return {"v100": (0.9, 0.9)}

    cluster = Cluster({"v100": 1}, machines=(Machine(8, 64 * GB),), machine_of={"v100": (0,)})
    for cpus, together in ((0.0, 2), (1.0, 1)):
        world = Watched(cluster)
        policy = policy_of("max-min-fairness:space-sharing")
        world.engine = TrainingEngine(cluster, policy, EngineOptions(60.0), partners=Together())
        world.handle(*(JobArrived(job(name, cpus, throughputs={"v100": 1.0}, job_type="x")) for name in "ab"))
        world.rounds(1)
        assert len(world.running) == together
        assert world.rounds(40) == {"a", "b"}


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_no_machine_ever_gives_away_more_than_it_has_and_every_job_gets_its_turn(data: st.DataObject) -> None:
    policy = data.draw(st.sampled_from(["max-min-fairness", "fifo", "makespan", "water-filling", "min-jct"]))
    world = Watched(data.draw(st.sampled_from([ONE, NODED])), policy)
    steps = data.draw(st.lists(st.sampled_from(["arrive", "arrive", "round", "finish", "leave"]), max_size=25))
    for number, step in enumerate(steps):
        world.now += data.draw(st.sampled_from([0.0, 10.0, 60.0]))
        if step == "arrive":
            asked = (
                data.draw(st.sampled_from([0.0, 0.5, 1.0, 3.0, 4.0])),
                data.draw(st.sampled_from([0.0, 1.0, 12.0])) * GB,
            )
            world.handle(JobArrived(job(f"job-{number}", *asked, scale=data.draw(st.sampled_from([1, 1, 2])))))
        elif step == "round" and world.engine.round_end is not None:
            world.now = max(world.now, world.engine.round_end)
            world.handle(RoundBegan())
        elif step == "finish" and world.running:
            world.handle(JobFinished(data.draw(st.sampled_from(sorted(world.running)))))
        elif step == "leave" and world.engine.workers.present[1] > 1:
            world.handle(WorkersLeft("k80", (int(world.engine.workers.present[1]) - 1,), drain=True))
    if policy == "max-min-fairness" and len(world.engine.jobs):
        assert world.rounds(300) == set(world.engine.jobs.ids)
