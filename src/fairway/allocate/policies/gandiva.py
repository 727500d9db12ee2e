"""Gandiva: pairs drawn at random share when the jobs do not all fit, and every job gets the same time.

Decides from the counts, the scale factors and a seed (Gandiva, OSDI'18, as the baseline of Gavel §7). While all jobs
fit at once, each has its isolated share. Otherwise jobs of equal scale factor are drawn into pairs; time is split
equally over the pairs and the jobs that are left. A pair stays together as long as sharing pays: it can share on every
type, and its gains, summed over the types, are at least 1. How fast a type is plays no other part.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fairway.allocate.allocation import Allocation
from fairway.allocate.arrays import FloatArray
from fairway.allocate.kernels.scores import lowest_level
from fairway.allocate.kernels.sharing import Sharing
from fairway.allocate.policy import Policy
from fairway.allocate.problem import Problem

_PAYS = 1.0


@dataclass(frozen=True, slots=True)
class Gandiva(Policy):
    """Share at random under load; the objective is the lowest level, for comparison.

    Pairs that rest, because all jobs fit at the moment, keep their row with no time, so that the next decision knows
    them.
    """

    name: ClassVar[str] = "gandiva"
    agnostic: ClassVar[bool] = True
    space_sharing: ClassVar[bool] = True

    def allocate(self, problem: Problem) -> Allocation:
        """Split the time equally, in pairs if the jobs do not all fit."""
        sharing = Sharing(problem)
        pairs = _kept(problem, sharing)
        jobs = np.flatnonzero(problem.can_run)
        packs = problem.scale_factors[jobs].sum() > problem.workers.sum()
        if packs:
            paired = {job for pair in pairs for job in pair}
            pairs += _draw([job for job in jobs.tolist() if job not in paired], problem, sharing)
        shares = _equal_shares(problem, sharing, pairs) if packs else problem.isolated_shares
        first = np.array([*range(len(problem)), *(a for a, _ in pairs)], dtype=np.int64)
        second = np.array([-1] * len(problem) + [b for _, b in pairs], dtype=np.int64)
        resting = np.zeros((len(first) - len(shares), len(problem.types)))
        split = Allocation(self.name, problem, first, second, np.vstack([shares, resting]), 0.0, "max")
        return replace(split, objective=lowest_level(split))


def _kept(problem: Problem, sharing: Sharing) -> list[tuple[int, int]]:
    """The pairs of the previous decision whose members are both here and for whom sharing pays."""
    previous = problem.previous
    if previous is None or previous.policy != Gandiva.name:
        return []
    position = {name: job for job, name in enumerate(problem.ids)}
    kept = []
    for a, b in zip(previous.first.tolist(), previous.second.tolist(), strict=True):
        if b >= 0 and previous.ids[a] in position and previous.ids[b] in position:
            pair = sorted((position[previous.ids[a]], position[previous.ids[b]]))
            fits = problem.workers >= problem.scale_factors[pair[0]]
            gains = sharing.gains(*pair)[fits]
            if (gains > 0).all() and gains.sum() >= _PAYS:
                kept.append((pair[0], pair[1]))
    return kept


def _draw(waiting: list[int], problem: Problem, sharing: Sharing) -> list[tuple[int, int]]:
    """Draw two of the waiting jobs as often as there are any at first, and let them share if they can.

    Two that are alike in scale factor but cannot share are not drawn again: they run alone this time.
    """
    draw = random.Random(problem.seed)
    pairs = []
    for _ in range(len(waiting)):
        if len(waiting) < 2:
            break
        a, b = sorted(draw.sample(waiting, 2))
        if problem.scale_factors[a] != problem.scale_factors[b]:
            continue
        waiting.remove(a)
        waiting.remove(b)
        if sharing.gains(a, b).any():
            pairs.append((a, b))
    return pairs


def _equal_shares(problem: Problem, sharing: Sharing, pairs: list[tuple[int, int]]) -> FloatArray:
    """N_j / combinations / scale factor for each job that is alone and each pair, at most a full unit of time in all.

    Rows: the jobs, then the pairs. Time that falls on a type where the job or the pair cannot run is lost.
    """
    paired = [job for pair in pairs for job in pair]
    alone = problem.can_run.copy()
    alone[paired] = False
    per_row = problem.workers / (np.count_nonzero(alone) + len(pairs))
    rows = np.concatenate([np.arange(len(problem)), [a for a, _ in pairs]]).astype(np.int64)
    shares: FloatArray = per_row / problem.scale_factors[rows, None]
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1.0)
    usable = np.vstack([problem.runnable & alone[:, None], *(sharing.gains(a, b) > 0 for a, b in pairs)])
    return np.where(usable, shares, 0.0)
