"""The runs that a page shows: the name and the look by which each is known in every chart.

Colours are those of Okabe and Ito, which people with any form of colour vision can tell apart, without black and
yellow, one of which would vanish on a dark and the other on a light page. Runs of the same policy share a colour.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from fairway.report.training_metrics import RunSummary, summarize
from fairway.report.training_record import TrainingRecord

POLICY_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
DASHES = ("solid", "dash", "dot", "dashdot")


@dataclass(frozen=True, eq=False)
class Run:
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


def shown_runs(records: Sequence[TrainingRecord]) -> list[Run]:
    """Name the runs by policy, by seed too where a policy has several, and by number where even that is not enough."""
    policies = list(dict.fromkeys(record.policy for record in records))
    repeated = Counter(record.policy for record in records)
    runs: list[Run] = []
    for record in records:
        summary = summarize(record)
        label = record.policy if repeated[record.policy] == 1 else f"{record.policy}, seed {summary['seed']}"
        earlier = sum(run.label.partition(" #")[0] == label for run in runs)
        place = policies.index(record.policy)
        runs.append(
            Run(
                record,
                summary,
                f"{label} #{earlier + 1}" if earlier else label,
                POLICY_COLOURS[place % len(POLICY_COLOURS)],
                DASHES[place // len(POLICY_COLOURS) % len(DASHES)],
                first_of_policy=all(run.record.policy != record.policy for run in runs),
                alone=repeated[record.policy] == 1,
            )
        )
    return runs
