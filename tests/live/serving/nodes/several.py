"""Nodes for tests: loopback addresses of this machine, each with directories of its own, as machines have."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fairway.live.serving.nodes.address_book import Place
from fairway.live.serving.nodes.backend import NodesBackend
from fairway.live.serving.nodes.guarded_channel import Credentials
from fairway.live.serving.nodes.node_place import NodePlace, address_book
from fairway.live.serving.nodes.node_transport import NodeTransport
from fairway.live.serving.sockets.channel import Channel
from fairway.live.serving.supervise.settings import ServingSettings

SECRET = Credentials(b"s" * 32)


class SeveralNodes:
    """A network in which every worker is on a node of its own, unless `node_of` says otherwise; all in this process.

    Lines come from the last node.
    """

    now = staticmethod(time.monotonic)

    def __init__(
        self,
        place: Path,
        nodes: int = 4,
        credentials: Credentials = SECRET,
        node_of: Callable[[int], int] | None = None,
    ) -> None:
        self.directories = [place / f"node-{node}" for node in range(nodes)]
        self._node_of = node_of or (lambda number: number)
        self._places: dict[int, Place] = {}
        self._transports: dict[int, NodeTransport] = {}
        for node, directory in enumerate(self.directories):
            (directory / "memory").mkdir(parents=True)
            NodePlace(f"node-{node}", host_of(node), credentials).write(directory)
        self.backends = [NodesBackend(_settings(directory)) for directory in self.directories]

    def transport(self, number: int) -> NodeTransport:
        made = self.backends[self._node_of(number)].transport(number)
        made.announce_to(lambda port: self._book(number, port))
        return made

    def connect(self, number: int) -> Channel:
        return self.backends[-1].connect(number)

    def values(self, owner: str) -> Any:
        return self.backends[0].values(owner)

    def _book(self, number: int, port: int) -> None:
        self._places[number] = Place(host_of(self._node_of(number)), port, 0)
        for directory in self.directories:
            address_book(directory).write(self._places)


def host_of(node: int) -> str:
    """Every node has a loopback address of its own."""
    return f"127.0.0.{node + 2}"


def _settings(directory: Path) -> ServingSettings:
    return ServingSettings("app", directory, directory / "memory", workers=3, has_planner=False)
