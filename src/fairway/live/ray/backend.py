"""The backend of a Ray cluster: the agents of its nodes behind one seam, as if they were one.

    fairway up --backend ray --address auto

Every node runs the agent of `fairway.live.local`, and here is one `LocalBackend` for each, over the sockets of the
bridge (`bridge`). This file brings them together: it follows which nodes there are and merges what they say; which of
them a command is about is in `dispatch`.

A node that Ray counts as lost may still run: a cut in the network looks the same. Its runs are given up, and begin anew
elsewhere, only after `fence_seconds`. By then its raylet, which cannot reach the head either, has ended (Ray's default
is 60 s), and the agent, which is bound to the raylet, has killed them.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fairway.back_off import BackOff
from fairway.errors import InputError
from fairway.extras import require
from fairway.live.backend.answers import BackendGoneError, CommandAnswer, SupersededError
from fairway.live.backend.commands import JobProgram, RetireJob, RunCommand, StartRun
from fairway.live.backend.demand import Demand
from fairway.live.backend.logs import LogBlock
from fairway.live.backend.registry import MakeBackend
from fairway.live.backend.reports import (
    AcceleratorsChanged,
    BackendReport,
    Connected,
    Disconnected,
    RunEnded,
    Superseded,
)
from fairway.live.backend.status import BackendStatus
from fairway.live.durable_file import read_json, write_json
from fairway.live.local.backend import LocalBackend
from fairway.live.ray.bridge_client import BridgeGoneError, BridgeProcess, NodeAccess, NodesThere, NodeThere
from fairway.live.ray.demand_teller import DemandTeller
from fairway.live.ray.dispatch import Dispatch
from fairway.live.ray.log_parts import LogParts
from fairway.live.ray.node_link import NodeLink
from fairway.live.ray.sent_directories import WorkPackages, can_be_sent, without_files
from fairway.live.ray_cluster.address import refuse_old_ray

_BACK_OFF = BackOff(0.5, 15.0)
_FIRST_SECONDS = 40.0
"""How long the first report waits for the agents of all nodes; those that come later come as nodes that join."""

_LOOK_SECONDS = 0.2

_LOG = logging.getLogger(__name__)


class RayBackend:
    """The nodes of the Ray cluster at an address: `auto`, `HOST:PORT` of its head, or `ray://HOST:PORT`.

    Its actors are in the `namespace`; on each node, the agent keeps its files below the `node_directory`.
    """

    def __init__(
        self,
        directory: Path,
        *,
        emulate: str | None = None,
        time_scale: float = 1.0,
        address: str = "auto",
        namespace: str = "fairway",
        node_directory: str = "~/.fairway/ray",
        fence_seconds: float = 65.0,
    ) -> None:
        if emulate is not None:
            raise InputError(
                "emulate: given for a Ray cluster, whose nodes say by their labels what they have; "
                "ray start … --labels ray.io/accelerator-type=V100,fairway.io/accelerators=2"
            )
        require("ray")
        refuse_old_ray(version("ray"))
        self._directory, self._time_scale, self._fence_seconds = directory, time_scale, fence_seconds
        self._address, self._namespace, self._node_directory = address, namespace, node_directory
        self._parts = LogParts(directory / "log-parts")
        self._dispatch = Dispatch(
            report=self._say, move_log=self._move_log, do=self._do, meet=self._meet, with_files=self._with_files
        )
        self._links = self._dispatch.links
        self._packages = WorkPackages(directory / "packages")
        self._demand = DemandTeller(directory / "asked-for-nodes", self._asked)
        self._problems: dict[str, str] = {}
        self._bridge: BridgeProcess | None = None
        self._report: Callable[[BackendReport], None] | None = None
        self._epoch = 0
        self._superseded: str | None = None
        self._connected = self._was_there = self._closed = False
        self._tasks: set[asyncio.Task[None]] = set()

    # Keeping in touch

    async def run(self, epoch: int, report: Callable[[BackendReport], None]) -> None:
        """Keep a bridge, and through it the agents of all nodes."""
        self._epoch, self._report = epoch, report
        try:
            await self._stay(report)
        finally:
            for task in list(self._tasks):
                task.cancel()

    async def _stay(self, report: Callable[[BackendReport], None]) -> None:
        failures = 0
        while not self._closed:
            try:
                bridge = await BridgeProcess.start(
                    self._directory,
                    address=self._address,
                    namespace=self._namespace,
                    node_directory=self._node_directory,
                )
            except InputError as error:
                if not self._was_there:
                    raise
                report(Disconnected(f"{error}; jobs run on, and it is tried again"))
                failures += 1
                await asyncio.sleep(_BACK_OFF.seconds(failures))
                continue
            failures, self._bridge = 0, bridge
            self._demand.forget()
            try:
                await self._follow(bridge)
            finally:
                self._connected = False
                await self._let_go()
                if not self._closed:
                    self._bridge = None
                await bridge.stop()
            if self._superseded is not None or self._closed:
                return
            report(Disconnected("Ray is gone, or its head; jobs run on, and it is looked for again"))

    async def _follow(self, bridge: BridgeProcess) -> None:
        """Follow the nodes of a bridge until it ends."""
        first: asyncio.Task[None] | None = None
        try:
            async for there in bridge.nodes():
                self._take_nodes(bridge, there)
                if self._superseded is not None:
                    return
                if first is None:
                    first = self._do(self._first_contact())
        finally:
            if first is not None:
                first.cancel()

    async def _first_contact(self) -> None:
        """Report the first status once every node has been heard of, or has had its time.

        A run of a node that is not there would count as lost. So nodes that a controller of before had are waited for,
        until nothing of them can run any more; this one cannot know since when they are gone.
        """
        missing = sorted(self._remembered() - self._links.keys())
        if missing and not self._was_there:
            _LOG.warning(
                "nodes %s are gone since before; waiting %g s for them", ", ".join(missing), self._fence_seconds
            )
            deadline = time.monotonic() + self._fence_seconds
            while self._remembered() - self._links.keys() and time.monotonic() < deadline:
                await asyncio.sleep(_LOOK_SECONDS)
        deadline = time.monotonic() + _FIRST_SECONDS
        while not all(link.heard for link in self._links.values()) and time.monotonic() < deadline:
            await asyncio.sleep(_LOOK_SECONDS)
        self._connected = True
        if any(link.connected for link in self._links.values()):
            self._tell_all()
        else:
            why = "; ".join([f"{link.name}: {link.why}" for link in self._links.values()] or ["no node can be used"])
            self._say(Disconnected(f"no agent answers: {why}"))

    def _remembered(self) -> set[str]:
        """The nodes whose jobs are not given up, as the last controller wrote them down."""
        return set((read_json(self._directory / "nodes.json") or {}).get("nodes", ()))

    def _remember(self) -> None:
        names = {name for name, link in self._links.items() if link.gone_since is None or link.active()}
        if names != self._remembered():
            write_json(self._directory / "nodes.json", {"nodes": sorted(names)}, durable=False)

    def _tell_all(self) -> None:
        self._was_there = True
        self._remember()
        self._say(Connected(self._merged()))

    def _say(self, report: BackendReport) -> None:
        if self._report is not None:
            self._report(report)

    def _take_nodes(self, bridge: BridgeProcess, there: NodesThere) -> None:
        """The bridge says which nodes there are."""
        if self._closed:
            return
        self._problems = there.problems
        if not there.nodes and not self._was_there:
            why = "; ".join(f"{name}: {problem}" for name, problem in there.problems.items())
            raise InputError(f"address: no node of Ray at {self._address} can be used ({why})")
        if self._time_scale != 1 and any(node.emulate is None for node in there.nodes):
            raise InputError(f"time scale: {self._time_scale:g} given, but only emulated accelerators can run faster")
        names = {node.name for node in there.nodes}
        changed = False
        for name, link in list(self._links.items()):
            if name not in names and link.gone_since is None:
                _LOG.warning("node %s is gone; its jobs are given up in %g s", name, self._fence_seconds)
                link.gone_since, link.why, changed = time.monotonic(), "it is gone from Ray", True
                link.connected = False
                self._dispatch.break_gangs_of(link)
                if link.task is not None:
                    link.task.cancel()
                self._do(self._give_up(link))
        for node in there.nodes:
            link = self._links.setdefault(node.name, NodeLink(node.name))
            link.gone_since, link.address = None, node.address
            if link.leaving != node.leaving:
                link.leaving, changed = node.leaving, True
                _LOG.warning("node %s: %s", node.name, node.leaving or "it stays")
            link.checkpoints = self._directory / "checkpoints" if node.shares else None
            if link.task is None or link.task.done():
                link.heard = False
                link.task = self._do(self._keep(bridge, link, node))
        if changed and self._connected:
            self._say(AcceleratorsChanged(self._dispatch.accelerators()))

    async def _keep(self, bridge: BridgeProcess, link: NodeLink, node: NodeThere) -> None:
        """Keep in touch with the agent of one node."""
        link.backend = LocalBackend(
            bridge.socket_directory(node.name),
            emulate=node.emulate,
            time_scale=self._time_scale,
            agents=NodeAccess(node.name, bridge),
        )
        try:
            await link.backend.run(self._epoch, lambda report: self._heard(link, report))
        finally:
            link.connected = False

    def _heard(self, link: NodeLink, report: BackendReport) -> None:
        """An agent has said something."""
        match report:
            case Connected():
                link.status, link.connected = report.status, True
                self._dispatch.saw(report.status.runs)
                self._dispatch.break_torn_gangs()
                link.heard = True
                if self._connected:
                    self._tell_all()
            case Disconnected():
                link.connected, link.why = False, report.why.partition("; see ")[0]
                link.heard = True
                _LOG.warning("node %s: %s", link.name, link.why)
            case Superseded():
                self._superseded = report.why
                self._say(report)
                if self._bridge is not None:
                    self._do(self._bridge.stop())  # which ends what follows it
            case AcceleratorsChanged():
                link.status = replace(link.status, accelerators=report.accelerators)
                self._say(AcceleratorsChanged(self._dispatch.accelerators()))
            case _:
                for said in self._dispatch.take_in(link, report):
                    self._say(said)
                    if isinstance(said, RunEnded):
                        self._dispatch.release(said)

    async def _give_up(self, link: NodeLink) -> None:
        """Wait until nothing of a node that is gone can run any more; then its runs are lost."""
        since = link.gone_since
        await asyncio.sleep(self._fence_seconds)
        if link.gone_since is None or link.gone_since != since:
            return
        for lost in link.lost(time.time()):
            for end in self._dispatch.take_in(link, lost):
                self._say(end)
                if isinstance(end, RunEnded):
                    self._dispatch.release(end)
        self._dispatch.drop_if_done(link)
        self._remember()

    async def _let_go(self) -> None:
        """End the connections to all agents; what waits for a fence waits on."""
        tasks = [link.task for link in self._links.values() if link.task is not None and not link.task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _do(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # Commands

    async def give(self, command: RunCommand) -> CommandAnswer:
        """Give a command to the node that it is about."""
        self._refuse_if_away()
        answer = await self._dispatch.give(command)
        if isinstance(command, RetireJob):
            self._do(self._drop_packages(command.job))
        return answer

    async def _drop_packages(self, job: str) -> None:
        """A job never comes back: neither its package nor what nodes have unpacked is needed."""
        await asyncio.to_thread(self._packages.drop, job)
        for name in [name for name, link in self._links.items() if link.connected]:
            with suppress(BridgeGoneError):
                await self._asked("drop-package", node=name, job=job)

    async def need(self, demand: Demand) -> None:
        """Let Ray's autoscaler know; it is not waited for."""
        if self._connected and self._superseded is None and not self._closed:
            self._do(self._demand.hear(demand))

    # Looking

    async def status(self) -> BackendStatus:
        """Ask all agents how things stand; of those that cannot be reached, it is as they last said."""
        self._refuse_if_away()
        links = [link for link in self._links.values() if link.connected and link.backend is not None]
        before = [link.changes for link in links]
        answers = await asyncio.gather(
            *(link.backend.status() for link in links if link.backend is not None), return_exceptions=True
        )
        for link, answer, changes in zip(links, answers, before, strict=True):
            if isinstance(answer, BackendStatus):
                if link.changes == changes:  # otherwise it may be older than what was noted meanwhile
                    link.status = answer
            elif not isinstance(answer, BackendGoneError):
                raise answer
        return self._merged()

    def check(self, program: JobProgram) -> None:
        """Refuse what no node can run."""
        bridge = self._bridge
        if bridge is None:
            return
        try:
            said = bridge.check(program)
            if said and None not in said.values() and can_be_sent(program):
                said = bridge.check(without_files(program))
        except BridgeGoneError:
            return
        wrong = [why for why in said.values() if why is not None]
        if said and len(wrong) == len(said):
            raise InputError(f"{wrong[0]} (asked of every node: {', '.join(sorted(said))})")

    def read_log(self, job: str, rank: int, position: int, most: int) -> LogBlock:
        """Read a log from the nodes that have it."""
        return self._parts.read(job, rank, position, most, lambda *where: self._read(job, rank, *where))

    def _read(self, job: str, rank: int, node: str, position: int, most: int) -> LogBlock | None:
        bridge = self._bridge
        with suppress(BridgeGoneError):
            return None if bridge is None else bridge.read_log(node, job, rank, position, most)
        return None

    def _move_log(self, job: str, rank: int, node: str) -> None:
        if self._parts.last_node(job, rank) == node:
            return

        def size_at(where: str) -> int | None:
            block = self._read(job, rank, where, 0, 0)
            return None if block is None else block.size

        self._parts.move(job, rank, node, size_at)

    async def _meet(self, node: str) -> tuple[int, int]:
        """Two free ports of a node."""
        try:
            first, second = await self._asked("ports", node=node)
        except BridgeGoneError as error:
            raise BackendGoneError(str(error)) from None
        return int(first), int(second)

    async def _with_files(self, node: str, part: StartRun) -> StartRun:
        """A run in its work directory as the node has it, to which it is sent where it is here alone."""
        if not await asyncio.to_thread(can_be_sent, part.program):
            return part
        return await self._packages.sent(part, node, self._asked)

    async def _asked(self, question: str, **fields: Any) -> Any:
        if self._bridge is None:
            raise BridgeGoneError("Ray cannot be reached")
        return await self._bridge.ask(question, **fields)

    async def shut_down(self) -> None:
        """Let the agents and their actors end."""
        self._closed = True
        if self._was_there and not any(link.active() for link in self._links.values()):
            write_json(self._directory / "nodes.json", {"nodes": []}, durable=False)
        bridge = self._bridge
        backends = [link.backend for link in self._links.values() if link.backend is not None]
        await asyncio.gather(*(backend.shut_down() for backend in backends), return_exceptions=True)
        if bridge is not None:
            await self._demand.hear(())
            with suppress(BridgeGoneError):
                await bridge.ask("end")
            await bridge.stop()

    def _refuse_if_away(self) -> None:
        if self._superseded is not None:
            raise SupersededError(self._superseded)
        if not self._connected or self._bridge is None:
            raise BackendGoneError("Ray cannot be reached")

    def _merged(self) -> BackendStatus:
        links = list(self._links.values())
        runs = self._dispatch.runs()
        said = dict.fromkeys(caveat for link in links for caveat in link.status.caveats)
        apart = sorted(link.name for link in links if link.checkpoints is None and link.gone_since is None)
        if apart:
            said[
                f"{self._directory} is not found at this path by the nodes {', '.join(apart)}: a job that names no "
                "directory for its checkpoints begins anew when it moves there"
            ] = None
        leaving = [f"node {link.name}: {link.leaving}" for link in links if link.leaving and link.gone_since is None]
        unused = [f"node {name} is not used: {why}" for name, why in sorted(self._problems.items())]
        return BackendStatus(
            instance=" ".join(f"{link.name}:{link.status.instance}" for link in links if link.gone_since is None),
            epoch=max([self._epoch, *(link.status.epoch for link in links)]),
            accelerators=self._dispatch.accelerators(),
            runs=(*runs, *self._dispatch.waiting.statuses()),
            former=tuple(sorted({job for link in links for job in link.status.former})),
            last_lease=max([0, *(link.status.last_lease for link in links), *self._dispatch.newest.values()]),
            draining=bool(links) and all(link.status.draining for link in links),
            caveats=(*said, *unused, *leaving),
            machines=tuple(
                replace(size, node=link.name)
                for link in links
                if link.gone_since is None
                for size in link.status.machines
            ),
        )


_MADE: MakeBackend = RayBackend
"""For the type checker, which cannot see that the registry names this class."""
