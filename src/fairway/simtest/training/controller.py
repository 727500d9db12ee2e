"""A controller as a process in virtual time, with the door of its service: what it acknowledges, and what not."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from fairway.jobs.description import job_of
from fairway.live.local.backend import LocalBackend
from fairway.live.training.admission.priorities import PriorityClass
from fairway.live.training.admission.quotas import TOTAL
from fairway.live.training.controller import Controller
from fairway.live.training.settings import ControllerSettings
from fairway.service.intake import Intake
from fairway.simtest.training.writer import SimulatedWriter
from fairway.simtest.virtual_loop import VirtualProcess
from fairway.store import Store, open_store
from fairway.store.job_changes import request_cancel
from fairway.store.submissions import Submission

if TYPE_CHECKING:
    from fairway.simtest.training.world import World

_SLOWEST_COMMIT = 0.01

_QUOTAS = {"red": {TOTAL: 2}}
_CLASSES = {"urgent": PriorityClass(10), "soon": PriorityClass(5, preempts=False), "later": PriorityClass(-5)}
_CPUS = 4.0
"""Of the machine, whatever the one has that this runs on."""


class SimulatedAgents:
    """How a simulated controller reaches and starts agents."""

    def __init__(self, world: World, process: VirtualProcess) -> None:
        self._world, self._process = world, process

    async def open(self, directory: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:  # noqa: ARG002
        """Connect over the simulated network."""
        return await self._world.network.connect(self._process)

    def wake(self, writer: asyncio.StreamWriter) -> None:
        """A simulated agent that is paused goes on when its pause is over."""

    async def start(self, directory: Path, *, emulate: str | None, time_scale: float) -> None:  # noqa: ARG002
        """Start the agent of this world."""
        await self._world.start_agent()

    async def wait_for_end(self, directory: Path) -> None:
        """The supervisor sees to it."""


class SimulatedController:
    """One life of the controller."""

    def __init__(self, world: World, process: VirtualProcess) -> None:
        self._world, self.process = world, process
        self.store: Store
        self.controller: Controller | None = None
        self._intake: Intake
        with process.running():
            process.start(self._live())

    @property
    def epoch(self) -> int:
        """Its number among all controllers of the store; 0 before it has one."""
        return 0 if self.controller is None else self.controller._work._epoch

    async def _live(self) -> None:
        world = self._world
        self.store = open_store(
            world.directory,
            writer=partial(
                SimulatedWriter,
                process=self.process,
                seconds=lambda: world.draw.uniform(0.0005, _SLOWEST_COMMIT),
                written=world.look_at_store,
            ),
        )
        try:
            settings = ControllerSettings(
                world.directory,
                policy=world.settings["policy"],
                round_seconds=world.settings["round_seconds"],
                restart_seconds=0.1,
                emulate=world.settings["emulate"],
                quotas=_QUOTAS,
                priority_classes=_CLASSES,
                cpus=_CPUS,
                memory_bytes=2**33,
            )
            backend = LocalBackend(
                settings.backend_directory, emulate=settings.emulate, agents=SimulatedAgents(world, self.process)
            )
            self._intake = Intake(self.store, world.clock.time)
            self.controller = Controller(
                settings, self.store, backend=backend, machine=world.clock, decided_by=lambda policy: policy
            )
            await self.controller.work()
        finally:
            self.store.close()

    @property
    def ready(self) -> bool:
        """Whether its door is open."""
        return self.process.alive and self.controller is not None and self.controller._ready.is_set()

    # The door

    async def submit(self, key: str, spec: Mapping[str, Any]) -> str:
        """Store a job as the service does; returns its name when that is durable."""
        description = job_of(spec, "job")
        submission = Submission.of(description, team=description.team, idempotency_key=key)
        [taken] = await self._intake.take([submission])
        assert self.controller is not None
        if taken.new:
            self.controller.notify()
        return taken.job.id

    async def cancel(self, job: str) -> None:
        """Take a job back as the service does."""

        def cancel(connection: Connection) -> object:
            return request_cancel(connection, job, at=self._world.clock.time())

        self.store.write_vital(cancel)
        assert self.controller is not None
        self.controller.notify(job)

    def drain(self, workers: list[tuple[str, int]], *, on: bool) -> Future[None]:
        """Let workers be used no more, or again."""
        assert self.controller is not None
        done: Future[None] = Future()
        work = self.controller._work
        self.controller._inbox.post(lambda: work.drain(workers, done, on=on))
        return done
