"""The backend of a Ray cluster: the agents of its nodes behind one seam, as if they were one.

    fairway up --backend ray --address auto

Every node runs the agent of `fairway.live.local`, and here is one `LocalBackend` for each, over the sockets of the
bridge (`bridge`). This file brings them together: it gives each command to the node that it is about, numbers
accelerators over all nodes, keeps a job from running on two nodes at once, and merges what the nodes say.

A node that Ray counts as lost may still run: a cut in the network looks the same. Its runs are given up, and begin anew
elsewhere, only after `fence_seconds`. By then its raylet, which cannot reach the head either, has ended (Ray's default
is 60 s), and the agent, which is bound to the raylet, has killed them.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from fairway.back_off import BackOff
from fairway.errors import InputError
from fairway.live.backend.accelerators import Accelerator
from fairway.live.backend.answers import BackendGoneError, CommandAnswer, Refusal, RefusedError, SupersededError
from fairway.live.backend.commands import (
    EndRun,
    ExtendLeases,
    ForgetRun,
    HandOverRun,
    JobProgram,
    RetireJob,
    RunCommand,
    StartRun,
)
from fairway.live.backend.logs import LogBlock
from fairway.live.backend.placement import placed
from fairway.live.backend.registry import MakeBackend
from fairway.live.backend.reports import (
    AcceleratorsChanged,
    BackendReport,
    Connected,
    Disconnected,
    RunEnded,
    Superseded,
)
from fairway.live.backend.status import BackendStatus, RunState, RunStatus
from fairway.live.local.backend import LocalBackend
from fairway.live.ray.bridge_client import BridgeGoneError, BridgeProcess, NodeAccess, NodesThere, NodeThere
from fairway.live.ray.log_parts import LogParts
from fairway.live.ray.node_link import NodeLink
from fairway.live.ray.numbering import Numbering
from fairway.live.ray.waiting_runs import WaitingRuns

_BACK_OFF = BackOff(0.5, 15.0)
_FIRST_SECONDS = 40.0
"""How long the first report waits for the agents of all nodes; those that come later come as nodes that join."""

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
        self._directory, self._time_scale, self._fence_seconds = directory, time_scale, fence_seconds
        self._address, self._namespace, self._node_directory = address, namespace, node_directory
        self._numbering, self._parts = Numbering(), LogParts(directory / "log-parts")
        self._waiting = WaitingRuns(self._say)
        self._links: dict[str, NodeLink] = {}
        self._problems: dict[str, str] = {}
        self._newest: dict[str, int] = {}
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
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
        async for there in bridge.nodes():
            self._take_nodes(bridge, there)
            if self._superseded is not None:
                return
            if first is None:
                first = self._do(self._first_contact())

    async def _first_contact(self) -> None:
        """Report the first status once every node has been heard of, or has had its time."""
        waits = [asyncio.create_task(link.heard.wait()) for link in self._links.values()]
        if waits:
            _, late = await asyncio.wait(waits, timeout=_FIRST_SECONDS)
            for one in late:
                one.cancel()
        self._connected = True
        if any(link.connected for link in self._links.values()):
            self._tell_all()
        else:
            why = "; ".join([f"{link.name}: {link.why}" for link in self._links.values()] or ["no node can be used"])
            self._say(Disconnected(f"no agent answers: {why}"))

    def _tell_all(self) -> None:
        self._was_there = True
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
                if link.task is not None:
                    link.task.cancel()
                self._do(self._give_up(link))
        for node in there.nodes:
            link = self._links.setdefault(node.name, NodeLink(node.name))
            link.gone_since = None
            if link.task is None or link.task.done():
                link.heard.clear()
                link.task = self._do(self._keep(bridge, link, node))
        if changed and self._connected:
            self._say(AcceleratorsChanged(self._accelerators()))

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
                for run in report.status.runs:
                    self._newest[run.job] = max(self._newest.get(run.job, 0), run.lease)
                link.heard.set()
                if self._connected:
                    self._tell_all()
            case Disconnected():
                link.connected, link.why = False, report.why.partition("; see ")[0]
                link.heard.set()
                _LOG.warning("node %s: %s", link.name, link.why)
            case Superseded():
                self._superseded = report.why
                self._say(report)
                if self._bridge is not None:
                    self._do(self._bridge.stop())  # which ends what follows it
            case AcceleratorsChanged():
                link.status = replace(link.status, accelerators=report.accelerators)
                self._say(AcceleratorsChanged(self._accelerators()))
            case _:
                link.take_in(report)
                self._say(report)
                if isinstance(report, RunEnded):
                    self._release(report)

    async def _give_up(self, link: NodeLink) -> None:
        """Wait until nothing of a node that is gone can run any more; then its runs are lost."""
        since = link.gone_since
        await asyncio.sleep(self._fence_seconds)
        if link.gone_since is None or link.gone_since != since:
            return
        for end in link.lost(time.time()):
            self._say(end)
            self._release(end)

    async def _let_go(self) -> None:
        """End the connections to all agents; what waits for a fence waits on."""
        tasks = [link.task for link in self._links.values() if link.task is not None and not link.task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _do(self, work) -> asyncio.Task[None]:  # type: ignore[no-untyped-def]
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # Commands

    async def give(self, command: RunCommand) -> CommandAnswer:
        """Give a command to the node that it is about; those about one job one after the other."""
        self._refuse_if_away()
        if isinstance(command, ExtendLeases):
            return await self._extend(command)
        async with self._locks[command.job]:
            match command:
                case StartRun():
                    return await self._start(command)
                case EndRun():
                    return await self._end(command)
                case HandOverRun():
                    return await self._hand_over(command)
                case ForgetRun():
                    return await self._forget(command)
                case RetireJob():
                    answer = await self._retire(command)
        self._locks.pop(command.job, None)
        return answer

    async def _start(self, command: StartRun) -> CommandAnswer:
        job, lease = command.job, command.lease
        if (waits := self._waiting.get(lease, job)) is not None:
            return CommandAnswer("known", waits.status)
        if (link := self._holding(lease, job)) is not None:
            return await self._passed(link, self._at(command))
        if lease <= self._newest.get(job, 0):
            return CommandAnswer("stale", newest=self._newest[job])
        accelerators = self._placed(command)
        link = self._links[str(accelerators[0].node)]
        if not link.connected:
            raise RefusedError(Refusal.CANNOT_PLACE, f"node {link.name} cannot be reached: {link.why}")
        older = [run for other in self._links.values() if other is not link for run in other.active(job)]
        if any(run.state not in {RunState.ENDING, RunState.WAITING} for run in older):
            message = f"job '{job}' runs under lease {older[0].lease} and was not asked to end; end it first"
            raise RefusedError(Refusal.BUSY, message)
        if older:
            self._newest[job] = lease
            return CommandAnswer("accepted", self._waiting.add(command, emulated=accelerators[0].emulated).status)
        return await self._begin(link, command)

    async def _begin(self, link: NodeLink, command: StartRun) -> CommandAnswer:
        """Start a run on its node."""
        for rank in range(len(command.workers)):
            if self._parts.last_node(command.job, rank) != link.name:
                await asyncio.to_thread(self._move_log, command.job, rank, link.name)
        try:
            answer = await self._passed(link, self._at(command))
        except BackendGoneError:  # whether it has started is seen when the node is there again, or is given up
            run = RunStatus(command.lease, command.job, command.accelerator, self._at(command).workers,
                            RunState.STARTING, command.attempt, accepted=time.time())  # fmt: skip
            link.put(run)
            answer = CommandAnswer("accepted", self._numbering.run(link.name, run))
        self._newest[command.job] = max(self._newest.get(command.job, 0), command.lease)
        return answer

    async def _end(self, command: EndRun) -> CommandAnswer:
        if self._waiting.get(command.lease, command.job) is not None:
            return CommandAnswer("accepted", self._waiting.end(command).status)
        return await self._to_holder(command, command.lease)

    async def _hand_over(self, command: HandOverRun) -> CommandAnswer:
        if (waits := self._waiting.get(command.lease, command.job)) is not None:
            return CommandAnswer("known", waits.status)
        if self._waiting.get(command.old, command.job) is not None:
            self._newest[command.job] = command.lease
            return CommandAnswer("accepted", self._waiting.hand_over(command).status)
        known = self._holding(command.lease, command.job)
        answer = await self._to_holder(command, command.lease if known is not None else command.old)
        if answer.result == "accepted":
            self._newest[command.job] = max(self._newest.get(command.job, 0), command.lease)
        return answer

    async def _to_holder(self, command: EndRun | HandOverRun, lease: int) -> CommandAnswer:
        """Pass a command on to the node that has the run; one that is away is asked when it is there again."""
        link = self._holding(lease, command.job)
        if link is None:
            return CommandAnswer("stale", newest=self._newest.get(command.job, 0))
        try:
            if link.connected:
                return await self._passed(link, command)
        except BackendGoneError:
            pass
        run = link.find(lease, command.job)
        assert run is not None
        if isinstance(command, EndRun) and run.state is not RunState.ENDED:
            run = replace(run, state=RunState.ENDING)
            link.put(run)
        return CommandAnswer("accepted", self._numbering.run(link.name, run))

    async def _forget(self, command: ForgetRun) -> CommandAnswer:
        if self._waiting.get(command.lease, command.job) is not None:
            self._waiting.forget(command.lease, command.job)
            return CommandAnswer("accepted")
        link = self._holding(command.lease, command.job)
        if link is None:
            return CommandAnswer("known")
        answer = CommandAnswer("accepted")
        if link.connected:
            with suppress(BackendGoneError):
                answer = await self._passed(link, command)
        link.forget(command.lease, command.job)
        if link.gone_since is not None and not link.active():
            link.retire(command.job)  # should the node come back, its agent says what it knows
        return answer

    async def _retire(self, command: RetireJob) -> CommandAnswer:
        for link in [link for link in self._links.values() if link.knows(command.job)]:
            with suppress(BackendGoneError):
                if link.connected:
                    await self._passed(link, command)
            link.retire(command.job)
        self._waiting.retire(command.job)
        self._newest.pop(command.job, None)
        return CommandAnswer("accepted")

    async def _extend(self, command: ExtendLeases) -> CommandAnswer:
        links = [link for link in self._links.values() if link.connected]
        answers = await asyncio.gather(*(self._passed(link, command) for link in links), return_exceptions=True)
        leases = set(self._waiting.extend(command))
        for answer in answers:
            if isinstance(answer, CommandAnswer):
                leases.update(answer.leases)
            elif not isinstance(answer, BackendGoneError):
                raise answer
        return CommandAnswer("accepted", leases=tuple(sorted(leases)))

    async def _passed(self, link: NodeLink, command: RunCommand) -> CommandAnswer:
        """Have a node carry out a command that has its own numbers."""
        if link.backend is None:
            raise BackendGoneError(f"node {link.name} cannot be reached")
        answer = await link.backend.give(command)
        if answer.run is None:
            return answer
        old = (command.old, command.job) if isinstance(command, HandOverRun) else None
        link.put(answer.run, instead_of=old)
        return replace(answer, run=self._numbering.run(link.name, answer.run))

    def _release(self, end: RunEnded) -> None:
        """A run has ended, for which another of the same job may wait."""
        others = [link for link in self._links.values() if link.active(end.job)]
        if others:
            return
        for command in self._waiting.released(end.job, end.outcome):
            self._do(self._begin_later(command))

    async def _begin_later(self, command: StartRun) -> None:
        async with self._locks[command.job]:
            try:
                accelerators = self._placed(command)
                await self._begin(self._links[str(accelerators[0].node)], command)
            except (RefusedError, SupersededError, BackendGoneError) as error:
                waits = self._waiting.add(command, emulated=True)
                _LOG.warning("job %s, lease %d is not started: %s", command.job, command.lease, error)
                self._waiting.end(EndRun(waits.command.lease, waits.command.job))

    def _placed(self, command: StartRun) -> list[Accelerator]:
        there = {(one.type, one.number): one for one in self._accelerators()}
        try:
            accelerators = placed(command, there)
        except InputError as error:
            raise RefusedError(Refusal.BAD_INPUT, str(error)) from None
        nodes = sorted({str(one.node) for one in accelerators})
        if len(nodes) > 1:
            message = f"its accelerators are on the nodes {', '.join(nodes)}; the ranks of a job run on one node"
            raise RefusedError(Refusal.CANNOT_PLACE, message)
        return accelerators

    def _at(self, command: StartRun) -> StartRun:
        """The same command with the numbers of its node."""
        places = [self._numbering.place(command.accelerator, number) for number in command.workers]
        return replace(command, workers=tuple(place[1] for place in places if place is not None))

    def _holding(self, lease: int, job: str) -> NodeLink | None:
        return next((link for link in self._links.values() if link.find(lease, job) is not None), None)

    # Looking

    async def status(self) -> BackendStatus:
        """Ask all agents how things stand; of those that cannot be reached, it is as they last said."""
        self._refuse_if_away()
        links = [link for link in self._links.values() if link.connected and link.backend is not None]
        answers = await asyncio.gather(
            *(link.backend.status() for link in links if link.backend is not None), return_exceptions=True
        )
        for link, answer in zip(links, answers, strict=True):
            if isinstance(answer, BackendStatus):
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
        def size_at(where: str) -> int | None:
            block = self._read(job, rank, where, 0, 0)
            return None if block is None else block.size

        self._parts.move(job, rank, node, size_at)

    async def shut_down(self) -> None:
        """Let the agents and their actors end."""
        self._closed = True
        bridge = self._bridge
        backends = [link.backend for link in self._links.values() if link.backend is not None]
        await asyncio.gather(*(backend.shut_down() for backend in backends), return_exceptions=True)
        if bridge is not None:
            with suppress(BridgeGoneError):
                await bridge.ask("end")
            await bridge.stop()

    def _refuse_if_away(self) -> None:
        if self._superseded is not None:
            raise SupersededError(self._superseded)
        if not self._connected or self._bridge is None:
            raise BackendGoneError("Ray cannot be reached")

    def _accelerators(self) -> tuple[Accelerator, ...]:
        return tuple(
            one
            for link in self._links.values()
            if link.gone_since is None
            for one in self._numbering.accelerators(link.name, link.status.accelerators)
        )

    def _merged(self) -> BackendStatus:
        links = list(self._links.values())
        runs = [self._numbering.run(link.name, run) for link in links for run in link.status.runs]
        said = dict.fromkeys(caveat for link in links for caveat in link.status.caveats)
        unused = [f"node {name} is not used: {why}" for name, why in sorted(self._problems.items())]
        return BackendStatus(
            instance=" ".join(f"{link.name}:{link.status.instance}" for link in links if link.gone_since is None),
            epoch=max([self._epoch, *(link.status.epoch for link in links)]),
            accelerators=self._accelerators(),
            runs=(*runs, *self._waiting.statuses()),
            former=tuple(sorted({job for link in links for job in link.status.former})),
            last_lease=max([0, *(link.status.last_lease for link in links), *self._newest.values()]),
            draining=bool(links) and all(link.status.draining for link in links),
            caveats=(*said, *unused),
        )


_MADE: MakeBackend = RayBackend
"""For the type checker, which cannot see that the registry names this class."""
