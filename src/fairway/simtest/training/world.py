"""One machine with a controller, a store, an agent and keepers: all of Fairway's own code, on a simulated ground.

Two processes have event loops in virtual time: the controller with the door of its service, and the agent. A supervisor
starts a controller again when it has ended, a controller starts an agent when there is none. All of it can be killed,
paused and cut off; the power can fail; the machine's wall clock can be set.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any
from unittest.mock import patch

from fairway import fault_points
from fairway.errors import FairwayError, InputError
from fairway.live import durable_file
from fairway.live.backend.accelerators import emulated_accelerators
from fairway.live.local import outcomes
from fairway.live.local.agent import preparation, run_directories, run_table
from fairway.live.local.agent.disposal import remove_tree
from fairway.live.local.agent.process import Agent, Converse
from fairway.live.local.agent.state import AgentState
from fairway.live.local.run_files import RunFiles
from fairway.simtest.training.agent_disk import AgentDisk
from fairway.simtest.training.controller import SimulatedController
from fairway.simtest.training.engines import sharing_engine
from fairway.simtest.training.keepers import Keepers, RunSeen
from fairway.simtest.training.network import Network
from fairway.simtest.training.promises import Promises
from fairway.simtest.training.sqlite_disk import SqliteDisk, shim
from fairway.simtest.virtual_loop import ProcessKilledError, Timeline, VirtualProcess
from fairway.store import open_store
from fairway.store.database import sqlite, sqlite_files
from fairway.store.errors import StoreError

TODAY = 1_800_000_000.0
_TICK_SECONDS = 0.5
_RESERVE_BYTES = 2**16
_EXPECTED_ERRORS = (OSError, StoreError)
_LOST_WORDS = ("acknowledged writes are missing", "the file is damaged", "the file is missing")
"""What a store says that has lost something, when it is opened."""


class MachineTime:
    """Both clocks of the machine; the one for people can be set."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self.set_by = 0.0

    def time(self) -> float:
        """Seconds since 1970."""
        return TODAY + self._timeline.now + self.set_by

    def monotonic(self) -> float:
        """Seconds since the history began."""
        return self._timeline.now


class InlineDisposal:
    """Removes directories at once."""

    def remove(self, directory: Path) -> None:
        """Remove a directory."""
        fault_points.reached("agent.disposing")
        remove_tree(directory)

    def finish(self, seconds: float) -> None:
        """There is nothing left to do."""


class _Errors(logging.Handler):
    """Takes down what the programs log as errors that they did not expect."""

    def __init__(self, world: World) -> None:
        super().__init__(logging.ERROR)
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if _is_dead(self._world.timeline.current):
            return
        if error is not None and not isinstance(error, (*_EXPECTED_ERRORS, ProcessKilledError)):
            self._world.promises.violations.append(f"an error that no fault explains: {type(error).__name__}: {error}")


