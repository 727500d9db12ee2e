"""The integer program of gangs in layers: every job in one place, no place beyond its room, at the least cost.

One binary variable per (job, place) that is worth a look, one row per job and per place; HiGHS does branch and bound
from a known solution. It stops after a number of nodes, not after some time, so that the same problem always has the
same answer; how far that answer can be from the optimum it says by its bound.
"""

from __future__ import annotations

import highspy
import numpy as np

from fairway.allocate.arrays import BoolArray, FloatArray, IntArray

MOST_COLUMNS = 4_000
"""Variables up to which this takes about a second."""

_NODES = 200


def cheapest_whole(
    costs: FloatArray, sizes: IntArray, room: IntArray, usable: BoolArray, start: IntArray
) -> tuple[IntArray, float]:
    """The place of each job and a bound: no solution that puts jobs into usable places only costs less.

    `start` is a solution to begin with, in usable places; the answer is never worse.
    """
    jobs, places = len(sizes), len(room)
    job, place = np.nonzero(usable)
    columns = len(job)
    scale = float(costs[np.arange(jobs), start].mean()) or 1.0  # numbers near 1 for the solver's tolerances
    solver = highspy.Highs()
    solver.silent()
    for option, value in (
        ("threads", 1),
        ("random_seed", 0),
        ("mip_max_nodes", _NODES),
        ("mip_rel_gap", 1e-7),
        ("mip_abs_gap", 0.0),
    ):
        solver.setOptionValue(option, value)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = columns, jobs + places
    lp.col_cost_ = costs[job, place] / scale
    lp.col_lower_, lp.col_upper_ = np.zeros(columns), np.ones(columns)
    lp.integrality_ = [highspy.HighsVarType.kInteger] * columns
    lp.row_lower_ = np.concatenate([np.ones(jobs), np.zeros(places)])
    lp.row_upper_ = np.concatenate([np.ones(jobs), room.astype(float)])
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = np.arange(0, 2 * columns + 1, 2)
    lp.a_matrix_.index_ = np.stack([job, jobs + place], axis=1).ravel()
    lp.a_matrix_.value_ = np.stack([np.ones(columns), sizes[job].astype(float)], axis=1).ravel()
    solver.passModel(lp)
    known = highspy.HighsSolution()
    known.col_value = (start[job] == place).astype(float).tolist()
    solver.setSolution(known)
    solver.run()
    chosen = np.asarray(solver.getSolution().col_value) > 0.5
    found = start.copy()
    found[job[chosen]] = place[chosen]
    everyone = np.arange(jobs)
    better = costs[everyone, found].sum() <= costs[everyone, start].sum()
    return found if better else start, float(solver.getInfo().mip_dual_bound) * scale
