"""A Ray cluster as the backend of a served application, as its supervisor has it.

Ray is for which nodes there are, for placing a process on each accelerator, and for noticing when one ends. Messages,
values and rows go from node to node without it (`nodes`). A client of such an application needs no Ray either.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from fairway.errors import InputError
from fairway.live.ray_cluster.address import AUTO
from fairway.live.ray_cluster.nodes import COUNT_LABEL, TYPE_LABEL
from fairway.live.serving.local.serving_directory import ServingDirectory
from fairway.live.serving.nodes.backend import NodesBackend
from fairway.live.serving.nodes.carried_values import NodeValues
from fairway.live.serving.nodes.guarded_channel import Credentials, tls_context
from fairway.live.serving.nodes.keeper_lines import KeeperMarks
from fairway.live.serving.nodes.node_place import NodePlace, address_book
from fairway.live.serving.ray.node_agent import NodeContent
from fairway.live.serving.ray.node_agents import NodeAgents
from fairway.live.serving.ray.ray_client import RayClient
from fairway.live.serving.ray.worker_pool import RayPool
from fairway.live.serving.seams.run_record import RunRecord
from fairway.live.serving.seams.state_board import RowMarks
from fairway.live.serving.seams.transport import Message
from fairway.live.serving.supervise.settings import ServingSettings
from fairway.place.fleet import Fleet

_CLIENTS: dict[str, RayClient] = {}
"""Of this process, by the address that was given: whoever looks at a cluster first makes its client."""

_TEMPORARY = "fairway-serve-"


class RayBackend(NodesBackend):
    """What the supervisor of an application on a Ray cluster has; a client has what it has of `NodesBackend`."""

    def __init__(self, settings: ServingSettings) -> None:
        super().__init__(settings)
        self._lanes = bytearray(RunRecord.size(len(settings.processes)))
        self._agents: NodeAgents | None = None
        self._ray_pool: RayPool | None = None
        self._is_taken = False

    @staticmethod
    def accelerators(address: str | None) -> int:
        """How many accelerators the nodes of a cluster have; refuses one that has none."""
        nodes = _client(address).nodes()
        found = sum(node.count for node in nodes)
        if not found:
            _end_client(address)
            hosts = ", ".join(node.address for node in nodes)
            raise InputError(
                f"--backend: no node of the Ray cluster has an accelerator ({hosts}); start nodes on machines with "
                f"GPUs, or declare emulated ones (ray start … --labels {TYPE_LABEL}=V100,{COUNT_LABEL}=2), or say with "
                "--workers how many workers there should be"
            )
        return found

    def check(self) -> None:
        """Refuse a cluster that cannot be reached, or that has too few accelerators."""
        settings = self._settings
        ServingDirectory(replace(settings, directory=settings.directory / "node-1000000")).check()  # the longest name
        if self._settings.wire_certificate is not None and self._settings.wire_key is not None:
            tls_context(self._settings.wire_certificate, self._settings.wire_key, is_caller=False)
        found = sum(node.count for node in _client(settings.address).nodes())
        if found and self._settings.workers > found:
            _end_client(settings.address)
            raise InputError(
                f"workers: {self._settings.workers} given, and the nodes of the Ray cluster have {found} accelerators; "
                "give fewer, or start more nodes"
            )

    def take(self) -> None:
        """Have the supervisor's own directories."""
        self._is_taken = True
        super().take()
        settings = self._settings
        credentials = Credentials(secrets.token_bytes(32), settings.wire_certificate, settings.wire_key)
        NodePlace("supervisor", "127.0.0.1", credentials).write(settings.directory)

    def make_rows(self, fleet: Fleet) -> None:
        """Start an agent on each node, with room for the rows there."""
        settings, work_directory = self._settings, str(Path.cwd())
        workflows = json.dumps(list(settings.application().workflows)).encode()
        budgets = tuple(float(each) for each in fleet.memory)
        keeps_logs = not settings.directory.name.startswith(_TEMPORARY)

        def content(number: int, host: str) -> NodeContent:
            return NodeContent(
                settings,
                workflows,
                number,
                host,
                self._place.credentials.secret,
                _content(settings.wire_certificate),
                _content(settings.wire_key),
                _content(settings.profile),
                work_directory,
                budgets,
                len(fleet.models),
                keeps_logs,
            )

        client = _client(settings.address)
        self._agents = NodeAgents(client, content)
        self._agents.start(client.nodes())

    def pool(self) -> RayPool:  # type: ignore[override]
        """Actors of Ray."""
        assert self._agents is not None
        settings, book = self._settings, address_book(self._settings.directory)
        client, credentials = _client(settings.address), self._place.credentials
        self._ray_pool = RayPool(settings, client, self._agents, credentials, self._lanes, book, str(Path.cwd()))
        return self._ray_pool

    def marks(self, fleet: Fleet, tell_others: Callable[[int, Message], None]) -> RowMarks:  # noqa: ARG002
        """The supervisor writes in the rows of all nodes."""
        assert self._ray_pool is not None
        return KeeperMarks(self._ray_pool.keepers, self._ray_pool.epoch_of)

    def run_record(self) -> RunRecord:
        """As keepers tell of it."""
        return RunRecord(self._lanes)

    def values(self, owner: str) -> NodeValues:
        """Files in memory; those of the dead are cleared on all nodes."""
        clear = None if self._ray_pool is None else self._ray_pool.keepers.tell
        return _ClearingValues(self._settings.memory_directory, owner, clear)

    def run_beside(self, program: Sequence[str], files: Mapping[str, bytes]) -> list[str]:
        """On every node, by its agent."""
        assert self._agents is not None
        return self._agents.run_beside(program, dict(files))

    def clear_after_clients(self) -> None:
        """On every node."""
        assert self._ray_pool is not None
        self._ray_pool.keepers.tell(("clear-clients",))

    def release(self) -> None:
        """End all that runs in Ray."""
        if self._agents is not None:
            self._agents.end()
            self._agents = None
        if self._is_taken:
            # Of nodes that were lost, too, as far as they are on this machine.
            for path in self._settings.directory.glob("**/*.json"):
                path.unlink(missing_ok=True)
            _end_client(self._settings.address)
        super().release()


def _client(address: str | None) -> RayClient:
    """Ray at an address, for this process."""
    given = address or AUTO
    if given not in _CLIENTS:
        _CLIENTS[given] = RayClient(given)
    return _CLIENTS[given]


def _end_client(address: str | None) -> None:
    client = _CLIENTS.pop(address or AUTO, None)
    if client is not None:
        client.close()


def _content(path: Path | None) -> bytes | None:
    return None if path is None else path.read_bytes()


class _ClearingValues(NodeValues):
    def __init__(self, directory: Path, owner: str, tell: Callable[[Message], None] | None) -> None:
        super().__init__(directory, owner)
        self._tell = tell

    def clear(self, owner: str) -> None:
        super().clear(owner)
        if self._tell is not None:
            self._tell(("clear", owner))
