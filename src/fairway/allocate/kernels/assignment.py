"""Which jobs run, alone or in pairs, on which type, such that the sum of their values is high: a local search.

Every job has a value per step. A job that runs alone is worth its rate times that, two that share are worth the sum of
both at the rates they then have, and whatever already runs as it is to run is worth a little more, which pays for the
restart of what would take its place. Whole gangs only: it is an integer program, with many answers that are as good.

The search begins with what runs and makes changes that gain, until there are none: a job takes free workers; joins
one that is alone; takes the place of another, alone or beside its partner, which goes to the place that became free, or
where else it fits best, or waits; a gang takes the place of several jobs, and several jobs that of a gang. No change is
kept that does not gain, so the search ends, and the same problem always has the same answer.
"""

from __future__ import annotations

import numpy as np

from fairway.allocate.arrays import BoolArray, FloatArray, IntArray
from fairway.compiled import FloatBlocks, FloatTable, compiled, compiled_within

_LEAST = 1e-9
"""What a change must gain, relative to the value of all."""

_PASSES = 30


@compiled_within()
def _each_alone(value: FloatArray, rates: FloatTable, on: IntArray, beside: IntArray, stay: float) -> FloatTable:
    """What each job is worth alone on each type."""
    alone = np.empty(rates.shape)
    for m in range(len(value)):
        for w in range(rates.shape[1]):
            alone[m, w] = value[m] * rates[m, w]
            if on[m] == w and beside[m] < 0:
                alone[m, w] *= stay
    return alone


@compiled_within()
def _pair(
    a: int, b: int, w: int, value: FloatArray, kind: IntArray, table: FloatBlocks, on: IntArray, beside: IntArray,
    stay: float,
) -> float:  # fmt: skip
    first, second = table[kind[a], kind[b], w, 0], table[kind[a], kind[b], w, 1]
    if first <= 0.0 or second <= 0.0:
        return -1.0
    worth: float = value[a] * first + value[b] * second
    return worth * stay if beside[a] == b and on[a] == w else worth


@compiled_within()
def _find_place(
    m: int, to: IntArray, mate: IntArray, left: IntArray, shares: bool, value: FloatArray, rates: FloatTable,
    alone: FloatTable, scale: IntArray, kind: IntArray, table: FloatBlocks, on: IntArray, beside: IntArray,
    stay: float,
) -> tuple[float, int, int]:  # fmt: skip
    """The most that a job adds without another giving way, the type, and the job that it joins there (-1: none)."""
    best, where, host = 0.0, -1, -1
    for w in range(len(left)):
        if rates[m, w] > 0.0 and left[w] >= scale[m]:
            worth = alone[m, w]
            if worth > best:
                best, where, host = worth, w, -1
    if shares:
        for d in range(len(to)):
            w = to[d]
            if w >= 0 and mate[d] < 0 and d != m and scale[d] == scale[m]:
                worth = _pair(m, d, w, value, kind, table, on, beside, stay)
                if worth > 0.0:
                    worth -= alone[d, w]
                    if worth > best:
                        best, where, host = worth, w, d
    return best, where, host


@compiled_within()
def _leave(m: int, to: IntArray, mate: IntArray, left: IntArray, scale: IntArray) -> None:
    if mate[m] >= 0:
        mate[mate[m]] = -1
        mate[m] = -1
    elif to[m] >= 0:
        left[to[m]] += scale[m]
    to[m] = -1


@compiled_within()
def _enter(m: int, w: int, host: int, to: IntArray, mate: IntArray, left: IntArray, scale: IntArray) -> None:
    to[m] = w
    if host >= 0:
        mate[m], mate[host] = host, m
    else:
        left[w] -= scale[m]


@compiled_within()
def _total(
    to: IntArray, mate: IntArray, value: FloatArray, alone: FloatTable, kind: IntArray, table: FloatBlocks,
    on: IntArray, beside: IntArray, stay: float, unit: FloatArray,
) -> float:  # fmt: skip
    """The value of all; `unit` becomes that of each job that runs, together with the one beside it."""
    total = 0.0
    for m in range(len(to)):
        if to[m] >= 0:
            if mate[m] < 0:
                unit[m] = alone[m, to[m]]
                total += unit[m]
            elif mate[m] > m:
                unit[m] = unit[mate[m]] = _pair(m, mate[m], to[m], value, kind, table, on, beside, stay)
                total += unit[m]
    return total


