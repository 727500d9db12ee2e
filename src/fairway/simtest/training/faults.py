"""What can be done to the machine: each fault is one small function, by the name under which plans know it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from fairway.simtest.virtual_loop import VirtualProcess

if TYPE_CHECKING:
    from fairway.simtest.training.world import World

Fault = Callable[["World", Mapping[str, Any]], None]

PLACES = {
    "controller": (
        "session.written", "store.written", "store.committed", "loop.durable", "loop.answered",
    ),
    "agent": ("file.begun", "file.written", "file.replaced", "agent.spawning", "agent.disposing"),
    "keeper": ("keeper.claimed", "keeper.started", "keeper.exiting", "keeper.exited", "job.saving", "job.saved"),
}  # fmt: skip
"""Places in the code at which a process can be killed, or the power can fail, by the process that comes there."""


def strike(world: World, what: str, arguments: Mapping[str, Any]) -> None:
    """Let a fault happen."""
    if not world.healed:
        FAULTS[what](world, arguments)


def _kill_controller(world: World, _: Mapping[str, Any]) -> None:
    if world.controller is not None:
        world.happened("controller-killed")
        world.controller.process.kill()


def _kill_agent(world: World, _: Mapping[str, Any]) -> None:
    if world.agent is not None and world.agent.alive:
        world.happened("agent-killed")
        world.agent.kill()


def _kill_keeper(world: World, arguments: Mapping[str, Any]) -> None:
    alive = world.keepers.alive()
    if alive:
        keeper = alive[arguments["which"] % len(alive)]
        world.happened("keeper-killed")
        world.promises.harmed(keeper.job_name)
        keeper.kill()


def _kill_soon(world: World, arguments: Mapping[str, Any]) -> None:
    """A process dies after so many of its next callbacks: between any two of its awaits."""
    process = _process(world, arguments["process"])
    if process is None or process.steps_to_live is not None:
        return
    process.steps_to_live = arguments["steps"]
    world.happened(f"{arguments['process']}-killed-soon")


def _at_place(world: World, arguments: Mapping[str, Any]) -> None:
    """When the code comes to a place, the process that came there dies, or the power fails."""
    place, power = arguments["place"], arguments.get("power", False)

    def struck() -> None:
        keeper = world.keepers.acting
        if power:
            world.happened("power-lost")
            world.lose_power()
        elif keeper is not None:
            world.happened("keeper-killed")
            world.promises.harmed(keeper.job_name)
            keeper.kill()
        elif world.timeline.current is not None:
            world.happened(f"{world.timeline.current.name}-killed")
            world.timeline.current.kill()

    world.arm(place, arguments["nth"], struck)


def _lose_power(world: World, _: Mapping[str, Any]) -> None:
    world.happened("power-lost")
    world.lose_power()


def _pause(world: World, arguments: Mapping[str, Any]) -> None:
    process = _process(world, arguments["process"])
    if process is not None and not process.paused:
        world.happened(f"{arguments['process']}-paused")
        process.pause()
        world.timeline.at(world.timeline.now + arguments["seconds"], partial(_resume, process))


def _resume(process: VirtualProcess) -> None:
    if process.alive and process.paused:
        process.resume()


def _pause_keeper(world: World, arguments: Mapping[str, Any]) -> None:
    alive = world.keepers.alive()
    if alive:
        world.happened("keeper-paused")
        keeper = alive[arguments["which"] % len(alive)]
        keeper.stopped = True
        world.timeline.at(world.timeline.now + arguments["seconds"], keeper.proceed)


def _second_controller(world: World, arguments: Mapping[str, Any]) -> None:
    """Another controller starts while the first is paused, which later goes on as if nothing had happened."""
    first = world.controller
    if first is not None and first.ready and not first.process.paused:
        _pause(world, {"process": "controller", "seconds": arguments["seconds"]})
        world.happened("controller-followed")
        world.start_controller()


def _cut(world: World, arguments: Mapping[str, Any]) -> None:
    world.happened("partition")
    world.network.cut(arguments["seconds"])


def _break(world: World, _: Mapping[str, Any]) -> None:
    if world.network.open:
        world.happened("connection-broken")
        world.network.break_all()


def _messages(world: World, arguments: Mapping[str, Any]) -> None:
    world.network.wanted[arguments["how"]] += arguments["count"]


def _set_clock(world: World, arguments: Mapping[str, Any]) -> None:
    world.happened("clock-set")
    world.clock.set_by += arguments["seconds"]


def _fill_disk(world: World, arguments: Mapping[str, Any]) -> None:
    disk = world.disk if arguments["disk"] == "store" else world.agent_disk
    if not disk.full:
        world.happened(f"{arguments['disk']}-disk-full")
        disk.full = True

        def room() -> None:
            disk.full = False

        world.timeline.at(world.timeline.now + arguments["seconds"], room)


def _corrupt(world: World, arguments: Mapping[str, Any]) -> None:
    """A file that a job can reach holds something else than it should."""
    channels = sorted((world.directory / "agent" / "channels").glob("*/*.json"))
    if channels:
        path = channels[arguments["which"] % len(channels)]
        world.happened("file-corrupted")
        world.promises.spoilt(path.parent.name.split("-", 1)[1])
        path.unlink()  # it may be a link by now, and what it leads to is not to be written
        path.write_bytes((b"", b"{", b"\0" * 64, b'{"rank": 0, "step": 1e999}', b"[" * 500)[arguments["how"] % 5])


def _process(world: World, name: str) -> VirtualProcess | None:
    if name == "controller":
        return None if world.controller is None else world.controller.process
    return world.agent if world.agent is not None and world.agent.alive else None


FAULTS: dict[str, Fault] = {
    "kill-controller": _kill_controller,
    "kill-agent": _kill_agent,
    "kill-keeper": _kill_keeper,
    "kill-soon": _kill_soon,
    "at-place": _at_place,
    "lose-power": _lose_power,
    "pause": _pause,
    "pause-keeper": _pause_keeper,
    "second-controller": _second_controller,
    "partition": _cut,
    "break-connections": _break,
    "messages": _messages,
    "set-clock": _set_clock,
    "fill-disk": _fill_disk,
    "corrupt-file": _corrupt,
}
