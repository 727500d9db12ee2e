"""From the description of a job to the program that a backend runs, and with a lease to the command that starts it."""

from __future__ import annotations

from fairway.engine.training.messages import Grant
from fairway.jobs.description import JobDescription
from fairway.live.backend.commands import JobProgram, StartRun
from fairway.live.backend.logs import LOG_BYTES


def program_of(spec: JobDescription, *, user: str | None = None, log_bytes: int = LOG_BYTES) -> JobProgram:
    """What a job runs, wherever it does, as which user, and how much is kept of what it prints."""
    return JobProgram(
        run=spec.run,
        setup=spec.setup,
        workdir=spec.working_directory,
        envs={**spec.envs, **_index_of(spec)},
        steps=spec.steps,
        checkpoint_directory=spec.checkpoint_directory,
        checkpoint_every_seconds=spec.checkpoint.interval,
        preemptible=spec.preemptible,
        checkpoint_seconds=spec.checkpoint.seconds,
        grace_seconds=spec.grace,
        user=user,
        log_bytes=log_bytes,
        requirements=None if spec.environment is None else spec.environment.uv,
        image=None if spec.environment is None else spec.environment.image,
        mounts=() if spec.environment is None else spec.environment.mounts,
        cpus=spec.resources.cpus,
        memory_bytes=spec.resources.memory,
    )


def _index_of(spec: JobDescription) -> dict[str, str]:
    """Which of its array a job is; a description of a whole array has no index yet."""
    if spec.array is None or spec.many:
        return {}
    return {"FAIRWAY_ARRAY_INDEX": str(next(iter(spec.array)))}


def start_of(
    spec: JobDescription,
    job: str,
    grant: Grant,
    *,
    attempt: int = 1,
    steps_per_second: float | None = None,
    user: str | None = None,
    log_bytes: int = LOG_BYTES,
) -> StartRun:
    """The command that starts a job of a grant; of two jobs that share, each gets its own.

    The end of the grant is on the clock of the machine, which is not the engine's. `steps_per_second` is the rate to
    emulate.
    """
    return StartRun(
        lease=grant.lease,
        job=job,
        program=program_of(spec, user=user, log_bytes=log_bytes),
        accelerator=grant.accelerator,
        workers=grant.workers,
        attempt=attempt,
        until=grant.until,
        steps_per_second=steps_per_second,
        share=grant.part,
    )
