"""What a controller asks of a backend: to start, end, prolong and forget the runs of jobs.

A run is one attempt of one job under one lease. Every command can be given twice without harm, and one about an older
lease than the job holds changes nothing. A program says what to run and is the same for every attempt; the command that
starts it adds the lease and the accelerators.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, TypeAlias

from pydantic import ConfigDict, Field

from fairway.jobs.values import is_url
from fairway.live.backend.logs import LEAST_LOG_BYTES, LOG_BYTES

CLOSED = ConfigDict(extra="forbid", allow_inf_nan=False)
"""For reading a command: a field that is not known is a mistake, which must not be passed over."""

JobName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]
"""A job's id, which may also be the name of a file."""

LeaseNumber = Annotated[int, Field(ge=1)]
WorkerNumber = Annotated[int, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]


@dataclass(frozen=True, slots=True)
class JobProgram:
    """What a job runs, and how it is to be stopped.

    `run` is text for a shell, or a command and its arguments; `setup` runs before it. `steps` are those of the whole
    gang. Asked to stop, a cooperative job has `checkpoint_seconds` to save, and any job `grace_seconds` after SIGTERM.
    It has a virtual environment with the packages of the file of `requirements`, if there is one, or runs in containers
    of the `image`, where it sees its own directories and the `mounts`.
    One that is not preemptible is not stopped for the sake of others. It runs as the `user` of that name, or as that
    of the backend. Of what each of its processes prints, the last `log_bytes` are kept, give or take a quarter. All of
    its processes together may use so many `cpus` and `memory_bytes` of their machine, where the backend can see to it.
    """

    __pydantic_config__: ClassVar[ConfigDict] = CLOSED

    run: Annotated[str, Field(min_length=1)] | Annotated[tuple[str, ...], Field(min_length=1)]
    setup: str | None = None
    workdir: str | None = None
    envs: Mapping[str, str] = field(default_factory=dict)
    steps: Annotated[int, Field(ge=1)] | None = None
    checkpoint_directory: str | None = None
    checkpoint_every_seconds: Positive | None = None
    preemptible: bool = True
    checkpoint_seconds: NotNegative = 60.0
    grace_seconds: NotNegative = 10.0
    user: Annotated[str, Field(min_length=1)] | None = None
    log_bytes: Annotated[int, Field(ge=LEAST_LOG_BYTES)] = LOG_BYTES
    requirements: Annotated[str, Field(min_length=1)] | None = None
    image: Annotated[str, Field(min_length=1)] | None = None
    mounts: tuple[str, ...] = ()
    cpus: Positive | None = None
    memory_bytes: Annotated[int, Field(ge=1)] | None = None

    @property
    def checkpoints_at(self) -> str | None:
        """The URL where its checkpoints are kept, if the directory for them is one."""
        named = self.checkpoint_directory
        return named if named is not None and is_url(named) else None

    @property
    def names_files(self) -> bool:
        """Whether it names files, directories or an image, so that checking it has to look at a disk."""
        path = self.envs.get("PATH")
        named = self.workdir, self.checkpoint_directory, self.setup, path, self.requirements, self.image
        command = self.run if isinstance(self.run, str) else self.run[0]
        return named != (None,) * len(named) or "/" in command


@dataclass(frozen=True, slots=True)
class GangPart:
    """The part of a gang that one of several nodes runs: some of its ranks, on the `node_rank`-th of these nodes."""

    __pydantic_config__: ClassVar[ConfigDict] = CLOSED

    ranks: Annotated[tuple[WorkerNumber, ...], Field(min_length=1)]
    world_size: Annotated[int, Field(ge=2)]
    node_rank: WorkerNumber
    nodes: Annotated[tuple[str, ...], Field(min_length=2)]


@dataclass(frozen=True, slots=True)
class MeetingPoint:
    """Where the ranks of a gang on several nodes meet: the address of its first node, and two free ports there.

    `port` is for the job itself. At the `agreement_port` the first node brings the ranks to agree after which step they
    save or stop; a rank shows there that it knows the `secret`.
    """

    __pydantic_config__: ClassVar[ConfigDict] = CLOSED

    address: Annotated[str, Field(min_length=1)]
    port: Annotated[int, Field(ge=1, le=65535)]
    agreement_port: Annotated[int, Field(ge=1, le=65535)]
    secret: Annotated[str, Field(min_length=16)]


@dataclass(frozen=True, slots=True)
class StartRun:
    """Run a job on these accelerators under this lease; the second of two jobs that share has the same lease.

    `workers` are numbers of accelerators of the type as the backend counts them, one for each rank. Asked again for the
    same lease, the backend answers how the run stands. While former holders of the accelerators are ending, the run
    waits for them. `until` is when the lease would end on the clock of the machine; a lease that `expires` ends then by
    itself. `steps_per_second` is the rate of the whole gang, to which an emulated accelerator slows the job down.
    A backend of many machines gives each agent its `part` of a gang on several nodes, with where its ranks `meet`; the
    `workers` are then those of the part. The job has a `share` of each accelerator, of which others may have the rest
    at the same time.
    """

    __pydantic_config__: ClassVar[ConfigDict] = CLOSED

    lease: LeaseNumber
    job: JobName
    program: JobProgram
    accelerator: Annotated[str, Field(min_length=1)]
    workers: Annotated[tuple[WorkerNumber, ...], Field(min_length=1)]
    attempt: Annotated[int, Field(ge=1)] = 1
    until: float | None = None
    expires: bool = False
    steps_per_second: Positive | None = None
    share: Annotated[float, Field(gt=0, le=1)] = 1.0
    part: GangPart | None = None
    meet: MeetingPoint | None = None

    @property
    def ranks(self) -> tuple[int, ...]:
        """The numbers of the ranks, in the order of the workers."""
        return tuple(range(len(self.workers))) if self.part is None else self.part.ranks

    @property
    def world_size(self) -> int:
        """How many ranks the whole gang has."""
        return len(self.workers) if self.part is None else self.part.world_size


@dataclass(frozen=True, slots=True)
class EndRun:
    """End a run: with `save` after a checkpoint (a preemption), without at once (the job is not wanted any more).

    A job that is not preemptible is not preempted.
    """

    __pydantic_config__: ClassVar[ConfigDict] = CLOSED

    lease: LeaseNumber
    job: JobName
    save: bool = True


@dataclass(frozen=True, slots=True)
class ExtendLeases:
    """These leases, or all that are held, run on until then, without a stop."""

    __pydantic_config__: ClassVar[ConfigDict] = CLOSED

    until: float
    leases: tuple[LeaseNumber, ...] | None = None


@dataclass(frozen=True, slots=True)
class HandOverRun:
    """A job goes on under a new lease on the same accelerators, without a stop: the job it shared with has left."""

    __pydantic_config__: ClassVar[ConfigDict] = CLOSED

    job: JobName
    old: LeaseNumber
    lease: LeaseNumber
    until: float | None = None
    steps_per_second: Positive | None = None


@dataclass(frozen=True, slots=True)
class ForgetRun:
    """The controller has written down how a run ended; the backend need only remember not to run it again."""

    __pydantic_config__: ClassVar[ConfigDict] = CLOSED

    lease: LeaseNumber
    job: JobName


@dataclass(frozen=True, slots=True)
class RetireJob:
    """The job will never come back under any lease."""

    __pydantic_config__: ClassVar[ConfigDict] = CLOSED

    job: JobName


RunCommand: TypeAlias = StartRun | EndRun | ExtendLeases | HandOverRun | ForgetRun | RetireJob
