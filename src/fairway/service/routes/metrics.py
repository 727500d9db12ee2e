"""Metrics in Prometheus form. Whoever knows Kueue's finds the same here, by the names of this field:

    kueue_pending_workloads                  fairway_jobs{state="queued"}
    kueue_admission_wait_time_seconds        fairway_queue_wait_seconds
    kueue_admission_attempt_duration_seconds fairway_decision_seconds
    kueue_preempted_workloads_total          fairway_preemptions_total
    kueue_cluster_queue_weighted_share       fairway_team_share

What the store knows is asked for when metrics are read, and therefore survives restarts; the rest counts from the start
of the controller. Sums over all jobs are kept for a few seconds, since they take longer with every job that ever was.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from threading import Lock

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector
from sqlalchemy import Connection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairway.service.routes.gpu_metrics import gpu_metrics
from fairway.service.scheduler_view import SchedulerView
from fairway.service.worker_state import state_of
from fairway.store import counters
from fairway.store.changes import jobs_named
from fairway.store.leases import open_leases
from fairway.store.queries import count_jobs
from fairway.store.records import LeaseRecord, Worker
from fairway.store.states import JobState
from fairway.store.summary import Spread, durations, failure_count, waits
from fairway.store.workers import all_workers

_SECONDS = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 4 * 3600.0, 12 * 3600.0, 86400.0, 7 * 86400.0)
_DECISION_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_REQUEST_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_KEPT_SECONDS = 5.0


class Metrics:
    """All metrics of one service."""

    def __init__(self, scheduler: SchedulerView) -> None:
        self._scheduler = scheduler
        self._registry = CollectorRegistry()
        self.requests = Histogram(
            "fairway_http_request_seconds",
            "Time until the answer to a request began, by route.",
            ("method", "route", "status"),
            buckets=_REQUEST_SECONDS,
            registry=self._registry,
        )
        self._decisions = Counter("fairway_decisions", "Decisions of the policy.", registry=self._registry)
        self._decision_seconds = Histogram(
            "fairway_decision_seconds",
            "How long a decision of the policy took.",
            buckets=_DECISION_SECONDS,
            registry=self._registry,
        )
        self._counted = 0
        self._lock = Lock()
        self._registry.register(_StoreCollector(scheduler))
        self._registry.register(_SchedulerCollector(scheduler))

    def text(self) -> bytes:
        """All of them, as Prometheus reads them."""
        with self._lock:
            self._count_decisions()
        return generate_latest(self._registry)

    def _count_decisions(self) -> None:
        """Add the decisions since the last time; their number begins again when the controller recovers."""
        statistics = self._scheduler.statistics()
        solves, seconds = statistics.solves, list(statistics.decision_seconds)
        new = solves - self._counted if solves >= self._counted else solves
        self._counted = solves
        self._decisions.inc(new)
        for duration in seconds[len(seconds) - min(new, len(seconds)) :]:
            self._decision_seconds.observe(duration)


class Timed:
    """Measures how long requests take until their answer begins; an ASGI middleware."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        began = time.perf_counter()

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = getattr(scope.get("route"), "path", "none")
                labels = self._metrics.requests.labels(_method(scope), route, message["status"])
                labels.observe(time.perf_counter() - began)
            await send(message)

        return await self._app(scope, receive, answer)


