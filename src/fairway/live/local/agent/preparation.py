"""Makes a run out of the command to start it: its directory, its order for the keeper, and its first lease.

Nothing is started here, and nothing remembered: a directory of a run that was not accepted is cleared away later.
"""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fairway.live.backend.accelerators import Accelerator
from fairway.live.backend.answers import Refusal, RefusedError
from fairway.live.backend.channel import LeaseState
from fairway.live.backend.commands import StartRun
from fairway.live.backend.environment import common_environment, rank_environments
from fairway.live.backend.status import RunState
from fairway.live.local.agent.state import RunRecord
from fairway.live.local.container import Container, devices_of
from fairway.live.local.gpu_parts import GpuParts
from fairway.live.local.job_user import JobUser
from fairway.live.local.log_files import log_path
from fairway.live.local.run_files import RunFiles, RunOrder
from fairway.live.machine.containment import Containment

_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class RunPreparation:
    """Where and in what surroundings runs are made. Time runs `time_scale` times as fast on emulated accelerators.

    Each of them stands for so many of the machine's CPUs, of which a run with a part of one gets that part.
    """

    directory: Path
    outside: Mapping[str, str]
    time_scale: float = 1.0
    containment: Containment = field(default_factory=Containment)
    emulated_cpus: float | None = None
    gpu_parts: GpuParts = field(default_factory=GpuParts)

    def make_directories(self) -> None:
        """Have room for runs, their channels, logs and checkpoints, for the owner only."""
        for part in ("runs", "channels", "logs", "checkpoints"):
            (self.directory / part).mkdir(mode=0o700, parents=True, exist_ok=True)

    def files_of(self, run: RunRecord) -> RunFiles:
        """The directory of a run."""
        return RunFiles(self.directory / "runs" / run.directory)

    def prepared(self, command: StartRun, accelerators: Sequence[Accelerator], *, now: float) -> RunRecord:
        """Make a run that waits for its accelerators; refuses directories that cannot be written."""
        job, program = command.job, command.program
        cpus = self._cpus_of(command, accelerators)
        user = None if program.user is None else _user_named(program.user)
        named = None if program.checkpoints_at else program.checkpoint_directory
        checkpoints = Path(named or self.directory / "checkpoints" / job).absolute()
        logs = [log_path(self.directory, job, rank) for rank in command.ranks]
        needed = {"log directory": logs[0].parent}
        if user is None or named is None:  # what a user names, only that user makes
            needed["checkpoint directory"] = checkpoints
        for what, directory in needed.items():
            if problem := _cannot_write(directory):
                raise RefusedError(Refusal.CANNOT_START, f"{what} {problem}")
        if user is not None and named is None:
            self._give(checkpoints, user)
        run = RunRecord(
            lease=command.lease,
            job=job,
            accelerator=command.accelerator,
            workers=list(command.workers),
            directory=f"{command.lease}-{job}",
            state=RunState.WAITING,
            attempt=command.attempt,
            preemptible=program.preemptible,
            emulated=accelerators[0].emulated,
            until=command.until,
            expires=command.expires,
            accepted=now,
            part=command.part,
            share=command.share,
        )
        files = self.files_of(run)
        surroundings = self.outside if user is None else user.environment(self.outside)
        order = RunOrder(
            job=job,
            lease=command.lease,
            title=f"fairway: attempt {command.attempt} of {job}, lease {command.lease}, "
            f"{', '.join(one.description for one in accelerators)}, {datetime.now(UTC).isoformat(timespec='seconds')}",
            run=program.run if isinstance(program.run, str) else list(program.run),
            setup=program.setup,
            workdir=program.workdir,
            environment=common_environment(
                command,
                surroundings if program.image is None else {},
                master=_master_of(command),
                run_directory=files.channel.directory,
                checkpoint_directory=checkpoints,
                emulated=run.emulated,
            ),
            ranks=[
                {**environment, **held}
                for environment, held in zip(
                    rank_environments(accelerators, command.ranks, command.share),
                    self.gpu_parts.environments(accelerators, command.share),
                    strict=True,
                )
            ],
            logs=[str(log) for log in logs],
            checkpoint_seconds=program.checkpoint_seconds,
            grace_seconds=program.grace_seconds,
            user=None if user is None else asdict(user),
            log_bytes=program.log_bytes,
            groups=[
                str(path)
                for path in self.containment.group_of(
                    run.directory, limited=cpus is not None or program.memory_bytes is not None
                ).paths
            ],
            requirements=program.requirements,
            environments=None if program.requirements is None else str(self._environments(user)),
            cpus=cpus,
            memory_bytes=program.memory_bytes,
            agreement=_agreement_of(command),
            checkpoints_at=program.checkpoints_at,
            container=None
            if program.image is None
            else asdict(_container_of(command, accelerators, [checkpoints, files.channel.directory], surroundings)),
        )
        files.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        files.channel.directory.mkdir(mode=0o700, exist_ok=True)
        if user is not None:
            self._give(files.channel.directory, user)
        if files.order() is None:  # what is there already stays
            files.write_order(order)
        pace = self.pace(run, command.steps_per_second)
        files.write_lease(LeaseState(command.lease, command.until, command.expires, pace=pace))
        return run

    def _cpus_of(self, command: StartRun, accelerators: Sequence[Accelerator]) -> float | None:
        """The CPUs that a run may use, all of its processes together; None for as many as there are."""
        if command.program.cpus is None and command.share < 1 and accelerators[0].emulated and self.emulated_cpus:
            return command.share * self.emulated_cpus * len(accelerators)
        return command.program.cpus

    def _environments(self, user: JobUser | None) -> Path:
        """Where the virtual environments of a user's jobs are."""
        directory = self.directory / "environments" / ("own" if user is None else f"user-{user.uid}")
        if problem := _cannot_write(directory):
            raise RefusedError(Refusal.CANNOT_START, f"directory of environments {problem}")
        if user is not None:
            self._give(directory, user)
        return directory

    def _give(self, directory: Path, user: JobUser) -> None:
        """Let a directory belong to a user, who may pass through those above it."""
        os.chown(directory, user.uid, user.gid, follow_symlinks=False)
        directory.chmod(0o700)
        for above in (self.directory, directory.parent):
            above.chmod(0o711)

    def pace(self, run: RunRecord, steps_per_second: float | None) -> float | None:
        """How fast each rank of an emulated run may go, on the wall clock."""
        if not run.emulated or steps_per_second is None:
            return None
        return steps_per_second * self.time_scale / (len(run.workers) if run.part is None else run.part.world_size)


