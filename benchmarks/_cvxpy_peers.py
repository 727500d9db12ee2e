"""The same problems in cvxpy, with the solver that it chooses by itself, built anew for every decision.

Each function takes an instance and returns the shares of time. Two forms of a policy stand side by side where the
original writes it otherwise than a vectorised program: `in_a_list` and `by_search` follow the original's code.
"""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np
from scipy import sparse

from benchmarks._instances import FloatArray, Instance


def max_min_fairness(instance: Instance) -> FloatArray:
    """One linear program."""
    x = cp.Variable(instance.rates.shape, nonneg=True)
    levels = cp.sum(cp.multiply(instance.level_rates, x), axis=1)
    return _solved(cp.Maximize(cp.min(levels)), _fits(x, instance), x)


def makespan(instance: Instance) -> FloatArray:
    """One linear program that raises the inverse of the makespan, counted in a unit that keeps numbers near 1."""
    x = cp.Variable(instance.rates.shape, nonneg=True)
    unit = np.median(instance.steps_left / instance.isolated_rates)
    speeds = cp.sum(cp.multiply(instance.rates * (unit / instance.steps_left)[:, None], x), axis=1)
    return _solved(cp.Maximize(cp.min(speeds)), _fits(x, instance), x)


def makespan_by_search(instance: Instance) -> FloatArray:
    """As the original: halve an interval of seconds until its ends are within 5 %, a feasibility program each time."""
    shortest, longest = 100.0, 1e6
    highest, found = longest, None
    while found is None:
        while 1.05 * shortest < longest:
            seconds = (shortest + longest) / 2
            x = cp.Variable(instance.rates.shape, nonneg=True)
            in_time = cp.sum(cp.multiply(instance.rates, x), axis=1) >= instance.steps_left / seconds
            program = cp.Problem(cp.Maximize(1), [*_fits(x, instance), in_time])
            program.solve()
            if program.status == cp.OPTIMAL:
                found, longest = x.value, seconds
            else:
                shortest = seconds
        shortest, longest, highest = highest, highest * 10, highest * 10
    return found


def finish_time_fairness(instance: Instance) -> FloatArray:
    """One conic program; rates are counted in the isolated rate, which is faster and more exact than as they are."""
    x = cp.Variable(instance.rates.shape, nonneg=True)
    isolated, alone = instance.isolated_rates, instance.isolated_seconds
    speedups = cp.sum(cp.multiply(instance.rates / isolated[:, None], x), axis=1)
    left = instance.steps_left / isolated / alone
    rho = instance.elapsed / alone + cp.multiply(left, cp.inv_pos(speedups))
    return _solved(cp.Minimize(cp.max(rho)), _fits(x, instance), x)


def finish_time_fairness_in_a_list(instance: Instance) -> FloatArray:
    """As the original: one expression per job, and the maximum of them all."""
    x = cp.Variable(instance.rates.shape, nonneg=True)
    alone = instance.isolated_seconds
    rho = []
    for i in range(len(instance)):
        rate = cp.sum(cp.multiply(instance.rates[i], x[i]))
        rho.append((instance.elapsed[i] + instance.steps_left[i] * cp.inv_pos(rate)) / alone[i])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*too many subexpressions")
        return _solved(cp.Minimize(cp.maximum(*rho)), _fits(x, instance), x)


def water_filling(instance: Instance) -> FloatArray:
    """Raise the level; whoever has a positive dual value is stuck and keeps it, the others go on.

    The first program is built for its numbers. If a job can still rise, a second one has parameters for who rises
    and who keeps what: it is compiled once, after which a rise costs a third less.
    """
    rises, kept = np.ones(len(instance)), np.zeros(len(instance))
    program, x, level, demand = _rise(instance, rises, kept)
    parameters = None
    while True:
        program.solve()
        worth = demand.dual_value * rises
        # Below 1e-5 the noise of the solver counts as worth, and jobs are held back that could still rise.
        stuck = worth > 1e-4 * worth.max()
        kept[stuck], rises[stuck] = level.value * (1 - 1e-9), 0.0
        if not rises.any():
            return x.value
        if parameters is None:
            parameters = cp.Parameter(len(instance), nonneg=True), cp.Parameter(len(instance), nonneg=True)
            program, x, level, demand = _rise(instance, *parameters)
        parameters[0].value, parameters[1].value = rises, kept


def _rise(
    instance: Instance, rises: FloatArray | cp.Parameter, kept: FloatArray | cp.Parameter
) -> tuple[cp.Problem, cp.Variable, cp.Variable, cp.Constraint]:
    x, level = cp.Variable(instance.rates.shape, nonneg=True), cp.Variable()
    demand = cp.sum(cp.multiply(instance.level_rates, x), axis=1) >= cp.multiply(rises, level) + kept
    return cp.Problem(cp.Maximize(level), [demand, *_fits(x, instance)]), x, level, demand


def max_min_fairness_with_pairs(instance: Instance) -> FloatArray:
    """One linear program over all jobs and all pairs that can share anywhere, from sparse matrices."""
    assert instance.pairs is not None
    jobs, types = instance.rates.shape
    usable = (instance.pairs.rates > 0).any(axis=(1, 2))
    pairs = instance.pairs.where(usable)
    rows = jobs + len(pairs)
    job = np.concatenate([np.arange(jobs), pairs.first, pairs.second])
    row = np.concatenate([np.arange(rows), np.arange(jobs, rows)])
    scale = instance.level_rates[:, 0] / instance.rates[:, 0]
    rates = np.concatenate([instance.rates, pairs.rates[:, :, 0], pairs.rates[:, :, 1]]) * scale[job][:, None]
    index = np.repeat(job, types), (row[:, None] * types + np.arange(types)).ravel()
    level_of = sparse.csr_array((rates.ravel(), index), shape=(jobs, rows * types))
    time_of = sparse.csr_array((np.ones(rates.size), index), shape=(jobs, rows * types))
    everything = np.tile(np.arange(types), rows), np.arange(rows * types)
    workers_of = sparse.csr_array((np.ones(rows * types), everything), shape=(types, rows * types))
    x = cp.Variable(rows * types, nonneg=True)
    fits = [time_of @ x <= 1, workers_of @ x <= instance.capacity]
    found = _solved(cp.Maximize(cp.min(level_of @ x)), fits, x).reshape(rows, types)
    shares = np.zeros((jobs + len(instance.pairs), types))
    shares[np.concatenate([np.ones(jobs, dtype=bool), usable])] = found
    return shares


def _fits(x: cp.Variable, instance: Instance) -> list[cp.Constraint]:
    """No job runs for more than all of the time, and no type has more than its workers in use."""
    return [cp.sum(x, axis=1) <= 1, cp.sum(x, axis=0) <= instance.capacity]


def _solved(objective: cp.Maximize | cp.Minimize, constraints: list[cp.Constraint], x: cp.Variable) -> FloatArray:
    cp.Problem(objective, constraints).solve()
    return x.value
