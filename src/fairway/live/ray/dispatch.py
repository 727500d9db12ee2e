"""Which node a command is about: gives the commands of a controller to the agents of the nodes, and keeps the books.

Commands about one job are carried out one after the other. A node that cannot be reached does not hold up the others:
what it is asked is noted as done, and since the controller compares everything with what a node says when it is there
again, it is asked once more then. A job whose older run still ends on another node waits for that (`waiting_runs`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine
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
    HandOverRun,
    RetireJob,
    RunCommand,
    StartRun,
)
from fairway.live.backend.placement import placed
from fairway.live.backend.reports import RunEnded
from fairway.live.backend.status import RunState, RunStatus
from fairway.live.ray.node_link import NodeLink
from fairway.live.ray.numbering import Numbering
from fairway.live.ray.waiting_runs import WaitingRuns

_LOG = logging.getLogger(__name__)


class Dispatch:
    """The nodes by name, and what was given to them. `report` gets the ends of runs that never reach a node.

    `move_log` is called, in a thread, when a rank of a job goes on at a node; `do` runs something in the background.
    """

    def __init__(
        self,
        *,
        report: Callable[[RunEnded], None],
        move_log: Callable[[str, int, str], None],
        do: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self.links: dict[str, NodeLink] = {}
        self.numbering = Numbering()
        self.waiting = WaitingRuns(report)
        self.newest: dict[str, int] = {}
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._move_log, self._do = move_log, do

    def saw(self, runs: tuple[RunStatus, ...]) -> None:
        """A node has these runs: no older lease of their jobs is taken any more."""
        for run in runs:
            self.newest[run.job] = max(self.newest.get(run.job, 0), run.lease)

    def accelerators(self) -> tuple[Accelerator, ...]:
        """Those of all nodes that are not gone."""
        return tuple(
            one
            for link in self.links.values()
            if link.gone_since is None
            for one in self.numbering.accelerators(link.name, link.status.accelerators)
        )

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
        if (link := self._holding(lease, job)) is not None:
            return await self._passed(link, self._at(link, command))
        if lease <= self.newest.get(job, 0):
            return CommandAnswer("stale", newest=self.newest[job])
        accelerators = self._placed(command)
        link = self.links[str(accelerators[0].node)]
        if not link.connected:
            raise RefusedError(Refusal.CANNOT_PLACE, f"node {link.name} cannot be reached: {link.why}")
        older = [run for other in self.links.values() if other is not link for run in other.active(job)]
        if any(run.state not in {RunState.ENDING, RunState.WAITING} for run in older):
            message = f"job '{job}' runs under lease {older[0].lease} and was not asked to end; end it first"
            raise RefusedError(Refusal.BUSY, message)
        if older:
            self.newest[job] = lease
            return CommandAnswer("accepted", self.waiting.add(command, emulated=accelerators[0].emulated).status)
        return await self._begin(link, command)

    async def _begin(self, link: NodeLink, command: StartRun) -> CommandAnswer:
        """Start a run on its node."""
        for rank in range(len(command.workers)):
            await asyncio.to_thread(self._move_log, command.job, rank, link.name)
        try:
            answer = await self._passed(link, self._at(link, command))
        except BackendGoneError:  # whether it has started is seen when the node is there again, or is given up
            run = RunStatus(command.lease, command.job, command.accelerator, self._at(link, command).workers,
                            RunState.STARTING, command.attempt, accepted=time.time())  # fmt: skip
            link.put(run)
            answer = CommandAnswer("accepted", self.numbering.run(link.name, run))
        self.newest[command.job] = max(self.newest.get(command.job, 0), command.lease)
        return answer

    async def _end(self, command: EndRun) -> CommandAnswer:
        if self.waiting.get(command.lease, command.job) is not None:
            return CommandAnswer("accepted", self.waiting.end(command).status)
        return await self._to_holder(command, command.lease)

    async def _hand_over(self, command: HandOverRun) -> CommandAnswer:
        if (waits := self.waiting.get(command.lease, command.job)) is not None:
            return CommandAnswer("known", waits.status)
        if self.waiting.get(command.old, command.job) is not None:
            self.newest[command.job] = command.lease
            return CommandAnswer("accepted", self.waiting.hand_over(command).status)
        known = self._holding(command.lease, command.job)
        answer = await self._to_holder(command, command.lease if known is not None else command.old)
        if answer.result == "accepted":
            self.newest[command.job] = max(self.newest.get(command.job, 0), command.lease)
        return answer

    async def _to_holder(self, command: EndRun | HandOverRun, lease: int) -> CommandAnswer:
        """Pass a command on to the node that has the run; one that is away is asked when it is there again."""
        link = self._holding(lease, command.job)
        if link is None:
            return CommandAnswer("stale", newest=self.newest.get(command.job, 0))
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
        """A run has ended, for which another of the same job may wait."""
        others = [link for link in self.links.values() if link.active(end.job)]
        if others:
            return
        for command in self.waiting.released(end.job, end.outcome):
            self._do(self._begin_later(command))

    async def _begin_later(self, command: StartRun) -> None:
        async with self._locks[command.job]:
            try:
                accelerators = self._placed(command)
                await self._begin(self.links[str(accelerators[0].node)], command)
            except (RefusedError, SupersededError, BackendGoneError) as error:
                waits = self.waiting.add(command, emulated=True)
                _LOG.warning("job %s, lease %d is not started: %s", command.job, command.lease, error)
                self.waiting.end(EndRun(waits.command.lease, waits.command.job))

    def _placed(self, command: StartRun) -> list[Accelerator]:
        there = {(one.type, one.number): one for one in self.accelerators()}
        try:
            accelerators = placed(command, there)
        except InputError as error:
            raise RefusedError(Refusal.BAD_INPUT, str(error)) from None
        nodes = sorted({str(one.node) for one in accelerators})
        if len(nodes) > 1:
            message = f"its accelerators are on the nodes {', '.join(nodes)}; the ranks of a job run on one node"
            raise RefusedError(Refusal.CANNOT_PLACE, message)
        return accelerators

    def _at(self, link: NodeLink, command: StartRun) -> StartRun:
        """The same command with the numbers of its node, and with a checkpoint directory that all nodes share."""
        places = [self.numbering.place(command.accelerator, number) for number in command.workers]
        program = command.program
        if program.checkpoint_directory is None and program.user is None and link.checkpoints is not None:
            program = replace(program, checkpoint_directory=str(link.checkpoints / command.job))
        return replace(command, program=program, workers=tuple(place[1] for place in places if place is not None))

    def _holding(self, lease: int, job: str) -> NodeLink | None:
        return next((link for link in self.links.values() if link.find(lease, job) is not None), None)
