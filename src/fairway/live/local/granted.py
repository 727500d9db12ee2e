"""From what the engine grants to what an agent is asked: the description of a job and its lease, as one command."""

from __future__ import annotations

from fairway.engine.training_messages import Grant
from fairway.live.job_spec import JobSpec
from fairway.live.local.agent_messages import Start


def start_of(
    spec: JobSpec,
    job: str,
    grant: Grant,
    *,
    lease: int | None = None,
    attempt: int = 1,
    until: float | None = None,
    steps_per_second: float | None = None,
) -> Start:
    """The command that starts a job of a grant; of two jobs that share, each gets its own.

    `lease` is the number under which the agent is to know the lease, where it is not the engine's own; `until` its end
    on the clock of the machine, which is not the engine's. `steps_per_second` is the rate to emulate.
    """
    return Start(
        lease=grant.lease if lease is None else lease,
        job=job,
        run=spec.run if isinstance(spec.run, str) else list(spec.run),
        accelerator=grant.accelerator,
        workers=list(grant.workers),
        attempt=attempt,
        setup=spec.setup,
        workdir=spec.workdir,
        envs=dict(spec.envs),
        steps=spec.steps,
        steps_per_second=steps_per_second,
        checkpoint_directory=spec.checkpoint_directory,
        checkpoint_every_seconds=spec.checkpoint_every_seconds,
        until=until,
        preemptible=spec.preemptible,
        checkpoint_seconds=spec.checkpoint_seconds,
        grace_seconds=spec.grace_seconds,
    )
