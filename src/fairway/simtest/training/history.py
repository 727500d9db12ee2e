"""Runs a plan: clients submit and cancel, faults happen, everything is mended, and the model judges what is left."""

from __future__ import annotations

import gc
import os
from collections.abc import Mapping
from typing import Any

from fairway.errors import FairwayError
from fairway.simtest.component import History
from fairway.simtest.plan import Plan, Step
from fairway.simtest.training.faults import strike
from fairway.simtest.training.jobs import HOSTILE
from fairway.simtest.training.sqlite_disk import shim
from fairway.simtest.training.world import World, world_of

_BOUND_SECONDS = 150.0
"""How long after the last fault everything has to be over: far longer than all jobs of a plan take one by one."""

_LOOK_SECONDS = 0.5
_ASK_AGAIN_SECONDS = 0.7
_MEND_AFTER_SECONDS = 1.0


def run(plan: Plan) -> History:
    """Run a plan to its quiet end and judge it."""
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    with world_of(plan.settings, plan.seed) as world:
        with world.running():
            _play(world, plan)
        promises = world.promises
        history = History(dict(world.faults), world.timeline.events, world.digest, ())
        files, descriptors = shim().open_files, len(os.listdir("/proc/self/fd"))  # noqa: PTH208
        del world
    if files or descriptors > before:
        gc.collect()  # connections that were in use when their process was killed
        files, descriptors = shim().open_files, len(os.listdir("/proc/self/fd"))  # noqa: PTH208
        if files or descriptors > before:
            promises.violations.append(
                f"left in the end: {descriptors - before} descriptors, {files} files of the store"
            )
    return History(history.faults, history.events, history.digest, tuple(promises.violations))


def _play(world: World, plan: Plan) -> None:
    clients = Clients(world)
    for step in plan.steps:
        if step.is_fault:
            world.timeline.at(step.at, strike, world, step.what, step.arguments)
        else:
            world.timeline.at(step.at, clients.act, step)
    last = max((step.at for step in plan.steps), default=0.0) + _MEND_AFTER_SECONDS
    world.timeline.at(last, mend, world)
    world.timeline.at(last, clients.undrain)
    world.timeline.run_until(last)
    while not world.promises.violations and world.timeline.now < last + _BOUND_SECONDS:
        world.timeline.run_until(world.timeline.now + _LOOK_SECONDS)
        if world.promises.all_acknowledged and not world.promises.open_jobs and not _left(world):
            break
    if not world.promises.violations:
        world.promises.at_the_end(left=_left(world), seconds=world.timeline.now - last)


def _left(world: World) -> list[str]:
    """What should not be there when all jobs are over."""
    left = ["keepers"] * len(world.keepers.alive())
    controller = None if world.controller is None else world.controller.controller
    if controller is None or world.agent_program is None:
        return [*left, "outage"]
    status = world.agent_program.runs.status()
    left += ["runs of the agent"] * len(status.runs) + ["former jobs of the agent"] * len(status.former)
    work = controller._work
    if not work.healthy:
        return [*left, "illness of the controller"]
    scheduler = work.session.scheduler
    left += ["jobs of the controller"] * len(scheduler.jobs) + ["leases of the controller"] * len(scheduler.leases)
    left += ["workers held in the store"] * world.held()
    return left


def mend(world: World) -> None:
    """All faults are over: what is broken is mended, what waits goes on."""
    world.healed = True
    world.armed.clear()
    world.network.heal()
    world.disk.full = world.agent_disk.full = False
    for process in [one.process for one in world.controllers] + ([] if world.agent is None else [world.agent]):
        process.steps_to_live = None
        if process.alive and process.paused:
            process.resume()
    for keeper in world.keepers.alive():
        keeper.proceed()
    world.note("mended")


class Clients:
    """People who submit and cancel, and who ask again until they have an answer."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._drained: dict[tuple[str, int], bool] = {}

    def act(self, step: Step) -> None:
        """Do what a step of the workload says."""
        match step.what:
            case "submit":
                key, spec = step.arguments["key"], step.arguments["spec"]
                self._world.promises.sent(key, spec.get("retries", 0), hostile=spec["run"][0] in HOSTILE)
                self._submit(key, spec)
            case "cancel":
                self._world.timeline.at(self._world.timeline.now, self._cancel, step.arguments["key"])
            case "drain":
                self._want_drained(
                    [(kind, number) for kind, number in step.arguments["workers"]], on=step.arguments["on"]
                )
            case _:
                raise ValueError(f"step '{step.what}' given, expected submit, cancel or drain")

    def _submit(self, key: str, spec: Mapping[str, Any]) -> None:
        world, controller = self._world, self._world.controller
        world.timeline.at(world.timeline.now + _ASK_AGAIN_SECONDS, self._submit_again, key, spec)
        if controller is None or not controller.ready:
            return

        async def ask() -> None:
            try:
                job = await controller.submit(key, spec)
            except FairwayError:
                return  # such as a full disk; it is sent again
            world.note(f"{key} is {job}")
            world.promises.acknowledged(key, job)

        _in(controller.process, ask)

    def _submit_again(self, key: str, spec: Mapping[str, Any]) -> None:
        if self._world.promises.job_of(key) is None:
            self._submit(key, spec)

    def _cancel(self, key: str) -> None:
        world, controller = self._world, self._world.controller
        job = world.promises.job_of(key)
        if job is None or controller is None or not controller.ready:
            world.timeline.at(world.timeline.now + _ASK_AGAIN_SECONDS, self._cancel, key)
            return
        world.promises.cancel_sent(job)
        answered = False

        async def ask() -> None:
            nonlocal answered
            try:
                await controller.cancel(job)
            except FairwayError as error:
                answered = "already" in str(error) or "cannot" in str(error)
                return
            answered = True
            world.note(f"cancel of {job} is acknowledged")

        def look() -> None:
            if not answered:
                self._cancel(key)

        _in(controller.process, ask)
        world.timeline.at(world.timeline.now + _ASK_AGAIN_SECONDS, look)

    def undrain(self) -> None:
        """Let all workers be used again that are not."""
        self._want_drained([worker for worker, on in self._drained.items() if on], on=False)

    def _want_drained(self, workers: list[tuple[str, int]], *, on: bool) -> None:
        self._drained |= dict.fromkeys(workers, on)
        self._drain(workers, on)

    def _drain(self, workers: list[tuple[str, int]], on: bool) -> None:
        """Ask until it is done, for the workers of which the last wish is still this one."""
        workers = [worker for worker in workers if self._drained[worker] is on]
        if not workers:
            return
        timeline, controller = self._world.timeline, self._world.controller
        if controller is None or not controller.ready:
            timeline.at(timeline.now + _ASK_AGAIN_SECONDS, self._drain, workers, on)
            return
        with controller.process.running():
            done = controller.drain(workers, on=on)
        timeline.at(timeline.now + _ASK_AGAIN_SECONDS, self._look_at_drain, done, workers, on)

    def _look_at_drain(self, done: Any, workers: list[tuple[str, int]], on: bool) -> None:
        if not done.done() or done.exception() is not None:
            self._drain(workers, on)


def _in(process: Any, ask: Any) -> None:
    """Have a client's request handled in a process."""
    process.timeline.at(process.timeline.now, lambda: process.loop.create_task(ask()), owner=process)
