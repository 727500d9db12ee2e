"""InferLine (SoCC'20): the fewest workers with which a sample of the traffic is in time, and tuning between plans.

The planner begins with batches of one and a worker for each model, and adds workers where there are fewest for the load
until 99 of 100 requests of the sample would be in time by the estimator. Then, as long as it helps, it takes the step
that saves most workers and is still in time: a batch twice as large, with as many workers fewer as that allows, or a
worker fewer.

The tuner compares the traffic envelope of late with that of the sample. Where it is above, in windows of any length,
models get as many workers as keep them as busy as planned at the highest rate that was seen:

    copies of m = ceil( n_m(rate) / rho_m )    n_m: the workers that m needs on average, rho_m: planned n_m / copies

After `PATIENCE_SECONDS` without a change it takes back what the last half minute does not need.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fairway.configure.planners.envelope import envelope, exceeding_rate, most_within, windows
from fairway.configure.planners.estimator import Pipeline, Plan, in_time, seconds_of

PATIENCE_SECONDS = 15.0
_LOOK_BACK_SECONDS = 30.0
_DOWN_WINDOW_SECONDS = 5.0
_LITTLE = 1e-9


@dataclass(frozen=True, eq=False)
class Provision:
    """The copies of each model as they are now, and what they follow from.

    `loads` are the workers that each model needs at the rates of the sample, `envelopes` are by pipeline. `feasible`
    says whether the sample is in time.
    """

    plan: Plan
    copies: Mapping[int, int]
    rates: tuple[float, ...]
    lengths: tuple[tuple[float, ...], ...]
    envelopes: tuple[tuple[int, ...], ...]
    sample_seconds: float
    planned_at: float
    changed_at: float
    feasible: bool

    def utilisation(self, pipelines: Sequence[Pipeline]) -> dict[int, float]:
        """By model, how busy the plan has its workers with the sample."""
        needed = loads(pipelines, self.rates, self.plan.batches)
        return {model: needed[model] / copies for model, copies in self.plan.copies.items()}


def loads(pipelines: Sequence[Pipeline], rates: Sequence[float], batches: Sequence[Sequence[int]]) -> dict[int, float]:
    """By model, the workers that it needs on average, if all batches are full."""
    found: dict[int, float] = {}
    for pipeline, rate, sizes in zip(pipelines, rates, batches, strict=True):
        for model, times, size in zip(pipeline.models, pipeline.times, sizes, strict=True):
            if model >= 0:
                found[model] = found.get(model, 0.0) + rate * seconds_of(times, size) / size
    return found


def provision(pipelines: Sequence[Pipeline], sample_seconds: float, now: float, most: int) -> Provision:
    """Plan for a sample; no plan has more than `most` workers."""
    rates = tuple(len(pipeline.arrivals) / max(sample_seconds, _LITTLE) for pipeline in pipelines)
    plan, feasible = _first(pipelines, rates, most)
    if feasible:
        plan = _cheapest(pipelines, plan)
    lengths = tuple(windows(_service_seconds(each, sizes)) for each, sizes in zip(pipelines, plan.batches, strict=True))
    envelopes = tuple(envelope(each.arrivals, own) for each, own in zip(pipelines, lengths, strict=True))
    return Provision(plan, plan.copies, rates, lengths, envelopes, sample_seconds, now, now, feasible)


def _service_seconds(pipeline: Pipeline, sizes: Sequence[int]) -> float:
    taken = [seconds_of(times, size) for times, size in zip(pipeline.times, sizes, strict=True)]
    return pipeline.workflow.critical_path(taken).seconds


def _first(pipelines: Sequence[Pipeline], rates: Sequence[float], most: int) -> tuple[Plan, bool]:
    """Batches of one, and as many workers as that takes; whether any number of them is enough."""
    batches = tuple((1,) * len(pipeline.models) for pipeline in pipelines)
    needed = loads(pipelines, rates, batches)
    copies = {model: max(1, math.ceil(load - _LITTLE)) for model, load in needed.items()}
    while sum(copies.values()) <= most:
        plan = Plan(dict(copies), batches)
        if in_time(pipelines, plan):
            return plan, True
        copies[min(copies, key=lambda each: (copies[each] / max(needed[each], _LITTLE), each))] += 1
    return Plan(copies, batches), False


def _cheapest(pipelines: Sequence[Pipeline], plan: Plan) -> Plan:
    """Step by step to fewer workers, as long as the sample is in time."""
    while True:
        steps = [step for model in sorted(plan.copies) if (step := _without_one(pipelines, plan, model)) is not None]
        for which, pipeline in enumerate(pipelines):
            for stage, model in enumerate(pipeline.models):
                larger = [size for size, _ in pipeline.times[stage] if size > plan.batches[which][stage]]
                if model < 0 or not larger:
                    continue
                step = _with_batch(plan, which, stage, larger[0])
                if in_time(pipelines, step):
                    while (fewer := _without_one(pipelines, step, model)) is not None:
                        step = fewer
                    steps.append(step)
        if not steps:
            return plan
        plan = min(steps, key=_workers)  # of equal ones the first: a worker fewer before a larger batch


def _workers(plan: Plan) -> int:
    return sum(plan.copies.values())


def _without_one(pipelines: Sequence[Pipeline], plan: Plan, model: int) -> Plan | None:
    """The plan with a worker fewer for a model, if the sample is in time then."""
    if plan.copies[model] == 1:
        return None
    fewer = Plan({**plan.copies, model: plan.copies[model] - 1}, plan.batches)
    return fewer if in_time(pipelines, fewer) else None


def _with_batch(plan: Plan, which: int, stage: int, size: int) -> Plan:
    rows = [list(sizes) for sizes in plan.batches]
    rows[which][stage] = size
    return Plan(plan.copies, tuple(tuple(row) for row in rows))


def tuned(provision: Provision, pipelines: Sequence[Pipeline], now: float) -> Provision:
    """More workers where more requests come than was planned for, fewer where they have not been needed for a while."""
    seen = [
        exceeding_rate(envelope(each.arrivals, lengths), planned, lengths, provision.sample_seconds)
        for each, lengths, planned in zip(pipelines, provision.lengths, provision.envelopes, strict=True)
    ]
    busy = provision.utilisation(pipelines)
    if any(rate is not None for rate in seen):
        rates = [max(rate or 0.0, planned) for rate, planned in zip(seen, provision.rates, strict=True)]
        needed = loads(pipelines, rates, provision.plan.batches)
        copies = {
            model: max(now_there, _copies(needed[model], busy[model])) for model, now_there in provision.copies.items()
        }
    elif now - provision.changed_at >= PATIENCE_SECONDS:
        recent = [[arrival for arrival in each.arrivals if arrival > now - _LOOK_BACK_SECONDS] for each in pipelines]
        rates = [most_within(each, _DOWN_WINDOW_SECONDS) / _DOWN_WINDOW_SECONDS for each in recent]
        needed = loads(pipelines, rates, provision.plan.batches)
        least = min((part for part in busy.values() if part > 0), default=1.0)
        copies = {model: min(now_there, _copies(needed[model], least)) for model, now_there in provision.copies.items()}
    else:
        return provision
    if copies == provision.copies:
        return provision
    return replace(provision, copies=copies, changed_at=now)


def _copies(load: float, busy: float) -> int:
    return max(1, math.ceil(load / busy - _LITTLE)) if busy > 0 else 1
