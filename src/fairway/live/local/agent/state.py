"""What an agent must not forget when it is killed: the runs it has accepted, and the leases that are over.

One small file, replaced as a whole. It says what was wanted; what became of it is in the directories of the runs. That
it outlives the agent needs no wait for the disk. When the machine stops, all runs stop with it, and the controller asks
for what is missing; so a copy that is synced every now and then is enough, for the case that the file itself was torn.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fairway.errors import InputError
from fairway.live.backend.commands import GangPart
from fairway.live.backend.status import OutcomeKind, RunOutcome, RunState
from fairway.live.durable_file import read_json, write_json
from fairway.live.untrusted_file import UntrustedFileError, read_regular
from fairway.wall_clock import MachineClock

_LOG = logging.getLogger(__name__)

_VERSION = 1
_MOST_BYTES = 64 * 2**20
_ROUNDING = 1e-6
"""Parts add up to a whole accelerator but for so much."""

_SAVE_SECONDS = 1.0
"""How long what is not urgent waits, so that much is written down at once."""


@dataclass(slots=True)
class RunRecord:
    """A job under a lease, as the agent remembers it; see `RunStatus` for what the fields mean."""

    lease: int
    job: str
    accelerator: str
    workers: list[int]
    directory: str
    state: RunState
    attempt: int = 1
    preemptible: bool = True
    emulated: bool = False
    until: float | None = None
    expires: bool = False
    accepted: float = 0.0
    started: float | None = None
    outcome: RunOutcome | None = None
    part: GangPart | None = None
    share: float = 1.0

    @classmethod
    def of(cls, content: dict[str, Any]) -> RunRecord:
        """From the object that was written to a file."""
        outcome = content.pop("outcome")
        if outcome is not None:
            outcome = RunOutcome(**{**outcome, "kind": OutcomeKind(outcome["kind"])})
        part = content.pop("part", None)
        if part is not None:
            part = GangPart(**{**part, "ranks": tuple(part["ranks"]), "nodes": tuple(part["nodes"])})
        return cls(**{**content, "state": RunState(content["state"])}, outcome=outcome, part=part)

    @property
    def ranks(self) -> tuple[int, ...]:
        """The numbers of its ranks in the whole gang."""
        return tuple(range(len(self.workers))) if self.part is None else self.part.ranks

    def fields(self) -> dict[str, Any]:
        """Its fields by their names; not as `asdict`, which copies every value, and is asked for with every command."""
        return {name: getattr(self, name) for name in self.__slots__}

    @property
    def active(self) -> bool:
        """Whether it holds its workers, or will."""
        return self.state is not RunState.ENDED


@dataclass(slots=True)
class AgentState:
    """Everything that has to outlive the agent.

    `floors` has the last lease of each job whose runs are forgotten, `boot` names the boot that wrote it.
    """

    epoch: int = 0
    draining: bool = False
    floors: dict[str, int] = field(default_factory=dict)
    runs: list[RunRecord] = field(default_factory=list)
    boot: str = ""

    @classmethod
    def load(cls, path: Path) -> AgentState:
        """From its file, or from the synced copy if that was torn; nothing has happened where there is none."""
        if _is_torn(path) and _synced(path).exists():
            path = _synced(path)
        if not path.exists():
            return cls()
        content = read_json(path)
        if content is None or content.pop("version", None) != _VERSION:
            raise InputError(f"{path}: not the state of an agent of this version; move it away to begin anew")
        runs = [RunRecord.of(run) for run in content.pop("runs")]
        return cls(**content, runs=runs)

    def save(self, path: Path) -> None:
        """To its file, for other processes."""
        write_json(path, self._document(), durable=False)

    def save_synced(self, path: Path) -> None:
        """To its file and to the copy, which is on disk when this returns."""
        write_json(_synced(path), self._document())
        self.save(path)

    def _document(self) -> dict[str, Any]:
        runs = [
            {
                **run.fields(),
                "outcome": None if run.outcome is None else asdict(run.outcome),
                "part": None if run.part is None else asdict(run.part),
            }
            for run in self.runs
        ]
        return {
            "version": _VERSION, "epoch": self.epoch, "draining": self.draining, "floors": self.floors, "runs": runs,
            "boot": self.boot,
        }  # fmt: skip

    def find(self, lease: int, job: str) -> RunRecord | None:
        """The run of a job under a lease."""
        return next((run for run in self.runs if run.lease == lease and run.job == job), None)

    def newest_lease(self, job: str) -> int:
        """The last lease under which the job was ever accepted here; 0 for none."""
        return max([self.floors.get(job, 0), *(run.lease for run in self.runs if run.job == job)])

    def has_finished(self, job: str) -> bool:
        """Whether a run of the job has come to its end, and the controller has not said yet that it knows."""
        return any(
            run.job == job and run.outcome is not None and run.outcome.kind is OutcomeKind.FINISHED for run in self.runs
        )

    def last_lease(self) -> int:
        """The highest number of a lease that was ever accepted here, as far as it is remembered; 0 for none."""
        return max([0, *self.floors.values(), *(run.lease for run in self.runs)])

    def holders(
        self, lease: int, job: str, accelerator: str, workers: Sequence[int], share: float = 1.0
    ) -> list[RunRecord]:
        """The runs whose end a lease has to wait for: those of its job under older leases, and those on its workers.

        Where it asks for a share of each worker, and what other leases have of one leaves room for it, it need not wait
        for those there; where only those that end already leave too little room, it waits for these.
        """
        others = [run for run in self.runs if run.active and run.lease != lease]
        found = {id(run): run for run in others if run.job == job}
        for worker in workers:
            here = [run for run in others if run.accelerator == accelerator and worker in run.workers]
            staying = [run for run in here if run.state is not RunState.ENDING]
            if _held(here) + share <= 1 + _ROUNDING:
                continue
            fits = _held(staying) + share <= 1 + _ROUNDING
            waits_for = [run for run in here if run.state is RunState.ENDING] if fits else here
            found.update((id(run), run) for run in waits_for)
        return [run for run in others if id(run) in found]

    def startable(self) -> list[RunRecord]:
        """The runs that wait, and whose workers are free, those with the oldest leases first."""
        waiting = sorted((run for run in self.runs if run.state is RunState.WAITING), key=lambda run: run.lease)
        return [
            run
            for run in waiting
            if not any(
                holder.state is not RunState.WAITING or holder.lease < run.lease
                for holder in self.holders(run.lease, run.job, run.accelerator, run.workers, run.share)
            )
        ]


class StateFile:
    """Writes a state down: at once where another agent must know it, and on the disk before long."""

    def __init__(self, path: Path, state: AgentState, clock: MachineClock) -> None:
        self._path, self._state, self._clock = path, state, clock
        self._unsaved_since: float | None = None

    def save(self) -> None:
        """Have what was changed outlive this agent."""
        self._state.save(self._path)
        self.save_soon()

    def save_soon(self) -> None:
        """Have the disk written, or what an agent that is killed before that would find out again.

        How a run ended is in its own files; that it was forgotten, the controller asks again.
        """
        if self._unsaved_since is None:
            self._unsaved_since = self._clock.monotonic()

    def time_passed(self) -> None:
        """Write the disk if that has waited for long enough."""
        if self._unsaved_since is not None and self._clock.monotonic() - self._unsaved_since >= _SAVE_SECONDS:
            self._save_synced()

    def close(self) -> None:
        """Leave nothing unwritten."""
        if self._unsaved_since is not None:
            self._save_synced()

    def _save_synced(self) -> None:
        try:
            self._state.save_synced(self._path)
        except OSError as error:  # a full disk must not keep runs from their end
            _LOG.error("the state of the agent cannot be written: %s", error)
            self._unsaved_since = self._clock.monotonic()
        else:
            self._unsaved_since = None


def _held(runs: Sequence[RunRecord]) -> float:
    """How much of a worker some runs have: those under one lease have it together."""
    return sum({run.lease: run.share for run in runs}.values())


def _synced(path: Path) -> Path:
    return path.with_suffix(f".synced{path.suffix}")


def _is_torn(path: Path) -> bool:
    """Whether the machine stopped before the content of the file was on disk: it has none, or zeros only."""
    try:
        return path.exists() and not (read_regular(path, _MOST_BYTES) or b"").strip(b"\0")
    except UntrustedFileError:
        return False
