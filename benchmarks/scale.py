"""What scheduling costs as a cluster grows: decisions, messages and bytes for 100 to 10,000 workers, by one command.

    python -m benchmarks.scale --json -

Training: the engine of the product in virtual time, on thirds of three accelerator types and nodes of eight workers,
under max-min fairness, with one and a half times as many jobs as workers; before each round a twentieth of them ends
and as many come. Counted are the CPU seconds of the policy, of the beginning of a round with it, and of each change
before it, and what a backend of many nodes sends and hears: every command and report in the form in which it travels
(`fairway.live.backend.codec`, `fairway.live.local.agent.frames`).

Serving: a plan of Compass for five tasks, and the state rows that nodes send each other in a period, in the form in
which they travel (`NodeRows`). Nothing is measured over a network: bytes and messages are those that would be sent.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Any, ClassVar

import numpy as np

from benchmarks._report import Options, Result, spread
from benchmarks._report import run as report
from benchmarks.place import NOW, Instance
from fairway import Allocation, Policy, Problem, Request, placer_of
from fairway.allocate.registry import policy_of
from fairway.cluster import Cluster
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.messages import Command, Event, Grant, JobArrived, JobFinished, Revoke, RoundBegan
from fairway.engine.training.options import EngineOptions
from fairway.jobs import Job
from fairway.live.backend.codec import COMMANDS, REPORTS
from fairway.live.backend.commands import EndRun, ExtendLeases, ForgetRun, JobProgram, RunCommand, StartRun
from fairway.live.backend.reports import BackendReport, RunProgressed
from fairway.live.local.agent.frames import encoded
from fairway.live.serving.nodes.node_rows import NodeRows
from fairway.live.serving.seams.message_board import PERIOD_SECONDS

SIZES = (100, 1_000, 10_000)
PER_NODE = 8
ROUND_SECONDS = 360.0
PROGRAM = JobProgram("python train.py --epochs 30", workdir="/shared/project", steps=100_000)
_REPORTS_PER_SECOND = 4
"""How often an agent looks how far a run is, and tells it."""

_MODELS = 8
_ENDS = 0.05


@dataclass(slots=True)
class Timed(Policy):
    """A policy that notes how long each of its decisions takes."""

    policy: Policy
    seconds: list[float] = field(default_factory=list)
    name: ClassVar[str] = "timed"

    def allocate(self, problem: Problem) -> Allocation:
        begin = time.process_time()
        answer = self.policy.allocate(problem)
        self.seconds.append(time.process_time() - begin)
        return answer


@dataclass(slots=True)
class Rounds:
    """What some rounds took: the policy, a round's beginning, each change before it; the commands, and their bytes."""

    solves: list[float]
    seconds: list[float]
    changing: list[float]
    commands: list[int]
    sent_bytes: list[int]
    running: int


def measure(options: Options) -> Iterator[Result]:
    """All rows, the smallest cluster first."""
    for workers in SIZES[:1] if options.quick else SIZES:
        yield from training(workers, options)
        yield from serving(workers, options)


