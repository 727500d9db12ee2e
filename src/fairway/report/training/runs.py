"""The runs of training jobs that a page shows, each with its numbers and its look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairway.report.looks import looks_of
from fairway.report.training.metrics import RunSummary, summarize
from fairway.report.training.record import TrainingRecord


@dataclass(frozen=True, eq=False)
class ShownRun:
    """A record with its numbers, its name among the others, and how its lines are drawn.

    `alone` says that no other run has its policy.
    """

    record: TrainingRecord
    summary: RunSummary
    label: str
    colour: str
    dash: str
    first_of_policy: bool
    alone: bool


def shown_runs(records: Sequence[TrainingRecord]) -> list[ShownRun]:
    """The runs by policy and seed, as `looks` names them."""
    summaries = [summarize(record) for record in records]
    looks = looks_of([(record.policy, summary["seed"]) for record, summary in zip(records, summaries, strict=True)])
    return [
        ShownRun(record, summary, look.label, look.colour, look.dash, first_of_policy=look.first, alone=look.alone)
        for record, summary, look in zip(records, summaries, looks, strict=True)
    ]
