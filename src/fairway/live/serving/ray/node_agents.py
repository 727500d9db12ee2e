"""The agents on the nodes of a Ray cluster, as the supervisor has them: one for each node that is there, also later.

A node is used once its agent has started, and no more when the line to its keeper has ended: then its workers are lost,
and are placed on other nodes, or wait. A node that comes later, or comes back, gets an agent and is used as well.
"""

from __future__ import annotations

import itertools
import logging
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, NamedTuple

from fairway.errors import InputError
from fairway.live.ray_cluster.client import ray_module
from fairway.live.ray_cluster.nodes import NODE_ID_LABEL, RayNode, living
from fairway.live.serving.nodes.address_book import Place
from fairway.live.serving.ray.node_agent import NodeAgent, NodeContent, WorkerActor

_LOG = logging.getLogger(__name__)

_START_SECONDS = 120.0
_LOOK_SECONDS = 5.0
_CLOCK_TRIES = 5
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Node(NamedTuple):
    """A node that is used: its number here, what it is in Ray, its agent, and where its keeper listens."""

    number: int
    ray: RayNode
    agent: Any
    keeper: Place


class NodeAgents:
    """Makes agents; `content` says what that of a node has to know, by its number and its address."""

    def __init__(self, content: Callable[[int, str], NodeContent]) -> None:
        self._content = content
        self._numbers = itertools.count()
        self._used: dict[str, int] = {}
        self._beside: tuple[Sequence[str], dict[str, bytes]] | None = None
        self._come: SimpleQueue[Node] = SimpleQueue()
        self._is_over = False
        self.all: list[Node] = []

    def start(self, nodes: Sequence[RayNode]) -> list[Node]:
        """Start agents on these nodes, all at once; if one cannot, this raises, and none is left."""
        ray = ray_module()
        made = [(number := next(self._numbers), node, self._made(number, node)) for node in nodes]
        try:
            for number, node, agent in made:
                self._used[node.id] = number
                offset = _clock_offset(ray, agent)
                port = _got(node, agent.start.remote(offset))
                self.all.append(Node(number, node, agent, Place(node.address, port, 0)))
        except BaseException:
            for _, _, agent in made:
                with suppress(Exception):
                    ray.get(agent.end.remote(), timeout=5.0)
                ray.kill(agent)
            raise
        return list(self.all)

    def run_beside(self, program: Sequence[str], files: dict[str, bytes]) -> list[str]:
        """Run a program on all nodes, also on those that come later; returns the first line of each."""
        self._beside = (program, files)
        refs = [(node, node.agent.run_beside.remote(list(program), files)) for node in self.all]
        return [_got(node.ray, ref) for node, ref in refs]

    def watch(self, wake: Callable[[], None]) -> None:
        """From now on look for nodes that come, in a thread; `wake` is called when one is ready (`come`)."""
        Thread(target=self._watch, args=(wake,), name="fairway-nodes", daemon=True).start()

    def come(self) -> list[Node]:
        """The nodes that have come since this was last asked, with agents that run."""
        found = []
        with suppress(Empty):
            while True:
                found.append(self._come.get_nowait())
        self.all.extend(found)
        return found

    def lost(self, number: int) -> None:
        """A node is used no more; should it still be there, or come back, it gets another agent."""
        ray = ray_module()
        for node in [node for node in self.all if node.number == number]:
            self.all.remove(node)
            self._used.pop(node.ray.id, None)
            with suppress(Exception):
                ray.kill(node.agent)

    def end(self, *, removes_logs: bool) -> None:
        """Let all nodes be as they were before."""
        self._is_over = True
        ray = ray_module()
        refs = [node.agent.end.remote() for node in self.all]
        ray.wait(refs, num_returns=len(refs), timeout=15.0)
        if removes_logs:
            refs = [node.agent.remove_directory.remote() for node in self.all]
            ray.wait(refs, num_returns=len(refs), timeout=5.0)
        for node in self.all:
            ray.kill(node.agent)
        self.all.clear()

    def _made(self, number: int, node: RayNode) -> Any:
        ray = ray_module()
        # Not restarted by Ray: a new one has to be told all that this one was.
        options = {"num_cpus": 0, "max_restarts": 0, "max_concurrency": 8, "name": f"node-{number}-{uuid.uuid4().hex}"}
        return ray.remote(NodeAgent).options(**options, **pinned_to(node)).remote(self._content(number, node.address))

    def _watch(self, wake: Callable[[], None]) -> None:
        ray = ray_module()
        while not self._is_over:
            time.sleep(_LOOK_SECONDS)
            with suppress(Exception):  # Ray itself may be away for a while
                for node in [each for each in living(ray.nodes()) if each.id not in self._used]:
                    number = self._used[node.id] = next(self._numbers)
                    try:
                        agent = self._made(number, node)
                        port = _got(node, agent.start.remote(_clock_offset(ray, agent)))
                        if self._beside is not None:
                            _LOG.warning("%s", _got(node, agent.run_beside.remote(*self._beside)))
                    except Exception as error:
                        _LOG.warning("node %s cannot be used: %s", node.address, error)
                        continue
                    self._come.put(Node(number, node, agent, Place(node.address, port, 0)))
                    wake()


def worker_actor(node: RayNode, *, has_accelerator: bool) -> Any:
    """A new actor for a worker on a node; of accelerators that a label declares, Ray knows nothing."""
    gpus = int(has_accelerator and not node.declared)
    options = {"num_cpus": 0, "num_gpus": gpus, "max_restarts": 0, "max_concurrency": 4}
    return ray_module().remote(WorkerActor).options(**options, **pinned_to(node)).remote()


def pinned_to(node: RayNode) -> dict[str, Any]:
    """The options by which Ray places an actor on a node; should the node be gone, that fails at once."""
    return {"label_selector": {NODE_ID_LABEL: node.id}}


def _clock_offset(ray: Any, agent: Any) -> float:
    """What to add to the clock of a node to have that of this process; by the quickest of a few answers."""
    found: list[tuple[float, float]] = []
    for _ in range(_CLOCK_TRIES):
        before = time.monotonic()
        boot, there = ray.get(agent.clock.remote(), timeout=_START_SECONDS)
        after = time.monotonic()
        if _BOOT.exists() and boot == _BOOT.read_text():
            return 0.0
        found.append((after - before, (before + after) / 2 - there))
    return min(found)[1]


def _got(node: RayNode, ref: Any) -> Any:
    """What an agent answers; raises `InputError` with what it says if it cannot."""
    ray = ray_module()
    try:
        return ray.get(ref, timeout=_START_SECONDS)
    except ray.exceptions.RayError as error:
        cause = getattr(error, "cause", None) or error
        lines = str(cause).strip().splitlines() or [type(cause).__name__]
        raise InputError(f"node {node.address} of the Ray cluster cannot be used: {lines[0]}") from None