def training(workers: int, options: Options) -> Iterator[Result]:
    """A cluster that is full, round by round."""
    found = run_of(workers, rounds=3 if options.quick else 5, seed=options.seed)
    what, nodes = f"{workers:,} workers", -(-workers // PER_NODE)
    yield Result(f"{what}: the policy decides, {int(1.5 * workers):,} jobs", "s", median(found.solves),
                 spread=spread(found.solves), extra={"max": max(found.solves)})  # fmt: skip
    yield Result(f"{what}: a round begins", "s", median(found.seconds), spread=spread(found.seconds),
                 extra={"max": max(found.seconds), "share_of_round": max(found.seconds) / ROUND_SECONDS})  # fmt: skip
    yield Result(f"{what}: a job comes or ends", "s", median(found.changing), spread=spread(found.changing))
    yield Result(f"{what}: commands to {nodes:,} nodes in a round", "messages", median(found.commands),
                 extra={"bytes": median(found.sent_bytes)})  # fmt: skip
    told = len(encoded(REPORTS.document_of(report_of(10**6))))
    yield Result(f"{what}: reports of {found.running:,} jobs", "messages/s", _REPORTS_PER_SECOND * found.running,
                 extra={"bytes_per_second": _REPORTS_PER_SECOND * found.running * told})  # fmt: skip


def run_of(workers: int, *, rounds: int, seed: int) -> Rounds:
    """Let so many rounds pass after those in which compiled code is loaded and the cluster fills."""
    draw = np.random.default_rng(seed)
    third = workers // 3
    counts = {"v100": workers - 2 * third, "p100": third, "k80": third}
    policy = Timed(policy_of("max-min-fairness"))
    engine = TrainingEngine(Cluster(counts, {}, dict.fromkeys(counts, PER_NODE)), policy, EngineOptions(ROUND_SECONDS))
    here = [f"job-{number}" for number in range(int(1.5 * workers))]
    count, now = len(here), 0.0
    engine.handle(now, [JobArrived(job_of(name, draw)) for name in here])
    seconds, changing, commands, sent = list[float](), list[float](), list[int](), list[int]()
    for turn in range(rounds + 2):
        now = engine.round_end if engine.round_end is not None else now
        gone = draw.choice(len(here), max(1, int(_ENDS * len(here))), replace=False)
        ended = [here[position] for position in gone]
        new = [f"job-{count + number}" for number in range(len(ended))]
        count += len(new)
        here = [name for name in here if name not in set(ended)] + new
        events: list[Event] = [RoundBegan()]
        changes: list[Event] = [*map(JobFinished, ended), *(JobArrived(job_of(name, draw)) for name in new)]
        begin = time.process_time()
        answer = engine.handle(now, changes)
        changed = time.process_time()
        answer += engine.handle(now, events)
        took = time.process_time() - changed
        if turn >= 2:
            given = [*commands_of(answer, -(-workers // PER_NODE)), *(ForgetRun(1, name) for name in ended)]
            seconds.append(took)
            changing.append((changed - begin) / len(changes))
            commands.append(len(given))
            sent.append(sum(len(encoded(COMMANDS.document_of(one))) for one in given))
    running = int((engine.jobs.on >= 0).sum())
    return Rounds(policy.seconds[-rounds:], seconds, changing, commands, sent, running)


def job_of(name: str, draw: np.random.Generator) -> Job:
    """A job of one worker, now and then of a gang, that is as much faster on a newer type as jobs are."""
    rate = float(draw.uniform(1.0, 10.0))
    rates = {"v100": rate, "p100": rate * float(draw.uniform(0.3, 0.7)), "k80": rate * float(draw.uniform(0.1, 0.3))}
    return Job(name, rates, scale_factor=int(draw.choice([1, 2, 4], p=[0.8, 0.15, 0.05])), steps_left=1e6)


def commands_of(answer: list[Command], nodes: int) -> Iterator[RunCommand]:
    """What a backend is asked for: jobs start and end on their nodes, and leases are prolonged on every node."""
    for command in answer:
        if isinstance(command, Grant):
            for name in command.jobs:
                yield StartRun(command.lease, name, PROGRAM, command.accelerator, command.workers, until=command.until)
        elif isinstance(command, Revoke):
            yield from (EndRun(command.lease, name) for name in command.jobs)
    yield from (ExtendLeases(1.8e9 + ROUND_SECONDS) for _ in range(nodes))


def report_of(steps: int) -> BackendReport:
    """A report as agents send most of them."""
    return RunProgressed(123_456, "job-123456", 1.8e9 + 0.123456, steps, 12.345678, steps - 1000)


def serving(workers: int, options: Options) -> Iterator[Result]:
    """A plan, and the rows of all workers on every node."""
    instance, placer = Instance.of(workers, options.seed), placer_of("compass")
    draws, seconds = np.random.default_rng(options.seed), []
    for ingress in draws.integers(workers, size=20 if options.quick else 200).tolist():
        begin = time.process_time()
        placer.plan(Request(0, instance.graph, ingress), instance.table.view(ingress, NOW), NOW, draws)
        seconds.append(time.process_time() - begin)
    what, nodes = f"{workers:,} workers", -(-workers // PER_NODE)
    yield Result(f"{what}: Compass plans five tasks", "s", median(seconds[2:]), spread=spread(seconds[2:]))
    pairs = nodes * (nodes - 1)
    size = row_bytes(workers)
    yield Result(f"{what}: rows between {nodes:,} nodes every {1000 * PERIOD_SECONDS:g} ms", "messages/s",
                 pairs / PERIOD_SECONDS,
                 extra={"bytes_per_message": size, "bytes_per_second": pairs * size / PERIOD_SECONDS,
                        "bytes_per_second_and_node": (nodes - 1) * size / PERIOD_SECONDS})  # fmt: skip


def row_bytes(workers: int) -> int:
    """How large the message is by which a node tells the rows of its workers."""
    rows = NodeRows(bytearray(NodeRows.size(workers, _MODELS)), np.full(workers, 14e9), _MODELS)
    rows.clear()
    for worker in range(PER_NODE):
        rows.host(worker, 1)
    message: Any = rows.changed()
    return sum(len(part) for part in message[1:]) + len(json.dumps(message[0]))


if __name__ == "__main__":
    report("scale", measure)
