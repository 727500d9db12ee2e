"""Gangs that may span only so many nodes: they never span more, they wait, and in the end they run."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.allocate.registry import policy_of
from fairway.cluster import UNCOUNTED, Cluster, Machine
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.explanation import reasons
from fairway.engine.training.messages import Command, Event, Grant, JobArrived, JobFinished, Refuse, Revoke, RoundBegan
from fairway.engine.training.options import EngineOptions
from fairway.engine.training.worker_pool import WorkerPool
from fairway.jobs import Job

EVEN = Cluster({"v100": 6}, {}, {"v100": 2})
UNEVEN = Cluster({"v100": 6}, machines=(Machine(),) * 3, machine_of={"v100": (0, 1, 1, 1, 2, 2)})


def nodes_of(cluster: Cluster, workers: tuple[int, ...]) -> set[int]:
    where = cluster.machine_of.get("v100") or tuple(worker // 2 for worker in range(6))
    return {where[worker] for worker in workers}


class Watched:
    """An engine whose grants are checked as they come."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.jobs = cluster, dict[str, Job]()
        self.engine = TrainingEngine(cluster, policy_of("max-min-fairness"), EngineOptions(60.0))
        self.now = 0.0
        self.held: dict[int, Grant] = {}

    def handle(self, *events: Event) -> list[Command]:
        self.jobs.update((event.job.id, event.job) for event in events if isinstance(event, JobArrived))
        commands = self.engine.handle(self.now, events)
        for command in commands:
            if isinstance(command, Revoke):
                self.held.pop(command.lease, None)
            elif isinstance(command, Grant):
                self.held[command.lease] = command
                spanned, most = nodes_of(self.cluster, command.workers), self.jobs[command.jobs[0]].nodes
                assert not most or len(spanned) <= most, f"{command} spans {spanned}"
        self.engine.validate()
        return commands

    def rounds(self, count: int) -> set[str]:
        seen: set[str] = set()
        for _ in range(count):
            self.now = max(self.now, self.engine.round_end or 0.0)
            self.handle(RoundBegan())
            seen |= {job for grant in self.held.values() for job in grant.jobs}
        return seen


def gang(name: str, workers: int, nodes: int = 0) -> JobArrived:
    return JobArrived(Job(name, {"v100": 1.0}, scale_factor=workers, nodes=nodes))


@pytest.mark.parametrize("cluster", [EVEN, UNEVEN])
def test_a_gang_for_one_node_waits_while_only_pieces_of_nodes_are_free(cluster: Cluster) -> None:
    watched = Watched(cluster)
    watched.handle(*[gang(f"one-{number}", 1) for number in range(6)])
    watched.rounds(1)
    apart = (0, 2) if cluster is EVEN else (0, 4)
    ended = [grant.jobs[0] for grant in watched.held.values() if grant.workers[0] in apart]
    watched.handle(*[JobFinished(job) for job in ended])
    watched.handle(gang("pair", 2, nodes=1))
    assert not [grant for grant in watched.held.values() if "pair" in grant.jobs]
    assert "pair" not in watched.rounds(1)
    assert watched.engine.workers.free.tolist() == [2]
    assert "2 workers of one type on one node" in reasons(watched.engine)["pair"].sentence
    assert "pair" in watched.rounds(20), "it is let in when its turn has come"


def test_the_same_gang_starts_at_once_where_it_may_span_both_nodes() -> None:
    watched = Watched(EVEN)
    watched.handle(gang("four", 4, nodes=2))
    watched.rounds(1)
    (grant,) = watched.held.values()
    assert (len(nodes_of(EVEN, grant.workers)), grant.spread) == (2, True)


@pytest.mark.parametrize(
    ("cluster", "workers", "nodes", "said"),
    [
        (EVEN, 3, 1, "asks for 3 workers of 1 nodes, which have 2 each"),
        (EVEN, 6, 2, "asks for 6 workers of 2 nodes, which have 2 each"),
        (UNEVEN, 4, 1, "asks for 4 workers of 1 nodes, which have 3 each"),
        (UNEVEN, 6, 2, "asks for 6 workers of 2 nodes, which have 3 each"),
        (UNEVEN, 5, 2, None),
        (UNEVEN, 3, 1, None),
        (EVEN, 6, 3, None),
        (EVEN, 6, 0, None),
    ],
)
def test_a_gang_that_so_many_nodes_never_hold_is_refused(
    cluster: Cluster, workers: int, nodes: int, said: str | None
) -> None:
    refused = [one for one in Watched(cluster).handle(gang("job", workers, nodes)) if isinstance(one, Refuse)]
    assert [said in one.reason for one in refused] == ([] if said is None else [True])


def test_workers_of_machines_that_are_not_known_are_on_nodes_of_their_own() -> None:
    pool = WorkerPool(Cluster({"v100": 4}, machines=(Machine(),), machine_of={"v100": (0, UNCOUNTED, 0, UNCOUNTED)}))
    assert [pool.nodes_of(0, workers) for workers in ((0, 2), (0, 1), (1, 3), (0, 1, 2, 3))] == [1, 2, 2, 3]


@settings(max_examples=60, deadline=None)
@given(
    cluster=st.sampled_from([EVEN, UNEVEN]),
    sizes=st.lists(st.tuples(st.integers(1, 5), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=8),
)
def test_no_gang_ever_spans_more_nodes_than_it_may_and_every_gang_runs(
    cluster: Cluster, sizes: list[tuple[int, int, int]]
) -> None:
    watched = Watched(cluster)
    accepted: set[str] = set()
    for number, (workers, nodes, rounds) in enumerate(sizes):
        refused = [one for one in watched.handle(gang(f"job-{number}", workers, nodes)) if isinstance(one, Refuse)]
        accepted |= set() if refused else {f"job-{number}"}
        watched.rounds(rounds)
    assert watched.rounds(20 * len(sizes)) >= accepted
