"""What a controller knows of one node of Ray: its agent while it can be reached, and how its runs stood when it could.

A node that cannot be reached keeps its runs in the books until it is certain that none of their processes is left.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path

from fairway.live.backend.reports import CheckpointSaved, RunEnded, RunProgressed, RunReport, RunStarted
from fairway.live.backend.status import BackendStatus, OutcomeKind, RunOutcome, RunState, RunStatus
from fairway.live.local.backend import LocalBackend

_NOTHING = BackendStatus("", 0, ())


@dataclass(slots=True, eq=False)
class NodeLink:
    """One node. `status` is what its agent last said, with the numbers of the node; `gone_since` when Ray lost it.

    `address` is where ranks on other nodes reach it. `checkpoints` is where jobs save that name no directory: one that
    all nodes have in common, or None for one of the node. `heard` says whether its agent has answered, or has failed
    to. `why` says why it cannot be reached. `leaving` is Ray's notice that the node ends soon: its accelerators do not
    count, while its runs save. `changes` counts what was noted here: an answer that was asked for before is older.
    """

    name: str
    status: BackendStatus = _NOTHING
    backend: LocalBackend | None = None
    task: asyncio.Task[None] | None = None
    connected: bool = False
    heard: bool = False
    gone_since: float | None = None
    checkpoints: Path | None = None
    why: str = "it has not answered yet"
    address: str = ""
    leaving: str | None = None
    changes: int = 0

    def find(self, lease: int, job: str) -> RunStatus | None:
        """A run of this node."""
        return next((run for run in self.status.runs if (run.lease, run.job) == (lease, job)), None)

    def active(self, job: str | None = None) -> list[RunStatus]:
        """The runs that have not ended, of one job or of all."""
        return [run for run in self.status.runs
                if run.state is not RunState.ENDED and job in {None, run.job}]  # fmt: skip

    def put(self, run: RunStatus, *, instead_of: tuple[int, str] | None = None) -> None:
        """Note how a run stands."""
        self.changes += 1
        key = instead_of or (run.lease, run.job)
        kept = [one for one in self.status.runs if (one.lease, one.job) not in {key, (run.lease, run.job)}]
        self.status = replace(self.status, runs=(*kept, run), last_lease=max(self.status.last_lease, run.lease))

    def forget(self, lease: int, job: str) -> None:
        """A run is over and done with; its job may come back."""
        self.changes += 1
        kept = tuple(one for one in self.status.runs if (one.lease, one.job) != (lease, job))
        self.status = replace(self.status, runs=kept, former=tuple(sorted({*self.status.former, job})))

    def retire(self, job: str) -> None:
        """A job never comes back."""
        self.changes += 1
        self.status = replace(
            self.status,
            runs=tuple(one for one in self.status.runs if one.job != job),
            former=tuple(one for one in self.status.former if one != job),
        )

    def knows(self, job: str) -> bool:
        """Whether the node has had the job."""
        return job in self.status.former or any(run.job == job for run in self.status.runs)

    def take_in(self, report: RunReport) -> None:
        """Note what a run reports."""
        run = self.find(report.lease, report.job)
        if run is None:
            return
        match report:
            case RunStarted():
                state = RunState.RUNNING if run.state in {RunState.WAITING, RunState.STARTING} else run.state
                self.put(replace(run, state=state, started=report.started))
            case RunProgressed():
                saved = report.checkpoint_step if report.checkpoint_step is not None else run.checkpoint_step
                rate = report.steps_per_second
                self.put(replace(run, steps=report.steps, steps_per_second=rate, checkpoint_step=saved))
            case CheckpointSaved():
                self.put(replace(run, checkpoint_step=report.checkpoint_step))
            case RunEnded():
                self.put(replace(run, state=RunState.ENDED, outcome=report.outcome))

    def lost(self, now: float) -> list[RunEnded]:
        """The ends of all runs of the node, which are given up; to be taken in."""
        return [
            RunEnded(run.lease, run.job, now, RunOutcome(
                OutcomeKind.LOST, reason=f"node {self.name} is gone, and the job with it", steps=run.steps,
                checkpoint_step=run.checkpoint_step, started=run.started, ended=now,
            ))
            for run in self.active()
        ]  # fmt: skip
