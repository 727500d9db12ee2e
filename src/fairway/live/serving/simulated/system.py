"""A whole served application in virtual time: its workers, its monitor and its clients, all in this process.

    system = SimulatedSystem(settings)
    system.start()
    answer = system.client().ask(x=1)
    system.pool.kill(0)

Everything above the seams is what serves on real machines: the worker program, the monitor, the client. The same
settings, seeds and calls give the same run, to the last message.
"""

from __future__ import annotations

import random

from fairway.live.serving.clients.client import ServingClient
from fairway.live.serving.clients.client_protocol import Site
from fairway.live.serving.runtime.worker import ServingWorker
from fairway.live.serving.simulated.machine import SimulatedMachine, SimulatedSeams
from fairway.live.serving.simulated.turns import Turns
from fairway.live.serving.simulated.worker_pool import SimulatedPool
from fairway.live.serving.supervise.settings import ServingSettings
from fairway.live.serving.supervise.supervisor import monitor_of

_PATIENCE_SECONDS = 60.0


class SimulatedSystem:
    """An application on simulated workers."""

    def __init__(self, settings: ServingSettings, *, rows_as_messages: bool = False) -> None:
        self.settings = settings
        self.machine = SimulatedMachine(rows_as_messages=rows_as_messages)
        self.time = self.machine.time
        self.seams = SimulatedSeams(self.machine)
        self.pool = SimulatedPool(self.machine, self._program)
        self.workers: dict[int, ServingWorker] = {}
        application = settings.application()
        fleet = settings.fleet(application)
        self._workflows = tuple(application.workflows)
        self._draws = random.Random(settings.seed)
        self.seams.make_rows(fleet)
        self.monitor = monitor_of(settings, self.seams, self.pool, fleet, application)
        self._turns = Turns(self.time, self._turn)
        self.seams.ready = self.pool.ended_one = self._turns.take_now

    def start(self) -> None:
        """Start the workers; when this returns, all of them are there, and know of each other."""
        self.monitor.start()
        self._turns.take_now()
        self.time.advance(_PATIENCE_SECONDS, lambda: self.monitor.is_complete)
        for worker in self.monitor.workers:
            assert worker.is_there, f"{worker.name} did not start: {self.pool.last_words(worker.number)}"
        self.monitor.replaces = True

    def client(self) -> ServingClient:
        """A new client; while it waits for an answer, virtual time passes."""
        return ServingClient(Site.of(self.settings, self._workflows, SimulatedSeams(self.machine), self._draws))

    def _turn(self) -> float:
        self.monitor.turn()
        return self.time.now() + self.monitor.patience

    def _program(self, number: int, epoch: int, seams: SimulatedSeams) -> ServingWorker:
        worker = self.workers[number] = ServingWorker(self.settings, number, epoch, seams)
        return worker
