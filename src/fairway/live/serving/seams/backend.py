"""The seams of one kind together: all that a served application needs of the machines under it.

Which kind it is, is named once, in the settings, and looked up here: "local" is one machine, "local-messages" the same
with rows that travel as messages; "ray" is a Ray cluster, and "nodes" what the processes on one of its nodes have of
it; `module:Class` is any other, made from the settings. Nothing else above the seams knows the names of what is behind
them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from fairway.errors import InputError
from fairway.import_path import imported
from fairway.live.serving.seams.background import Background
from fairway.live.serving.seams.run_record import RunRecord
from fairway.live.serving.seams.slices import SliceHost
from fairway.live.serving.seams.state_board import RowSpace
from fairway.live.serving.seams.transport import Network
from fairway.live.serving.seams.values import ValueStore
from fairway.live.serving.seams.worker_pool import WorkerPool
from fairway.options import nearest

if TYPE_CHECKING:
    from fairway.live.serving.supervise.settings import ServingSettings

_HOMES = {
    "local": "fairway.live.serving.local.backend:LocalBackend",
    "local-messages": "fairway.live.serving.local.backend:LocalMessagesBackend",
    "nodes": "fairway.live.serving.nodes.backend:NodesBackend",
    "ray": "fairway.live.serving.ray.backend:RayBackend",
}


class Seams(Network, ValueStore, RowSpace, Protocol):
    """Transport, values and rows, and time, as one process of an application has them: a worker, or a client."""

    def sleep(self, seconds: float) -> None:
        """Let time pass, for a client that waits."""
        ...

    def background(self, name: str, wake: Callable[[], None]) -> Background:
        """Work beside a worker's loop, which `wake` wakes."""
        ...

    def run_record(self) -> RunRecord:
        """What the processes of the application do at this moment; the supervisor has made room for it."""
        ...

    def slices(self, number: int) -> SliceHost | None:
        """What holds copies of models to slices of this worker; None where nothing can, and slices are counted only."""
        ...


class ServingBackend(Seams, Protocol):
    """What the supervisor has beside that: the processes, and the place that they share."""

    def pool(self) -> WorkerPool:
        """The supervisor's processes."""
        ...

    def check(self) -> None:
        """Refuse, by an `InputError`, settings under which nothing can be served; nothing is made yet."""
        ...

    def take(self) -> None:
        """Make the place that processes share, for this supervisor alone; refuses one that another one has."""
        ...

    def release(self) -> None:
        """Remove all that was shared, once all processes have ended; does nothing if it was not taken."""
        ...

    def run_beside(self, program: Sequence[str], files: Mapping[str, bytes]) -> list[str]:
        """Run a program on every machine beside the workers, and again should it end; none on the supervisor's own.

        `program` are arguments of the interpreter, to which the machine's serving directory is added, and `files` what
        is written there before. Returns the first line that each prints.
        """
        ...

    def clear_after_clients(self) -> None:
        """Let go the values of clients that are gone."""
        ...


def backend_of(settings: ServingSettings) -> ServingBackend:
    """The backend that the settings name, for this process."""
    name = settings.backend
    if name not in _HOMES and ":" not in name:
        raise InputError(
            f"backend: '{name}' is not known{nearest(name, _HOMES)}; known: {', '.join(_HOMES)}, or module:Class"
        )
    module, _, kind = _HOMES[name].partition(":") if name in _HOMES else ("", "", "")
    made: Callable[[ServingSettings], ServingBackend] = (
        getattr(import_module(module), kind) if name in _HOMES else imported(name)
    )
    return made(settings)


def accelerators_under(name: str, address: str | None) -> int | None:
    """How many accelerators there are under a backend that has machines of its own; None under one that has not."""
    module, _, kind = _HOMES.get(name, "").partition(":")
    count = getattr(getattr(import_module(module), kind), "accelerators", None) if module else None
    found: int | None = None if count is None else count(address)
    return found
