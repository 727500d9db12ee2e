"""What the workers have counted, in Prometheus' form: base units, names that begin with `fairway_serving_`."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from fairway.live.serving.application.definition import Application

_COUNTERS = {
    "asked": ("fairway_serving_requests", "Requests that came in."),
    "replied": ("fairway_serving_replies", "Requests that were answered."),
    "cancelled": ("fairway_serving_cancellations", "Requests whose client went away or took them back."),
    "failures": ("fairway_serving_stage_failures", "Runs of stages that raised."),
    "hits": ("fairway_serving_cache_hits", "Runs that found their model in memory."),
    "misses": ("fairway_serving_cache_misses", "Runs that had to wait for their model."),
    "loads": ("fairway_serving_model_loads", "Models loaded, prefetched ones too."),
    "evictions": ("fairway_serving_model_evictions", "Models let go."),
    "in_time": ("fairway_serving_slo_met", "Requests answered within the workflow's SLO."),
    "late": ("fairway_serving_slo_missed", "Requests answered after the workflow's SLO."),
}
_GAUGES = {
    "open": ("fairway_serving_open_requests", "Requests that wait for their answer."),
    "held": ("fairway_serving_held_requests", "Requests of which a worker holds values."),
    "waiting": ("fairway_serving_queued_tasks", "Stages that wait for a worker."),
}

_SHEDDING = {"hopeless": 0, "shed": 0}
"""Refusals that a rise of the load brings: they are there from the start, so that an alert can be about their rate."""

_SIZES = (1, 2, 4, 8, 16, 32, 64)


def exposition(
    application: Application,
    tallies: Mapping[int, Mapping[str, Any]],
    labels: Mapping[int, str],
    restarts: int,
    parts: Mapping[str, float] = MappingProxyType({}),
) -> bytes:
    """All metrics as text: what each process that answers has counted since it was started.

    `labels` has the name of each process, `parts` the slices of models as parts of a worker.
    """
    registry = CollectorRegistry()
    answered = {labels[number]: tally for number, tally in tallies.items()}
    registry.register(_Collector(application, answered, list(labels.values()), restarts, parts))
    return generate_latest(registry)


class _Collector:
    def __init__(
        self,
        application: Application,
        tallies: Mapping[str, Mapping[str, Any]],
        workers: list[str],
        restarts: int,
        parts: Mapping[str, float],
    ) -> None:
        self._workflows = list(application.workflows.values())
        self._models = list(application.models)
        self._tallies = tallies
        self._workers, self._restarts, self._parts = workers, restarts, parts

    def collect(self) -> Iterable[Metric]:
        """Everything, at the moment of asking."""
        yield CounterMetricFamily(
            "fairway_serving_worker_restarts", "Workers that died and were started again.", self._restarts
        )
        up = GaugeMetricFamily("fairway_serving_worker_up", "Whether a worker answers.", labels=["worker"])
        for worker in self._workers:
            up.add_metric([worker], float(worker in self._tallies))
        yield up
        for field, (name, text) in _COUNTERS.items():
            counter = CounterMetricFamily(name, text, labels=["worker"])
            for worker, tally in self._tallies.items():
                counter.add_metric([worker], tally[field])
            yield counter
        for field, (name, text) in _GAUGES.items():
            gauge = GaugeMetricFamily(name, text, labels=["worker"])
            for worker, tally in self._tallies.items():
                gauge.add_metric([worker], tally[field])
            yield gauge
        yield self._refusals()
        yield self._resident()
        yield from self._slices()
        yield self._batches()
        yield from self._histograms()

    def _refusals(self) -> Metric:
        refused = CounterMetricFamily(
            "fairway_serving_refusals", "Requests that were refused.", labels=["worker", "code"]
        )
        for worker, tally in self._tallies.items():
            for code, count in {**_SHEDDING, **tally["refused"]}.items():
                refused.add_metric([worker, code], count)
        return refused

    def _resident(self) -> Metric:
        resident = GaugeMetricFamily(
            "fairway_serving_model_resident", "Whether a model is in memory, or on its way.", labels=["worker", "model"]
        )
        for worker, tally in self._tallies.items():
            for model in self._models:
                resident.add_metric([worker, model], float(model in tally["resident"]))
        return resident

    def _slices(self) -> Iterator[Metric]:
        """How large slices are, and whether anything holds models to them; nothing where there are none."""
        parts = GaugeMetricFamily(
            "fairway_serving_slice_ratio", "The part of a worker that a model has.", labels=["model"]
        )
        held = GaugeMetricFamily(
            "fairway_serving_slices_enforced", "Whether models are held to their slices.", labels=["worker"]
        )
        for model, part in self._parts.items():
            parts.add_metric([model], part)
        for worker, tally in self._tallies.items():
            held.add_metric([worker], float(not tally["not_enforced"]))
        if self._parts:
            yield from (parts, held)

    def _batches(self) -> Metric:
        batches = HistogramMetricFamily(
            "fairway_serving_batch_size", "Requests that ran together in one run of a stage.", labels=["worker"]
        )
        for worker, tally in self._tallies.items():
            sizes: Mapping[int, int] = tally["batch"]
            counts = [sum(count for size, count in sizes.items() if size <= bound) for bound in _SIZES]
            buckets = [(str(float(bound)), float(count)) for bound, count in zip(_SIZES, counts, strict=True)]
            buckets.append(("+Inf", float(sum(sizes.values()))))
            batches.add_metric([worker], buckets, float(sum(size * count for size, count in sizes.items())))
        return batches

    def _histograms(self) -> Iterator[Metric]:
        planning = HistogramMetricFamily(
            "fairway_serving_planning_seconds", "How long a decision of the scheduler takes.", labels=["worker"]
        )
        latency = HistogramMetricFamily(
            "fairway_serving_latency_seconds", "From a request to its answer.", labels=["worker", "workflow"]
        )
        run = HistogramMetricFamily(
            "fairway_serving_stage_seconds", "How long a stage runs.", labels=["worker", "workflow", "stage"]
        )
        wait = HistogramMetricFamily(
            "fairway_serving_stage_wait_seconds",
            "How long a stage waits for its turn.",
            labels=["worker", "workflow", "stage"],
        )
        for worker, tally in self._tallies.items():
            _add(planning, [worker], tally["planning"])
            for number, workflow in enumerate(self._workflows):
                _add(latency, [worker, workflow.name], tally["latency"].get(number))
                for stage, facts in enumerate(workflow.workflow.stages):
                    labels = [worker, workflow.name, facts.name]
                    _add(run, labels, tally["run"].get((number, stage)))
                    _add(wait, labels, tally["wait"].get((number, stage)))
        yield from (planning, latency, run, wait)


def _add(family: HistogramMetricFamily, labels: list[str], row: Mapping[str, Any] | None) -> None:
    """Add a worker's histogram; Prometheus wants what lies below each bound."""
    if row is None:
        return
    bounds = (*(str(bound) for bound in row["bounds"]), "+Inf")
    below = itertools.accumulate(map(float, row["counts"]))
    family.add_metric(labels, list(zip(bounds, below, strict=True)), row["total"])
