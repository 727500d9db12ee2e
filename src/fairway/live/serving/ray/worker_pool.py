"""Worker processes on the nodes of a Ray cluster, each run by an actor that Ray has placed there.

Ray places an actor for each worker, with one accelerator, on the node that this chooses; in it runs one life of the
worker after the other. Which life begins, and how each has ended, goes through the keeper of the node (`keeper_lines`):
so while Ray's head is away, only a worker that needs another actor has to wait. A worker whose node is gone gets an
actor on another node that has an accelerator to spare; if none has, it waits for one. When a new process listens, all
nodes learn where, before the supervisor can call it: so no process hears of a worker that it cannot reach.
"""

from __future__ import annotations

import itertools
import logging
import os
import select
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any

from fairway.live.serving.nodes.address_book import AddressBook, Place
from fairway.live.serving.nodes.keeper_lines import KeeperLines
from fairway.live.serving.nodes.node_keeper import LANES_BYTES, keeper_number
from fairway.live.serving.ray.node_agent import node_directory
from fairway.live.serving.ray.node_agents import Node, NodeAgents
from fairway.live.serving.ray.ray_client import RayClient
from fairway.live.serving.seams.transport import Line, Message
from fairway.live.serving.seams.worker_pool import MACHINE_LOST
from fairway.live.serving.supervise.settings import ServingSettings

_LOG = logging.getLogger(__name__)

_KILLED = "-9"
_KILL_SECONDS = 3.0
_LOOK_SECONDS = 0.05


@dataclass(slots=True)
class _Worker:
    """A worker in one of its lives; without a node it waits for one.

    Its `actor` goes by a name, and `has_joined` when it has a line to the keeper of its node: from then on that says
    whether it lives. If its process has not ended at `due_at`, so does the actor.
    """

    epoch: int
    node: Node | None = None
    actor: str | None = None
    has_joined: bool = False
    due_at: float | None = None
    ended: str | None = None
    last_words: str = "it said nothing"
    pid: int = -1


