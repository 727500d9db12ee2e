"""How much of the free room of a node is of no use to the jobs that come, and what a placement makes of it.

Fragmentation gradient descent (Weng et al., "Beware of Fragmentation", ATC'23, sections 3 and 4): to a request m, the
free room of a node n is fragmented by

    F_n(m) = the sum over accelerators g of r_g            if the node cannot take m,
             the sum over g with r_g < part of m of r_g    if it can,

where r_g is what is free of g, and F_n(M) is the mean over the requests m that jobs make, each with its frequency. A
job goes where F_n(M) grows least, or shrinks most. Of places that are alike in that, the fullest is taken, as best fit
does: the accelerator with the least room that is enough, on the node with the least room.

A gang goes to one node. Units are thousandths of an accelerator.
"""

from __future__ import annotations

import numpy as np

from fairway.allocate.arrays import FloatArray, IntArray
from fairway.compiled import IntTable, compiled, compiled_within

_WHOLE = 1000
_SAME = 1e-7
"""Fragments that differ by less are the same but for rounding."""

_NOWHERE = np.inf


@compiled()
def fragments(
    room: IntArray, first: int, last: int, kind: int, cpus: float, memory: float,
    counts: IntArray, parts: IntArray, asked_cpus: FloatArray, asked_memory: FloatArray, kinds: IntArray,
    weights: FloatArray,
) -> float:  # fmt: skip
    """F_n(M) of the node that has the accelerators from `first` to before `last`, with so much left of the rest."""
    total = 0
    for place in range(first, last):
        total += room[place]
    if total == 0:
        return 0.0
    lost = 0.0
    for one in range(len(counts)):
        fits = 0
        useless = 0
        for place in range(first, last):
            if room[place] >= parts[one]:
                fits += 1
            else:
                useless += room[place]
        reachable = kinds[one] < 0 or (kinds[one] >> kind) & 1 == 1
        taken = reachable and asked_cpus[one] <= cpus and asked_memory[one] <= memory
        if taken and fits >= min(counts[one], last - first):
            lost += weights[one] * useless
        else:
            lost += weights[one] * total
    return lost


@compiled()
def judge(
    by_fragments: bool, version: IntArray, judged: IntArray,
    count: int, part: int, cpus: float, memory: float, accepted: int,
    room: IntArray, starts: IntArray, kind: IntArray, cpus_left: FloatArray, memory_left: FloatArray,
    counts: IntArray, parts: IntArray, asked_cpus: FloatArray, asked_memory: FloatArray, kinds: IntArray,
    weights: FloatArray,
    counted: IntArray, fitting_of: IntTable, useless_of: IntTable, fragments_of: FloatArray,
    growth: FloatArray, fullness: FloatArray, best_place: IntArray,
) -> None:  # fmt: skip
    """Write down what it would be to place a request on each node: how much F_n(M) grows, and how full the node is.

    Only nodes whose `version` is not the one that was `judged` are looked at. `best_place` is the accelerator that a
    request for one of them would get. Where a node cannot take it, both are infinite. What does not depend on the
    request is kept by node, of the version that was `counted`.
    """
    for node in range(len(version)):
        if judged[node] == version[node]:
            continue
        judged[node] = version[node]
        growth[node] = fullness[node] = _NOWHERE
        best_place[node] = -1
        reachable = accepted < 0 or (accepted >> kind[node]) & 1 == 1
        if not reachable or cpus > cpus_left[node] or memory > memory_left[node]:
            continue
        first, last = starts[node], starts[node + 1]
        fits, total = 0, 0
        for place in range(first, last):
            total += room[place]
            if room[place] >= part:
                fits += 1
        if fits < count:
            continue
        fitting, useless = fitting_of[node], useless_of[node]
        if by_fragments and counted[node] != version[node]:
            counted[node] = version[node]
            _count_fitting(room, first, last, parts, fitting, useless)
            fragments_of[node] = _with_less(
                0, 0, total, last - first, kind[node], cpus_left[node], memory_left[node], fitting, useless,
                counts, parts, asked_cpus, asked_memory, kinds, weights,
            )  # fmt: skip
        before = fragments_of[node] if by_fragments else 0.0
        if count == 1:
            for place in range(first, last):
                if room[place] < part:
                    continue
                seen = False
                for earlier in range(first, place):
                    if room[earlier] == room[place]:
                        seen = True
                        break
                if seen:
                    continue
                after = 0.0
                if by_fragments:
                    after = _with_less(
                        room[place], room[place] - part, total, last - first, kind[node], cpus_left[node] - cpus,
                        memory_left[node] - memory, fitting, useless, counts, parts, asked_cpus, asked_memory, kinds,
                        weights,
                    )  # fmt: skip
                full = room[place] * 1e7 + total
                if _is_better(after - before, full, growth[node], fullness[node]):
                    growth[node], fullness[node], best_place[node] = after - before, full, place
        else:
            after = 0.0
            taken = fullest(room, first, last, count, part)
            best_place[node] = taken[0]
            if by_fragments:
                for place in taken:
                    room[place] -= part
                after = fragments(
                    room, first, last, kind[node], cpus_left[node] - cpus, memory_left[node] - memory,
                    counts, parts, asked_cpus, asked_memory, kinds, weights,
                )  # fmt: skip
                for place in taken:
                    room[place] += part
            growth[node], fullness[node] = after - before, total