def _user_named(name: str) -> JobUser:
    try:
        return JobUser.named(name)
    except (KeyError, PermissionError) as error:
        raise RefusedError(Refusal.CANNOT_START, f"user '{name}': {error.args[-1]}") from None


def _cannot_write(path: Path) -> str | None:
    """Make a directory; what is wrong with it, if it cannot be written."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return f"{path}: {error.strerror or error}"
    return None if os.access(path, os.W_OK | os.X_OK) else f"{path}: no permission to write"


def _container_of(
    command: StartRun, accelerators: Sequence[Accelerator], directories: Sequence[Path], surroundings: Mapping[str, str]
) -> Container:
    """What the ranks of a job are put into; its name is of this run and of no other on the machine."""
    program = command.program
    assert program.image is not None
    seen = [*([] if program.workdir is None else [program.workdir]), *program.mounts, *map(str, directories)]
    return Container(
        image=program.image,
        name=f"fairway-{command.job}-{hashlib.sha256(str(directories[-1]).encode()).hexdigest()[:12]}",
        mounts=tuple(dict.fromkeys(seen)),
        devices=tuple(tuple(devices_of(one.device)) for one in accelerators),
        surroundings=dict(surroundings),
    )


def _master_of(command: StartRun) -> tuple[str, int]:
    """Where the ranks of a gang meet."""
    meet = command.meet
    return (_LOOPBACK, _free_port()) if meet is None else (meet.address, meet.port)


def _agreement_of(command: StartRun) -> dict[str, Any] | None:
    """Of a gang on several nodes, the keeper of the first part brings the ranks to agree."""
    part, meet = command.part, command.meet
    if part is None or meet is None or part.node_rank:
        return None
    return {"address": meet.address, "port": meet.agreement_port, "secret": meet.secret, "ranks": part.world_size}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port
