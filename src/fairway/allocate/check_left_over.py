"""Whether an allocation leaves anything over that a job could use: the most that jobs can gain with no job slower.

    maximise sum_i g_i   subject to   rate of job i >= rate_i + g_i * fastest_i,   g >= 0,   time and workers as ever

One linear program, written without the kernels that policies are made of. An allocation is Pareto-efficient if and only
if its optimum is 0.

With rates that differ by many orders of magnitude, a job that gives up a billionth of its rate may make room for all
of another job, which no arithmetic can tell from giving up nothing. The dual values tell: they say how dearly the rate
of each job is kept, and a gain that is a tiny part of all rates at these values is rounding.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array, csr_array, diags_array, hstack, vstack

from fairway.allocate.arrays import FloatArray, IntArray
from fairway.allocate.problem import Problem

_TIGHT = {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}


def left_over(problem: Problem, rates: FloatArray) -> tuple[FloatArray, float]:
    """What each job could have beside these effective rates, as a part of its fastest rate, so that the sum is largest.

    The second number is that sum as a part of what all jobs have, each rate counted at what it costs to keep. A job
    that can run nowhere or has no steps left gains nothing.
    """
    jobs, types = problem.throughputs.shape
    alone, column = np.nonzero(problem.runnable)
    rows, values, types_used, gangs = [alone], [problem.rates[alone, column]], [column], [problem.scale_factors[alone]]
    columns: list[IntArray] = [np.arange(len(alone))]
    pairs, count = problem.shareable, len(alone)
    if pairs is not None:
        pair, beside = np.nonzero(pairs.together)
        position = count + np.arange(len(pair))
        for side, member in enumerate((pairs.first[pair], pairs.second[pair])):
            rows.append(member)
            values.append(pairs.rates[pair, beside, side])
            columns.append(position)
        types_used.append(beside)
        gangs.append(problem.scale_factors[pairs.first[pair]])
        count += len(pair)
    if not count:
        return np.zeros(jobs), 0.0

    def matrix(entries: FloatArray, row: IntArray, column: IntArray, height: int) -> csr_array:
        return coo_array((entries, (row, column)), shape=(height, count)).tocsr()

    row, at = np.concatenate(rows), np.concatenate(columns)
    earned = matrix(np.concatenate(values), row, at, jobs)
    fastest = np.maximum(earned.max(axis=1).toarray().ravel(), 1e-300)
    unit = np.where(rates > 0, rates, fastest)
    scaled = earned.multiply(1.0 / unit[:, None]).tocsr()
    workers = matrix(np.concatenate(gangs), np.concatenate(types_used), np.arange(count), types)
    gain = diags_array(fastest / unit, format="csr")
    limits = vstack(
        [
            hstack([workers, csr_array((types, jobs))]),
            hstack([matrix(np.ones(len(row)), row, at, jobs), csr_array((jobs, jobs))]),
            hstack([-scaled, gain]),
        ]
    )
    wants = problem.can_run & (problem.steps_left != 0)  # a job that does not say how many are left wants more
    most = np.concatenate([np.full(count, np.inf), np.where(wants, np.inf, 0.0)])
    found = linprog(
        np.concatenate([np.zeros(count), -wants.astype(float)]),
        A_ub=limits,
        b_ub=np.concatenate([problem.workers, np.ones(jobs), -rates / unit]),
        bounds=np.column_stack([np.zeros(count + jobs), most]),
        method="highs",
        options=_TIGHT,
    )
    if found.x is None:  # the solver is at the end of its precision
        return np.zeros(jobs), 0.0
    gains: FloatArray = found.x[count:]
    worth = -found.ineqlin.marginals[-jobs:] / unit
    return gains, float(gains.sum()) / max(float(worth @ rates), 1e-300)
