"""The sections of a page about runs of training jobs: each a function that gives its heading, what to see in it and
its chart, or None where the page has no use for it.

A page shows them in the order of `SECTIONS`; a further section is a further function there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fairway.report.page_document import Section, chart_section, parts
from fairway.report.training.charts import (
    completion_curves,
    cost_chart,
    fairness_curves,
    group_chart,
    queue_chart,
    utilization_chart,
)
from fairway.report.training.comparison import SECONDS, Comparison, digits, time_unit
from fairway.report.training.details import gantt_data, share_charts
from fairway.report.training.metrics import teams_of
from fairway.report.training.runs import ShownRun

MOST_STRETCHES = 25_000
"""Of one Gantt chart."""

MOST_STRETCHES_TOGETHER = 120_000
"""Of all Gantt charts of a page: about 25 bytes each."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainingShown:
    """The runs of a page side by side; `clock` is the unit of its time axes."""

    runs: Sequence[ShownRun]
    comparison: Comparison
    clock: str


def completion(shown: TrainingShown) -> Section | None:
    """How long jobs took."""
    return chart_section(
        "completion",
        "How long jobs took",
        "completion times",
        "Further left and higher is better: each curve shows what part of the jobs finished within a time after their "
        "arrival.",
        completion_curves(shown.runs, shown.comparison.unit),
        empty="No job completed.",
    )


def teams(shown: TrainingShown) -> Section | None:
    """How long jobs took, by team, where there are teams."""
    return chart_section(
        "teams",
        "How long jobs took, by team",
        "teams",
        "Shorter is better: the mean completion time of each team's jobs.",
        group_chart(shown.runs, shown.comparison.unit, lambda run: run.summary["teams"]),
    )


def weights(shown: TrainingShown) -> Section | None:
    """How long jobs took, by weight, where jobs have different ones."""
    return chart_section(
        "weights",
        "How long jobs took, by weight",
        "weights",
        "Jobs of a higher weight should finish sooner.",
        group_chart(shown.runs, shown.comparison.unit, lambda run: run.summary["weights"]),
    )


def fairness(shown: TrainingShown) -> Section | None:
    """How jobs fared against an equal share of the cluster."""
    return chart_section(
        "fairness",
        "Who was served worse than an equal share would have",
        "fairness",
        "ρ is a job's completion time over the time that it would have taken on an equal share of the cluster. Jobs "
        "above the dashed line at 1 were worse off; a fair policy keeps the right end of its curve low.",
        fairness_curves(shown.runs),
        empty="No completed job has a time on an equal share to compare with.",
    )


def queue(shown: TrainingShown) -> Section | None:
    """How many jobs waited and ran."""
    return chart_section(
        "queue",
        "How many jobs waited and ran",
        "queue",
        "A queue that keeps growing says that jobs arrive faster than the policy gets them done.",
        queue_chart(shown.runs, shown.clock),
        empty="The run has no rounds.",
    )


def utilization(shown: TrainingShown) -> Section | None:
    """How busy each accelerator type was."""
    return chart_section(
        "utilization",
        "How busy each accelerator type was",
        "utilisation",
        "The part of its workers that held a lease. Idle workers while jobs wait are wasted; but a fast policy may "
        "also be less busy because its work is done sooner.",
        utilization_chart(shown.runs, shown.clock),
        empty="The run has no rounds.",
    )


def cost(shown: TrainingShown) -> Section | None:
    """What the runs cost."""
    return chart_section(
        "cost",
        "What it cost",
        "cost",
        "Time on each worker at its price, for all jobs and for each job that completed.",
        cost_chart(shown.runs),
        empty="The accelerator types of this cluster have no prices, so there is no cost to compare.",
    )


def workers(shown: TrainingShown) -> Section | None:
    """What each worker did, in one run at a time."""
    runs = shown.runs
    unit = "h" if shown.clock == "d" else shown.clock  # a Gantt chart shows hours of a run of days
    most = min(MOST_STRETCHES, MOST_STRETCHES_TOGETHER // len(runs))
    charts = tuple(gantt_data(run, unit, most) if len(run.record.leases) else None for run in runs)
    cut = [chart["until"] for chart in charts if chart and not chart["complete"]]
    left_out = ""
    if cut:
        unit = time_unit(min(cut))
        spans = dict.fromkeys(f"{digits(until / SECONDS[unit])} {unit}" for until in (min(cut), max(cut)))
        left_out = f" To keep the page small, only the first {' to '.join(spans)} of a run are drawn."
    coloured = "by team" if _has_teams(runs) else "in turn, so that neighbours differ"
    return Section(
        "gantt",
        "What each worker did",
        "workers",
        f"Each row is a worker, each bar a job that held it; jobs are coloured {coloured}. Drag to move; point at a "
        f"bar to read it; click it to see all that its job held.{left_out}",
        of_runs=charts,
        empty="No leases were kept in these runs, so neither workers nor shares can be shown.",
        empty_run="No job held a worker in this run.",
        template="gantt.html",
    )


def shares(shown: TrainingShown) -> Section | None:
    """What teams or jobs held over time against their fair share, in one run at a time."""
    charts = tuple(parts(chart) for chart in share_charts(shown.runs, shown.clock))
    if not any(charts):
        return None
    meaning = (
        "The part of all workers that each team held (solid), and the part that its weight entitles it to among the "
        "teams that have jobs (dashed; no team is entitled to more than its jobs can use)."
        if _has_teams(shown.runs)
        else "The time that jobs held workers over the time that an equal share would have given them: the median job, "
        "and the range without the lowest and the highest 5 %. At 1, a job holds exactly its fair share."
    )
    return Section(
        "shares",
        "Shares over time against the fair share",
        "shares",
        f"{meaning} Time counts the same on every accelerator type.",
        of_runs=charts,
        empty_run="No job held a worker in this run.",
        template="run_chart.html",
        nested=True,
    )


SECTIONS: tuple[Callable[[TrainingShown], Section | None], ...] = (
    completion,
    teams,
    weights,
    fairness,
    queue,
    utilization,
    cost,
    workers,
    shares,
)


def _has_teams(runs: Sequence[ShownRun]) -> bool:
    return any(teams_of(run.record) for run in runs)
