"""What no worker, node or machine has room for is refused with what there is; and rates of jobs that have left."""

from __future__ import annotations

import pytest

from fairway.allocate.registry import policy_of
from fairway.cluster import Cluster, Machine
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.messages import JobArrived, RateMeasured
from fairway.engine.training.options import EngineOptions
from fairway.errors import InputError
from fairway.jobs import Job
from fairway.jobs.description import JobDescription, parse_job
from fairway.live.training.engine_job import _refuse_too_large, _types_with_room

NODED = Cluster({"v100": 4, "k80": 6}, workers_per_node={"v100": 2, "k80": 2})
TYPES = ("v100", "k80")


def job(text: str) -> JobDescription:
    return parse_job(f"run: x\n{text}", "job.yaml")


def gang(count: int, nodes: int = 1) -> JobDescription:
    return job(f"num_nodes: {nodes}\nresources: {{accelerators: '[v100, k80]:{count}'}}")


@pytest.mark.parametrize(("count", "nodes"), [(1, 1), (2, 1), (2, 2), (2, 3)])
def test_what_some_type_has_on_so_many_nodes_is_taken(count: int, nodes: int) -> None:
    _refuse_too_large(gang(count, nodes), NODED, TYPES)


@pytest.mark.parametrize(
    ("count", "nodes", "said"),
    [
        (7, 1, "7 workers of one type asked for, but this cluster has at most 6"),
        (3, 1, "3 workers of one type asked for, but a node of this cluster has at most 2; let it span more nodes, as "
               "by 'num_nodes: 2'"),
        (5, 1, "a node of this cluster has at most 2; let it span more nodes, as by 'num_nodes: 3'"),
        (3, 2, "num_nodes: 2 nodes with 3 workers of one type each asked for, but a node of this cluster has at most"),
        (2, 4, "8 workers of one type asked for, but this cluster has at most 6"),
    ],
)  # fmt: skip
def test_what_none_has_is_refused_with_the_most_that_there_is(count: int, nodes: int, said: str) -> None:
    with pytest.raises(InputError) as caught:
        _refuse_too_large(gang(count, nodes), NODED, TYPES)
    assert said in str(caught.value)


MACHINES = Cluster(
    {"v100": 1, "k80": 1}, machines=(Machine(0.5, 64 * 2**30), Machine(8, 2**30)),
    machine_of={"v100": (0,), "k80": (1,)},
)  # fmt: skip


@pytest.mark.parametrize(
    ("asks", "types"),
    [
        ("", ("v100", "k80")),
        (", memory: 2GB", ("v100",)),
        (", cpus: 1", ("k80",)),
        (", cpus: 0.5", ("v100", "k80")),
        (", cpus: 8, memory: 1GiB", ("k80",)),
    ],
)
def test_a_job_runs_where_machines_have_what_it_asks_for_and_no_more(asks: str, types: tuple[str, ...]) -> None:
    asked = job(f"resources: {{accelerators: '[v100, k80]:1'{asks}}}")
    assert _types_with_room(asked, MACHINES, TYPES) == types


@pytest.mark.parametrize(
    ("asks", "field"), [("cpus: 9", "cpus"), ("memory: 65GiB", "memory"), ("cpus: 1, memory: 2GiB", "cpus")]
)
def test_what_no_machine_has_is_refused_by_its_name(asks: str, field: str) -> None:
    asked = job(f"resources: {{accelerators: '[v100, k80]:1', {asks}}}")
    with pytest.raises(InputError) as caught:
        _types_with_room(asked, MACHINES, TYPES)
    assert str(caught.value).startswith(f"resources.{field}: ")


def test_what_two_did_together_says_nothing_of_the_one_that_is_left() -> None:
    engine = TrainingEngine(Cluster({"v100": 1}), policy_of("max-min-fairness"), EngineOptions(60.0, 0.0))
    engine.handle(0.0, [JobArrived(Job("a", {"v100": 4.0}, steps_left=100.0))])
    engine.handle(1.0, [RateMeasured(("a", "gone"), "v100", (1.0, 2.0))])
    assert engine.jobs.rates.tolist() == [[4.0]]
    engine.handle(2.0, [RateMeasured(("gone",), "v100", (1.0,))])
    assert engine.jobs.rates.tolist() == [[4.0]]
    engine.handle(3.0, [RateMeasured(("a",), "v100", (3.0,))])
    assert engine.jobs.rates.tolist() == [[3.0]]
    assert engine.jobs.pooled.tolist() == [3.0]
