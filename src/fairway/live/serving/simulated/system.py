"""A whole served application in virtual time: its workers, its monitor and its clients, all in this process.

    system = SimulatedSystem(settings)
    system.start()
    answer = system.client().ask(x=1)
    system.pool.kill(0)

Everything above the seams is what serves on real machines: the worker program, the monitor, the client. The same
settings, seeds and calls give the same run, to the last message.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from fairway.live.serving.clients.client import ServingClient
from fairway.live.serving.clients.client_protocol import Site
from fairway.live.serving.runtime.worker import ServingWorker
from fairway.live.serving.simulated.life import Life
from fairway.live.serving.simulated.machine import SimulatedMachine, SimulatedSeams
from fairway.live.serving.simulated.turns import Turns
from fairway.live.serving.simulated.worker_pool import START_SECONDS, SimulatedPool
from fairway.live.serving.supervise.settings import ServingSettings
from fairway.live.serving.supervise.supervisor import monitor_of

_PATIENCE_SECONDS = 60.0


class SimulatedSystem:
    """An application on simulated workers."""

    def __init__(
        self, settings: ServingSettings, *, rows_as_messages: bool = False, start_seconds: float = START_SECONDS
    ) -> None:
        self.settings, self._start_seconds = settings, start_seconds
        self.machine = SimulatedMachine(rows_as_messages=rows_as_messages)
        self.time = self.machine.time
        self.workers: dict[int, ServingWorker] = {}
        self.restarts = 0
        self.crashes: list[str] = []
        self.after_turn: Callable[[int], None] | None = None
        self.on_end: Callable[[int, str], None] = lambda *_: None
        self.on_restart: Callable[[], None] = lambda: None
        self.supervisor_stalls_until = -math.inf
        self._dead_clients: list[str] = []
        self._application = settings.application()
        self._workflows = tuple(self._application.workflows)
        self._draws = random.Random(settings.seed)
        self._make()

    def _make(self) -> None:
        """What `fairway serve` makes when it starts: rows, a pool, a monitor."""
        self._started_at = self.time.now()
        self.seams = SimulatedSeams(self.machine)
        self.pool = SimulatedPool(self.machine, self._program, self._start_seconds)
        self.pool.crashes = self.crashes
        self.pool.after_turn, self.pool.on_end = self._turn_was_taken, self._process_ended
        fleet = self.settings.fleet(self._application)
        self.seams.make_rows(fleet)
        self.monitor = monitor_of(
            self.settings, self.seams, self.pool, fleet, self._application, self._clear_after_clients
        )
        self._turns = Turns(self.time, self._turn, self.machine.lateness)
        self.seams.ready = self.pool.ended_one = self._turns.take_now

    def restart(self) -> None:
        """`fairway serve` is killed, and started again: its workers end with it, and what they shared is gone."""
        self.restarts += 1
        self._turns.end()
        self.pool.ended_one = lambda: None
        self.pool.stop(0.0)
        self.monitor.close()
        self.machine.wipe()
        self._make()
        self.on_restart()
        self.monitor.start()
        self._turns.take_now()

    def start(self) -> None:
        """Start the workers; when this returns, all of them are there, and know of each other."""
        self.monitor.start()
        self._turns.take_now()
        self.time.advance(_PATIENCE_SECONDS, lambda: self.monitor.is_complete)
        for worker in self.monitor.workers:
            assert worker.is_there, f"{worker.name} did not start: {self.pool.last_words(worker.number)}"

    def client(self) -> ServingClient:
        """A new client; while it waits for an answer, virtual time passes."""
        return ServingClient(Site.of(self.settings, self._workflows, SimulatedSeams(self.machine), self._draws))

    def clients_seams(self, name: str) -> SimulatedSeams:
        """The seams of a new client."""
        return SimulatedSeams(self.machine, Life(name))

    def client_died(self, seams: SimulatedSeams, owner: str) -> None:
        """A client has died without a word, and what it kept is for the supervisor to let go."""
        seams.close()
        self._dead_clients.append(owner)

    def _turn_was_taken(self, number: int) -> None:
        if self.after_turn is not None:
            self.after_turn(number)

    def _process_ended(self, number: int, status: str) -> None:
        self.on_end(number, status)

    def _clear_after_clients(self) -> None:
        for owner in self._dead_clients:
            self.seams.values("supervisor-").clear(owner)
        self._dead_clients.clear()

    def _turn(self) -> float:
        now = self.time.now()
        if now < self.supervisor_stalls_until:
            return self.supervisor_stalls_until
        self.monitor.turn()
        if self.restarts and not self.monitor.replaces and self._cannot_start():
            self.restart()  # by an operator, who starts it until it has started
        return now + self.monitor.patience

    def _cannot_start(self) -> bool:
        """Whether a process has ended before all had started, or they have not in a long time."""
        has_ended = any(self.pool.ended(worker.number) is not None for worker in self.monitor.workers)
        return has_ended or self.time.now() > self._started_at + _PATIENCE_SECONDS

    def _program(self, number: int, epoch: int, seams: SimulatedSeams) -> ServingWorker:
        worker = self.workers[number] = ServingWorker(self.settings, number, epoch, seams)
        return worker