@compiled()
def choose_jobs(
    value: FloatArray, rates: FloatTable, scale: IntArray, kind: IntArray, table: FloatBlocks, workers: IntArray,
    on: IntArray, beside: IntArray, stay: float,
) -> tuple[IntArray, IntArray, float]:  # fmt: skip
    """The type of each job (-1: it waits), its partner (-1: it runs alone) and the sum of all values.

    `value` is that of a step of each job, `rates` are 0 where a job cannot run. `table[k, l, j]` are the rates of two
    jobs of kinds k and l that share type j, 0 where they cannot. `on` and `beside` are what runs now, worth `stay`
    times as much as it would be otherwise.
    """
    jobs, types = rates.shape
    shares = table.shape[0] > 0
    to, mate, left = np.full(jobs, -1), np.full(jobs, -1), workers.copy()
    for m in range(jobs):
        w = on[m]
        if w >= 0 and to[m] < 0 and rates[m, w] > 0.0 and left[w] >= scale[m]:
            _enter(m, w, -1, to, mate, left, scale)
            d = beside[m]
            if d > m and shares:  # two that do less together than one of them alone are parted
                apart = max(value[m] * rates[m, w], value[d] * rates[d, w])
                if _pair(m, d, w, value, kind, table, on, beside, stay) > apart:
                    _enter(d, w, m, to, mate, left, scale)
    alone, unit = _each_alone(value, rates, on, beside, stay), np.zeros(jobs)
    now = _total(to, mate, value, alone, kind, table, on, beside, stay, unit)
    alt = np.zeros(jobs)
    old_to, old_mate, old_left, old_unit = to.copy(), mate.copy(), left.copy(), unit.copy()
    order = np.argsort(-value, kind="mergesort")
    gangs = jobs > 0 and scale.max() > 1
    look = np.ones(jobs, np.bool_)  # jobs for which something may have changed since no change for them gained
    for _ in range(_PASSES):
        changed = False
        for m in range(jobs):
            before, alt[m] = alt[m], 0.0
            if to[m] >= 0:
                alt[m] = _find_place(
                    m, to, mate, left, shares, value, rates, alone, scale, kind, table, on, beside, stay
                )[0]  # fmt: skip
            if alt[m] > before:  # it can give way for less than it could
                look[:] = True
        for waiting in (True, False):
            for m in order:
                if not look[m] or (to[m] < 0) != waiting:
                    continue
                look[m] = False
                s, w0, x = scale[m], to[m], mate[m]
                loss = 0.0
                if w0 >= 0:
                    loss = unit[m] if x < 0 else unit[m] - alone[x, w0]
                best, what, where, whom = _LEAST * now, 0, -1, -1
                for w in range(types):
                    if rates[m, w] > 0.0 and (w != w0 or x >= 0) and left[w] >= s:
                        gain = alone[m, w] - loss
                        if gain > best:
                            best, what, where, whom = gain, 1, w, -1
                for d in range(jobs):
                    w = to[d]
                    if w < 0 or d in (m, x) or scale[d] != s or (rates[m, w] <= 0.0):
                        continue
                    e = mate[d]
                    if e < 0:
                        there = unit[d]
                        if shares:
                            both = _pair(m, d, w, value, kind, table, on, beside, stay)
                            if both > 0.0 and both - there - loss > best:
                                best, what, where, whom = both - there - loss, 1, w, d
                        gain = alone[m, w] - there - loss
                        back = _back(d, w0, x, value, rates, alone, kind, table, on, beside, stay, alt)
                        if gain + back > best:
                            best, what, where, whom = gain + back, 2, w, d
                    else:
                        both = unit[d]
                        new = _pair(m, d, w, value, kind, table, on, beside, stay)
                        if new > 0.0:
                            gain = new - both - loss
                            gain += _back(e, w0, x, value, rates, alone, kind, table, on, beside, stay, alt)
                            if gain > best:
                                best, what, where, whom = gain, 3, w, d
                        if d < e:
                            gain = alone[m, w] - both - loss + alt[d] + alt[e]
                            if gain > best:
                                best, what, where, whom = gain, 4, w, d
                if gangs:
                    for w in range(types):
                        if w != w0 and rates[m, w] > 0.0 and left[w] < s and workers[w] >= s:
                            gain = alone[m, w] - loss
                            gain -= _cheapest(
                                m, w, s - left[w], to, mate, value, alone, scale, kind, table, on, beside, stay,
                                alt, False,
                            )[0]  # fmt: skip
                            if gain > best:
                                best, what, where, whom = gain, 5, w, -1
                if what == 0:
                    continue
                old_to[:], old_mate[:], old_left[:], old_unit[:] = to, mate, left, unit
                out, out_too = -1, -1
                _leave(m, to, mate, left, scale)
                if what == 1:
                    _enter(m, where, whom, to, mate, left, scale)
                elif what == 2:
                    out = whom
                    _leave(out, to, mate, left, scale)
                    _enter(m, where, -1, to, mate, left, scale)
                elif what == 3:
                    out = mate[whom]
                    _leave(out, to, mate, left, scale)
                    _enter(m, where, whom, to, mate, left, scale)
                elif what == 4:
                    out, out_too = whom, mate[whom]
                    _leave(out, to, mate, left, scale)
                    _leave(out_too, to, mate, left, scale)
                    _enter(m, where, -1, to, mate, left, scale)
                else:
                    _, gone = _cheapest(
                        m, where, s - left[where], to, mate, value, alone, scale, kind, table, on, beside, stay,
                        alt, True,
                    )  # fmt: skip
                    for d in gone:
                        _leave(d, to, mate, left, scale)
                    _enter(m, where, -1, to, mate, left, scale)
                    for d in gone:
                        _settle(d, to, mate, left, shares, value, rates, alone, scale, kind, table, on, beside, stay)
                for d in (out, out_too):
                    if d >= 0:
                        _settle(d, to, mate, left, shares, value, rates, alone, scale, kind, table, on, beside, stay)
                after = _total(to, mate, value, alone, kind, table, on, beside, stay, unit)
                if after > now + _LEAST * abs(now):
                    now, changed = after, True
                    _look_again(look, to, mate, left, old_to, old_mate, old_left)
                else:
                    to[:], mate[:], left[:], unit[:] = old_to, old_mate, old_left, old_unit
        if gangs:
            for g in range(jobs):
                if to[g] >= 0 and scale[g] > 1:
                    old_to[:], old_mate[:], old_left[:], old_unit[:] = to, mate, left, unit
                    _leave(g, to, mate, left, scale)
                    for m in order:
                        if to[m] < 0 and m != g and scale[m] < scale[g]:
                            _settle(
                                m, to, mate, left, shares, value, rates, alone, scale, kind, table, on, beside, stay
                            )
                    _settle(g, to, mate, left, shares, value, rates, alone, scale, kind, table, on, beside, stay)
                    after = _total(to, mate, value, alone, kind, table, on, beside, stay, unit)
                    if after > now + _LEAST * abs(now):
                        now, changed = after, True
                        _look_again(look, to, mate, left, old_to, old_mate, old_left)
                    else:
                        to[:], mate[:], left[:], unit[:] = old_to, old_mate, old_left, old_unit
        if not changed:
            break
    return to, mate, now


