"""Turns the jobs of a trace into submissions: what each job is, how fast it runs where, and how much of it there is.

A job of a named type runs at the rates that a throughput table has for it, and its work is counted in steps. A job of
which a trace only tells how long it ran makes one step per second on every accelerator type that it may use, so that
its work is its duration. A `Workload` says in a few words where the jobs come from; every process that needs them
builds them from it, one by one, since a generated stream may have no end.
"""

from __future__ import annotations

import difflib
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import cycle
from pathlib import Path

from fairway.cluster import Cluster
from fairway.errors import InputError
from fairway.jobs import Job
from fairway.profiles import ThroughputTable, catalog, read_table
from fairway.sim.submissions import Submission
from fairway.traces import UNSCALED, GeneratorOptions, Scaling, Trace, TraceJob, generate, read_trace

REFERENCE = "v100"
"""The accelerator type on which a trace counts durations, unless it says otherwise; the same as the generator's."""

Stamp = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Workload:
    """Where jobs come from, in a form that is small enough to be handed to another process.

    They are those of a trace file, under the load that `scaling` makes of it, or, without one, those of the generator.
    `profiles` is a file of rates, None the
    built-in catalog. The jobs are dealt in turn to the `teams`, if there are any.
    """

    trace: str | None = None
    format: str | None = None
    generator: GeneratorOptions | None = None
    profiles: str | None = None
    teams: tuple[str, ...] = ()
    scaling: Scaling = UNSCALED

    def __post_init__(self) -> None:
        if (self.trace is None) == (self.generator is None):
            raise InputError("workload: expected either a trace or a generator of jobs; give one of them")

    def table(self) -> ThroughputTable:
        """The rates."""
        return catalog.builtin() if self.profiles is None else _table(self.profiles, _stamp(self.profiles))

    def read_trace(self) -> Trace | None:
        """The trace, if the jobs come from one."""
        return None if self.trace is None else _trace(self.trace, self.format, _stamp(self.trace))

    def submissions(self, cluster: Cluster) -> Iterator[Submission]:
        """The jobs one by one, in order of arrival, with their rates on this cluster."""
        table, trace = self.table(), self.read_trace()
        if trace is not None:
            jobs: Iterable[TraceJob] = self.scaling.applied(trace).jobs
        else:
            assert self.generator is not None  # as __post_init__ saw
            jobs = generate(self.generator, table)
        if self.teams:
            jobs = (replace(job, entity=team) for job, team in zip(jobs, cycle(self.teams), strict=False))
        names = {"source": self.trace or "generated jobs", "profiles": self.profiles or "the built-in catalog"}
        return submissions_of(jobs, cluster, table, **names)


# A process often runs the same workload under one policy after another, and a pipe can be read only once.
@lru_cache(maxsize=1)
def _trace(path: str, format: str | None, _: Stamp) -> Trace:  # noqa: A002
    return read_trace(path, format)


@lru_cache(maxsize=1)
def _table(path: str, _: Stamp) -> ThroughputTable:
    return read_table(path)


def _stamp(path: str) -> Stamp:
    """What changes when a file does; a pipe is the same as long as it is there."""
    try:
        state = Path(path).stat()
    except (OSError, ValueError):  # will be told by whoever reads it
        return ()
    changing = (state.st_size, state.st_mtime_ns) if stat.S_ISREG(state.st_mode) else ()
    return (state.st_dev, state.st_ino, *changing)


def submissions_of(
    jobs: Iterable[TraceJob],
    cluster: Cluster,
    table: ThroughputTable,
    *,
    source: str,
    profiles: str | None = None,
    reference: str = REFERENCE,
) -> Iterator[Submission]:
    """Make a submission of each job; `source` and `profiles` are the names of the trace and of the table in errors.

    `reference` is the accelerator type that turns durations into steps where a job has a type but no steps. A job that
    can run nowhere in the cluster comes without any rate, and it is for the simulator to report it.
    """
    rates = _Rates(cluster, table, profiles or table.source, reference)
    for job in jobs:
        try:
            yield _typed(job, rates) if job.job_type is not None else _untyped(job, cluster)
        except InputError as error:
            raise InputError(f"{source}: job '{job.id}': {error}") from None


@dataclass(frozen=True, slots=True)
class _Gang:
    """The rates of one job type and gang size on the types of the cluster, and on the reference if that is known."""

    throughputs: dict[str, float]
    spread_throughputs: dict[str, float] | None
    reference: float | None


