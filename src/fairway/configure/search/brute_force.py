"""Brute force: every plan, nothing cut. What the other searches are tested against, and the peer of the benchmark."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fairway.configure.search.answer import Answer, Candidate
from fairway.configure.search.front import named_plan
from fairway.configure.search.kernels import every_plan
from fairway.configure.tables import Tables
from fairway.errors import InputError

MOST_PLANS = 2_000_000_000
"""Beyond this, trying every plan takes minutes."""


def search_everything(
    tables: Tables, stages: Sequence[int], queue_length: int, budget: float, k: int, added: float = 0.0
) -> Answer:
    """The k cheapest plans of some stages, each with another configuration of the first of them.

    Stages are in topological order; those that wait for none of the others get batches that the queue can fill.
    """
    application, numbers_of = tables.application, []
    inside = set(stages)
    before = [[other for other in application.workflow.predecessors[stage] if other in inside] for stage in stages]
    for stage, earlier in zip(stages, before, strict=True):
        mask = tables.masks[stage]
        if not earlier:
            mask = mask & (application.profiles[stage].batch <= queue_length)
        numbers_of.append(np.flatnonzero(mask))
    plans = math.prod(map(len, numbers_of))
    if plans > MOST_PLANS:
        raise InputError(
            f"brute force would try {plans} plans, at most {MOST_PLANS} are allowed; use algorithm 'front'"
        )
    own = [added if stage == stages[0] else tables.added[stage] for stage in stages]
    seconds = [
        application.profiles[stage].seconds[numbers] + extra
        for stage, numbers, extra in zip(stages, numbers_of, own, strict=True)
    ]
    cost = [tables.costs[stage][numbers] for stage, numbers in zip(stages, numbers_of, strict=True)]
    position = {stage: number for number, stage in enumerate(stages)}
    all_numbers = np.concatenate(numbers_of)
    best_seconds, best_cost, choices, tried = every_plan(
        np.concatenate(seconds),
        np.concatenate(cost),
        np.cumsum([0, *map(len, numbers_of)]),
        np.cumsum([0, *map(len, before)]),
        np.asarray([position[other] for earlier in before for other in earlier], np.int64),
        budget,
    )
    order = np.lexsort((best_seconds, best_cost))[:k]
    candidates = []
    for first in order[np.isfinite(best_cost[order])].tolist():
        plan = dict(zip(stages, all_numbers[choices[first]].tolist(), strict=True))
        candidates.append(Candidate(named_plan(tables, plan), float(best_seconds[first]), float(best_cost[first])))
    return Answer(tuple(candidates), bool(candidates), int(tried))
