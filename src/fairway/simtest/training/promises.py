"""What the live training system promises, as a model that is told what happened and says what should not have.

It knows nothing of the code that it judges: it hears what clients were told, what the machine saw run, and what the
store held after each commit that was acknowledged, all as plain words and numbers.

1. A job that was acknowledged is in the store from then on, once, however often it was sent.
2. No two runs of one job, and no two leases on one worker, run at the same time.
3. A controller that another one has followed changes nothing in the store; an agent does nothing for it.
4. A run begins at the last checkpoint of its job, never before, and no job runs again of whose end the machine knows.
5. A job whose cancel was acknowledged ends.
6. A job has one final state, and has earned it: it succeeded only if a run came to its end, failed only after more
   failures than it may have, and was cancelled only if its owner wanted that.
7. When nothing is broken any more, every job comes to its end within a bound.
8. In the end nothing is left: no process, no lease, no run at the agent, no open file.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

FINAL = frozenset({"succeeded", "failed", "cancelled"})

Place = tuple[str, int]


@dataclass(slots=True)
class _Job:
    """A job as its owner knows it."""

    key: str
    retries: float
    acknowledged: bool = False
    cancel_sent: bool = False
    checkpoint: int = 0
    ended_well: bool = False
    exit_known: bool = False
    spoilt: bool = False
    harm: int = 0


@dataclass(slots=True)
class _Run:
    job: str
    lease: int
    places: frozenset[Place]


@dataclass(slots=True)
class Promises:
    """The model; `violations` are sentences."""

    violations: list[str] = field(default_factory=list)
    _jobs: dict[str, _Job] = field(default_factory=dict)
    _sent: dict[str, float] = field(default_factory=dict)
    _by_key: dict[str, str] = field(default_factory=dict)
    _running: dict[int, _Run] = field(default_factory=dict)
    _came_to_end: dict[int, str] = field(default_factory=dict)
    _final: dict[str, str] = field(default_factory=dict)
    _stored: Mapping[str, str] = field(default_factory=dict)
    _newest_epoch: int = 0
    _agent_epoch: int = 0

    def _broken(self, sentence: str) -> None:
        if sentence not in self.violations:
            self.violations.append(sentence)

    # What clients do and are told

    def sent(self, key: str, retries: int, *, hostile: bool) -> None:
        """A client sends a job, perhaps not for the first time; one that is hostile may fail for what it writes."""
        self._sent[key] = math.inf if hostile else retries

    def acknowledged(self, key: str, job: str) -> None:
        """A client was told that its job is stored."""
        known = self._by_key.setdefault(key, job)
        if known != job:
            self._broken(f"submission {key} became both {known} and {job}")
        self._job(job, key).acknowledged = True

    def cancel_sent(self, job: str) -> None:
        """A client takes a job back; the answer may not arrive."""
        self._job(job).cancel_sent = True

    @property
    def all_acknowledged(self) -> bool:
        """Whether every job that was sent is acknowledged."""
        return len(self._by_key) == len(self._sent)

    @property
    def open_jobs(self) -> list[str]:
        """The jobs in the store that are not over."""
        return [job for job, state in self._stored.items() if state not in FINAL]

    def job_of(self, key: str) -> str | None:
        """The job that a submission became, if its client knows."""
        return self._by_key.get(key)

    # What the machine sees

    def began(self, pid: int, job: str, lease: int, places: frozenset[Place], first: int) -> None:
        """The processes of a job run."""
        for other in self._running.values():
            if other.job == job:
                self._broken(f"{job} runs under lease {lease} while it runs under lease {other.lease}")
            elif other.lease != lease and (both := other.places & places):
                self._broken(f"{other.job} runs on {sorted(both)} under lease {other.lease}, and {job} under {lease}")
        known = self._job(job)
        if self._final.get(job) in {"succeeded", "failed"}:
            self._broken(f"{job} has {self._final[job]} and runs again under lease {lease}")
        if known.exit_known:
            self._broken(f"{job} has come to its end and runs again under lease {lease}")
        if first < known.checkpoint:
            self._broken(f"{job} begins at step {first}, its checkpoint is at {known.checkpoint}")
        known.spoilt = False
        self._running[pid] = _Run(job, lease, places)

    def saved(self, job: str, step: int) -> None:
        """A job has saved a checkpoint."""
        known = self._job(job)
        known.checkpoint = max(known.checkpoint, step)

    def ended(self, pid: int, *, code: int | None, whole: bool) -> None:
        """The processes of a run have ended; `whole` says that its job has done all of its steps."""
        run = self._running.pop(pid, None)
        if run is None:
            return
        known = self._job(run.job)
        if code == 0 and whole:
            known.ended_well = True
            self._came_to_end[pid] = run.job
        elif code:
            known.harm += 1

    def exit_written(self, pid: int) -> None:
        """How this run ended is on the disk; a hostile job may have failed although it came to its end."""
        if pid in self._came_to_end:
            known = self._job(self._came_to_end[pid])
            known.exit_known |= known.retries < math.inf and not known.spoilt

    def harmed(self, job: str | None = None) -> None:
        """Something was done to a job (or to all) for which the system may take it for failed."""
        for known in [self._job(job)] if job is not None else self._jobs.values():
            known.harm += 1

    def spoilt(self, job: str) -> None:
        """A file that a run of the job can write holds nonsense: it counts as failed, even if it came to its end."""
        self.harmed(job)
        known = self._job(job)
        known.spoilt, known.exit_known = True, False

    def forgot(self, finished: Collection[str] = ()) -> None:
        """The machine has lost what was not on its disk, such as how runs ended, but for those jobs' of which it is."""
        self.harmed()
        for job, known in self._jobs.items():
            known.exit_known &= job in finished

    # What the store holds

    def stored(self, states: Mapping[str, str], keys: Mapping[str, str]) -> None:
        """The state of every job after a commit that was acknowledged, and the key that it was sent with."""
        owners: dict[str, str] = {}
        for job, key in keys.items():
            if key in owners:
                self._broken(f"submission {key} is stored as {owners[key]} and as {job}")
            owners[key] = job
            self._job(job, key)
        for job, known in self._jobs.items():
            if known.acknowledged and job not in states:
                self._broken(f"{job} was acknowledged and is not in the store")
        for job, final in self._final.items():
            if job in states and states[job] != final:
                self._broken(f"{job} had {final} and is {states[job]}")
            elif job not in states:
                self._broken(f"{job} had {final} and is not in the store")
        for job, state in states.items():
            if state in FINAL and job not in self._final:
                self._final[job] = state
                self._judge(job, state)
        self._stored = dict(states)

    def _judge(self, job: str, state: str) -> None:
        known = self._job(job)
        if state == "succeeded" and not known.ended_well:
            self._broken(f"{job} succeeded, but none of its runs came to its end")
        elif state == "failed" and known.harm <= known.retries < math.inf:
            self._broken(f"{job} failed after {known.harm} failures, of which it may have {known.retries}")
        elif state == "cancelled" and not known.cancel_sent:
            self._broken(f"{job} was cancelled, but not by its owner")

    def store_refused(self, reason: str) -> None:
        """The store says of itself that it is damaged, or has lost what it had acknowledged: no fault explains that."""
        self._broken(f"no controller can start: {reason}")

    # Who may give commands

    def newest_epoch(self, epoch: int) -> None:
        """The number of the last controller that has begun, as the store has it."""
        if epoch < self._newest_epoch:
            self._broken(f"epoch {self._newest_epoch} had begun, and the store knows of {epoch} only")
        self._newest_epoch = max(self._newest_epoch, epoch)

    def changed_by(self, epoch: int) -> None:
        """The decisions of a controller are being made durable."""
        if epoch < self._newest_epoch:
            self._broken(f"the controller of epoch {epoch} has written although epoch {self._newest_epoch} has begun")

    def greeted(self, epoch: int) -> None:
        """The agent has taken a controller for the one that gives commands."""
        if epoch < self._agent_epoch:
            self._broken(f"the agent has greeted epoch {epoch} after epoch {self._agent_epoch}")
        self._agent_epoch = max(self._agent_epoch, epoch)

    def obeyed(self, epoch: int, command: str) -> None:
        """The agent has done what a controller asked."""
        if epoch < self._agent_epoch:
            self._broken(f"the agent obeys epoch {epoch} ({command}) although it has greeted epoch {self._agent_epoch}")

    def agent_forgot(self) -> None:
        """The state of the agent was lost with the power, or moved away: it takes the next controller for its first."""
        self._agent_epoch = 0

    # The end

    def at_the_end(self, *, left: Sequence[str], seconds: float) -> None:
        """All faults are over since so many seconds; `left` names what is still there of what should be gone."""
        for key in self._sent:
            if key not in self._by_key:
                self._broken(f"submission {key} was never acknowledged, {seconds:.0f} s after the last fault")
        for job in self.open_jobs:
            self._broken(f"{job} is still {self._stored[job]} {seconds:.0f} s after the last fault")
        for run in self._running.values():
            self._broken(f"{run.job} still runs under lease {run.lease}")
        if left:
            kinds = Counter(left)
            self._broken(f"left in the end: {', '.join(f'{count} {what}' for what, count in kinds.items())}")

    def _job(self, job: str, key: str | None = None) -> _Job:
        known = self._jobs.get(job)
        if known is None:
            known = self._jobs[job] = _Job(key or "", self._sent.get(key or "", 0))
        elif key is not None and not known.key:
            known.key, known.retries = key, self._sent.get(key, 0)
        return known
