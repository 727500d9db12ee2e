"""Lets jobs keep their places: of the rounds that serve all jobs as well as the chosen one, one that moves few of them.

Shares say how long a job is to run on which accelerator type, and among the shares that a policy likes best, jobs that
are equal can change places: which of them the solver puts where means nothing to the policy, but a restart to each job
that moves. So the choice of a round is taken as what every job is to get, not as where: a job that would be moved stays
if the jobs that were to take its workers find others at which they are served as well.

First, all jobs that gain nothing by their moves stay at once, which is possible wherever nothing but shares changed.
Where that takes from another job what it was to get, jobs are let stay one by one, by chains of changes: the job that
was to come here goes there instead, the one that was to come there elsewhere, until a type has room. No job ever gets
less than was chosen for it; jobs that share their workers stay out of it.
"""

from __future__ import annotations

import numpy as np

from fairway.allocate.arrays import BoolArray, IntArray
from fairway.compiled import FloatTable, IntTable, compiled, compiled_within

_SAME = 1e-9


@compiled()
def keep_places(
    to: IntArray,
    on: IntArray,
    single: BoolArray,
    scale: IntArray,
    rates: FloatTable,
    gains: IntTable,
    left: IntArray,
) -> bool:
    """Change the types `to` which jobs are to go so that fewer of them move; `on` is where they run now.

    `left` are the workers of each type that no job was given, which changes with it. Only jobs that are `single` are
    dealt with: they run, or are to run, alone, and may be stopped. `rates` and `gains` are as in `rounds.choose`.
    Returns whether a job stays that was to move.
    """
    jobs = len(to)
    content = np.zeros(jobs, np.bool_)  # as well off where they are as where they are to go
    for job in range(jobs):
        if single[job] and on[job] >= 0 and to[job] >= 0:
            content[job] = gains[job, to[job]] <= 0
    if not (content & (to != on)).any():
        return False
    if _all_stay(to, on, single, content, scale, rates, left):
        return True
    some = False
    for job in range(jobs):
        if content[job] and to[job] != on[job]:
            _one_stays(job, to, on, single, content, scale, rates, left)
            some = some or to[job] == on[job]
    return some


@compiled_within()
def _all_stay(
    to: IntArray,
    on: IntArray,
    single: BoolArray,
    content: BoolArray,
    scale: IntArray,
    rates: FloatTable,
    left: IntArray,
) -> bool:
    """Let all jobs that are content stay, if the others can still be served; otherwise nothing is changed."""
    jobs, types = rates.shape
    room = left.copy()
    for job in range(jobs):
        if single[job] and to[job] >= 0:
            room[to[job]] += scale[job]
    for job in range(jobs):
        if content[job]:
            room[on[job]] -= scale[job]
    if room.min() < 0:  # jobs that share now are to have workers of those that stay
        return False
    new = to.copy()
    for job in np.argsort(-scale, kind="mergesort"):
        if content[job]:
            new[job] = on[job]
        elif single[job] and to[job] >= 0:
            best = -1
            for column in range(types):
                as_fast = rates[job, column] >= rates[job, to[job]] * (1.0 - _SAME)
                if as_fast and scale[job] <= room[column] and (best < 0 or column == to[job]):
                    best = column
            if best < 0:
                return False
            new[job] = best
            room[best] -= scale[job]
    to[:] = new
    left[:] = room
    return True


@compiled_within()
def _one_stays(
    mover: int,
    to: IntArray,
    on: IntArray,
    single: BoolArray,
    content: BoolArray,
    scale: IntArray,
    rates: FloatTable,
    left: IntArray,
) -> None:
    """Let one job stay, if others of its size can go elsewhere instead of taking its workers."""
    types, size = rates.shape[1], scale[mover]
    left[to[mover]] += size
    by = np.full(types, -1)  # the job that goes on to this type,
    source = np.full(types, -1)  # from that one
    reached = np.zeros(types, np.bool_)
    reached[on[mover]] = True
    queue = np.empty(types, np.int64)
    queue[0], first, last = on[mover], 0, 1
    while first < last:
        here = queue[first]
        first += 1
        if left[here] >= size:
            left[here] -= size
            while source[here] >= 0:
                to[by[here]] = here
                here = source[here]
            to[mover] = on[mover]
            return
        for job in range(len(to)):
            if not single[job] or to[job] != here or on[job] == here or scale[job] != size or job == mover:
                continue
            for column in range(types):
                if reached[column] or rates[job, column] <= 0.0:
                    continue
                home = column == on[job] and content[job]
                if home or rates[job, column] >= rates[job, here] * (1.0 - _SAME):
                    reached[column] = True
                    by[column], source[column] = job, here
                    queue[last] = column
                    last += 1
    left[to[mover]] -= size
