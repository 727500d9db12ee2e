"""Which node a command is about: gives the commands of a controller to the agents of the nodes, and keeps the books.

Commands about one job are carried out one after the other. A node that cannot be reached does not hold up the others:
what it is asked is noted as done, and since the controller compares everything with what a node says when it is there
again, it is asked once more then. A job whose older run still ends on another node waits for that (`waiting_runs`).
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import Any

from fairway.errors import InputError
from fairway.live.backend.accelerators import Accelerator
from fairway.live.backend.answers import BackendGoneError, CommandAnswer, Refusal, RefusedError, SupersededError
from fairway.live.backend.commands import (
    EndRun,
    ExtendLeases,
    ForgetRun,
    GangPart,
    HandOverRun,
    MeetingPoint,
    RetireJob,
    RunCommand,
    StartRun,
)
from fairway.live.backend.placement import placed
from fairway.live.backend.reports import CheckpointSaved, RunEnded, RunProgressed, RunReport, RunStarted
from fairway.live.backend.status import RunState, RunStatus
from fairway.live.ray.gang_runs import as_one, breaks_the_gang
from fairway.live.ray.node_link import NodeLink
from fairway.live.ray.numbering import Numbering
from fairway.live.ray.waiting_runs import WaitingRuns

_LOG = logging.getLogger(__name__)


class Dispatch:
    """The nodes by name, and what was given to them. `report` gets the ends of runs that never reach a node.

    `move_log` is called, in a thread, when a rank of a job goes on at a node; `do` runs something in the background.
    `meet` finds two free ports of a node, for the ranks of a gang to meet at; `with_files` sees to it that a node has
    the work directory of a run, wherever that is there.
    """

    def __init__(
        self,
        *,
        report: Callable[[RunEnded], None],
        move_log: Callable[[str, int, str], None],
        do: Callable[[Coroutine[Any, Any, None]], object],
        meet: Callable[[str], Awaitable[tuple[int, int]]],
        with_files: Callable[[str, StartRun], Awaitable[StartRun]],
    ) -> None:
        self.links: dict[str, NodeLink] = {}
        self.numbering = Numbering()
        self.waiting = WaitingRuns(report)
        self.newest: dict[str, int] = {}
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._move_log, self._do, self._meet, self._with_files = move_log, do, meet, with_files
        self._starting: set[tuple[int, str]] = set()

    def saw(self, runs: tuple[RunStatus, ...]) -> None:
        """A node has these runs: no older lease of their jobs is taken any more."""
        for run in runs:
            self.newest[run.job] = max(self.newest.get(run.job, 0), run.lease)

    def drop_if_done(self, link: NodeLink) -> None:
        """Leave a node that is gone out of the books once nothing is left to say of its runs.

        Should it come back, its agent says what it knows.
        """
        if link.gone_since is not None and not link.status.runs and self.links.get(link.name) is link:
            del self.links[link.name]

    def accelerators(self) -> tuple[Accelerator, ...]:
        """Those of all nodes that are not gone, and not about to leave."""
        return tuple(
            one
            for link in self.links.values()
            if link.gone_since is None and link.leaving is None
            for one in self.numbering.accelerators(link.name, link.status.accelerators)
        )

    def runs(self) -> list[RunStatus]:
        """All runs of all nodes; a gang on several nodes is one."""
        keys = {(run.lease, run.job): None for link in self.links.values() for run in link.status.runs}
        return [self._as_one(*key) for key in keys]

    # Gangs on several nodes

    def take_in(self, link: NodeLink, report: RunReport) -> list[RunReport]:
        """Note what a run of a node reports; what there is to say of it, which of a gang on several nodes is of all."""
        run = link.find(report.lease, report.job)
        if run is None or run.part is None:
            link.take_in(report)
            return [report]
        before = self._as_one(report.lease, report.job)
        link.take_in(report)
        now = self._as_one(report.lease, report.job)
        if isinstance(report, RunEnded) and breaks_the_gang(report.outcome):
            self._do(self._end_rest(report.lease, report.job))
        return self._said_of(report, before, now)

    @staticmethod
    def _said_of(report: RunReport, before: RunStatus, now: RunStatus) -> list[RunReport]:
        match report:
            case RunStarted() if now.started is not None and before.started is None:
                return [replace(report, started=now.started)]
            case RunProgressed() if now.steps is not None:
                return [replace(report, steps=now.steps, steps_per_second=now.steps_per_second,
                                checkpoint_step=now.checkpoint_step)]  # fmt: skip
            case CheckpointSaved() if now.checkpoint_step is not None and now.checkpoint_step != before.checkpoint_step:
                return [replace(report, checkpoint_step=now.checkpoint_step)]
            case RunEnded() if now.outcome is not None and before.outcome is None:
                return [replace(report, outcome=now.outcome)]
        return []

    def break_gangs_of(self, link: NodeLink) -> None:
        """A node is gone: the other parts of its gangs end at once, since they would wait for it in vain."""
        for run in link.active():
            if run.part is not None:
                self._do(self._end_rest(run.lease, run.job))

    def break_torn_gangs(self) -> None:
        """The agent of a node has told what it has: gangs of which a part is missing end."""
        for lease, job in {(run.lease, run.job) for link in self.links.values() for run in link.active() if run.part}:
            if self._is_torn(lease, job):
                self._do(self._end_rest(lease, job))

    def _is_torn(self, lease: int, job: str) -> bool:
        """Whether the agent of a node does not know its part of a gang, which was started."""
        if (lease, job) in self._starting:
            return False
        nodes = {name for link in self._holders(lease, job)
                 if (run := link.find(lease, job)) is not None and run.part for name in run.part.nodes}  # fmt: skip
        links = [self.links.get(name) for name in nodes]
        return any(link is None or (link.connected and link.find(lease, job) is None) for link in links)

    async def _end_rest(self, lease: int, job: str) -> None:
        """End all parts of a gang that still run."""
        for link in self._holders(lease, job):
            run = link.find(lease, job)
            if run is not None and run.state is not RunState.ENDED and link.connected:
                with suppress(BackendGoneError, RefusedError, SupersededError):
                    await self._passed(link, EndRun(lease, job, save=False))

    def _as_one(self, lease: int, job: str) -> RunStatus:
        parts = [self.numbering.run(link.name, run) for link in self._holders(lease, job)
                 if (run := link.find(lease, job)) is not None]  # fmt: skip
        return as_one(parts, missing=parts[0].part is not None and self._is_torn(lease, job))

    def _holders(self, lease: int, job: str) -> list[NodeLink]:
        return [link for link in self.links.values() if link.find(lease, job) is not None]

    async def give(self, command: RunCommand) -> CommandAnswer:
        """Give a command to the node that it is about."""
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
        if (waits := self.waiting.get(lease, job)) is not None:
            return CommandAnswer("known", waits.status)
        if holders := self._holders(lease, job):
            known = holders[0].find(lease, job)
            if len(holders) == 1 and known is not None and known.part is None:
                return await self._passed(holders[0], self._parts(command)[0][1])
            return CommandAnswer("known", self._as_one(lease, job))
        if lease <= self.newest.get(job, 0):
            return CommandAnswer("stale", newest=self.newest[job])
        accelerators = self._placed(command)
        away = [link for link, _ in self._parts(command) if not link.connected]
        if away:
            raise RefusedError(Refusal.CANNOT_PLACE, f"node {away[0].name} cannot be reached: {away[0].why}")
        older = self._in_the_way(command)
        holds_on = next((run for run in older if run.state not in {RunState.ENDING, RunState.WAITING}), None)
        if holds_on is not None:
            message = f"job '{holds_on.job}' runs under lease {holds_on.lease} and was not asked to end; end it first"
            raise RefusedError(Refusal.BUSY, message)
        if older:
            self.newest[job] = lease
            return CommandAnswer("accepted", self.waiting.add(command, emulated=accelerators[0].emulated).status)
        return await self._begin(command)

    def _in_the_way(self, command: StartRun) -> list[RunStatus]:
        """Runs that have to end before this one is given to its nodes; what is to end on its only node, that one knows.

        Those are runs of the same job, and of a gang on several nodes, which starts everywhere or nowhere, also runs on
        its workers.
        """
        parts = self._parts(command)
        here = {link.name: set(part.workers) for link, part in parts}
        alone = len(parts) == 1
        found = []
        for link in self.links.values():
            for run in link.active():
                same = run.job == command.job and not (alone and link.name in here)
                mine = run.accelerator == command.accelerator and here.get(link.name, set()).intersection(run.workers)
                if same or (mine and not alone and run.lease != command.lease):
                    found.append(self.numbering.run(link.name, run))
        return found

    async def _begin(self, command: StartRun) -> CommandAnswer:
        """Start a run on its node, or a gang on all of its nodes: should one of them refuse, on none."""
        key = command.lease, command.job
        parts = await self._with_meeting_point(self._parts(command))
        parts = [(link, await self._with_files(link.name, part)) for link, part in parts]
        for link, part in parts:
            for rank in part.ranks:
                await asyncio.to_thread(self._move_log, command.job, rank, link.name)
        self._starting.add(key)
        try:
            answers = await asyncio.gather(*(self._given(link, part) for link, part in parts), return_exceptions=True)
        finally:
            self._starting.discard(key)
        refused = next((answer for answer in answers if isinstance(answer, BaseException)), None)
        if refused is not None:
            await self._end_rest(*key)
            raise refused
        self.newest[command.job] = max(self.newest.get(command.job, 0), command.lease)
        (first, *others) = [answer for answer in answers if isinstance(answer, CommandAnswer)]
        return replace(first, run=self._as_one(*key)) if others else first

    async def _given(self, link: NodeLink, part: StartRun) -> CommandAnswer:
        try:
            return await self._passed(link, part)
        except BackendGoneError:  # whether it has started is seen when the node is there again, or is given up
            run = RunStatus(part.lease, part.job, part.accelerator, part.workers, RunState.STARTING, part.attempt,
                            accepted=time.time(), part=part.part)  # fmt: skip
            link.put(run)
            return CommandAnswer("accepted", self.numbering.run(link.name, run))

    async def _end(self, command: EndRun) -> CommandAnswer:
        if self.waiting.get(command.lease, command.job) is not None:
            return CommandAnswer("accepted", self.waiting.end(command).status)
        return await self._to_holders(command, command.lease)

    async def _hand_over(self, command: HandOverRun) -> CommandAnswer:
        if (waits := self.waiting.get(command.lease, command.job)) is not None:
            return CommandAnswer("known", waits.status)
        if self.waiting.get(command.old, command.job) is not None:
            self.newest[command.job] = command.lease
            return CommandAnswer("accepted", self.waiting.hand_over(command).status)
        known = self._holders(command.lease, command.job)
        answer = await self._to_holders(command, command.lease if known else command.old)
        if answer.result == "accepted":
            self.newest[command.job] = max(self.newest.get(command.job, 0), command.lease)
        return answer

    async def _to_holders(self, command: EndRun | HandOverRun, lease: int) -> CommandAnswer:
        """Pass a command on to the nodes that have the run; one that is away is asked when it is there again."""
        holders = self._holders(lease, command.job)
        if not holders:
            return CommandAnswer("stale", newest=self.newest.get(command.job, 0))
        key = (command.lease, command.job) if isinstance(command, HandOverRun) else (lease, command.job)
        self._starting.add(key)  # of a gang that is handed over, some parts have the new lease and some the old one
        try:
            answers = await asyncio.gather(*(self._to_holder(link, command, lease) for link in holders))
        finally:
            self._starting.discard(key)
        first = next((answer for answer in answers if answer.result == "accepted"), answers[0])
        return replace(first, run=self._as_one(*key)) if len(answers) > 1 and self._holders(*key) else first

    async def _to_holder(self, link: NodeLink, command: EndRun | HandOverRun, lease: int) -> CommandAnswer:
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
        return CommandAnswer("accepted", self.numbering.run(link.name, run))

    async def _forget(self, command: ForgetRun) -> CommandAnswer:
        if self.waiting.get(command.lease, command.job) is not None:
            self.waiting.forget(command.lease, command.job)
            return CommandAnswer("accepted")
        answer = CommandAnswer("known")
        for link in self._holders(command.lease, command.job):
            answer = CommandAnswer("accepted")
            if link.connected:
                with suppress(BackendGoneError):
                    answer = await self._passed(link, command)
            link.forget(command.lease, command.job)
            self.drop_if_done(link)
        return answer

    async def _retire(self, command: RetireJob) -> CommandAnswer:
        for link in [link for link in self.links.values() if link.knows(command.job)]:
            with suppress(BackendGoneError):
                if link.connected:
                    await self._passed(link, command)
            link.retire(command.job)
        self.waiting.retire(command.job)
        self.newest.pop(command.job, None)
        return CommandAnswer("accepted")

    async def _extend(self, command: ExtendLeases) -> CommandAnswer:
        links = [link for link in self.links.values() if link.connected]
        answers = await asyncio.gather(*(self._passed(link, command) for link in links), return_exceptions=True)
        leases = set(self.waiting.extend(command))
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
        return replace(answer, run=self.numbering.run(link.name, answer.run))

    def release(self, end: RunEnded) -> None:
        """A run has ended, for which others may wait."""
        if not any(link.active(end.job) for link in self.links.values()):
            self.waiting.ended(end.job, end.outcome)
        for command in self.waiting.ready(self._is_blocked):
            self._do(self._begin_later(command))

    def _is_blocked(self, command: StartRun) -> bool:
        try:
            return bool(self._in_the_way(command))
        except RefusedError:  # a node of it is gone, of which it hears when it is started
            return any(link.active(command.job) for link in self.links.values())

    async def _begin_later(self, command: StartRun) -> None:
        async with self._locks[command.job]:
            try:
                self._placed(command)
                await self._begin(command)
            except (RefusedError, SupersededError, BackendGoneError) as error:
                waits = self.waiting.add(command, emulated=True)
                _LOG.warning("job %s, lease %d is not started: %s", command.job, command.lease, error)
                self.waiting.end(EndRun(waits.command.lease, waits.command.job))

    def _placed(self, command: StartRun) -> list[Accelerator]:
        there = {(one.type, one.number): one for one in self.accelerators()}
        try:
            return placed(command, there)
        except InputError as error:
            raise RefusedError(Refusal.BAD_INPUT, str(error)) from None

    def _parts(self, command: StartRun) -> list[tuple[NodeLink, StartRun]]:
        """The same command for each of its nodes, with the numbers of that node and where all nodes keep checkpoints.

        Ranks follow the order of the workers, those of one node after those of another.
        """
        of_nodes: dict[str, list[int]] = {}
        for number in command.workers:
            place = self.numbering.place(command.accelerator, number)
            if place is None or place[0] not in self.links:
                message = f"the node of worker '{command.accelerator}' {number} is gone"
                raise RefusedError(Refusal.CANNOT_PLACE, message)
            of_nodes.setdefault(place[0], []).append(place[1])
        parts, first = [], 0
        for node_rank, (name, workers) in enumerate(of_nodes.items()):
            link, program = self.links[name], command.program
            if program.checkpoint_directory is None and program.user is None and link.checkpoints is not None:
                program = replace(program, checkpoint_directory=str(link.checkpoints / command.job))
            ranks = tuple(range(first, first + len(workers)))
            first += len(workers)
            part = GangPart(ranks, len(command.workers), node_rank, tuple(of_nodes)) if len(of_nodes) > 1 else None
            parts.append((link, replace(command, program=program, workers=tuple(workers), part=part)))
        return parts

    async def _with_meeting_point(self, parts: list[tuple[NodeLink, StartRun]]) -> list[tuple[NodeLink, StartRun]]:
        """Say to the nodes of a gang where its ranks meet: on the first of them."""
        if len(parts) == 1:
            return parts
        first = parts[0][0]
        port, agreement_port = await self._meet(first.name)
        meet = MeetingPoint(first.address, port, agreement_port, secrets.token_hex(16))
        return [(link, replace(part, meet=meet)) for link, part in parts]
