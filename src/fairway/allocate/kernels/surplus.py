"""What is left when the level can rise no further is spent on the most work (after Gavel §4.1, which stops there).

A level is exact and yet says little: it is held down by the jobs that are worst off, and workers that are of no use to
them are of use to others. Of all allocations at the level, the one is taken with

    maximise sum_i r_i / d_i   subject to   r_i >= d_i,   time and workers as ever

where d_i is the rate that the level asks for: the mean level of all jobs, beside the lowest. As every rate counts, no
job can have more without another having less.

When jobs run alone, prices answer this as well. The types with a price in the proof of the level are used up by it, in
the same way in every allocation that reaches the level, so that only the others are left to spend, with the time that
jobs do not spend on the first. A job at given prices goes on along its hull (`cheapest`) for as long as more rate is
worth more than it costs. With pairs, it is one more linear program, solved from the basis of the last.
"""

from __future__ import annotations

import numpy as np

from fairway.allocate.allocation import EXACT
from fairway.allocate.arrays import BoolArray, FloatArray
from fairway.allocate.kernels.cheapest import SplitsState, add_part, begin_splits, most_at
from fairway.allocate.kernels.classes import Classes
from fairway.allocate.kernels.master import mixture
from fairway.allocate.kernels.prices import ROUNDS_PER_TYPE, begin_search, learn, master_of
from fairway.allocate.kernels.program import Optimum, Program
from fairway.compiled import FloatTable, compiled

_GAP = 1e-7
"""Relative distance of the two bounds at which the search ends: well below what counts as exact."""

_KEPT = 1.0 - 1e-9
"""What a program keeps of the demands: without any room, it can be beyond a solver."""

MOST = 1e3
"""A job counts as if the level asked at least for its fastest rate divided by this, so that sums stay exact."""


def spend(classes: Classes, shares: FloatArray, demand: FloatArray, gone: BoolArray) -> FloatArray | None:
    """Shares with the most work, in which every job still has the rate it demands and keeps its time on types `gone`.

    None if rounding leads astray.
    """
    ok, spent = spend_what_is_left(
        classes.rates, classes.counts, classes.scale_factors, classes.capacity, shares, demand, gone
    )
    return spent if ok else None


@compiled(releases_gil=True, divides_as_numpy=True)
def spend_what_is_left(
    all_rates: FloatTable,
    counts: FloatArray,
    scale: FloatArray,
    all_capacity: FloatArray,
    shares: FloatTable,
    demand: FloatArray,
    gone: BoolArray,
) -> tuple[bool, FloatTable]:
    """`spend`, and whether the two bounds have met."""
    jobs, types = all_rates.shape
    free = np.flatnonzero(np.logical_not(gone) & (all_capacity > 0.0))
    width = len(free)
    if width == 0:
        return True, shares
    capacity, used_now, start = np.empty(width), np.zeros(width), np.zeros(width)
    for place in range(width):
        capacity[place] = all_capacity[free[place]]
    rates, present, load = np.empty((jobs, width)), np.zeros((jobs, width)), np.empty(jobs)
    settled, least, worth = np.zeros((jobs, types)), np.empty(jobs), np.zeros(jobs)
    value, all_load = 0.0, 0.0
    for i in range(jobs):
        held, settled_rate, now, fastest = 0.0, 0.0, 0.0, 0.0
        for j in range(types):
            fastest = max(fastest, all_rates[i, j])
            if gone[j]:
                settled[i, j] = shares[i, j]
                held += shares[i, j]
                settled_rate += all_rates[i, j] * shares[i, j]
        time = max(1.0 - held, 0.0)
        load[i] = counts[i] * scale[i] * time
        all_load += load[i]
        if demand[i] > 0.0:
            worth[i] = counts[i] * (1.0 / max(demand[i], fastest / MOST))
        for place in range(width):
            share, rate = shares[i, free[place]], all_rates[i, free[place]]
            rates[i, place] = rate * time
            now += rate * share
            used_now[place] += counts[i] * scale[i] * share / capacity[place]
            if time > 0.0:
                present[i, place] = share / time
            start[place] += worth[i] * rates[i, place]
        least[i] = min(max(demand[i] - settled_rate, 0.0), now)
        value += worth[i] * now
    # A first guess at the prices: half of what each type adds if all jobs spread over all types; where any type could
    # take all jobs, nothing has a price.
    if all_load > capacity.min():
        start = 0.5 * start * capacity / all_load
    else:
        start[:] = 0.0
    reached, bound, spent = _spend(begin_splits(rates, load), least, worth, capacity, start, value, used_now, present)
    if not bound - min(reached, bound) <= EXACT * abs(bound):
        return False, settled
    for i in range(jobs):
        time = max(1.0 - settled[i].sum(), 0.0)
        for place in range(width):
            settled[i, free[place]] = spent[i, place] * time
    return True, settled


@compiled(releases_gil=True, divides_as_numpy=True)
def _spend(
    splits: SplitsState,
    least: FloatArray,
    worth: FloatArray,
    capacity: FloatArray,
    start: FloatArray,
    now: float,
    used_now: FloatArray,
    present: FloatTable,
) -> tuple[float, float, FloatTable]:
    """The search for the prices, from the value and the use of the `present` shares: value, bound and new shares."""
    types = len(capacity)
    search = begin_search(used_now, now, np.inf, False)
    asked = np.empty((ROUNDS_PER_TYPE * types, types))
    for number in range(len(asked)):
        asked[number] = start if number == 0 else search.following
        splits.price[:types] = asked[number] / capacity
        value = most_at(splits, least, worth)
        used = splits.usage[:types] / capacity
        proven = value
        for j in range(types):
            proven += asked[number, j] * (1.0 - used[j])
        same = learn(search, asked[number], value, used, proven)
        if same or search.bounds[1] - search.bounds[0] <= _GAP * abs(search.bounds[1]):
            break
    spent = np.zeros(present.shape)
    numbers, parts = mixture(master_of(search))
    for place in range(len(numbers)):
        if numbers[place] == 0:
            spent += parts[place] * present
        else:
            splits.price[:types] = asked[numbers[place] - 1] / capacity
            most_at(splits, least, worth)
            add_part(splits, spent, parts[place])
    return search.bounds[0], search.bounds[1], spent


def spend_by_program(program: Program, demand: FloatArray) -> Optimum | None:
    """The same where jobs may share, from the program that has found the level; None if the solver finds no way."""
    worth, pairs = _worth(program.classes, demand), program.classes.pairs
    together = None
    if pairs is not None:
        members = np.stack([pairs.first, pairs.second], axis=1)
        together = np.einsum("kjm,km->kj", pairs.rates, worth[members])
    return program.maximise_sum(program.classes.rates * worth[:, None], together, demand * _KEPT)


def _worth(classes: Classes, demand: FloatArray) -> FloatArray:
    """What a step of one job of each class counts; nothing where the level asks for nothing."""
    asked = np.maximum(demand, classes.fastest / MOST)
    return np.divide(1.0, asked, out=np.zeros_like(demand), where=demand > 0)
