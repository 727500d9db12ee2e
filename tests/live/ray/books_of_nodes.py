"""Two nodes that are stood in for, and the books that a controller keeps of them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from fairway.live.backend.accelerators import Accelerator
from fairway.live.backend.answers import BackendGoneError, CommandAnswer, RefusedError
from fairway.live.backend.commands import (
    EndRun,
    ExtendLeases,
    HandOverRun,
    JobProgram,
    RunCommand,
    StartRun,
)
from fairway.live.backend.reports import RunEnded
from fairway.live.backend.status import BackendStatus, RunState, RunStatus
from fairway.live.local.backend import LocalBackend
from fairway.live.ray.dispatch import Dispatch
from fairway.live.ray.node_link import NodeLink

GONE = BackendGoneError("no answer")


@dataclass
class Node:
    """The agent of a node: does what it is asked, or fails."""

    given: list[RunCommand] = field(default_factory=list)
    fails: Exception | None = None
    leases: tuple[int, ...] = ()

    async def give(self, command: RunCommand) -> CommandAnswer:
        self.given.append(command)
        if self.fails is not None:
            raise self.fails
        match command:
            case StartRun():
                run = RunStatus(command.lease, command.job, command.accelerator, command.workers, RunState.STARTING,
                                part=command.part)  # fmt: skip
                return CommandAnswer("accepted", run)
            case EndRun():
                return CommandAnswer("accepted", RunStatus(command.lease, command.job, "v100", (0,), RunState.ENDING))
            case HandOverRun():
                return CommandAnswer("accepted", RunStatus(command.lease, command.job, "v100", (0,), RunState.RUNNING))
            case ExtendLeases():
                return CommandAnswer("accepted", leases=self.leases)
        return CommandAnswer("accepted")


@dataclass
class Site:
    """Two nodes with two accelerators each, numbered 0 to 3, and all that the books of them call."""

    nodes: dict[str, Node] = field(default_factory=lambda: {"a": Node(), "b": Node()})
    ends: list[RunEnded] = field(default_factory=list)
    logs: list[tuple[str, int, str]] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    to_do: list[Coroutine[Any, Any, None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        async def meet(node: str) -> tuple[int, int]:
            return (1000, 1001) if node == "a" else (2000, 2001)

        async def with_files(node: str, part: StartRun) -> StartRun:
            self.files.append(node)
            return replace(part, program=replace(part.program, workdir=f"/files/{node}"))

        self.books = Dispatch(
            report=self.ends.append,
            move_log=lambda job, rank, node: self.logs.append((job, rank, node)),
            do=self.to_do.append,
            meet=meet,
            with_files=with_files,
        )
        for name, node in self.nodes.items():
            accelerators = (Accelerator("v100", 0), Accelerator("v100", 1))
            self.books.links[name] = NodeLink(
                name,
                BackendStatus("i", 0, accelerators),
                cast(LocalBackend, node),
                connected=True,
                address=f"at-{name}",
            )
        self.books.accelerators()

    def link(self, name: str) -> NodeLink:
        return self.books.links[name]

    def give(self, command: RunCommand) -> CommandAnswer:
        return asyncio.run(self.books.give(command))

    def has(self, name: str, *runs: RunStatus) -> None:
        """A node has these runs, with its own numbers."""
        self.link(name).status = replace(self.link(name).status, runs=runs)
        self.books.saw(runs)

    def work(self) -> None:
        """Do what was to be done in the background."""

        async def all_of_it() -> None:
            while self.to_do:
                await self.to_do.pop(0)

        asyncio.run(all_of_it())

    def given(self) -> dict[str, list[RunCommand]]:
        return {name: node.given for name, node in self.nodes.items() if node.given}


def start(lease: int = 1, *workers: int, job: str = "job") -> StartRun:
    return StartRun(lease, job, JobProgram("true"), "v100", workers or (2,))


def run(lease: int = 1, *workers: int, job: str = "job", state: RunState = RunState.RUNNING) -> RunStatus:
    return RunStatus(lease, job, "v100", workers or (0,), state)


def gang(site: Site, lease: int = 1, job: str = "job") -> None:
    """A gang of three ranks on both nodes has started."""
    site.give(start(lease, 1, 2, 3, job=job))
    for node in site.nodes.values():
        node.given.clear()


def refused(site: Site, command: RunCommand) -> str:
    with pytest.raises(RefusedError) as caught:
        site.give(command)
    return caught.value.code
