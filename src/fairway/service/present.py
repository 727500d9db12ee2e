"""The present state of the cluster, for plans: the engine as it stands, and how fast jobs run on types it lacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from fairway.cluster import Cluster
from fairway.engine.training.what_if import snapshot
from fairway.errors import InputError
from fairway.experiments.planning.present import Present
from fairway.live.training.engine_job import described_rates
from fairway.magnitudes import MOST_WORKERS
from fairway.service.prediction import stored_spec
from fairway.service.scheduler_view import SchedulerView
from fairway.store.queries import snapshot as stored


def present_of(scheduler: SchedulerView, types: Sequence[str] = ()) -> Present:
    """The state at this moment; `types` are accelerator types that may be added and are not in the cluster."""
    now = scheduler.now()
    engine = scheduler.look(lambda engine: snapshot(engine, now=max(now, engine.now)))
    jobs = scheduler.store.read(stored).jobs
    new = [name for name in types if name not in engine.types]
    elsewhere: dict[str, Mapping[str, float]] = {}
    if new:
        imagined = Cluster(dict.fromkeys(new, MOST_WORKERS))
        for job in jobs:
            spec = stored_spec(job)
            if job.id in engine.jobs and spec is not None:
                with suppress(InputError):  # it would not run on any of them
                    elsewhere[job.id] = described_rates(spec, imagined, scheduler.table)
    return Present.of(
        engine,
        scheduler.settings.policy,
        None if scheduler.table is None else scheduler.table.source,
        time_scale=scheduler.settings.time_scale,
        elsewhere=elsewhere,
        outside=sum(job.id not in engine.jobs for job in jobs),
    )