@compiled_within()
def _look_again(
    look: BoolArray, to: IntArray, mate: IntArray, left: IntArray, old_to: IntArray, old_mate: IntArray,
    old_left: IntArray,
) -> None:  # fmt: skip
    """Jobs that have changed places are looked at again, and all of them where workers have become free."""
    for w in range(len(left)):
        if left[w] > old_left[w]:
            look[:] = True
            return
    for m in range(len(to)):
        if to[m] != old_to[m] or mate[m] != old_mate[m]:
            look[m] = True


@compiled_within()
def _settle(
    m: int, to: IntArray, mate: IntArray, left: IntArray, shares: bool, value: FloatArray, rates: FloatTable,
    alone: FloatTable, scale: IntArray, kind: IntArray, table: FloatBlocks, on: IntArray, beside: IntArray,
    stay: float,
) -> None:  # fmt: skip
    """Let a job that waits run where it adds most, if anywhere."""
    gain, w, host = _find_place(m, to, mate, left, shares, value, rates, alone, scale, kind, table, on, beside, stay)
    if gain > 0.0:
        _enter(m, w, host, to, mate, left, scale)


@compiled_within()
def _back(
    d: int, w0: int, x: int, value: FloatArray, rates: FloatTable, alone: FloatTable, kind: IntArray,
    table: FloatBlocks, on: IntArray, beside: IntArray, stay: float, alt: FloatArray,
) -> float:  # fmt: skip
    """What a job that gives way is still worth: in the place that became free, or elsewhere, or waiting."""
    best: float = alt[d]
    if w0 >= 0 and rates[d, w0] > 0.0:
        if x < 0:
            best = max(best, alone[d, w0])
        elif x != d:
            both = _pair(d, x, w0, value, kind, table, on, beside, stay)
            if both > 0.0:
                best = max(best, both - alone[x, w0])
    return best


@compiled_within()
def _cheapest(
    m: int, w: int, need: int, to: IntArray, mate: IntArray, value: FloatArray, alone: FloatTable, scale: IntArray,
    kind: IntArray, table: FloatBlocks, on: IntArray, beside: IntArray, stay: float, alt: FloatArray, listed: bool,
) -> tuple[float, IntArray]:  # fmt: skip
    """What it costs to free so many workers of a type, those first that cost least per worker, and the jobs that go."""
    jobs = len(to)
    cost = np.full(jobs, np.inf)
    for d in range(jobs):
        if to[d] == w and d != m and (mate[d] < 0 or mate[d] > d):
            e = mate[d]
            if e < 0:
                worth = alone[d, w] - alt[d]
            else:
                worth = _pair(d, e, w, value, kind, table, on, beside, stay) - alt[d] - alt[e]
            cost[d] = worth / scale[d]
    total, room = 0.0, 0
    gone = np.empty(jobs if listed else 0, np.int64)
    count = 0
    while room < need:
        d = int(np.argmin(cost))
        if cost[d] == np.inf:
            return np.inf, gone[:0]
        total += cost[d] * scale[d]
        cost[d] = np.inf
        room += scale[d]
        if listed:
            gone[count] = d
            count += 1
            if mate[d] >= 0:
                gone[count] = mate[d]
                count += 1
    return total, gone[:count]
