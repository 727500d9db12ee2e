"""Runs that wait for others to end on other nodes: no job runs twice at once, and no gang starts in parts.

Within a node its agent sees to that; between nodes the backend does. Such a run is accepted and waits, as one would at
an agent; it is given to its nodes once the older run of its job has ended, and whatever held workers of its gang.
Should the job have come to its end there, or should the run be called off meanwhile, it ends without having started. A
controller that comes back knows nothing of these runs, and asks for them again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from fairway.live.backend.commands import EndRun, ExtendLeases, HandOverRun, StartRun
from fairway.live.backend.reports import RunEnded
from fairway.live.backend.status import OutcomeKind, RunOutcome, RunState, RunStatus

_CALLS_OFF = {OutcomeKind.FINISHED, OutcomeKind.FAILED, OutcomeKind.FAILED_TO_START}

Key = tuple[int, str]
"""A run: the number of its lease, and its job."""


@dataclass(slots=True)
class WaitingRun:
    """A run that no agent has heard of yet, or that ended so."""

    command: StartRun
    emulated: bool
    accepted: float
    outcome: RunOutcome | None = None

    @property
    def status(self) -> RunStatus:
        """How it stands."""
        command = self.command
        return RunStatus(
            command.lease, command.job, command.accelerator, command.workers,
            RunState.WAITING if self.outcome is None else RunState.ENDED,
            attempt=command.attempt, preemptible=command.program.preemptible, emulated=self.emulated,
            until=command.until, expires=command.expires, accepted=self.accepted, outcome=self.outcome,
        )  # fmt: skip


class WaitingRuns:
    """All of them. `report` gets the ends of those that never start."""

    def __init__(self, report: Callable[[RunEnded], None]) -> None:
        self._runs: dict[Key, WaitingRun] = {}
        self._report = report

    def add(self, command: StartRun, *, emulated: bool) -> WaitingRun:
        """Accept a run that has to wait."""
        run = self._runs[command.lease, command.job] = WaitingRun(command, emulated, time.time())
        return run

    def get(self, lease: int, job: str) -> WaitingRun | None:
        """The run of a job under a lease."""
        return self._runs.get((lease, job))

    def statuses(self) -> list[RunStatus]:
        """How all of them stand."""
        return [run.status for run in self._runs.values()]

    def end(self, command: EndRun) -> WaitingRun:
        """Call off a run that is here."""
        run = self._runs[command.lease, command.job]
        if run.outcome is None:
            self._conclude(run, "asked to stop before it had started")
        return run

    def hand_over(self, command: HandOverRun) -> WaitingRun:
        """Let a run that is here wait under another lease."""
        run = self._runs.pop((command.old, command.job))
        run.command = replace(run.command, lease=command.lease, until=command.until,
                              steps_per_second=command.steps_per_second or run.command.steps_per_second)  # fmt: skip
        self._runs[command.lease, command.job] = run
        return run

    def extend(self, command: ExtendLeases) -> list[int]:
        """Prolong leases; those that are held here."""
        waiting = [run for run in self._runs.values() if run.outcome is None]
        found = [run for run in waiting if command.leases is None or run.command.lease in command.leases]
        for run in found:
            run.command = replace(run.command, until=command.until)
        return [run.command.lease for run in found]

    def forget(self, lease: int, job: str) -> None:
        """The controller knows how it ended."""
        self._runs.pop((lease, job), None)

    def retire(self, job: str) -> None:
        """Forget all of a job."""
        for key in [key for key in self._runs if key[1] == job]:
            del self._runs[key]

    def ended(self, job: str, how: RunOutcome) -> None:
        """An older run of a job has ended; should the job be over, or have to wait, nothing of it starts."""
        if how.kind in _CALLS_OFF:
            for run in [run for key, run in self._runs.items() if key[1] == job and run.outcome is None]:
                self._conclude(run, "its job ended before it had started")

    def ready(self, blocked: Callable[[StartRun], bool]) -> list[StartRun]:
        """What can be started now, since nothing is left that it waited for: of each job, the oldest lease."""
        waiting = sorted((run for run in self._runs.values() if run.outcome is None), key=lambda run: run.command.lease)
        oldest = {run.command.job: run.command for run in reversed(waiting)}
        found = [command for command in oldest.values() if not blocked(command)]
        for command in found:
            del self._runs[command.lease, command.job]
        return sorted(found, key=lambda command: command.lease)

    def _conclude(self, run: WaitingRun, reason: str) -> None:
        run.outcome = RunOutcome(OutcomeKind.STOPPED, reason=reason, ended=time.time())
        self._report(RunEnded(run.command.lease, run.command.job, time.time(), run.outcome))
