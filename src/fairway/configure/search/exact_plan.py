"""The cheapest plan of single jobs that is in time in 95 of 100 simulated requests: what a perfect search would find.

On a chain, all combinations of undominated configurations are tried from the cheapest on, and the first that is in time
is it. On other graphs, the fastest plan gets cheaper step by step, by the step that saves most and leaves it in time.
"""

from __future__ import annotations

import math

import numpy as np

from fairway.compiled import FloatTable, IntTable, compiled
from fairway.configure.arrays import FloatArray
from fairway.configure.configuration import Configuration
from fairway.configure.search.kernels import TOLERANCE
from fairway.configure.search.static_plan import Plan, Samples, replaced
from fairway.configure.tables import Tables

_MOST_COMBINATIONS = 20_000_000


def cheapest_in_time(samples: Samples) -> Plan:
    """The plan; the fastest if none is in time."""
    application = samples.application
    smallest = min(int(profile.batch.min()) for profile in application.profiles)
    tables = Tables(application, samples.platform, lambda profile: profile.batch == max(smallest, profile.batch.min()))
    rows = [tables.stage_front(stage).points[0] for stage in range(len(application))]
    choices = [
        [profile.configuration(number) for number in numbers.tolist()]
        for profile, numbers in zip(application.profiles, rows, strict=True)
    ]
    fastest: Plan = tuple(each[0] for each in choices)
    if not samples.in_time(fastest):
        return fastest
    is_chain = all(len(after) <= 1 for after in application.workflow.successors) and len(application.entries) == 1
    if is_chain and math.prod(map(len, choices)) <= _MOST_COMBINATIONS:
        return _from_the_cheapest(samples, choices)
    return _descended(samples, choices, fastest)


def _from_the_cheapest(samples: Samples, choices: list[list[Configuration]]) -> Plan:
    profiles = samples.application.profiles
    sizes = tuple(map(len, choices))
    seconds = [np.array([profiles[stage].seconds_of(*each) for each in of]) for stage, of in enumerate(choices)]
    costs = [np.array([samples.stage_cost(stage, each) for each in of]) for stage, of in enumerate(choices)]
    total, price = seconds[0], costs[0]
    for more, dearer in zip(seconds[1:], costs[1:], strict=True):
        total, price = np.add.outer(total, more).ravel(), np.add.outer(price, dearer).ravel()
    limit = samples.application.slo_seconds + TOLERANCE - float(samples.added.sum())
    # No request is faster than if its luckiest stage's factor held for all stages.
    luckiest = float(np.quantile(samples.factors.min(axis=1), samples.percentile))
    possible = np.flatnonzero(total * luckiest <= limit)
    order = possible[np.argsort(price[possible], kind="stable")]
    picks = np.stack(np.unravel_index(order, sizes), axis=1).astype(np.int64)
    offsets = np.cumsum([0, *sizes])[:-1]
    position = (len(samples.factors) - 1) * samples.percentile
    found = first_in_time(picks + offsets, np.concatenate(seconds), samples.factors, limit, position)
    return tuple(of[pick] for of, pick in zip(choices, picks[found].tolist(), strict=True))


@compiled()
def first_in_time(picks: IntTable, seconds: FloatArray, factors: FloatTable, limit: float, position: float) -> int:
    """The first plan whose time at this position, among its samples in order, is within the limit; else the last."""
    count, stages = factors.shape
    below = int(position)
    part = position - below
    times = np.empty(count)
    for plan in range(len(picks)):
        late = 0
        for sample in range(count):
            time = 0.0
            for stage in range(stages):
                time += seconds[picks[plan, stage]] * factors[sample, stage]
            times[sample] = time
            if time > limit:
                late += 1
                if late > count - below:
                    break
        if late > count - below:
            continue
        ordered = np.sort(times)
        above = min(below + 1, count - 1)
        if ordered[below] + part * (ordered[above] - ordered[below]) <= limit:
            return plan
    return len(picks) - 1


def _descended(samples: Samples, choices: list[list[Configuration]], plan: Plan) -> Plan:
    while True:
        ways = []
        for stage, of in enumerate(choices):
            at = of.index(plan[stage])
            if at + 1 < len(of):
                saving = samples.stage_cost(stage, of[at]) - samples.stage_cost(stage, of[at + 1])
                candidate = replaced(plan, stage, of[at + 1])
                if samples.in_time(candidate):
                    ways.append((-saving, stage, candidate))
        if not ways:
            return plan
        plan = min(ways)[2]
