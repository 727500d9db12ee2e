"""How good an allocation is by a measure that its policy does not optimise itself.

Policies that follow a rule report one of these as their objective, so that they can be compared: the lowest level of
any job (Gavel §4.1) or the score of first-in, first-out (Gavel §4.2). Both are taken on the true rates, whatever the
policy looked at.
"""

from __future__ import annotations

import numpy as np

from fairway.allocate.allocation import Allocation


def lowest_level(allocation: Allocation) -> float:
    """min_i s_i * rate_i / (w_i * proportional rate_i) over the jobs that can run; 0 if there are none."""
    problem = allocation.problem
    jobs = problem.can_run
    if not jobs.any():
        return 0.0
    needed = problem.weights[jobs] * problem.proportional_throughputs[jobs]
    return float((problem.scale_factors[jobs] * allocation.throughputs[jobs] / needed).min())


def fifo_score(allocation: Allocation) -> float:
    """sum_i (n - i) * rate_i / fastest rate_i, with i = 0 for the first of the n jobs that arrived."""
    problem = allocation.problem
    jobs = np.flatnonzero(problem.can_run)
    return float(((len(problem) - jobs) * allocation.throughputs[jobs] / problem.fastest[jobs]).sum())
