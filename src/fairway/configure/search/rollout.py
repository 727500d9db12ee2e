"""A plan for every stage, made group by group before anything runs: as ESG would go on if all took as long as expected.

Each group gets its share of the time that is left when its first stage starts. Where a group cannot keep to it, it gets
its fastest configurations.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairway.configure.budgets.shares import Shares
from fairway.configure.configuration import Configuration
from fairway.configure.fetches import Fetches
from fairway.configure.search.esg_search import Form, search_group
from fairway.configure.search.fallback import fastest_configurations
from fairway.configure.search.front import named_plan
from fairway.configure.tables import Tables

UNLIMITED = 2**31
"""The length of a queue that can fill any batch."""


def planned_ahead(
    tables: Tables,
    shares: Shares,
    slo_seconds: float,
    queue_length: int,
    begun: Mapping[int, Configuration] | None = None,
    form: Form = "layered",
) -> tuple[dict[int, Configuration], int]:
    """A configuration for each stage, in addition to those given, and how many partial plans were looked at.

    Entry stages get batches that the queue can fill.
    """
    application = tables.application
    fetches = Fetches.of(application, tables.platform)
    plan, expanded = dict(begun or {}), 0
    finish: dict[int, float] = {}
    for stage in application.workflow.topological_order:
        start = max((finish[before] for before in application.workflow.predecessors[stage]), default=0.0)
        if stage not in plan:
            group = shares.group_rests[stage]
            waiting = queue_length if stage in application.entries else UNLIMITED
            budget = (slo_seconds - start) * shares.share(stage)
            answer = search_group(tables, group, waiting, budget, 1, fetches.planned(stage), form=form)
            expanded += answer.expanded
            plan.update(answer.candidates[0].plan if answer.feasible else fastest_plan(tables, group, waiting))
        run = application.profiles[stage].seconds_of(*plan[stage])
        finish[stage] = start + run + fetches.planned(stage)
    return {stage: plan[stage] for stage in sorted(plan)}, expanded


def fastest_plan(tables: Tables, stages: tuple[int, ...], queue_length: int) -> dict[int, Configuration]:
    """The fastest configuration of each stage; of the first, among those that the queue can fill."""
    lengths = (queue_length, *(UNLIMITED for _ in stages[1:]))
    return named_plan(
        tables,
        {
            stage: fastest_configurations(tables, stage, length, 1)[0]
            for stage, length in zip(stages, lengths, strict=True)
        },
    )
