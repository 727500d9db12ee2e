"""The loops over tasks and workers, compiled: what it would cost to run each task on each worker, and which is best.

Formulas are those of Compass's job planning and dynamic adjustment; `planner` and `adjust` say what the arrays are and
when which of these is asked. Among equals, the best is the preferred worker if it is one of them, else drawn at random
(in the authors' simulator the first of them, `first_of_equals`).
"""

from __future__ import annotations

import numpy as np

from fairway.compiled import BoolTable, FloatTable, compiled, compiled_within
from fairway.place.arrays import BoolArray, FloatArray, IntArray

_FIRST = 2.0**53
"""Turns a number from [0, 1) into the whole number that a sequence of draws starts from."""


@compiled()
def plan_tasks(
    order: IntArray,
    seconds: FloatTable,
    before_offsets: IntArray,
    before: IntArray,
    heaviest: IntArray,
    near_seconds: FloatArray,
    far_seconds: FloatArray,
    input_seconds: FloatArray,
    need_offsets: IntArray,
    needs: IntArray,
    models: IntArray,
    fetch_seconds: FloatArray,
    model_bytes: FloatArray,
    hosts: IntArray,
    queued: FloatArray,
    busy_until: FloatArray,
    cached: BoolTable,
    free: FloatArray,
    me: int,
    own_queued: float,
    own_busy_until: float,
    own_cached: BoolArray,
    own_free: float,
    homes: BoolTable,
    ingress: int,
    now: float,
    eviction_penalty: float,
    home_penalty: float,
    counts_load: bool,
    counts_cache: bool,
    compat: bool,
    draw: float,
    given_workers: IntArray,
    given_finish: FloatArray,
    spreads: bool,
    key: int,
    parts: FloatArray,
) -> tuple[IntArray, FloatArray, int]:
    """The worker and the expected finish of each task; then the first task that no worker can run, -1 if all can.

    A task that has a worker in `given_workers` keeps it, and one that has a time in `given_finish` too is done; both
    may be empty. If it `spreads`, the others go where `spread_tasks` says.

    available(w) = now + load(w) at first; then the finish of the last task of this request that was planned on w
    ready(t, w)  = now + (input(t) if w is not on the ingress host)              for a task that takes the request
                 = max over predecessors p of (finish(p) + transfer of p's output to w)          for any other
    fetch(t, w)  = sum over the missing models m of fetch(m), (1 + penalty) times as much without room for m;
                   the penalty is another one where that room takes models that are at home on w
    finish(t, w) = max(available(w), ready(t, w)) + fetch(t, w) + seconds(t, w)
    """
    tasks, workers = seconds.shape
    chosen = np.full(tasks, -1, np.int64)
    finish = np.full(tasks, np.nan)
    fixed = given_workers.copy() if len(given_workers) else np.full(tasks, -1, np.int64)
    if spreads:
        spread = spread_tasks(key, parts, seconds, queued)
        for task in range(tasks):
            if fixed[task] < 0:
                fixed[task] = spread[task]
                if fixed[task] < 0:
                    return chosen, finish, task
    available = np.empty(workers)
    room = free.copy()
    holds = np.empty((len(models), workers), np.bool_)
    for number in range(len(models)):
        model = models[number]
        for worker in range(workers):
            holds[number, worker] = cached[model, worker]
    for worker in range(workers):
        load = queued[worker] + max(0.0, busy_until[worker] - now)
        available[worker] = now + (load if counts_load or load == np.inf else 0.0)
    if me >= 0:
        load = own_queued + max(0.0, own_busy_until - now)
        available[me] = now + (load if counts_load or load == np.inf else 0.0)
        room[me] = own_free
        for number in range(len(models)):
            holds[number, me] = own_cached[models[number]]
    ready = np.empty(workers)
    ends = np.empty(workers)
    state = np.uint64(draw * _FIRST)
    for position in range(tasks):
        task = order[position]
        given = fixed[task]
        if given >= 0 and len(given_finish) and not np.isnan(given_finish[task]):
            chosen[task] = given
            finish[task] = given_finish[task]
            continue
        first, last = (0, workers) if given < 0 else (given, given + 1)

        begin, end = before_offsets[task], before_offsets[task + 1]
        if begin == end:
            # The authors' simulator compares how long the input takes with a time of day, so that it never counts.
            there = 0.0 if compat else now
            for worker in range(first, last):
                at_hand = worker == ingress or (ingress >= 0 and hosts[worker] == hosts[ingress])
                ready[worker] = there + (0.0 if at_hand else input_seconds[task])
        else:
            ready[first:last] = -np.inf
            for index in range(begin, end):
                source = before[index]
                at = chosen[source]
                host = hosts[at]
                near, far = finish[source] + near_seconds[source], finish[source] + far_seconds[source]
                for worker in range(first, last):
                    arrives = far
                    if hosts[worker] == host:
                        arrives = finish[source] if worker == at else near
                    ready[worker] = max(ready[worker], arrives)

        begin, end = need_offsets[task], need_offsets[task + 1]
        best = np.inf
        for worker in range(first, last):
            fetch = 0.0
            if counts_cache:
                left = room[worker]
                for index in range(begin, end):
                    need = needs[index]
                    if not holds[need, worker]:
                        model = models[need]
                        penalty = 0.0
                        if left < model_bytes[model]:
                            held = own_cached if worker == me else cached[:, worker]
                            spare = own_free if worker == me else free[worker]
                            driven_out = _leaves_home(model, spare, held, homes[:, worker], model_bytes)
                            penalty = home_penalty if driven_out else eviction_penalty
                        fetch += fetch_seconds[model] * (1.0 + penalty)
                        left = max(0.0, left - model_bytes[model])
            ends[worker] = max(available[worker], ready[worker]) + fetch + seconds[task, worker]
            best = min(best, ends[worker])
        if best == np.inf:
            return chosen, finish, task

        winner = given
        if winner < 0:
            preferred = chosen[heaviest[task]] if heaviest[task] >= 0 else ingress
            winner, state = _best(ends, best, preferred, ingress, state, compat)
        chosen[task] = winner
        finish[task] = available[winner] = ends[winner]
        for index in range(begin, end):
            need = needs[index]
            size = model_bytes[models[need]]
            if compat:
                # A planned model is not remembered there, and its size is taken off what is used, not off the room.
                if not holds[need, winner]:
                    used = 0.0
                    for model in range(len(model_bytes)):
                        if own_cached[model] if winner == me else cached[model, winner]:
                            used += model_bytes[model]
                    used -= room[winner] - (own_free if winner == me else free[winner])
                    if used >= size:
                        room[winner] += size
            elif not holds[need, winner]:
                holds[need, winner] = True
                room[winner] = max(0.0, room[winner] - size)
    return chosen, finish, -1


