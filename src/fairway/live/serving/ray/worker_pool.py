"""Worker processes on the nodes of a Ray cluster, each run by an actor that Ray has placed there.

Ray places an actor for each worker, with one accelerator, on the node that this chooses, and says when it dies; in it
runs one life of the worker after the other. A worker whose node is gone gets an actor on another node that has an
accelerator to spare; if none has, it waits for one. When a new process listens, all nodes learn where, before the
supervisor can call it: so no process hears of a worker that it cannot reach.
"""

from __future__ import annotations

import logging
import os
import select
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any

from fairway.live.ray_cluster.client import ray_module
from fairway.live.serving.nodes.address_book import AddressBook, Place
from fairway.live.serving.nodes.keeper_lines import KeeperLines
from fairway.live.serving.nodes.node_keeper import LANES_BYTES, keeper_number
from fairway.live.serving.ray.node_agent import Life, node_directory
from fairway.live.serving.ray.node_agents import Node, NodeAgents, worker_actor
from fairway.live.serving.seams.transport import Line, Message
from fairway.live.serving.supervise.settings import ServingSettings

_LOG = logging.getLogger(__name__)

_KILLED = "-9"
_KILL_SECONDS = 3.0


@dataclass(slots=True)
class _Worker:
    """A worker in one of its lives; without a node it waits for one."""

    epoch: int
    node: Node | None = None
    actor: Any = None
    ended: str | None = None
    last_words: str = "it said nothing"
    pid: int = -1


class RayPool:
    """Workers by number; `lanes` is where the supervisor sees what they do, `book` its own address book."""

    def __init__(
        self,
        settings: ServingSettings,
        agents: NodeAgents,
        credentials: Any,
        lanes: bytearray,
        book: AddressBook,
        work_directory: str,
    ) -> None:
        self._settings, self._agents, self._lanes, self._book = settings, agents, lanes, book
        self._work_directory = work_directory
        self.keepers = KeeperLines(credentials, lambda *heard: self._heard.append(heard), self._node_lost)
        self._heard: list[tuple[int, Message]] = []
        self._lost_nodes: list[int] = []
        self._workers: dict[int, _Worker] = {}
        self._places: dict[int, Place] = {}
        self._finished: list[tuple[int, int, Life | BaseException]] = []
        self._lock = Lock()
        self._wakes = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._has_accelerators = any(node.ray.count for node in agents.all)
        self._use(agents.all)
        agents.watch(self.wake)

    def epoch_of(self, number: int) -> int:
        """The life of a worker that was last started."""
        return self._workers[number].epoch

    def start(self, number: int, epoch: int) -> None:
        """Start a life of a worker, on the node where the last one was if that is still there."""
        before = self._workers.get(number)
        self._places.pop(number, None)
        worker = self._workers[number] = _Worker(epoch)
        if before is not None and before.actor is not None and before.node in self._agents.all:
            worker.node, worker.actor = before.node, before.actor
        self._place(number, worker)

    def ended(self, number: int) -> str | None:
        """How a life of a worker has ended."""
        with self._lock:
            finished, self._finished = self._finished, []
            for each, epoch, how in finished:
                worker = self._workers.get(each)
                if worker is None or worker.epoch != epoch or worker.ended is not None:
                    continue
                if isinstance(how, Life):
                    worker.ended, worker.last_words = how.status, how.last_words
                    self._lanes[each * LANES_BYTES : (each + 1) * LANES_BYTES] = how.lanes
                else:
                    self._forget(worker, f"its actor is gone: {(str(how).splitlines() or ['?'])[0]}")
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
        waiting = select.poll()
        waiting.register(self._wakes, select.POLLIN)
        for line in (*lines, *self.keepers.lines):
            waiting.register(line.fileno(), select.POLLIN)
        waiting.poll(1000 * seconds)
        with suppress(BlockingIOError):
            os.eventfd_read(self._wakes)
        self.keepers.pump()
        self._use(self._agents.come())
        self._take_in()
        for number, worker in self._workers.items():
            if worker.node is None and worker.ended is None:
                self._place(number, worker)

    def wake(self) -> None:
        """Let `wait` return; from any thread."""
        os.eventfd_write(self._wakes, 1)

    def is_stopped(self, number: int) -> bool:  # noqa: ARG002
        """Not known from here: a worker that is stopped gives no sign, and is ended for that."""
        return False

    def stand_by(self) -> None:
        """Nothing: an actor stays when its process ends, and the next one starts in it."""

    def kill(self, number: int) -> None:
        """End the process of a worker at once; if its actor does not, the actor itself."""
        worker = self._workers[number]
        if worker.actor is None:
            with self._lock:
                worker.ended = _KILLED
            return
        ray = ray_module()
        done, _ = ray.wait([worker.actor.kill.remote()], timeout=_KILL_SECONDS)
        if not done:
            ray.kill(worker.actor)
            worker.actor = None

    def stop(self, grace_seconds: float) -> None:
        """End all processes, and their actors."""
        ray = ray_module()
        actors = [worker.actor for worker in self._workers.values() if worker.actor is not None]
        refs = [actor.stop.remote(grace_seconds) for actor in actors]
        if refs:
            ray.wait(refs, num_returns=len(refs), timeout=grace_seconds + _KILL_SECONDS)
        for actor in actors:
            ray.kill(actor)
        self.keepers.close()

    def close(self) -> None:
        """Close the descriptor that wakes it."""
        os.close(self._wakes)

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
        """Take in what keepers have said, and which nodes are lost."""
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
        lost, self._lost_nodes = self._lost_nodes, []
        for node in lost:
            _LOG.warning("node %d is lost", node)
            self._agents.lost(node)
            self._places.pop(keeper_number(node), None)
            for worker in self._workers.values():
                if _is_on(worker, node) and worker.ended is None:
                    with self._lock:
                        self._forget(worker, "its node is gone")
        if has_news:
            self._tell_places()

    def _tell_places(self) -> None:
        """Let all nodes know where all processes are; the supervisor itself last, which can call them from then on."""
        self.keepers.book(self._places)
        self._book.write(self._places)

    def _place(self, number: int, worker: _Worker) -> None:
        """Begin a life on its node, or on one that has room; without one it waits."""
        node = worker.node or self._with_room(number)
        if node is None:
            return
        worker.node = node
        runs_stages = number != self._settings.planner
        if worker.actor is None:
            worker.actor = worker_actor(node.ray, has_accelerator=runs_stages and self._has_accelerators)
        self.keepers.tell(("host", number, worker.epoch, runs_stages), node.number)
        directory = str(node_directory(self._settings, node.number))
        ref = worker.actor.run.remote(directory, number, worker.epoch, self._work_directory)
        ref.future().add_done_callback(partial(self._over, number, worker.epoch))

    def _over(self, number: int, epoch: int, future: Any) -> None:
        """In a thread of Ray's: a life has ended."""
        error = future.exception()
        with self._lock:
            self._finished.append((number, epoch, future.result() if error is None else error))
        with suppress(OSError):
            self.wake()

    def _forget(self, worker: _Worker, why: str) -> None:
        """Its actor is gone, or as good as: the next life has another one, perhaps elsewhere."""
        with suppress(Exception):
            ray_module().kill(worker.actor)
        worker.ended, worker.last_words, worker.actor, worker.node = _KILLED, why, None, None

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
