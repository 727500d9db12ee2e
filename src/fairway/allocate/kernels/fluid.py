"""Prices of accelerators from a fluid model: what an hour on each type costs the jobs that come.

Work of class c comes at `work_c` steps per second. Let x_cj be the mean number of jobs of the class that run alone on
type j, and x_cdj the mean number of pairs. The least mean number of jobs in service that does all work as it comes,

    min  sum x_cj + 2 sum x_cdj
    with sum_j T_cj x_cj + sum_dj T_cdj x_cdj >= work_c        for every class   (its dual: a step's price, kappa_c)
         sum_c s_c x_cj + sum_cd s_c x_cdj <= 0.97 N_j          for every type    (its dual: a worker's price, pi_j)

is, by Little's law, the least mean time in service. kappa_c is how many seconds of completion time one more step of the
class costs all jobs, and pi_j how many seconds an idle second of a worker of type j would save. Without pairs,
kappa_c = min_j (1 + s_c pi_j) / T_cj, so the prices of types alone tell what a job costs of which no class is known.

Where more work comes than the cluster can do, there is no answer; then, and also close to it, the prices are those of
a little less work than it can do.
"""

from __future__ import annotations

from typing import NamedTuple

import highspy
import numpy as np

from fairway.allocate.arrays import FloatArray, IntArray
from fairway.allocate.demand import Demand

_USABLE = 0.97
"""The part of the workers that the model lets be busy: jobs do not come evenly."""

_EDGE = 0.999
"""The part of the most work that can be done, at which prices are taken where more comes."""

_PAYS = 1.0 + 1e-6


class FluidPrices(NamedTuple):
    """`steps[c]` is kappa_c and `workers[j]` is pi_j; `load` is the work that comes, 1 for the most that fits."""

    steps: FloatArray
    workers: FloatArray
    load: float


class _Model(NamedTuple):
    """Columns of the program: the classes they serve (the second -1 for jobs alone), their type and relative rates."""

    first: IntArray
    second: IntArray
    column: IntArray
    rate: FloatArray
    second_rate: FloatArray


def fluid_prices(demand: Demand, workers: FloatArray, *, at_least: float = 0.0) -> FluidPrices | None:
    """The prices at the work that comes, or at `at_least` of the most that can be done if that is more.

    None where nothing comes that could run.
    """
    runnable = (demand.rates > 0) & (demand.scale_factors[:, None] <= workers)
    rates = np.where(runnable, demand.rates, 0.0)
    fastest = rates.max(axis=1, initial=0.0)
    used = np.flatnonzero((fastest > 0) & (demand.work > 0))
    if not len(used):
        return None
    asked = demand.work[used] / fastest[used]
    model = _columns(demand, rates, fastest, used)
    most = _solve(model, asked, demand.scale_factors[used], workers, largest=True)[2]
    load = 1.0 / most
    scale = min(max(1.0, at_least * most), _EDGE * most)
    kappa, prices, _ = _solve(model, scale * asked, demand.scale_factors[used], workers, largest=False)
    steps = np.full(len(demand.work), np.nan)
    steps[used] = kappa / fastest[used]
    return FluidPrices(steps, prices, load)


def _columns(demand: Demand, rates: FloatArray, fastest: FloatArray, used: IntArray) -> _Model:
    """Every class alone on every type, and every two that share and do more together than by turns."""
    position = np.full(len(rates), -1)
    position[used] = np.arange(len(used))
    first, column = np.nonzero(rates[used] > 0)
    relative = rates[used] / fastest[used][:, None]
    singles = _Model(first, np.full(len(first), -1), column, relative[first, column], np.zeros(len(first)))
    if demand.pairs is None:
        return singles
    together = demand.pairs[np.ix_(used, used)]
    alone = rates[used]
    safe = np.where(alone > 0, alone, np.inf)
    gain = together[..., 0] / safe[:, None, :] + together[..., 1] / safe[None, :, :]
    both = (together.min(axis=3) > 0) & (gain > _PAYS)
    c, d, j = np.nonzero(both & (np.arange(len(used))[:, None] <= np.arange(len(used)))[:, :, None])
    return _Model(
        np.concatenate([singles.first, c]),
        np.concatenate([singles.second, d]),
        np.concatenate([singles.column, j]),
        np.concatenate([singles.rate, together[c, d, j, 0] / fastest[used][c]]),
        np.concatenate([singles.second_rate, together[c, d, j, 1] / fastest[used][d]]),
    )


def _solve(
    model: _Model, asked: FloatArray, scale: FloatArray, workers: FloatArray, *, largest: bool
) -> tuple[FloatArray, FloatArray, float]:
    """The duals of classes and types and the value; with `largest`, how many times the work asked for can be done."""
    classes, types, columns = len(asked), len(workers), len(model.first)
    pair = model.second >= 0
    entries = np.arange(columns)
    row = np.concatenate([model.first, model.second[pair], classes + model.column])
    col = np.concatenate([entries, entries[pair], entries])
    value = np.concatenate([model.rate, model.second_rate[pair], scale[model.first]])
    cost = np.where(pair, 2.0, 1.0)
    lower = np.concatenate([asked, np.full(types, -np.inf)])
    if largest:  # one more column, the multiple of the work
        row, col = np.concatenate([row, np.arange(classes)]), np.concatenate([col, np.full(classes, columns)])
        value, cost = np.concatenate([value, -asked]), np.concatenate([np.zeros(columns), [-1.0]])
        lower[:classes] = 0.0
        columns += 1
    order = np.lexsort((row, col))
    row, col, value = row[order], col[order], value[order]
    # A class that shares with itself has two entries in one row, which the solver wants as one.
    new = np.ones(len(row), dtype=bool)
    new[1:] = (row[1:] != row[:-1]) | (col[1:] != col[:-1])
    starts = np.flatnonzero(new)
    row, col, value = row[starts], col[starts], np.add.reduceat(value, starts)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = columns, classes + types
    lp.col_cost_ = cost
    lp.col_lower_, lp.col_upper_ = np.zeros(columns), np.full(columns, highspy.kHighsInf)
    lp.row_lower_ = np.where(np.isinf(lower), -highspy.kHighsInf, lower)
    lp.row_upper_ = np.concatenate([np.full(classes, highspy.kHighsInf), _USABLE * workers])
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = np.searchsorted(col, np.arange(columns + 1))
    lp.a_matrix_.index_, lp.a_matrix_.value_ = row, value
    solver = highspy.Highs()
    solver.silent()
    for option, setting in (("threads", 1), ("random_seed", 0)):
        solver.setOptionValue(option, setting)
    solver.passModel(lp)
    solver.run()
    duals = np.asarray(solver.getSolution().row_dual)
    objective = float(solver.getInfo().objective_function_value)
    return np.maximum(duals[:classes], 0.0), np.maximum(-duals[classes:], 0.0), -objective if largest else objective