@compiled()
def cheapest_worker(
    seconds: FloatArray,
    input_seconds: float,
    needed: IntArray,
    fetch_seconds: FloatArray,
    model_bytes: FloatArray,
    hosts: IntArray,
    queued: FloatArray,
    busy_until: FloatArray,
    cached: BoolTable,
    free: FloatArray,
    me: int,
    own_queued: float,
    own_busy_until: float,
    own_cached: BoolArray,
    own_free: float,
    homes: BoolTable,
    planned: int,
    now: float,
    eviction_penalty: float,
    home_penalty: float,
    counts_cache: bool,
    first_of_equals: bool,
    draw: float,
) -> int:
    """The worker on which one task would end first if it were sent from `me` now; -1 if none can run it.

    cost(w) = load(w) + (input(t) if w is on another host) + fetch(t, w) + seconds(t, w)
    """
    workers = len(seconds)
    ends = np.empty(workers)
    best = np.inf
    for worker in range(workers):
        mine = worker == me
        if mine:
            cost = own_queued + max(0.0, own_busy_until - now)
        else:
            cost = queued[worker] + max(0.0, busy_until[worker] - now)
            if me < 0 or hosts[worker] != hosts[me]:
                cost += input_seconds
        if counts_cache:
            fetch = 0.0
            left = own_free if mine else free[worker]
            for index in range(len(needed)):
                model = needed[index]
                held = own_cached[model] if mine else cached[model, worker]
                if not held:
                    penalty = 0.0
                    if left < model_bytes[model]:
                        there = own_cached if mine else cached[:, worker]
                        spare = own_free if mine else free[worker]
                        driven_out = _leaves_home(model, spare, there, homes[:, worker], model_bytes)
                        penalty = home_penalty if driven_out else eviction_penalty
                    fetch += fetch_seconds[model] * (1.0 + penalty)
                    left = max(0.0, left - model_bytes[model])
            cost += fetch
        ends[worker] = cost + seconds[worker]
        best = min(best, ends[worker])
    if best == np.inf:
        return -1
    winner, _ = _best(ends, best, me, planned, np.uint64(draw * _FIRST), first_of_equals)
    return winner