@compiled_within()
def _count_fitting(
    room: IntArray, first: int, last: int, parts: IntArray, fitting: IntArray, useless: IntArray
) -> None:
    """Of each request of the mix: how many accelerators have room for its part, and the room of the others."""
    for one in range(len(parts)):
        fitting[one] = useless[one] = 0
        for place in range(first, last):
            if room[place] >= parts[one]:
                fitting[one] += 1
            else:
                useless[one] += room[place]


@compiled_within()
def _with_less(
    room: int, less: int, total: int, size: int, kind: int, cpus: float, memory: float, fitting: IntArray,
    useless: IntArray, counts: IntArray, parts: IntArray, asked_cpus: FloatArray, asked_memory: FloatArray,
    kinds: IntArray, weights: FloatArray,
) -> float:  # fmt: skip
    """F_n(M) of a node if one of its accelerators has less room than it has now; as it is, if both are 0."""
    remaining = total - room + less
    if remaining == 0:
        return 0.0
    lost = 0.0
    for one in range(len(counts)):
        fits, left_over = fitting[one], useless[one]
        if room >= parts[one]:
            if less < parts[one]:
                fits -= 1
                left_over += less
        else:
            left_over += less - room
        reachable = kinds[one] < 0 or (kinds[one] >> kind) & 1 == 1
        taken = reachable and asked_cpus[one] <= cpus and asked_memory[one] <= memory
        if taken and fits >= min(counts[one], size):
            lost += weights[one] * left_over
        else:
            lost += weights[one] * remaining
    return lost


@compiled()
def fullest(room: IntArray, first: int, last: int, count: int, part: int) -> IntArray:
    """So many accelerators of a node with the least room that is enough for a part; there must be as many."""
    chosen = np.empty(count, np.int64)
    for number in range(count):
        best = -1
        for place in range(first, last):
            taken = False
            for earlier in range(number):
                taken = taken or chosen[earlier] == place
            if not taken and room[place] >= part and (best < 0 or room[place] < room[best]):
                best = place
        chosen[number] = best
    return chosen


@compiled()
def best_node(growth: FloatArray, fullness: FloatArray) -> int:
    """The node on which F_n(M) grows least; of those that are alike, the fullest; -1 if none can take the request."""
    best = -1
    for node in range(len(growth)):
        if growth[node] < _NOWHERE and (
            best < 0 or _is_better(growth[node], fullness[node], growth[best], fullness[best])
        ):
            best = node
    return best


@compiled_within()
def _is_better(growth: float, fullness: float, than_growth: float, than_fullness: float) -> bool:
    if growth < than_growth - _SAME:
        return True
    return growth < than_growth + _SAME and fullness < than_fullness