class RayPool:
    """Workers by number; `lanes` is where the supervisor sees what they do, `book` its own address book."""

    def __init__(
        self,
        settings: ServingSettings,
        client: RayClient,
        agents: NodeAgents,
        credentials: Any,
        lanes: bytearray,
        book: AddressBook,
        work_directory: str,
    ) -> None:
        self._settings, self._client, self._agents = settings, client, agents
        self._lanes, self._book, self._work_directory = lanes, book, work_directory
        self.keepers = KeeperLines(credentials, lambda *heard: self._heard.append(heard), self._node_lost)
        self._heard: list[tuple[int, Message]] = []
        self._lost_nodes: list[int] = []
        self._workers: dict[int, _Worker] = {}
        self._places: dict[int, Place] = {}
        self._finished: list[tuple[str, str]] = []
        self._actors = itertools.count()
        self._lock = Lock()
        self._is_closed = False
        self._wakes = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._has_accelerators = any(node.ray.count for node in agents.all)
        self._use(agents.all)
        agents.watch(self.wake)
        client.came_back = self._ray_came_back

    def epoch_of(self, number: int) -> int:
        """The life of a worker that was last started."""
        return self._workers[number].epoch

    def start(self, number: int, epoch: int) -> None:
        """Start a life of a worker, on the node where the last one was if that is still there."""
        before = self._workers.get(number)
        self._places.pop(number, None)
        worker = self._workers[number] = _Worker(epoch)
        if before is not None and before.actor is not None and before.node in self._agents.all:
            worker.node, worker.actor, worker.has_joined = before.node, before.actor, before.has_joined
            self._begin(number, worker)
        else:
            self._place(number, worker)

    def ended(self, number: int) -> str | None:
        """How a life of a worker has ended."""
        found = self._workers.get(number)
        return None if found is None else found.ended

    def pid(self, number: int) -> int:
        """The number of the process that a worker is or was, on its node."""
        return self._workers[number].pid

    def last_words(self, number: int) -> str:
        """The last line that a worker wrote in its log."""
        return self._workers[number].last_words

    def wait(self, seconds: float, lines: Iterable[Line]) -> None:
        """Wait for the end of a worker, a word of a keeper, a node that comes, or something over a line."""
        self._poll(seconds, lines)
        self._use(self._agents.come())
        self._take_in()
        for number, worker in self._workers.items():
            if worker.ended is not None:
                continue
            if worker.due_at is not None and time.monotonic() > worker.due_at:
                self._forget(worker, "its actor does not end it")
            elif worker.node is None:
                self._place(number, worker)

    def wake(self) -> None:
        """Let `wait` return; from any thread."""
        with self._lock:
            if not self._is_closed:
                os.eventfd_write(self._wakes, 1)

    def is_stopped(self, number: int) -> bool:  # noqa: ARG002
        """Not known from here: a worker that is stopped gives no sign, and is ended for that."""
        return False

    def stand_by(self) -> None:
        """Nothing: an actor stays when its process ends, and the next one starts in it."""

    def kill(self, number: int) -> None:
        """End the process of a worker at once; if its actor does not, the actor itself."""
        worker = self._workers[number]
        if not worker.has_joined or worker.node is None:
            self._forget(worker, "it had not begun")
            return
        self.keepers.tell(("kill", worker.actor), worker.node.number)
        if worker.due_at is None:
            worker.due_at = time.monotonic() + _KILL_SECONDS

    def stop(self, grace_seconds: float) -> None:
        """End all processes, and, with the lines to their keepers, their actors."""
        self.keepers.tell(("stop", float(grace_seconds)))
        deadline = time.monotonic() + grace_seconds + _KILL_SECONDS
        while time.monotonic() < deadline and any(
            worker.has_joined and worker.ended is None for worker in self._workers.values()
        ):
            self._poll(_LOOK_SECONDS, ())
            self._take_in()
        self.keepers.close()

    def close(self) -> None:
        """Close the descriptor that wakes it, which the client's threads may still do."""
        with self._lock:
            self._is_closed = True
            os.close(self._wakes)

    def _poll(self, seconds: float, lines: Iterable[Line]) -> None:
        waiting = select.poll()
        waiting.register(self._wakes, select.POLLIN)
        for line in (*lines, *self.keepers.lines):
            waiting.register(line.fileno(), select.POLLIN)
        waiting.poll(1000 * seconds)
        with suppress(BlockingIOError):
            os.eventfd_read(self._wakes)
        self.keepers.pump()

    def _ray_came_back(self) -> None:
        self._agents.look()
        self.wake()

    def _node_lost(self, node: int) -> None:
        self._lost_nodes.append(node)

    def _use(self, nodes: Iterable[Node]) -> None:
        """Use these nodes from now on."""
        came = False
        for node in nodes:
            try:
                self.keepers.call(node.number, node.keeper)
            except OSError as error:
                _LOG.warning("node %s cannot be reached: %s", node.ray.address, error)
                self._lost_nodes.append(node.number)
                continue
            self._places[keeper_number(node.number)] = node.keeper
            came = True
        if came:
            self._tell_places()

    def _take_in(self) -> None:
        """Take in what keepers have said, which actors Ray could not make, and which nodes are lost."""
        heard, self._heard = self._heard, []
        has_news = False
        for node, message in heard:
            match message:
                case ("listens", int(number), int(epoch), int(port), int(pid)):
                    worker = self._workers.get(number)
                    if worker is not None and worker.epoch == epoch and _is_on(worker, node):
                        assert worker.node is not None
                        worker.pid = pid
                        self._places[number] = Place(worker.node.ray.address, port, epoch)
                        has_news = True
                case ("lanes", dict(lanes)):
                    for number, content in lanes.items():
                        worker = self._workers.get(number)
                        if worker is not None and worker.ended is None and _is_on(worker, node):
                            self._lanes[number * LANES_BYTES : (number + 1) * LANES_BYTES] = content
                case ("joined", str(actor)):
                    for worker in self._workers.values():
                        worker.has_joined |= worker.actor == actor
                case ("ended", str(actor), int(number), int(epoch), str(status), str(last_words), bytes(content)):
                    worker = self._workers.get(number)
                    if worker is not None and (worker.actor, worker.epoch, worker.ended) == (actor, epoch, None):
                        worker.ended, worker.last_words = status, last_words
                        self._lanes[number * LANES_BYTES : (number + 1) * LANES_BYTES] = content
                case ("gone", str(actor)):
                    self._forget_actor(actor, "its actor is gone")
        with self._lock:
            finished, self._finished = self._finished, []
        for actor, why in finished:
            if not any(worker.actor == actor and worker.has_joined for worker in self._workers.values()):
                self._forget_actor(actor, f"its actor is gone: {why}")
        lost, self._lost_nodes = self._lost_nodes, []
        for node in lost:
            _LOG.warning("node %d is lost", node)
            self._agents.lost(node)
            self._places.pop(keeper_number(node), None)
            for worker in self._workers.values():
                if _is_on(worker, node):
                    self._forget(worker, "its node is gone", MACHINE_LOST)
        if has_news:
            self._tell_places()

    def _tell_places(self) -> None:
        """Let all nodes know where all processes are; the supervisor itself last, which can call them from then on."""
        self.keepers.book(self._places)
        self._book.write(self._places)

    def _place(self, number: int, worker: _Worker) -> None:
        """Have an actor on a node that has room, and begin the life there; without one, or without Ray, it waits."""
        node = self._with_room(number) if self._client.is_there else None
        if node is None:
            return
        worker.node, worker.actor = node, f"{self._client.prefix}worker-{number}-{next(self._actors)}"
        needs_one = self._has_accelerators and number != self._settings.planner
        gpus = int(needs_one and not node.ray.declared)  # of accelerators that a label declares, Ray knows nothing
        directory = str(node_directory(self._settings, node.number))
        said = (directory, keeper_number(node.number), worker.actor, self._work_directory)
        made = self._client.ask("make", "worker", worker.actor, node.ray.id, gpus, (), "serve", said)
        made.add_done_callback(partial(self._over, worker.actor))
        self._begin(number, worker)

    def _begin(self, number: int, worker: _Worker) -> None:
        assert worker.node is not None
        node, has_row = worker.node.number, number != self._settings.planner
        self.keepers.tell(("host", number, worker.epoch, has_row), node)
        self.keepers.tell(("begin", worker.actor, number, worker.epoch), node)

    def _over(self, actor: str, future: Future[Any]) -> None:
        """In a thread of the client's: an actor has ended, or Ray has, which says nothing of one that has joined."""
        error = future.exception()
        with self._lock:
            self._finished.append((actor, "it has ended" if error is None else str(error)))
        self.wake()

    def _forget_actor(self, actor: str, why: str) -> None:
        for worker in self._workers.values():
            if worker.actor == actor:
                self._forget(worker, why)

    def _forget(self, worker: _Worker, why: str, status: str = _KILLED) -> None:
        """Its actor is gone, or is let go: the next life has another one, perhaps elsewhere."""
        if worker.actor is not None and worker.node is not None:
            self.keepers.tell(("dismiss", worker.actor), worker.node.number)
            self._client.ask("kill", worker.actor)
        if worker.ended is None:
            worker.ended, worker.last_words = status, why
        worker.actor, worker.node, worker.has_joined = None, None, False

    def _with_room(self, number: int) -> Node | None:
        """The node with the most accelerators that no worker of ours has; of several, the first."""
        taken = Counter(
            worker.node.number
            for each, worker in self._workers.items()
            if worker.node is not None and each != self._settings.planner
        )
        needs_room = self._has_accelerators and number != self._settings.planner
        free = {node.number: node.ray.count - taken[node.number] for node in self._agents.all}
        found = [node for node in self._agents.all if not needs_room or free[node.number] > 0]
        return max(found, key=lambda node: (free[node.number], -node.number), default=None)


def _is_on(worker: _Worker, node: int) -> bool:
    return worker.node is not None and worker.node.number == node
