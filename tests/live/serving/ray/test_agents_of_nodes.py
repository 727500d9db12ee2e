"""The agents that the supervisor makes on the nodes of a cluster; only Ray itself is stood in for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fairway.errors import InputError
from fairway.live.ray_cluster.nodes import RayNode
from fairway.live.serving.nodes.address_book import Place
from fairway.live.serving.ray import node_agents as module
from fairway.live.serving.ray.node_agents import Node, NodeAgents, worker_actor

HERE = Path("/proc/sys/kernel/random/boot_id")


class RayError(Exception):
    """What Ray raises."""


class Agent:
    """An agent: its methods answer at once, or raise what the test says."""

    def __init__(self, content: tuple[int, str], options: dict[str, Any], said: dict[str, Any]) -> None:
        self.content, self.options, self.said = content, options, said
        self.calls: list[tuple[Any, ...]] = []

    def __getattr__(self, method: str) -> Any:
        def call(*given: Any) -> Any:
            self.calls.append((method, *given))
            return lambda: self._answer(method)

        return SimpleNamespace(remote=call)

    def _answer(self, method: str) -> Any:
        said = self.said.get(method, {"start": 5000, "run_beside": "runs", "clock": ("elsewhere", 0.0)}.get(method))
        if isinstance(said, Exception):
            raise said
        return said() if callable(said) else said


class Ray:
    """As much of Ray as is used."""

    exceptions = SimpleNamespace(RayError=RayError)

    def __init__(self) -> None:
        self.made: list[Agent] = []
        self.said: dict[str, dict[str, Any]] = {}
        self.killed: list[Agent] = []
        self.waited: list[tuple[int, float]] = []
        self.rows: list[dict[str, Any]] = []

    def remote(self, _: type) -> Any:
        def make(options: dict[str, Any], content: tuple[int, str]) -> Agent:
            self.made.append(Agent(content, options, self.said.get(content[1], {}) if content else {}))
            return self.made[-1]

        return SimpleNamespace(
            options=lambda **options: SimpleNamespace(remote=lambda *content: make(options, *(content or ((0, ""),))))
        )

    def get(self, ref: Callable[[], Any], *, timeout: float) -> Any:
        assert timeout > 0
        return ref()

    def wait(self, refs: list[Any], *, num_returns: int, timeout: float) -> None:
        assert num_returns == len(refs)
        self.waited.append((num_returns, timeout))

    def kill(self, agent: Agent) -> None:
        self.killed.append(agent)

    def nodes(self) -> list[dict[str, Any]]:
        return self.rows


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Ray:
    found = Ray()
    monkeypatch.setattr(module, "ray_module", lambda: found)
    return found


def agents() -> NodeAgents:
    return NodeAgents(lambda number, address: cast(Any, (number, address)))


def node(name: str, *, declared: bool = False) -> RayNode:
    return RayNode(f"id-{name}", f"at-{name}", name, "v100", 1, declared=declared)


def test_an_agent_is_made_on_each_node_and_its_keeper_has_a_place(ray: Ray) -> None:
    found = agents()
    used = found.start([node("a"), node("b")])
    assert (
        used
        == found.all
        == [
            Node(0, node("a"), ray.made[0], Place("at-a", 5000, 0)),
            Node(1, node("b"), ray.made[1], Place("at-b", 5000, 0)),
        ]
    )
    assert [agent.content for agent in ray.made] == [(0, "at-a"), (1, "at-b")]
    options = ray.made[1].options
    assert options["name"].startswith("node-1-")
    assert (options["num_cpus"], options["max_restarts"]) == (0, 0)
    assert list(options["label_selector"].values()) == ["id-b"]


def test_if_one_cannot_start_none_is_left(ray: Ray) -> None:
    ray.said["at-b"] = {"start": RayError("\nno ports\ntrace")}
    with pytest.raises(InputError, match="node at-b of the Ray cluster cannot be used: no ports"):
        agents().start([node("a"), node("b")])
    assert ray.killed == ray.made
    assert [("end",) in agent.calls for agent in ray.made] == [True, True]


def test_what_an_agent_raised_is_its_cause_or_its_kind(ray: Ray) -> None:
    error = RayError("a long trace")
    error.cause = ValueError("the point")  # type: ignore[attr-defined]
    ray.said = {"at-a": {"start": error}, "at-b": {"start": RayError("")}}
    with pytest.raises(InputError, match="cannot be used: the point"):
        agents().start([node("a")])
    with pytest.raises(InputError, match="cannot be used: RayError"):
        agents().start([node("b")])


def test_clocks_are_compared_by_the_quickest_answer(ray: Ray, monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter([0.0, 4.0, 10.0, 11.0, 20.0, 22.0, 30.0, 33.0, 40.0, 42.0])
    monkeypatch.setattr(module.time, "monotonic", lambda: next(moments))
    there = iter([100.0, 110.0, 120.0, 130.0, 140.0])
    ray.said["at-a"] = {"clock": lambda: ("elsewhere", next(there))}
    agents().start([node("a")])
    # The second answer took one second: half-way it was 10.5 here and 110 there.
    assert ("start", 10.5 - 110.0) in ray.made[0].calls
    assert [call[0] for call in ray.made[0].calls].count("clock") == 5


@pytest.mark.skipif(not HERE.exists(), reason="needs the id of this boot, as on Linux")
def test_a_node_on_this_machine_has_its_clock(ray: Ray) -> None:
    ray.said["at-a"] = {"clock": (HERE.read_text(), 77.0)}
    agents().start([node("a")])
    assert ("start", 0.0) in ray.made[0].calls


def test_a_program_runs_beside_all_agents(ray: Ray) -> None:
    found = agents()
    found.start([node("a"), node("b")])
    assert found.run_beside(("program",), {"file": b"content"}) == ["runs", "runs"]
    assert ray.made[0].calls[-1] == ("run_beside", ["program"], {"file": b"content"})


def test_a_node_that_is_lost_is_used_no_more(ray: Ray) -> None:
    found = agents()
    found.start([node("a"), node("b")])
    found.lost(0)
    assert [each.number for each in found.all] == [1]
    assert ray.killed == [ray.made[0]]
    found.lost(7)
    assert len(found.all) == 1


def row(name: str) -> dict[str, Any]:
    return {"NodeID": f"id-{name}", "NodeManagerAddress": f"at-{name}", "Alive": True, "Resources": {"GPU": 1},
            "Labels": {}}  # fmt: skip


def test_nodes_that_come_later_or_come_back_get_an_agent(ray: Ray, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOOK_SECONDS", 0.005)
    found = agents()
    found.start([node("a")])
    found.run_beside(("program",), {})
    woken = threading.Event()
    ray.rows = [row("a"), row("bad"), row("c")]
    ray.said["at-bad"] = {"start": RayError("no ports")}
    found.watch(woken.set)
    assert woken.wait(10.0)
    (came,) = found.come()
    assert (came.number, came.ray.address, came.keeper) == (2, "at-c", Place("at-c", 5000, 0))
    assert ("run_beside", ("program",), {}) in ray.made[2].calls
    assert [each.number for each in found.all] == [0, 2]
    assert found.come() == []
    woken.clear()
    found.lost(0)
    assert woken.wait(10.0)
    (back,) = found.come()
    assert (back.number, back.ray.address) == (3, "at-a")
    assert len(ray.made) == 4, "the one that cannot be used is not tried again"
    found.end(removes_logs=True)
    time.sleep(0.05)


@pytest.mark.parametrize("removes_logs", [False, True])
def test_all_nodes_are_left_as_they_were(ray: Ray, removes_logs: bool) -> None:
    found = agents()
    found.start([node("a"), node("b")])
    found.end(removes_logs=removes_logs)
    for agent in ray.made:
        assert ("end",) in agent.calls
        assert (("remove_directory",) in agent.calls) is removes_logs
    assert ray.killed == ray.made
    assert found.all == []


@pytest.mark.parametrize(
    ("has_accelerator", "declared", "gpus"), [(True, False, 1), (True, True, 0), (False, False, 0), (False, True, 0)]
)
def test_an_actor_for_a_worker_takes_the_accelerator_that_ray_counts(
    ray: Ray, has_accelerator: bool, declared: bool, gpus: int
) -> None:
    worker_actor(node("a", declared=declared), has_accelerator=has_accelerator)
    options = ray.made[0].options
    assert (options["num_gpus"], options["num_cpus"], options["max_restarts"]) == (gpus, 0, 0)
    assert list(options["label_selector"].values()) == ["id-a"]