class _Rates:
    """Looks up rates, each of them once."""

    def __init__(self, cluster: Cluster, table: ThroughputTable, name: str, reference: str) -> None:
        self.cluster = cluster
        self.table = table
        self.reference = reference
        self.name = name
        self._gangs: dict[tuple[str, int], _Gang] = {}

    def gang(self, job_type: str, scale_factor: int) -> _Gang:
        found = self._gangs.get((job_type, scale_factor))
        if found is None:
            found = self._gangs[job_type, scale_factor] = self._look_up(job_type, scale_factor)
        return found

    def _look_up(self, job_type: str, scale_factor: int) -> _Gang:
        self._check_types()
        self._check_profile(job_type, scale_factor)
        rates = self.table.rates(job_type, scale_factor)
        spread = self.table.rates(job_type, scale_factor, spread=True)
        types = [name for name in self.cluster.types if name in rates]
        return _Gang(
            {name: rates[name] for name in types},
            {name: spread[name] for name in types} if spread != rates else None,
            rates.get(self.reference) or None,
        )

    def _check_types(self) -> None:
        known = {name.lower(): name for name in self.table.accelerators}
        for name, count in self.cluster.workers.items():
            if count and name not in known.values():
                close = difflib.get_close_matches(name.lower(), known, n=1)
                hint = f" (did you mean '{known[close[0]]}'?)" if close else ""
                raise InputError(
                    f"needs a profile, but {self.name} knows no accelerator type '{name}', which the cluster has"
                    f"{hint}; known: {', '.join(known.values())}; take it out of the cluster, or use profiles with it"
                )

    def _check_profile(self, job_type: str, scale_factor: int) -> None:
        if job_type not in self.table.job_types:
            nearest = difflib.get_close_matches(job_type, self.table.job_types, n=1, cutoff=0.0)[0]
            problem = f"no profile of job type '{job_type}' in {self.name}; the nearest is '{nearest}'"
        elif scale_factor not in self.table.scale_factors(job_type):
            known = ", ".join(map(str, self.table.scale_factors(job_type)))
            problem = f"no profile of '{job_type}' at scale factor {scale_factor} in {self.name}; known: {known}"
        else:
            return
        raise InputError(f"{problem}; correct the trace, or use profiles that have it")


def _typed(job: TraceJob, rates: _Rates) -> Submission:
    assert job.job_type is not None
    gang = rates.gang(job.job_type, job.scale_factor)
    throughputs, spread = gang.throughputs, gang.spread_throughputs
    if job.accelerators is not None:
        throughputs = _only(throughputs, job.accelerators)
        spread = _only(spread, job.accelerators) if spread is not None else None
    steps, duration = job.total_steps, job.duration_seconds
    if steps is None and duration is None:
        raise InputError("neither steps nor a duration given, so how long it is is not known; add one of them")
    if steps is None:
        assert duration is not None
        if gang.reference is None:
            raise InputError(
                f"a duration of {duration} s given without steps, but '{job.job_type}' (scale factor "
                f"{job.scale_factor}) has no rate on '{rates.reference}' in {rates.name} to count them by; "
                "add the steps to the trace, or that rate to the profiles"
            )
        steps = duration * gang.reference
    elif duration is None and gang.reference is not None:
        duration = steps / gang.reference
    return _submission(job, rates.cluster, throughputs, spread, steps, duration)


def _untyped(job: TraceJob, cluster: Cluster) -> Submission:
    if job.duration_seconds is None:
        raise InputError("neither a job type nor a duration given, so how long it is is not known; add one")
    throughputs = dict.fromkeys(cluster.types, 1.0)
    if job.accelerators is not None:
        throughputs = _only(throughputs, job.accelerators)
    return _submission(job, cluster, throughputs, None, job.duration_seconds, job.duration_seconds)


def _submission(
    job: TraceJob,
    cluster: Cluster,
    throughputs: dict[str, float],
    spread: dict[str, float] | None,
    steps: float,
    duration: float | None,
) -> Submission:
    workers = job.scale_factor
    if not _runs_somewhere(cluster, workers, throughputs, spread):
        throughputs, spread = {}, None
    return Submission(
        arrival=job.arrival,
        job=Job(
            id=job.id,
            throughputs=throughputs,
            scale_factor=workers,
            weight=job.weight,
            steps_left=steps,
            entity=job.entity,
            spread_throughputs=spread,
            job_type=job.job_type,
            part=job.gpu_fraction,
        ),
        deadline=job.arrival + job.slo * duration if job.slo is not None and duration is not None else None,
    )


def _runs_somewhere(
    cluster: Cluster, workers: int, throughputs: dict[str, float], spread: dict[str, float] | None
) -> bool:
    for name, rate in throughputs.items():
        if workers <= cluster.workers[name]:
            on_one_node = spread is None or cluster.consolidates(name, workers)
            if (rate if on_one_node else spread[name]) > 0:  # type: ignore[index]
                return True
    return False


def _only(rates: dict[str, float], accelerators: tuple[str, ...]) -> dict[str, float]:
    return {name: rate for name, rate in rates.items() if name in accelerators}
