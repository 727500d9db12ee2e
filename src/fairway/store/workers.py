"""Agents, and the workers that they run: registered, seen, drained, lost.

Workers are numbered from 0 within their type and keep their number for ever, also when their agent comes back after a
restart of anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from sqlalchemy import Connection, bindparam, func, insert, select, update

from fairway.store.database.schema import agents, workers
from fairway.store.errors import UnknownError
from fairway.store.names import checked_name
from fairway.store.records import Agent, Worker

_NOTHING: Mapping[str, Any] = {}

_OF_AGENT = select(workers).where(workers.c.agent == bindparam("agent"))
_HIGHEST = select(func.max(workers.c.number)).where(workers.c.accelerator == bindparam("accelerator"))
_BY_NUMBER = update(workers).where(
    workers.c.accelerator == bindparam("of_type"), workers.c.number == bindparam("numbered")
)
_SEEN = update(agents).where(agents.c.name == bindparam("agent")).values(seen_at=bindparam("at"))


@dataclass(frozen=True, slots=True)
class Device:
    """An accelerator as its agent knows it: its type, and a name that stays the same over restarts of the agent."""

    accelerator: str
    name: str
    emulated: bool = False

    def __post_init__(self) -> None:
        checked_name(self.accelerator, "accelerator")
        checked_name(self.name, "device")


def register_agent(
    connection: Connection, name: str, devices: Sequence[Device], *, at: float, details: Mapping[str, Any] = _NOTHING
) -> list[Worker]:
    """Take in an agent with all the devices it has now; returns its workers in their order.

    A device that was there before keeps its number, and stays drained if it was. What the agent has no more is lost.
    """
    checked_name(name, "agent")
    if connection.execute(select(agents.c.name).where(agents.c.name == name)).one_or_none() is None:
        connection.execute(insert(agents).values(name=name, details=details, registered_at=at, seen_at=at))
    else:
        connection.execute(update(agents).where(agents.c.name == name).values(details=details, seen_at=at))
    before = {(row.accelerator, row.device): Worker(*row) for row in connection.execute(_OF_AGENT, {"agent": name})}
    now = {(device.accelerator, device.name): device for device in devices}
    back = [worker for key, worker in before.items() if key in now and worker.lost_at is not None]
    gone = [worker for key, worker in before.items() if key not in now and worker.lost_at is None]
    _mark(connection, [(worker.accelerator, worker.number) for worker in back], "lost_at", None)
    _mark(connection, [(worker.accelerator, worker.number) for worker in gone], "lost_at", at)
    _add(connection, name, [device for key, device in now.items() if key not in before], at)
    after = {(row.accelerator, row.device): Worker(*row) for row in connection.execute(_OF_AGENT, {"agent": name})}
    return [after[key] for key in now]


def agents_seen(connection: Connection, names: Iterable[str], *, at: float) -> None:
    """Agents have been heard from."""
    rows = [{"agent": name, "at": at} for name in names]
    if rows:
        connection.execute(_SEEN, rows)


def drain_workers(connection: Connection, numbers: Iterable[tuple[str, int]], *, at: float) -> None:
    """Nothing new is to run on these workers, named by accelerator type and number."""
    _mark(connection, list(numbers), "drained_at", at)


def undrain_workers(connection: Connection, numbers: Iterable[tuple[str, int]]) -> None:
    """These workers may be used again."""
    _mark(connection, list(numbers), "drained_at", None)


def lose_workers(connection: Connection, numbers: Iterable[tuple[str, int]], *, at: float) -> None:
    """These workers are gone, until their agent registers them again."""
    _mark(connection, list(numbers), "lost_at", at)


def all_workers(connection: Connection) -> list[Worker]:
    """Every worker that ever was, by type and number."""
    return [Worker(*row) for row in connection.execute(select(workers).order_by(*workers.primary_key))]


def all_agents(connection: Connection) -> list[Agent]:
    """Every agent that ever was, by name."""
    return [Agent(*row) for row in connection.execute(select(agents).order_by(agents.c.name))]


def _add(connection: Connection, agent: str, devices: Sequence[Device], at: float) -> None:
    """Number new workers on from those of their types."""
    highest = {
        accelerator: connection.execute(_HIGHEST, {"accelerator": accelerator}).scalar_one()
        for accelerator in {device.accelerator for device in devices}
    }
    following = {accelerator: count(0 if last is None else last + 1) for accelerator, last in highest.items()}
    rows = [
        {
            "accelerator": device.accelerator,
            "number": next(following[device.accelerator]),
            "agent": agent,
            "device": device.name,
            "emulated": device.emulated,
            "registered_at": at,
        }
        for device in devices
    ]
    if rows:
        connection.execute(insert(workers), rows)


def _mark(connection: Connection, numbers: Sequence[tuple[str, int]], column: str, at: float | None) -> None:
    for accelerator, number in numbers:
        found = connection.execute(_BY_NUMBER.values({column: at}), {"of_type": accelerator, "numbered": number})
        if found.rowcount != 1:
            raise UnknownError(f"no worker {accelerator} {number} is registered")