@compiled_within()
def _leaves_home(model: int, free: float, held: BoolArray, at_home: BoolArray, model_bytes: FloatArray) -> bool:
    """Whether some model has to leave its home to make room for one: all guests of the worker together do not."""
    for other in range(len(model_bytes)):
        if held[other] and not at_home[other]:
            free += model_bytes[other]
    return bool(free < model_bytes[model])


@compiled_within()
def _best(
    ends: FloatArray, best: float, preferred: int, second: int, state: np.uint64, first_of_equals: bool
) -> tuple[int, np.uint64]:
    """One of those that end at `best`: the preferred, the second choice, else drawn; and what to draw from next."""
    if not first_of_equals:
        if preferred >= 0 and ends[preferred] == best:
            return preferred, state
        if second >= 0 and ends[second] == best:
            return second, state
    first, equals = -1, 0
    for worker in range(len(ends)):
        if ends[worker] == best:
            if equals == 0:
                first = worker
            equals += 1
    if first_of_equals or equals == 1:
        return first, state
    state, number = _next(state)
    rank = int(number * equals)
    for worker in range(first, len(ends)):
        if ends[worker] == best:
            if rank == 0:
                return worker, state
            rank -= 1
    return first, state


@compiled()
def spread_tasks(key: int, parts: FloatArray, seconds: FloatTable, queued: FloatArray) -> IntArray:
    """The worker of each task where the row of workers is the choice, by `parts` unless these are empty."""
    workers = np.empty(len(seconds), np.int64)
    for task in range(len(seconds)):
        part = parts[task] if len(parts) else -1.0
        workers[task] = spread_task(key, task, part, seconds[task], queued)
    return workers


@compiled()
def spread_task(key: int, task: int, part: float, seconds: FloatArray, queued: FloatArray) -> int:
    """The worker at a part of the row of workers, from [0, 1), or where the hash of request and task falls.

    If that worker has left or cannot run the task, the rest of them are the row; -1 if there are none. Without a part,
    it is negative.
    """
    number = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(task) * np.uint64(0xD1B54A32D192ED03)
    number = _mixed(number + np.uint64(0x632BE59BD9B4E019))
    worker = _place(number, part, len(seconds))
    if seconds[worker] != np.inf and queued[worker] != np.inf:
        return worker
    others = np.flatnonzero((seconds != np.inf) & (queued != np.inf))
    return int(others[_place(number, part, len(others))]) if len(others) else -1


@compiled_within()
def _place(number: np.uint64, part: float, workers: int) -> int:
    # Compiled, the one is an unsigned number and the other is not; together they must be of one kind.
    return int(np.int64(number % np.uint64(workers))) if part < 0 else int(part * workers)


@compiled_within()
def _next(state: np.uint64) -> tuple[np.uint64, float]:
    """The next of a sequence of numbers in [0, 1) that are all but independent (SplitMix64)."""
    state += np.uint64(0x9E3779B97F4A7C15)
    return state, float(_mixed(state) >> np.uint64(11)) / _FIRST


@compiled_within()
def _mixed(number: np.uint64) -> np.uint64:
    """A number that two others rarely share a remainder of (the finisher of SplitMix64)."""
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return number ^ (number >> np.uint64(31))
