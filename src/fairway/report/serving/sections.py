"""The sections of a page about serving runs: each a function that gives its heading, what to see in it and its chart,
or None where the runs have nothing to show in it.

A page shows them in the order of `SECTIONS`; a further section is a further function there, and touches no other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fairway.report.page_document import Section, chart_section, parts
from fairway.report.serving.charts import (
    ServingShown,
    cache_chart,
    latency_curves,
    queue_chart,
    slowdown_curves,
    staleness_chart,
)
from fairway.report.serving.timeline import MOST_WORKERS, drawn_until, side_by_side, timeline
from fairway.report.serving.use_charts import cold_chart, sizes_chart, trade_chart
from fairway.report.training.comparison import digits


def trade(runs: Sequence[ServingShown]) -> Section | None:
    """How many requests were in time, and what they cost."""
    return chart_section(
        "trade",
        "In time, and for how much",
        "in time against cost",
        "Further up and left is better: the part of the requests that were answered before their deadline, and what a "
        "thousand of them cost, late ones included. A scheduler that leaves requests unanswered looks cheaper than it "
        "is.",
        trade_chart(runs),
    )


def latency(runs: Sequence[ServingShown]) -> Section | None:
    """How long requests took."""
    return chart_section(
        "latency",
        "How long requests took",
        "latency",
        "Further left and higher is better: the part of the requests that were answered within a time after their "
        "arrival, for each workflow. The dotted line is the deadline: where a curve crosses it is the part that was in "
        "time.",
        latency_curves(runs),
    )


def slowdown(runs: Sequence[ServingShown]) -> Section | None:
    """How much longer requests took than they had to."""
    return chart_section(
        "slowdown",
        "How much longer than necessary",
        "slow-down",
        "Latency over the lower bound of the workflow: its longest chain of stages, with no waiting, no transfers and "
        "nothing to load. 1 is as good as it gets.",
        slowdown_curves(runs),
    )


def cache(runs: Sequence[ServingShown]) -> Section | None:
    """How tasks found their models."""
    return chart_section(
        "cache",
        "How tasks found their models",
        "memory",
        "In memory; on their way, since they were asked for before the task had its turn; there because a job waited "
        "for them in its queue; or still to be fetched.",
        cache_chart(runs),
    )


def cold(runs: Sequence[ServingShown]) -> Section | None:
    """How many models had to come."""
    return chart_section(
        "cold",
        "Cold starts",
        "cold starts",
        "How many copies of models had been begun: because a job waited for one, and ahead of any that would.",
        cold_chart(runs),
    )


def sizes(runs: Sequence[ServingShown]) -> Section | None:
    """How large batches and shares of workers were."""
    return chart_section(
        "sizes",
        "What tasks were given",
        "sizes",
        "The mean batch, GPU slices and CPUs of the tasks that started at a time.",
        sizes_chart(runs),
    )


def queue(runs: Sequence[ServingShown]) -> Section | None:
    """How many tasks waited."""
    return chart_section(
        "queue",
        "How many tasks waited",
        "queues",
        "A queue that keeps growing says that requests come too fast.",
        queue_chart(runs),
    )


def staleness(runs: Sequence[ServingShown]) -> Section | None:
    """How wrong the planners were about the other workers."""
    return chart_section(
        "staleness",
        "How wrong planners were about the others",
        "staleness",
        "What the planner of each request believed of the other workers against the truth: the mean distance of a "
        "load, and the part of all models and workers that it had wrong.",
        staleness_chart(runs),
    )


def workers(runs: Sequence[ServingShown]) -> Section | None:
    """What each worker did, in one run at a time."""
    beside = "Tasks that ran side by side on a worker lie below each other. " if any(map(side_by_side, runs)) else ""
    bounds = []
    if len(runs[0].record.workers.names) > MOST_WORKERS:
        bounds.append(f"the first {MOST_WORKERS} workers")
    if any(drawn_until(run) < run.record.end_seconds for run in runs):
        bounds.append(f"the first {digits(min(map(drawn_until, runs)))} s")
    left_out = f" To keep the page small, only {' and '.join(bounds)} are drawn." if bounds else ""
    return Section(
        "timeline",
        "What each worker did",
        "workers",
        "Each row is a worker: the tasks that it ran, coloured by workflow; above them, grey, those that waited, "
        "darker where there were more; below them, thin, the models that it loaded, and crosses where it gave one up. "
        f"{beside}Drag to move; the buttons of the chart zoom; point at something to read it.{left_out}",
        of_runs=tuple(parts(timeline(run)) for run in runs),
        empty="The tasks of these runs were not kept, so nothing can be shown here.",
        empty_run="No task ran in this run.",
        template="run_chart.html",
    )


SECTIONS: tuple[Callable[[Sequence[ServingShown]], Section | None], ...] = (
    trade,
    latency,
    slowdown,
    sizes,
    cache,
    cold,
    queue,
    staleness,
    workers,
)
