"""The driver: a process beside the controller that is a client of Ray, and makes the agents of its nodes look local.

    python -m fairway.live.ray.bridge '{"address": "auto", …}'

For every node with accelerators it keeps an actor (`node_agent`) and a directory with a socket; whoever connects to
that socket talks to the agent of the node. Another socket takes questions (`_QUESTIONS`), one per connection; `watch`
is answered by the nodes, again whenever they change. It is a process of its own because Ray ends its drivers a minute
after its head is gone, while the controller must go on; it ends when its standard input does. Its first line on
standard output says whether it works.

An actor is pinned to its node by a label. Once the node is gone, it would stay restarting for ever, so it is ended.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import secrets
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import ray
from pydantic import TypeAdapter
from ray.util import list_named_actors

from fairway.errors import FairwayError, InputError
from fairway.live.backend.codec import read_as
from fairway.live.backend.commands import JobProgram
from fairway.live.backend.demand import JobDemand
from fairway.live.local.agent.frames import encoded, listening_socket, read_message
from fairway.live.ray.autoscaling import NOTHING_SEEN, ask_ray_for, bundles_of
from fairway.live.ray.node_agent import NodeAgent
from fairway.live.ray_cluster.client import connect, reason_of
from fairway.live.ray_cluster.draining import draining_nodes, notice_of
from fairway.live.ray_cluster.nodes import NODE_ID_LABEL, RayNode, living, named, refuse_no_accelerators

_POLL_SECONDS = 0.5
_DESCRIBE_SECONDS = 60.0
_CALL_SECONDS, _UNPACK_SECONDS = 30.0, 300.0
_PART_BYTES = 8 * 2**20
_PREFIX = "fairway-agent-"
_PROGRAM = TypeAdapter(JobProgram)
_DEMAND: TypeAdapter[tuple[JobDemand, ...]] = TypeAdapter(tuple[JobDemand, ...])
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BridgeOptions:
    """Where Ray is, in which namespace the actors are, where nodes keep their files, and where the sockets are."""

    address: str
    namespace: str
    node_directory: str
    directory: str


@dataclass(slots=True)
class _Node:
    """A node with its actor and the socket that stands for its agent. `told` is what watchers hear of it."""

    node: RayNode
    actor: Any
    name: str
    told: dict[str, Any] = field(default_factory=dict)
    server: asyncio.Server | None = None


class Bridge:
    """All nodes of one Ray cluster."""

    def __init__(self, options: BridgeOptions) -> None:
        self._options = options
        self._directory = Path(options.directory)
        self._probe, self._probe_content = self._directory / "probe", secrets.token_hex(16)
        self._nodes: dict[str, _Node] = {}
        self._names: dict[str, str] = {}
        self._problems: dict[str, str] = {}
        self._types = NOTHING_SEEN
        self._coming: dict[str, asyncio.Task[None]] = {}
        self._changed = asyncio.Condition()
        self._settled = False
        self._following: asyncio.Task[None] | None = None
        self._over = asyncio.Event()

    async def serve(self) -> None:
        """Until told to end."""
        control = self._directory / "bridge"
        control.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._probe.write_text(self._probe_content, encoding="utf-8")
        rows: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
        self._clear_up(rows)
        refuse_no_accelerators(self._options.address, living(rows))
        server = await asyncio.start_unix_server(self._converse, sock=listening_socket(control))
        self._following = asyncio.create_task(self._follow())
        print(json.dumps({"ok": True}), flush=True)
        await self._over.wait()
        server.close()

    def end(self) -> None:
        """Let it end."""
        self._over.set()

    # Nodes

    def _clear_up(self, rows: list[dict[str, Any]]) -> None:
        """End the actors of nodes that are gone, such as those of a bridge of before."""
        there = {row["NodeID"] for row in rows if row["Alive"]}
        for name in list_named_actors():
            if name.startswith(_PREFIX) and name.removeprefix(_PREFIX) not in there:
                with suppress(ValueError):
                    ray.kill(ray.get_actor(name), no_restart=True)

    async def _follow(self) -> None:
        """Look again and again which nodes there are."""
        while True:
            try:
                await self._look(living(await asyncio.to_thread(ray.nodes)), await asyncio.to_thread(draining_nodes))
            except Exception:  # the head is away; what is known stays, and Ray ends this process if it stays away
                _LOG.exception("Ray does not say which nodes there are")
            await asyncio.sleep(_POLL_SECONDS)

    async def _look(self, nodes: list[RayNode], draining: Mapping[str, float]) -> None:
        there = {node.id: node for node in nodes}
        self._types = self._types.with_nodes(nodes)
        noticed = False
        for identity, one in self._nodes.items():
            why = notice_of(draining[identity]) if identity in draining else None
            noticed, one.told["leaving"] = noticed or one.told["leaving"] != why, why
        gone = [one for identity, one in self._nodes.items() if identity not in there]
        for one in gone:
            await self._leave(one)
        for identity in [identity for identity in self._coming if identity not in there]:
            self._coming.pop(identity).cancel()
        self._names = named(nodes, self._names)
        before = dict(self._problems)
        self._problems = {self._names[node.id]: node.problem for node in nodes if node.problem} | {
            name: why for name, why in self._problems.items() if name in self._names.values()
        }
        for node in nodes:
            if node.count and node.id not in {*self._nodes, *self._coming, *draining}:
                self._coming[node.id] = asyncio.create_task(self._come(node))
        settled = self._settled
        self._settled = settled or not self._coming
        if gone or noticed or before != self._problems or settled != self._settled:
            await self._tell()

    async def _come(self, node: RayNode) -> None:
        """Have an actor on a node, and a socket for it."""
        try:
            one = await self._joined(node)
            self._nodes[node.id] = one
            self._problems.pop(one.name, None)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            why = reason_of(error)
            if self._problems.get(self._names[node.id]) != why:
                _LOG.warning("node %s is not used: %s", self._names[node.id], why)
            self._problems[self._names[node.id]] = why
            await asyncio.sleep(2 * _POLL_SECONDS)
        finally:
            self._coming.pop(node.id, None)
        self._settled = self._settled or not self._coming
        await self._tell()

    async def _joined(self, node: RayNode) -> _Node:
        make = ray.remote(NodeAgent).options(
            name=_PREFIX + node.id,
            lifetime="detached",
            get_if_exists=True,
            max_restarts=-1,
            max_task_retries=0,
            max_concurrency=1000,
            num_cpus=0,
            label_selector={NODE_ID_LABEL: node.id},
        )
        actor: Any = make.remote(self._names[node.id], self._options.node_directory)
        said = await asyncio.wait_for(actor.describe.remote(), _DESCRIBE_SECONDS)
        if said["fairway"] != version("fairway"):
            raise InputError(f"Fairway {said['fairway']} is installed there, expected {version('fairway')} as here")
        name = self._names[node.id] = said["name"]  # an actor of before has the name that it was given
        directory = self._directory / "nodes" / name
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        one = _Node(node, actor, name)
        one.told = {
            "name": name,
            "address": node.address,
            "emulate": node.emulated(said["found"]),
            "directory": said["directory"],
            "leaving": None,
            "shares": await asyncio.wait_for(actor.sees.remote(str(self._probe), self._probe_content), _CALL_SECONDS),
        }
        one.server = await asyncio.start_unix_server(
            lambda reader, writer: self._relay(one, reader, writer), sock=listening_socket(directory)
        )
        return one

    async def _leave(self, one: _Node) -> None:
        """A node is gone: its actor must not wait for it."""
        del self._nodes[one.node.id]
        if one.server is not None:
            one.server.close()
        with suppress(Exception):
            await asyncio.to_thread(ray.kill, one.actor, no_restart=True)

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    # Connections to agents

    async def _relay(self, one: _Node, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Bytes from here to the agent and back, until either side ends."""
        actor, number = one.actor, None
        try:
            number = await asyncio.wait_for(actor.open.remote(), _CALL_SECONDS)
            if isinstance(number, str):
                return
            ways = [asyncio.create_task(_sent(actor, number, reader)),
                    asyncio.create_task(_received(actor, number, writer))]  # fmt: skip
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
        except Exception as error:
            _LOG.info("a connection to node %s ends: %s", one.name, reason_of(error))
        finally:
            writer.close()
            if isinstance(number, int):
                with suppress(Exception):
                    actor.close.remote(number)

    # Questions

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            message = await read_message(reader)
            if message is None:
                return
            if message.get("ask") == "watch":
                await self._watched(reader, writer)
                return
            try:
                answer = {"ok": True, "answer": await _QUESTIONS[message.pop("ask")](self, **message)}
            except Exception as error:
                answer = {"ok": False, "error": reason_of(error)}
            writer.write(encoded(answer))
            await writer.drain()
        except (FairwayError, OSError) as error:
            _LOG.info("a question is not answered: %s", error)
        finally:
            writer.close()

    async def _watched(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Tell which nodes there are, now and whenever that changes."""
        ended = asyncio.create_task(reader.read())
        said: dict[str, Any] | None = None
        while not ended.done():
            now = {"nodes": [dict(one.told) for one in self._nodes.values()], "problems": dict(self._problems)}
            if self._settled and now != said:
                said = now
                writer.write(encoded(now))
                await writer.drain()
            async with self._changed:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), _POLL_SECONDS)

    async def _start(self, node: str, emulate: str | None, time_scale: float) -> str | None:
        said: str | None = await asyncio.wait_for(self._actor(node).start.remote(emulate, time_scale), 70.0)
        return said

    async def _ports(self, node: str) -> tuple[int, int]:
        found: tuple[int, int] = await asyncio.wait_for(self._actor(node).ports.remote(), _CALL_SECONDS)
        return found

    async def _sees(self, node: str, path: str) -> bool:
        found: bool = await asyncio.wait_for(self._actor(node).has_directory.remote(path), _CALL_SECONDS)
        return found

    async def _deliver(self, node: str, job: str, path: str, digest: str) -> str:
        """Send a package to a node that does not have it; where its files are there."""
        actor = self._actor(node)
        there: str | None = await asyncio.wait_for(actor.work_directory.remote(job, digest), _CALL_SECONDS)
        size, position = (await asyncio.to_thread(Path(path).stat)).st_size, 0
        while there is None and position < size:
            content = await asyncio.to_thread(_read_part, path, position)
            last = position + len(content) >= size
            call = actor.receive.remote(job, digest, position, content, last)
            there = await asyncio.wait_for(call, _UNPACK_SECONDS if last else _CALL_SECONDS)
            position += len(content)
        if there is None:
            raise InputError(f"the package of job '{job}' is empty")
        return there

    async def _drop_package(self, node: str, job: str) -> None:
        await asyncio.wait_for(self._actor(node).drop_package.remote(job), _CALL_SECONDS)

    async def _wait(self, node: str) -> None:
        await asyncio.wait_for(self._actor(node).wait_for_end.remote(), _CALL_SECONDS)

    async def _log(self, node: str, job: str, rank: int, position: int, most: int) -> dict[str, Any]:
        block = await asyncio.wait_for(self._actor(node).log.remote(job, rank, position, most), _CALL_SECONDS)
        return {**block, "content": base64.b64encode(block["content"]).decode()}

    async def _check(self, program: dict[str, Any]) -> dict[str, str | None]:
        """What each node says of a program."""
        read = read_as(_PROGRAM, program, "program")
        nodes = list(self._nodes.values())
        said = await asyncio.gather(
            *(asyncio.wait_for(one.actor.check.remote(read), _CALL_SECONDS) for one in nodes), return_exceptions=True
        )
        return {
            one.name: answer
            for one, answer in zip(nodes, said, strict=True)
            if answer is None or isinstance(answer, str)
        }

    async def _need(self, demand: list[dict[str, Any]]) -> None:
        """Ask Ray's autoscaler for the nodes that the queue needs."""
        read: tuple[JobDemand, ...] = read_as(_DEMAND, demand, "demand")
        bundles = bundles_of(read, self._types)
        await asyncio.wait_for(asyncio.to_thread(ask_ray_for, bundles), _CALL_SECONDS)

    async def _end(self) -> None:
        """End every actor, and then this process."""
        self._settled = False  # nothing more is told
        for task in (self._following, *self._coming.values()):
            if task is not None:
                task.cancel()
        for one in list(self._nodes.values()):
            await self._leave(one)
        asyncio.get_running_loop().call_later(0.05, self.end)

    def _actor(self, node: str) -> Any:
        for one in self._nodes.values():
            if one.name == node:
                return one.actor
        raise InputError(f"node {node} is not there")


_QUESTIONS: dict[str, Callable[..., Awaitable[Any]]] = {
    "start": Bridge._start,
    "ports": Bridge._ports,
    "sees": Bridge._sees,
    "deliver": Bridge._deliver,
    "drop-package": Bridge._drop_package,
    "wait": Bridge._wait,
    "log": Bridge._log,
    "check": Bridge._check,
    "need": Bridge._need,
    "end": Bridge._end,
}


def _read_part(path: str, position: int) -> bytes:
    with Path(path).open("rb") as file:
        file.seek(position)
        return file.read(_PART_BYTES)


async def _sent(actor: Any, number: int, reader: asyncio.StreamReader) -> None:
    while content := await reader.read(1 << 20):
        if not await actor.write.remote(number, content):
            return


async def _received(actor: Any, number: int, writer: asyncio.StreamWriter) -> None:
    while (content := await actor.read.remote(number)) is not None:
        if content:
            writer.write(content)
            await writer.drain()


async def _served(options: BridgeOptions) -> None:
    bridge = Bridge(options)
    loop = asyncio.get_running_loop()

    def read() -> None:
        if not os.read(0, 4096):
            bridge.end()

    loop.add_reader(0, read)
    await bridge.serve()


def main(text: str) -> int:
    """Run a bridge; 2 if it cannot be, with the reason on standard output."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    options = BridgeOptions(**json.loads(text))
    try:
        connect(options.address, options.namespace)
        asyncio.run(_served(options))
    except (InputError, OSError) as error:
        print(json.dumps({"ok": False, "error": str(error)}), flush=True)
        return 2
    return 0


if __name__ == "__main__":
    code = main(sys.argv[1])
    sys.stdout.flush()
    os._exit(code)  # Ray's own end can take seconds, and there is nothing to end: its actors are to stay
