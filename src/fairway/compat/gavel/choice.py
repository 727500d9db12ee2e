"""Who runs in a round of the original's mechanism, and on which workers (Gavel §5; the rule of `rounds`).

Types are served in a given order. For each, the rows that can run there stand in a queue by priority, then by what they
have missed, then by their share; whoever fits into what is left of the type is chosen. Then gangs get workers, large
ones first, and keep those that they had where they can.
"""

from __future__ import annotations

import numpy as np

from fairway.allocate.arrays import BoolArray, FloatArray, IntArray
from fairway.compiled import BoolTable, FloatTable, IntTable, compiled, compiled_within

_UNSEEN = 1e9
"""The priority per share of a row that has had no time, where others have."""


@compiled(releases_gil=True, divides_as_numpy=True)
def choose_and_place(
    order: IntArray,
    workers: IntArray,
    worker_time: FloatArray,
    needs_priority: bool,
    chosen_in: IntArray,
    this_round: int,
    count: int,
    jobs: int,
    late: IntArray,
    early: IntArray,
    sizes: IntArray,
    runs: BoolTable,
    shares: FloatTable,
    known: BoolArray,
    times: FloatTable,
    deficits: FloatTable,
    held: IntTable,
    held_type: IntArray,
) -> tuple[IntArray, int, int]:
    """Serve the types in this order; returns what `Placed` holds, how many kept their workers and how many could have.

    A number in `chosen_in` that is this round's says that the job was chosen.
    """
    placed = np.empty((5, jobs), dtype=np.int64)
    queue, spare, picked = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(jobs, np.int64)
    priority, now_on = np.zeros(count), np.full(count, -1)
    waiting, total, kept = jobs, 0, 0
    for j in order:
        left, picks = workers[j], 0
        # First by priority; then, where there is room, whoever can run here at all, by what it has missed.
        for without in range(2):
            if left == 0 or waiting == 0 or (without == 1 and needs_priority):
                break
            queued = 0
            for row in range(count):
                if not runs[row, j] or sizes[row] > left or chosen_in[late[row]] == this_round:
                    continue
                if early[row] >= 0 and chosen_in[early[row]] == this_round:
                    continue
                share = shares[row, j]
                if (share > 0.0) == (without == 1):
                    continue
                priority[row] = 0.0
                if share > 0.0:
                    fraction = times[row, j] / worker_time[j] if worker_time[j] > 0.0 else 0.0
                    priority[row] = share / fraction if fraction > 0.0 else share * _UNSEEN
                queue[queued] = row
                queued += 1
            _sort(queue, spare, queued, priority, deficits, shares, j)
            for k in range(queued):
                if left == 0 or waiting == 0:
                    break
                row = queue[k]
                a, b = late[row], early[row]
                if sizes[row] > left or chosen_in[a] == this_round or (b >= 0 and chosen_in[b] == this_round):
                    continue
                left -= sizes[row]
                waiting -= 1 if b < 0 else 2
                chosen_in[a] = this_round
                if b >= 0:
                    chosen_in[b] = this_round
                picked[picks] = row
                picks += 1
        before = total
        total, kept = _place(picked[:picks], j, workers, sizes, known, held, held_type, now_on, placed, total, kept)
        for k in range(before, total):
            row = placed[0, k]
            placed[1, k], placed[2, k], placed[3, k], placed[4, k] = j, late[row], early[row], sizes[row]
    could_be = 0
    for row in range(count):
        could_be += held_type[row] >= 0
        held_type[row] = now_on[row]
    return placed[:, :total], kept, could_be


@compiled_within(releases_gil=True)
def _place(
    picked: IntArray,
    j: int,
    workers: IntArray,
    sizes: IntArray,
    known: BoolArray,
    held: IntTable,
    held_type: IntArray,
    now_on: IntArray,
    placed: IntTable,
    total: int,
    kept: int,
) -> tuple[int, int]:
    """Give workers of type j to the picked rows, the largest gangs first.

    Among gangs of one size, those that ran here in the last round keep their workers unless a larger one took them;
    then the others take what is free. A row that no decision has seen gets none.
    """
    base = 0
    for k in range(j):
        base += workers[k]
    taken = np.zeros(workers[j], dtype=np.bool_)
    pointer, size = 0, 0
    for row in picked:
        size = max(size, sizes[row])
    while size > 0:
        smaller = 0
        for row in picked:
            if sizes[row] < size:
                smaller = max(smaller, sizes[row])
            if sizes[row] != size or held_type[row] != j:
                continue
            free = True
            for m in range(size):
                free = free and not taken[held[row, m] - base]
            if free:
                for m in range(size):
                    taken[held[row, m] - base] = True
                now_on[row] = j
                placed[0, total] = row
                total += 1
                kept += 1
        for row in picked:
            if sizes[row] != size or now_on[row] >= 0 or not known[row]:
                continue
            for m in range(size):
                while taken[pointer]:
                    pointer += 1
                taken[pointer] = True
                held[row, m] = base + pointer
            now_on[row] = j
            placed[0, total] = row
            total += 1
        size = smaller
    return total, kept


@compiled_within(releases_gil=True)
def _sort(
    queue: IntArray,
    spare: IntArray,
    queued: int,
    priority: FloatArray,
    deficits: FloatTable,
    shares: FloatTable,
    j: int,
) -> None:
    """Sort the queue by priority, deficit and share, the highest first; equals stay in order (merge sort)."""
    for start in range(0, queued, 8):
        for k in range(start + 1, min(start + 8, queued)):
            row, place = queue[k], k
            while place > start and _before(row, queue[place - 1], priority, deficits, shares, j):
                queue[place] = queue[place - 1]
                place -= 1
            queue[place] = row
    width = 8
    while width < queued:
        for start in range(0, queued, 2 * width):
            left, middle = start, min(start + width, queued)
            right, end = middle, min(start + 2 * width, queued)
            for k in range(start, end):
                if right < end and (
                    left == middle or _before(queue[right], queue[left], priority, deficits, shares, j)
                ):
                    spare[k] = queue[right]
                    right += 1
                else:
                    spare[k] = queue[left]
                    left += 1
        for k in range(queued):
            queue[k] = spare[k]
        width *= 2


@compiled_within(releases_gil=True)
def _before(a: int, b: int, priority: FloatArray, deficits: FloatTable, shares: FloatTable, j: int) -> bool:
    if priority[a] != priority[b]:
        return bool(priority[a] > priority[b])
    if deficits[a, j] != deficits[b, j]:
        return bool(deficits[a, j] > deficits[b, j])
    return bool(shares[a, j] > shares[b, j])
