"""The live serving system as a component of the fault simulation: runs a plan, and judges what came of it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from random import Random
from typing import Any

from fairway import fault_points
from fairway.engine.protocol import InvariantError
from fairway.live.serving.simulated.system import SimulatedSystem
from fairway.simtest.component import Generator, History
from fairway.simtest.plan import Plan, Step
from fairway.simtest.serving.application import Scene, on_scene
from fairway.simtest.serving.clients import SimulatedClient
from fairway.simtest.serving.faults import Faults
from fairway.simtest.serving.generators import GENERATORS
from fairway.simtest.serving.promises import Record, broken
from fairway.simtest.serving.quiet import left_in_memory, left_over
from fairway.simtest.serving.settings import settings_of

_QUIET_SECONDS = 40.0
_CLEARED_SECONDS = 21.0
"""What dead processes have left is let go so long after their death at the latest."""
_STEP_SECONDS = 0.5


class _History:
    """One history, from an empty world to its quiet end."""

    def __init__(self, plan: Plan) -> None:
        settings = dict(plan.settings)
        self._plan = plan
        self._draws = Random(plan.seed)
        self._record = Record(most_open=settings.get("most_open", 1000))
        options = {name: settings[name] for name in _SERVED if name in settings}
        self._system = SimulatedSystem(
            settings_of(**options, seed=plan.seed % 1000),
            rows_as_messages=settings["rows_as_messages"],
            start_seconds=settings["start_seconds"],
        )
        self._time, machine = self._system.time, self._system.machine
        latency, lateness, draws = settings["latency"], settings["lateness"], self._draws
        machine.network.latency = lambda: 2e-5 + latency * draws.random() ** 4
        if lateness:
            machine.lateness = lambda: lateness * draws.random() ** 4
        self._scene = Scene(machine)
        self._faults = Faults(self._system, self._scene, self._record, Random(draws.getrandbits(32)))
        self._validated = settings["validated"]
        self._wrong: list[str] = []
        self._workflows = tuple(self._system.settings.application().workflows)
        self._clients = [self._client(number) for number in range(settings["clients"])]
        self._former: list[SimulatedClient] = []
        self._checks_memory = settings["checks_memory"]
        self._system.on_end, self._system.on_restart = self._ended, self._restarted
        if self._validated:
            self._system.after_turn = self._validate

    def _client(self, number: int) -> SimulatedClient:
        draws = Random(self._draws.getrandbits(32))
        return SimulatedClient(self._system, self._workflows, number, self._record, draws)

    def run(self) -> History:
        """Let it all happen, and judge it."""
        on_scene(self._scene)
        fault_points.on_reached = self._reached
        try:
            self._happen()
        except Exception as error:
            self._wrong.append(f"the simulation ended with {type(error).__name__}: {error}")
        for client in self._clients:
            self._wrong.extend(client.problems)
        violations = (*self._wrong, *self._system.crashes, *broken(self._record))
        history = History(dict(self._faults.took_effect), len(self._faults.messages), self._digest(), violations)
        self._close()
        return history

    def _close(self) -> None:
        """Let the coroutines of clients that still wait end."""
        for client in (*self._clients, *self._former):
            client.close()
        with suppress(Exception):
            self._time.advance(0.0)
        fault_points.on_reached = None
        on_scene(None)

    def _happen(self) -> None:
        time, plan = self._time, self._plan
        self._system.start()
        begin = time.now()
        for step in plan.steps:
            time.at(begin + step.at, lambda step=step: self._do(step))  # type: ignore[misc]
        last = max((step.at for step in plan.steps), default=0.0)
        time.advance(last + 1e-6)
        self._faults.end()
        time.advance(self._record.most_seconds + 1.0, self._has_all_outcomes)
        if not self._has_all_outcomes():
            return
        wrong = ["nothing was looked at"]
        for _ in range(int(_QUIET_SECONDS / _STEP_SECONDS)):
            time.advance(_STEP_SECONDS)
            wrong = list(left_over(self._system))
            if not wrong:
                break
        self._wrong.extend(f"{each}, {_QUIET_SECONDS:g} s after the last outcome" for each in wrong)
        for worker in self._system.workers.values():
            worker.engine.validate()
        if self._checks_memory and not wrong:
            time.advance(_CLEARED_SECONDS)
            self._wrong.extend(left_in_memory(self._system))

    def _do(self, step: Step) -> None:
        arguments: Mapping[str, Any] = step.arguments
        match step.what:
            case "ask":
                client = self._clients[arguments["client"]]
                client.ask(
                    arguments["number"], arguments["workflow"], arguments.get("harm", ""), arguments.get("deadline")
                )
            case "leave":
                if any(client.leave(arguments["number"]) for client in self._clients):
                    self._faults.happened("leave")
            case "client-dies":
                if self._clients[arguments["client"]].die():
                    self._faults.happened("client-dies")
            case _:
                self._faults.do(step.what, arguments)

    def _restarted(self) -> None:
        """All processes have ended and start again; clients have to look anew for what is served."""
        for client in self._clients:
            client.die()
            self._wrong.extend(client.problems)
        self._former.extend(self._clients)
        self._clients = [self._client(number) for number in range(len(self._clients))]

    def _has_all_outcomes(self) -> bool:
        return all(asked.left or asked.ended_at is not None for asked in self._record.requests.values())

    def _ended(self, number: int, status: str) -> None:
        self._faults.died(number, status)
        pool, settings = self._system.pool, self._system.settings
        if not any(pool.is_serving(worker) for worker in range(settings.workers)):
            self._record.all_gone_at.append(self._time.now())

    def _reached(self, place: str) -> None:
        running = self._system.machine.running
        if running is not None:
            running.reach(place)

    def _validate(self, number: int) -> None:
        if self._draws.random() < self._validated:
            try:
                self._system.workers[number].engine.validate()
            except InvariantError as error:
                self._wrong.append(f"at {self._time.now():.4f} s: {error}")

    def _digest(self) -> str:
        outcomes = [(each.number, each.ended_at, each.code) for each in self._record.requests.values()]
        content = repr((self._faults.messages, outcomes, sorted(self._faults.took_effect.items())))
        return blake2b(content.encode(), digest_size=16).hexdigest()


_SERVED = ("workers", "memory_bytes", "scheduler", "most_open", "slo_seconds", "pinned", "stage_limit_seconds",
           "load_limit_seconds")  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Serving:
    """The component; every history has its own world, so one after the other may run in a process."""

    name: str = "serving"
    generators: Mapping[str, Generator] = field(default_factory=lambda: GENERATORS)

    def run(self, plan: Plan) -> History:
        """Run a plan from an empty world to its quiet end, and judge what happened."""
        logger = logging.getLogger("fairway")
        before = logger.level
        logger.setLevel(logging.CRITICAL + 1)
        try:
            return _History(plan).run()
        finally:
            logger.setLevel(before)


SERVING = _Serving()
"""The live serving system."""
