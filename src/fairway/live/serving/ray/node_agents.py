"""The agents on the nodes of a Ray cluster, as the supervisor has them: one for each node that is there, also later.

A node is used once its agent has started, and no more when the line to its keeper has ended: then its workers are lost,
and are placed on other nodes, or wait. A node that comes later, or comes back, gets an agent and is used as well.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any, NamedTuple

from fairway.back_off import BackOff
from fairway.errors import FairwayError, InputError
from fairway.live.ray_cluster.nodes import RayNode
from fairway.live.serving.nodes.address_book import Place
from fairway.live.serving.ray.node_agent import NodeContent
from fairway.live.serving.ray.ray_client import RayAwayError, RayClient, RayRefusedError

_LOG = logging.getLogger(__name__)

_START_SECONDS, _END_SECONDS = 120.0, 15.0
_COME_SECONDS, _GO_SECONDS = 40.0, 5.0
"""How long one that comes later is waited for; an answer that Ray has lost with its head never comes."""

_LOOK_SECONDS = 5.0
_BACK_OFF = BackOff(_LOOK_SECONDS, 300.0)
_CLOCK_TRIES = 5
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Node(NamedTuple):
    """A node that is used: its number here, what it is in Ray, the name of its agent, and where its keeper listens."""

    number: int
    ray: RayNode
    agent: str
    keeper: Place


class NodeAgents:
    """Makes agents; `content` says what that of a node has to know, by its number and its address."""

    def __init__(self, client: RayClient, content: Callable[[int, str], NodeContent]) -> None:
        self._client, self._content = client, content
        self._numbers = itertools.count()
        self._used: dict[str, int] = {}
        self._failures: Counter[str] = Counter()
        self._again_at: dict[str, float] = {}
        self._beside: tuple[Sequence[str], dict[str, bytes]] | None = None
        self._come: SimpleQueue[Node] = SimpleQueue()
        self._looks = Event()
        self._is_over = False
        self.all: list[Node] = []

    def start(self, nodes: Sequence[RayNode]) -> list[Node]:
        """Start agents on these nodes, all at once; if one cannot, this raises, and none is left."""
        made = [(number := next(self._numbers), node, *self._made(number, node)) for node in nodes]
        try:
            for number, node, agent, clock in made:
                self._used[node.id] = number
                self.all.append(self._begun(number, node, agent, clock))
        except BaseException:
            self._end([agent for _, _, agent, _ in made])
            raise
        return list(self.all)

    def run_beside(self, program: Sequence[str], files: dict[str, bytes]) -> list[str]:
        """Run a program on all nodes, also on those that come later; returns the first line of each."""
        self._beside = (list(program), files)
        said = [(node.ray, self._client.ask("call", node.agent, "run_beside", *self._beside)) for node in self.all]
        return [_got(node, each) for node, each in said]

    def watch(self, wake: Callable[[], None]) -> None:
        """From now on look for nodes that come, in a thread; `wake` is called when one is ready (`come`)."""
        Thread(target=self._watch, args=(wake,), name="fairway-nodes", daemon=True).start()

    def look(self) -> None:
        """Look for them now."""
        self._looks.set()

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
        for node in [node for node in self.all if node.number == number]:
            self.all.remove(node)
            self._used.pop(node.ray.id, None)
            self._client.ask("kill", node.agent)

    def end(self) -> None:
        """Let all nodes be as they were before."""
        self._is_over = True
        self._looks.set()
        self.come()
        self._end([node.agent for node in self.all])
        self.all.clear()

    def _end(self, agents: Sequence[str], seconds: float = _END_SECONDS) -> None:
        """Wait until these have cleared up, as they do by themselves, too, without a line; and end them."""
        wait([self._client.ask("call", agent, "end") for agent in agents], seconds)
        for agent in agents:
            self._client.ask("kill", agent)

    def _made(self, number: int, node: RayNode) -> tuple[str, Future[Any]]:
        """An agent that is made, and what its clock says, which it tells when it has been."""
        agent = f"{self._client.prefix}node-{number}"
        content = self._content(number, node.address)
        return agent, self._client.ask("make", "agent", agent, node.id, 0, (content,), "clock", ())

    def _begun(
        self, number: int, node: RayNode, agent: str, clock: Future[Any], seconds: float = _START_SECONDS
    ) -> Node:
        _got(node, clock, seconds)
        offset = self._clock_offset(node, agent, seconds)
        port = _got(node, self._client.ask("call", agent, "start", offset), seconds)
        return Node(number, node, agent, Place(node.address, port, 0))

    def _clock_offset(self, node: RayNode, agent: str, seconds: float) -> float:
        """What to add to the clock of a node to have that of this process; by the quickest of a few answers."""
        found: list[tuple[float, float]] = []
        for _ in range(_CLOCK_TRIES):
            before = time.monotonic()
            boot, there = _got(node, self._client.ask("call", agent, "clock"), seconds)
            after = time.monotonic()
            if _BOOT.exists() and boot == _BOOT.read_text():
                return 0.0
            found.append((after - before, (before + after) / 2 - there))
        return min(found)[1]

    def _watch(self, wake: Callable[[], None]) -> None:
        while not self._is_over:
            self._looks.wait(_LOOK_SECONDS)
            self._looks.clear()
            with suppress(FairwayError, TimeoutError):  # Ray itself may be away for a while
                for node in self._client.nodes():
                    if node.id not in self._used and time.monotonic() >= self._again_at.get(node.id, 0.0):
                        number = self._used[node.id] = next(self._numbers)
                        Thread(target=self._take, args=(number, node, wake), name="fairway-node", daemon=True).start()

    def _take(self, number: int, node: RayNode, wake: Callable[[], None]) -> None:
        """Have an agent on a node that has come; one that cannot be used yet, as when its port is, is tried again."""
        agent, clock = self._made(number, node)
        try:
            begun = self._begun(number, node, agent, clock, _COME_SECONDS)
            if self._beside is not None:
                said = self._client.ask("call", agent, "run_beside", *self._beside)
                _LOG.warning("%s", _got(node, said, _COME_SECONDS))
        except FairwayError as error:
            if not isinstance(error, RayAwayError):
                self._failures[node.id] += 1
                self._again_at[node.id] = time.monotonic() + _BACK_OFF.seconds(self._failures[node.id])
                _LOG.warning("%s", error)
            self._end([agent], _GO_SECONDS)
            self._used.pop(node.id, None)
            return
        self._come.put(begun)
        wake()


def _got(node: RayNode, said: Future[Any], seconds: float = _START_SECONDS) -> Any:
    """What an agent answers; raises `InputError` with what it says if it cannot."""
    try:
        return said.result(seconds)
    except RayRefusedError as error:
        raise InputError(f"node {node.address} of the Ray cluster cannot be used: {error}") from None
    except TimeoutError:
        raise InputError(f"node {node.address} of the Ray cluster cannot be used: it does not answer") from None