class World:
    """The machine. `faults` counts what was done to it, by kind; `digest` follows what happened."""

    def __init__(self, directory: Path, settings: Mapping[str, Any], seed: int) -> None:
        self.directory, self.settings = directory, settings
        self.draw = Random(seed)
        self.timeline = Timeline()
        self.clock = MachineTime(self.timeline)
        self.promises = Promises()
        self.faults: Counter[str] = Counter()
        self.network = Network(self.timeline, self.draw, self.happened, self.promises)
        self.disk = SqliteDisk(directory, opener=lambda: self.timeline.current, is_dead=_is_dead)
        self.agent_disk = AgentDisk(directory / "agent")
        self.keepers = Keepers(self.timeline, wall=self.clock.time, seen=self, places_of=self._places_of)
        self.controllers: list[SimulatedController] = []
        self.agent: VirtualProcess | None = None
        self.agent_program: Agent | None = None
        self.healed = False
        self.armed: dict[str, tuple[int, Callable[[], None]]] = {}
        self.places: Counter[str] = Counter()
        self._agents = 0
        self._losing_power = False
        self._digest = sha256()
        self._watching: sqlite3.Connection | None = None

    @contextmanager
    def running(self) -> Iterator[World]:
        """With all seams on this world, until its end."""
        logger = logging.getLogger("fairway")
        handler = _Errors(self)
        level, propagates = logger.level, logger.propagate
        with ExitStack() as stack:
            stack.enter_context(shim().used_for(self.disk))
            for target, name, value in (
                (fault_points, "on_reached", self._reached),
                (durable_file, "_sync", self.agent_disk.sync),
                (outcomes, "boot", lambda: self.keepers.boot),
                (run_table, "boot", lambda: self.keepers.boot),
                (preparation, "_free_port", lambda: 29500),
                (run_directories, "Disposal", InlineDisposal),
                (sqlite, "create_engine", sharing_engine),
                (sqlite_files, "RESERVE_BYTES", _RESERVE_BYTES),
                (sqlite_files.StoreFiles, "_free_bytes", lambda _: 0 if self.disk.full else 2**40),
            ):
                stack.enter_context(patch.object(target, name, value))
            logger.addHandler(handler)
            logger.propagate = False
            logger.setLevel(logging.ERROR)
            try:
                self.start_controller()
                yield self
            finally:
                self.end()
                logger.removeHandler(handler)
                logger.propagate = propagates
                logger.setLevel(level)

    # What happens

    def happened(self, fault: str) -> None:
        """A fault took effect."""
        self.faults[fault] += 1
        self.note(fault)

    def note(self, what: str) -> None:
        """Let something be part of the history's digest."""
        self._digest.update(f"{self.timeline.now:.6f} {what}\n".encode())

    @property
    def digest(self) -> str:
        """Of all that happened so far."""
        return self._digest.hexdigest()

    def arm(self, place: str, nth: int, action: Callable[[], None]) -> None:
        """Have something happen when a place in the code is reached for the nth time from now on."""
        self.armed[place] = (nth, action)

    def _reached(self, place: str) -> None:
        current = self.keepers.acting or self.timeline.current
        if current is not None and not current.alive:
            raise ProcessKilledError
        if place == "file.begun":
            self.agent_disk.refuse_if_full()
        elif place == "session.written":
            self._decided()
        self.places[place] += 1
        armed = self.armed.get(place)
        if armed is None:
            return
        count, action = armed
        if count > 1:
            self.armed[place] = count - 1, action
            return
        del self.armed[place]
        action()
        if current is not None and not current.alive:
            raise ProcessKilledError

    def _decided(self) -> None:
        for controller in self.controllers:
            if controller.process is self.timeline.current:
                self.promises.changed_by(controller.epoch)

    # As what keepers are seen by

    def began(self, pid: int, run: RunSeen) -> None:
        """A job runs."""
        self.note(f"{run.job} runs under {run.lease} on {sorted(run.places)} from {run.first}")
        self.promises.began(pid, run.job, run.lease, run.places, run.first)

    def ended(self, pid: int, run: RunSeen) -> None:
        """A job has ended."""
        self.note(f"{run.job} under {run.lease} ends with {run.code} at {run.step:.3f}")
        self.promises.ended(pid, code=run.code, whole=run.step >= run.total)

    def saved(self, job: str, step: int) -> None:
        """A job has saved a checkpoint."""
        self.promises.saved(job, step)

    def exit_written(self, pid: int) -> None:
        """How a run ended is on the disk."""
        self.promises.exit_written(pid)

    def changed(self) -> None:
        """A process of a run began or ended: an agent that watches looks again."""
        if self.agent_program is not None and self.agent is not None:
            self.timeline.at(self.timeline.now + 0.001, self.agent_program.tick, owner=self.agent)

    def _places_of(self, files: RunFiles) -> frozenset[tuple[str, int]]:
        assert self.agent_program is not None
        for run in self.agent_program.runs.state.runs:
            if run.directory == files.directory.name:
                return frozenset((run.accelerator, worker) for worker in run.workers)
        return frozenset()

    # Processes

    @property
    def controller(self) -> SimulatedController | None:
        """The newest controller that lives."""
        return next((one for one in reversed(self.controllers) if one.process.alive), None)

    def start_controller(self) -> None:
        """Start a controller on the store; beside one that lives, if there is one."""
        process = VirtualProcess(self.timeline, "controller", on_death=self._died)
        self.controllers.append(SimulatedController(self, process))

    async def start_agent(self) -> None:
        """Start an agent, unless there is one."""
        if self.agent is None or not self.agent.alive:
            self._agents += 1
            self.agent = VirtualProcess(self.timeline, "agent", on_death=self._died)
            with self.agent.running():
                self.agent.start(self._serve_as_agent(self.agent, self._agents))
        started = self.agent
        await asyncio.sleep(0.02)
        if not started.alive:
            raise FairwayError(f"the agent did not start: {started.failure}")

    async def _serve_as_agent(self, process: VirtualProcess, number: int) -> None:
        accelerators = emulated_accelerators(self.settings["emulate"])
        directory = self.directory / "agent"
        agent = Agent(directory, accelerators, keepers=self.keepers, clock=self.clock, instance=str(number), outside={})

        async def listen(converse: Converse) -> Callable[[], None]:
            return self.network.listen(process, converse)

        self.agent_program = agent
        await agent.serve(listen, tick_seconds=_TICK_SECONDS)

    def _died(self, process: VirtualProcess) -> None:
        self.note(f"{process.name} ends")
        self.network.process_died(process)
        if process is self.agent and isinstance(process.failure, InputError):
            self.timeline.at(self.timeline.now + 3.0, self._move_state_away)
        elif process is not self.agent and any(words in str(process.failure) for words in _LOST_WORDS):
            self.promises.store_refused(str(process.failure).replace(f"{self.directory}/", ""))
        if not self._losing_power:
            self.timeline.at(self.timeline.now, self._bury, process)

    def _bury(self, process: VirtualProcess) -> None:
        process.bury()
        if process is self.agent:
            self.agent_program = None
        if process.name == "controller" and self.controller is None:
            self.timeline.at(self.timeline.now + self.draw.uniform(0.1, 0.5), self._start_again)

    def _start_again(self) -> None:
        if self.controller is None:
            self.start_controller()

    def _move_state_away(self) -> None:
        """What an agent that cannot read its state asks of its owner."""
        if self.agent is None or not self.agent.alive:
            self.note("the state of the agent is moved away")
            (self.directory / "agent" / "state.json").unlink(missing_ok=True)
            self.promises.forgot()
            self.promises.agent_forgot()

    def lose_power(self) -> None:
        """Everything stops at once, and what was not synced may be lost."""
        self._losing_power = True
        dead = [one.process for one in self.controllers] + ([] if self.agent is None else [self.agent])
        dead = [process for process in dead if process.alive]
        for process in dead:
            process.kill()
        self.keepers.lose_power()
        self._losing_power = False
        self.timeline.at(self.timeline.now, self._after_power_loss, dead)

    def _after_power_loss(self, dead: list[VirtualProcess]) -> None:
        if self._watching is not None:
            self._watching.close()
            self._watching = None
        for process in dead:
            self._bury(process)
        self.disk.lose_power(self.draw)
        self.agent_disk.lose_power(self.draw)
        self.promises.forgot(self._finished_on_disk())
        self.promises.agent_forgot()

    def _finished_on_disk(self) -> set[str]:
        """The jobs that have come to their end, as the agent will find it written when it starts again."""
        try:
            state = AgentState.load(self.directory / "agent" / "state.json")
        except InputError:  # it cannot be read, and is moved away
            return set()
        return {run.job for run in state.runs if state.has_finished(run.job)}

    # The store, as the model sees it

    def look_at_store(self) -> None:
        """Tell the model what is in the store."""
        if self._watching is None:
            self._watching = sqlite3.connect(self.directory / "fairway.db", isolation_level=None)
        rows = self._watching.execute("SELECT id, state, idempotency_key FROM jobs").fetchall()
        (epoch,) = self._watching.execute("SELECT value FROM counters WHERE name = 'epochs'").fetchone()
        self.promises.newest_epoch(epoch)
        self.promises.stored({job: state for job, state, _ in rows}, {job: key for job, _, key in rows})

    def held(self) -> int:
        """How many workers are held in the store."""
        assert self._watching is not None
        count: int = self._watching.execute("SELECT count(*) FROM held_workers").fetchone()[0]
        return count

    def end(self) -> None:
        """Let go of everything."""
        for process in [one.process for one in self.controllers] + ([] if self.agent is None else [self.agent]):
            process.kill()
            process.bury()
        if self._watching is not None:
            self._watching.close()


def _is_dead(process: object) -> bool:
    return isinstance(process, VirtualProcess) and not process.alive


@cache
def _empty_store() -> bytes:
    """A store without jobs, made once."""
    with TemporaryDirectory() as directory:
        open_store(directory).close()
        return (Path(directory) / "fairway.db").read_bytes()


@contextmanager
def world_of(settings: Mapping[str, Any], seed: int) -> Iterator[World]:
    """A world in a directory of its own, in memory where the system has one for that."""
    shared = Path("/dev/shm")
    directory = Path(mkdtemp(prefix="fairway-", dir=shared if shared.is_dir() else None))
    try:
        (directory / "fairway.db").write_bytes(_empty_store())
        yield World(directory, settings, seed)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
