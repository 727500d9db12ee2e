"""How the time of a request is split among the stages of its workflow so that they need least in all (Nexus, SOSP'19).

With requests at a rate r and a grid of times, from the last stages back,

    need_v(k) = min { t_v(b) / b : rounds · t_v(b) <= k }
    F_v(T)    = min over k of  need_v(k) + sum over the stages c after v of F_c(T - k)

is how many accelerators a unit of rate needs at stage v within k, and from v on within T. The first stages get the k
that wins for T = SLO, the stages after them what is left. A stage after several others gets the least that any of them
leaves. `rounds` is 2: a request may just miss a batch. Where no split leaves time for that, it is 1, and where not even
single requests fit, times are split in proportion to theirs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fairway.configure.arrays import FloatArray
from fairway.workflows import Workflow

Times = Sequence[tuple[int, float]]
"""By batch size, from the smallest on, the seconds that a batch takes."""

_STEPS = 100
_LEFT = np.arange(_STEPS + 1)[:, None] - np.arange(_STEPS + 1)
"""What is left of so many steps if a stage takes so many of them."""


def split_slo(workflow: Workflow, times: Sequence[Times], slo: float, rounds: int = 2) -> tuple[float, ...]:
    """By stage, the time that it may take."""
    for each in range(rounds, 0, -1):
        found = _split(workflow, times, slo, each)
        if found is not None:
            # Of times that need as little, the shortest win; what that leaves over belongs to all of them.
            spare = slo / workflow.critical_path(found).seconds
            return tuple(spare * steps for steps in found)
    single = [min(seconds for _, seconds in each) for each in times]
    longest = workflow.critical_path(single).seconds
    return tuple(slo * seconds / longest if longest else slo for seconds in single)


def _split(workflow: Workflow, times: Sequence[Times], slo: float, rounds: int) -> tuple[int, ...] | None:
    """By stage, how many of `_STEPS` equal parts of the time it needs; None where no split is in time."""
    step = slo / _STEPS
    need = [_need(each, step, rounds) for each in times]
    total: list[FloatArray] = [np.empty(0)] * len(workflow)
    chosen: list[list[int]] = [[]] * len(workflow)
    for stage in reversed(workflow.topological_order):
        rest = np.zeros(_STEPS + 1)
        for other in workflow.successors[stage]:
            rest = rest + total[other]
        both = np.where(_LEFT >= 0, need[stage] + rest[_LEFT], np.inf)  # by what there is, and what the stage takes
        chosen[stage] = both.argmin(axis=1).tolist()
        total[stage] = both.min(axis=1)
    left = [_STEPS] * len(workflow)
    needed = [0] * len(workflow)
    for stage in workflow.topological_order:
        if math.isinf(total[stage][left[stage]]):
            return None
        k = chosen[stage][left[stage]]
        needed[stage] = k
        for other in workflow.successors[stage]:
            left[other] = min(left[other], left[stage] - k)
    return tuple(needed)


def _need(times: Times, step: float, rounds: int) -> FloatArray:
    """By time, in steps, how many accelerators a request per second needs; infinite where no batch fits."""
    need = np.full(_STEPS + 1, np.inf)
    for size, seconds in times:
        first = math.ceil(rounds * seconds / step * (1 - 1e-9))
        if first <= _STEPS:
            np.minimum(need[first:], seconds / size, out=need[first:])
    return need
