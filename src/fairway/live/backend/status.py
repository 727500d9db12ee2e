"""How things stand at a backend: its accelerators, every run that it knows, and how runs ended.

This is what a controller that starts, or comes back, needs to take over.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from fairway.live.backend.accelerators import Accelerator
from fairway.live.backend.commands import GangPart


class RunState(StrEnum):
    """A run waits for its accelerators, starts, runs, ends, and has ended."""

    WAITING = "waiting"
    STARTING = "starting"
    RUNNING = "running"
    ENDING = "ending"
    ENDED = "ended"


class OutcomeKind(StrEnum):
    """The ways in which a run ends."""

    FINISHED = "finished"
    """The job is done."""
    STOPPED = "stopped"
    """It was asked to stop and did; the job can go on from its checkpoint."""
    FAILED = "failed"
    """It ended with an exit code other than 0, or by a signal."""
    FAILED_TO_START = "failed-to-start"
    """Its processes never ran."""
    LOST = "lost"
    """It was killed together with whatever could have told how it ended."""
    DECLINED = "declined"
    """It never began: no backend reports this, a controller concludes it from a refusal."""


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How a run ended.

    `code` is the exit code of the first rank that failed, negative for a signal, and `killed` whether SIGKILL was
    needed. `steps` and `checkpoint_step` are those of the whole gang. `started` and `ended` are times of the machine's
    clock: None if the processes never ran, and if there is no record of their end.
    """

    kind: OutcomeKind
    code: int | None = None
    reason: str = ""
    killed: bool = False
    steps: int | None = None
    checkpoint_step: int | None = None
    started: float | None = None
    ended: float | None = None


@dataclass(frozen=True, slots=True)
class RunStatus:
    """How one run stands; times are of the machine's clock. Steps and rates are of the whole gang, None until known.

    It has a `share` of each of its accelerators. What an agent says of a `part` of a gang is of that part alone.
    """

    lease: int
    job: str
    accelerator: str
    workers: tuple[int, ...]
    state: RunState
    attempt: int = 1
    preemptible: bool = True
    emulated: bool = False
    until: float | None = None
    expires: bool = False
    accepted: float = 0.0
    started: float | None = None
    outcome: RunOutcome | None = None
    steps: int | None = None
    steps_per_second: float | None = None
    checkpoint_step: int | None = None
    part: GangPart | None = None
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class MachineSize:
    """The CPUs and the memory that jobs have on a machine; `node` is its name where there are several."""

    cpus: float
    memory_bytes: int
    node: str | None = None


@dataclass(frozen=True, slots=True)
class BackendStatus:
    """All that a backend knows.

    `instance` names the process that answers: another one, after what runs the jobs was started again. `epoch` is that
    of the newest controller. `runs` are all that were not forgotten, `former` the jobs whose runs are forgotten but
    which are not retired, and `last_lease` the highest number of a lease that is remembered. `caveats` say, each in a
    sentence, what the machine does not offer of what jobs are kept apart and ended with. `machines` are those whose
    CPUs and memory are to be counted.
    """

    instance: str
    epoch: int
    accelerators: tuple[Accelerator, ...]
    runs: tuple[RunStatus, ...] = ()
    former: tuple[str, ...] = ()
    last_lease: int = 0
    draining: bool = False
    caveats: tuple[str, ...] = ()
    machines: tuple[MachineSize, ...] = ()
