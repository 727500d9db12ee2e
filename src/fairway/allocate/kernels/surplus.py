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
from fairway.allocate.kernels.cheapest import Splits, SplitsState, add_part, most_at
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
    free = np.flatnonzero(~gone & (classes.capacity > 0))
    if not len(free):
        return shares
    settled = np.where(gone, shares, 0.0)
    time = np.maximum(1.0 - settled.sum(axis=1), 0.0)
    rates = np.ascontiguousarray(classes.rates[:, free] * time[:, None])
    load, capacity = classes.counts * classes.scale_factors * time, classes.capacity[free]
    worth = classes.counts * _worth(classes, demand)
    now = np.einsum("ij,ij->i", classes.rates[:, free], shares[:, free])
    least = np.clip(demand - np.einsum("ij,ij->i", classes.rates, settled), 0.0, now)
    splits = Splits(rates, load)
    used_now = (classes.counts * classes.scale_factors) @ shares[:, free] / capacity
    # A first guess at the prices: half of what each type adds if all jobs spread over all types; where any type could
    # take all jobs, nothing has a price.
    crowded = load.sum() > capacity.min()
    start = 0.5 * (worth @ rates) * capacity / load.sum() if crowded else np.zeros(len(free))
    present = np.divide(shares[:, free], time[:, None], out=np.zeros_like(rates), where=time[:, None] > 0)
    value, bound, spent = _spend(splits.state, least, worth, capacity, start, float(worth @ now), used_now, present)
    if not bound - min(value, bound) <= EXACT * abs(bound):
        return None
    settled[:, free] = spent * time[:, None]
    return settled


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