def _method(scope: Scope) -> str:
    """The method; unknown ones would make a series each."""
    method: str = scope["method"]
    return method if method in {"GET", "POST", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS"} else "other"


@dataclass(frozen=True, slots=True)
class _Sums:
    failures: int
    waits: Spread
    durations: dict[JobState, Spread]


class _StoreCollector(Collector):
    """What the store knows."""

    def __init__(self, scheduler: SchedulerView) -> None:
        self._scheduler = scheduler
        self._sums: tuple[float, _Sums] | None = None

    def describe(self) -> Iterable[Metric]:
        """Nothing, so that nothing is asked of the store when this is registered."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Ask the store."""
        store = self._scheduler.store
        counts, submitted = store.read(lambda connection: (count_jobs(connection), counters.last(connection, "jobs")))
        jobs = GaugeMetricFamily("fairway_jobs", "Jobs by state and team.", labels=("state", "team"))
        for (team, state), count in counts.items():
            jobs.add_metric((state.value, team or ""), count)
        yield jobs
        yield CounterMetricFamily("fairway_submissions", "Jobs that were ever submitted.", value=submitted)
        workers, leases, teams = store.read(_holdings)
        yield from _worker_metrics(workers, leases)
        yield _shares(workers, leases, teams)
        sums = self._kept_sums()
        yield CounterMetricFamily("fairway_job_failures", "Attempts of jobs that failed.", value=sums.failures)
        waiting = HistogramMetricFamily(
            "fairway_queue_wait_seconds", "From submission to the first start, of jobs that started."
        )
        _add(waiting, (), sums.waits)
        yield waiting
        taking = HistogramMetricFamily(
            "fairway_job_duration_seconds", "From submission to the end, of jobs that ended.", labels=("state",)
        )
        for state, spread in sums.durations.items():
            _add(taking, (state.value,), spread)
        yield taking

    def _kept_sums(self) -> _Sums:
        kept = self._sums
        if kept is None or time.monotonic() - kept[0] > _KEPT_SECONDS:
            kept = time.monotonic(), self._scheduler.store.read(_summed)
            self._sums = kept
        return kept[1]


class _SchedulerCollector(Collector):
    """What the scheduler counts."""

    def __init__(self, scheduler: SchedulerView) -> None:
        self._scheduler = scheduler

    def describe(self) -> Iterable[Metric]:
        """Nothing, so that nothing is asked of the scheduler when this is registered."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Ask the scheduler."""
        scheduler, counted = self._scheduler, self._scheduler.statistics()
        for name, text, value in (
            ("rounds", "Rounds begun.", counted.rounds),
            ("preemptions", "Jobs that were stopped for the sake of others.", counted.preemptions_total),
            ("restarts", "Starts of jobs that had run before.", counted.restarts_total),
            ("agent_restarts", "Times that an agent had to be started again.", counted.agent_restarts_total),
            ("leases_granted", "Leases granted.", counted.leases_granted_total),
        ):
            yield CounterMetricFamily(f"fairway_{name}", text, value=value)
        yield GaugeMetricFamily(
            "fairway_start_time_seconds", "When the controller started, since 1970.", value=counted.started_at
        )
        yield GaugeMetricFamily("fairway_healthy", "1 if the controller runs and its agent answers.", scheduler.healthy)
        yield GaugeMetricFamily("fairway_emulated", "1 if the accelerators are emulated.", value=scheduler.emulated)
        yield from gpu_metrics(scheduler.devices())


def _summed(connection: Connection) -> _Sums:
    return _Sums(failure_count(connection), waits(connection, _SECONDS), durations(connection, _SECONDS))


def _holdings(connection: Connection) -> tuple[list[Worker], list[LeaseRecord], dict[str, str | None]]:
    leases = [lease for lease in open_leases(connection) if lease.held]
    names = [job for lease in leases for job in lease.jobs]
    found = jobs_named(connection, names)
    return all_workers(connection), leases, {name: job.team for name, job in found.items()}


def _worker_metrics(workers: Sequence[Worker], leases: Sequence[LeaseRecord]) -> Iterator[Metric]:
    held = {(lease.accelerator, number) for lease in leases for number in lease.workers}
    counts: dict[tuple[str, str], int] = {}
    facts = GaugeMetricFamily(
        "fairway_worker_info", "Always 1, for every worker.", labels=("accelerator", "number", "agent", "emulated")
    )
    for worker in workers:
        state = state_of(worker, held=(worker.accelerator, worker.number) in held)
        counts[worker.accelerator, state] = counts.get((worker.accelerator, state), 0) + 1
        emulated = "true" if worker.emulated else "false"
        facts.add_metric((worker.accelerator, str(worker.number), worker.agent, emulated), 1)
    by_state = GaugeMetricFamily("fairway_workers", "Workers by type and state.", labels=("accelerator", "state"))
    for labels, count in counts.items():
        by_state.add_metric(labels, count)
    yield by_state
    yield facts


def _shares(workers: Sequence[Worker], leases: Sequence[LeaseRecord], teams: dict[str, str | None]) -> Metric:
    present = sum(worker.lost_at is None for worker in workers)
    held: dict[str, float] = {}
    for lease in leases:
        for job in lease.jobs:
            team = teams.get(job) or ""
            held[team] = held.get(team, 0.0) + lease.part * len(lease.workers) / len(lease.jobs)
    shares = GaugeMetricFamily("fairway_team_share", "Part of the workers that a team holds now.", labels=("team",))
    for team, count in held.items():
        shares.add_metric((team,), count / present if present else 0.0)
    return shares


def _add(family: HistogramMetricFamily, labels: Sequence[str], spread: Spread) -> None:
    buckets = [(str(bound), float(count)) for bound, count in zip(_SECONDS, spread.at_most, strict=True)]
    family.add_metric(labels, [*buckets, ("+Inf", float(spread.count))], sum_value=spread.sum)
