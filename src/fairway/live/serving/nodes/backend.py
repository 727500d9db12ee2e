"""The seams of one node among several, for the processes on it: its workers, and its clients.

The rows of all workers are in the shared memory of each node: a node's own workers write theirs there, and its keeper
brings those of the others (`node_keeper`). Who starts processes, and on which node, is another matter: `ray` has it.
"""

from __future__ import annotations

import os
import time
from functools import cached_property, partial
from pathlib import Path

from fairway.live.durable_file import write_json
from fairway.live.serving.local.backend import LocalBackend
from fairway.live.serving.nodes.carried_values import Carriage, NodeValues
from fairway.live.serving.nodes.guarded_channel import Pickled
from fairway.live.serving.nodes.node_place import NodePlace, address_book
from fairway.live.serving.nodes.node_transport import Callers, NodeTransport
from fairway.live.serving.sockets.channel import Channel
from fairway.live.serving.supervise.settings import ServingSettings

EPOCH = "FAIRWAY_EPOCH"
"""The variable that says to a process which of its lives it is."""


class NodesBackend(LocalBackend):
    """What the processes on one node have."""

    def now(self) -> float:
        """The supervisor's clock, which all nodes have in common."""
        return time.monotonic() + self._place.clock_seconds

    @cached_property
    def _place(self) -> NodePlace:
        return NodePlace.read(self._settings.directory)

    @cached_property
    def _pickled(self) -> Pickled:
        return Carriage(self._settings.memory_directory).pickled

    @cached_property
    def _callers(self) -> Callers:
        directory = self._settings.directory
        return Callers(self._settings.socket, address_book(directory), self._place.credentials, self._pickled)

    def transport(self, number: int) -> NodeTransport:
        """The sockets of a worker."""
        place, announce = self._place, partial(self._announce, number)
        socket_of = self._settings.socket
        return NodeTransport(number, socket_of, place.host, place.credentials, self._callers, self._pickled, announce)

    def connect(self, number: int) -> Channel:
        """A connection to a worker, wherever it is."""
        return self._callers.call(number)

    def is_near(self, number: int) -> bool:
        """Whether a worker is on this node."""
        return self._settings.socket(number).exists()

    def values(self, owner: str) -> NodeValues:
        """Files in this node's directory in memory, whose bytes travel with messages to other nodes."""
        return NodeValues(self._settings.memory_directory, owner)

    def _announce(self, number: int, port: int) -> None:
        """Tell this node's keeper at which port a process listens."""
        epoch = int(os.environ.get(EPOCH, "0"))
        write_json(port_file(self._settings, number), {"port": port, "pid": os.getpid(), "epoch": epoch}, durable=False)


def port_file(settings: ServingSettings, number: int) -> Path:
    """Where a process says at which port it listens."""
    return settings.directory / f"{settings.name_of(number)}.port"
