"""The equations of an interior step, solved job by job (the linear algebra of `interior`).

G has a column for each share x_ij and one for the level t, and rows for the shares themselves (-x_ij <= 0), the workers
of the types, the time of the jobs and their rates, in this order. Its arrays are by type and then by job, so that all
jobs are worked on at once. In z G = bx, G y - W z = bz, with a weight W for each row, jobs meet only in the workers and
in the level: given the multipliers of the J types and t, each job's shares follow from systems of its own, with the two
rows of its time and its rate; so that all of it costs O(n J^3).
"""

from __future__ import annotations

import numpy as np

from fairway.allocate.arrays import FloatArray
from fairway.compiled import FloatTable, compiled_within

_SCALINGS = 3
_NO_ENTRY = 1e-6
"""Rows and columns whose largest entry is below this are not scaled."""


@compiled_within(releases_gil=True, divides_as_numpy=True)
def row_scales(T: FloatTable, sizes: FloatArray, has_level: bool) -> FloatArray:
    """Scales of the rows that make the largest entries of all rows and columns about equal (Ruiz's iteration)."""
    types, n = T.shape
    w0, u0, r0 = n * types, n * types + types, n * types + types + n
    row, column = np.ones(r0 + n), np.ones(w0 + 1)
    row_most, column_most = np.empty(r0 + n), np.empty(w0 + 1)
    for _ in range(_SCALINGS):
        row_most[:] = 0.0
        column_most[w0] = 0.0
        for j in range(types):
            for i in range(n):
                k = j * n + i
                own, time = 1.0 / (row[k] * column[k]), 1.0 / (row[u0 + i] * column[k])
                worker, rate = sizes[i] / (row[w0 + j] * column[k]), T[j, i] / (row[r0 + i] * column[k])
                column_most[k] = max(own, time, worker, rate)
                row_most[k] = own
                row_most[w0 + j] = max(row_most[w0 + j], worker)
                row_most[u0 + i] = max(row_most[u0 + i], time)
                row_most[r0 + i] = max(row_most[r0 + i], rate)
        if has_level:
            for i in range(n):
                entry = 1.0 / (row[r0 + i] * column[w0])
                column_most[w0] = max(column_most[w0], entry)
                row_most[r0 + i] = max(row_most[r0 + i], entry)
        for k in range(w0 + 1):
            column[k] *= np.sqrt(column_most[k]) if column_most[k] >= _NO_ENTRY else 1.0
        for k in range(r0 + n):
            row[k] *= np.sqrt(row_most[k]) if row_most[k] >= _NO_ENTRY else 1.0
    return row


@compiled_within(releases_gil=True, divides_as_numpy=True)
def forward(T: FloatTable, sizes: FloatArray, has_level: bool, y: FloatArray, product: FloatArray) -> None:
    """Write G y."""
    types, n = T.shape
    w0, u0, r0 = n * types, n * types + types, n * types + types + n
    level = y[w0] if has_level else 0.0
    product[u0:r0] = 0.0
    product[r0:] = level
    for j in range(types):
        busy = 0.0
        for i in range(n):
            share = y[j * n + i]
            product[j * n + i] = -share
            product[u0 + i] += share
            product[r0 + i] -= T[j, i] * share
            busy += sizes[i] * share
        product[w0 + j] = busy


@compiled_within(releases_gil=True, divides_as_numpy=True)
def backward(T: FloatTable, sizes: FloatArray, has_level: bool, z: FloatArray, product: FloatArray) -> None:
    """Write z G."""
    types, n = T.shape
    w0, u0, r0 = n * types, n * types + types, n * types + types + n
    for j in range(types):
        price = z[w0 + j]
        for i in range(n):
            product[j * n + i] = sizes[i] * price + z[u0 + i] - z[j * n + i] - T[j, i] * z[r0 + i]
    if has_level:
        total = 0.0
        for i in range(n):
            total += z[r0 + i]
        product[w0] = total


@compiled_within(releases_gil=True, divides_as_numpy=True)
def factor(
    T: FloatTable, sizes: FloatArray, has_level: bool, weight: FloatArray, blocks: FloatTable, load: FloatTable
) -> bool:
    """Prepare to solve z G = bx, G y - weight z = bz; False if rounding makes that impossible.

    With Q the weights of a job's shares, 1 and -T the columns of U, and W the weights of its time and rate, its shares
    answer to a push r, and to right-hand sides b of its time and rate, with F r + P b, where P = Q U (W + U' Q U)^-1
    and F = I - P U'. `blocks` holds F by rows, then P, then the last row of that inverse. `load` gets the Cholesky
    factor of the system of the types and, in its last row, what the level adds to it.

    Everything is written as a sum of terms that are products of positive numbers and of differences of rates: of
    weights that differ by many orders of magnitude, other differences would leave nothing but rounding.
    """
    types, n = T.shape
    w0, u0, r0 = n * types, n * types + types, n * types + types + n
    p0, last = types * types, types * types + 2 * types
    time, rate = weight[u0:r0], weight[r0:]
    b, a, per, others = blocks[last], blocks[last + 1], blocks[last + 2], blocks[last + 3]
    for i in range(n):
        a[i], b[i], per[i] = time[i], 0.0, time[i] * rate[i]
    for j in range(types):
        for i in range(n):
            q = weight[j * n + i]
            a[i] += q
            b[i] += q * T[j, i]
            per[i] += q * (rate[i] + time[i] * T[j, i] * T[j, i])
        for k in range(j):
            for i in range(n):
                apart = T[j, i] - T[k, i]
                per[i] += weight[j * n + i] * weight[k * n + i] * apart * apart
    for i in range(n):
        per[i] = 1.0 / per[i]
        a[i] *= per[i]
        b[i] *= per[i]
    for j in range(types):
        by_time, by_rate = blocks[p0 + 2 * j], blocks[p0 + 2 * j + 1]
        for i in range(n):
            others[i], by_time[i], by_rate[i] = time[i] * rate[i], rate[i], -time[i] * T[j, i]
        for k in range(types):
            if k == j:
                continue
            F = blocks[j * types + k]
            for i in range(n):
                q, apart = weight[k * n + i], T[k, i] - T[j, i]
                by_time[i] += q * T[k, i] * apart
                by_rate[i] += q * apart
                others[i] += q * (rate[i] + time[i] * T[k, i] * T[k, i])
                F[i] = rate[i] + time[i] * T[j, i] * T[k, i]
            for m in range(types):
                if m in (j, k):
                    continue
                for i in range(n):
                    q, apart = weight[m * n + i], T[m, i] - T[k, i]
                    F[i] += q * (T[m, i] - T[j, i]) * apart
                    if m < k:
                        others[i] += weight[k * n + i] * q * apart * apart
            for i in range(n):
                F[i] *= -weight[j * n + i] * per[i]
        for i in range(n):
            q = weight[j * n + i] * per[i]
            blocks[j * types + j, i] = others[i] * per[i]
            by_time[i] *= q
            by_rate[i] *= q
    for j in range(types):
        for k in range(j + 1):
            total = 0.0
            for i in range(n):
                total += sizes[i] * sizes[i] * weight[j * n + i] * blocks[k * types + j, i]
            load[j, k] = total
        load[j, j] += weight[w0 + j]
    if has_level:
        total = 0.0
        for i in range(n):
            total += a[i]
        load[types, types] = total
        for j in range(types):
            total = 0.0
            for i in range(n):
                total -= sizes[i] * blocks[p0 + 2 * j + 1, i]
            load[types, j] = total
            for k in range(j + 1):
                load[j, k] += load[types, j] * load[types, k] / load[types, types]
    for j in range(types):
        for k in range(j):
            load[j, j] -= load[j, k] * load[j, k]
        if not load[j, j] > 0.0:
            return False
        load[j, j] = np.sqrt(load[j, j])
        for i in range(j + 1, types):
            for k in range(j):
                load[i, j] -= load[i, k] * load[j, k]
            load[i, j] /= load[j, j]
    return True


@compiled_within(releases_gil=True, divides_as_numpy=True)
def back_solve(
    T: FloatTable,
    sizes: FloatArray,
    has_level: bool,
    weight: FloatArray,
    blocks: FloatTable,
    load: FloatTable,
    bx: FloatArray,
    bz: FloatArray,
    y: FloatArray,
    z: FloatArray,
) -> None:
    """Solve z G = bx, G y - weight z = bz."""
    types, n = T.shape
    w0, u0, r0 = n * types, n * types + types, n * types + types + n
    last = types * types + 2 * types
    prices = z[w0:u0]
    for k in range(w0):
        z[k] = weight[k] * bx[k] - bz[k]
    _answer(types, n, blocks, z, bz[u0:r0], bz[r0:], y)
    for j in range(types):
        busy = 0.0
        for i in range(n):
            busy += sizes[i] * y[j * n + i]
        prices[j] = busy - bz[w0 + j]
    level = 0.0
    if has_level:
        for i in range(n):
            level += blocks[last, i] * bz[u0 + i] + blocks[last + 1, i] * bz[r0 + i]
        for j in range(types):
            for i in range(n):
                level += z[j * n + i] * (blocks[last + 1, i] * T[j, i] - blocks[last, i])
        level += bx[w0]
        for j in range(types):
            prices[j] += load[types, j] * level / load[types, types]
    for j in range(types):
        for k in range(j):
            prices[j] -= load[j, k] * prices[k]
        prices[j] /= load[j, j]
    for j in range(types - 1, -1, -1):
        for k in range(j + 1, types):
            prices[j] -= load[k, j] * prices[k]
        prices[j] /= load[j, j]
    if has_level:
        for j in range(types):
            level -= load[types, j] * prices[j]
        level /= float(load[types, types])
        y[w0] = level
    for j in range(types):
        price = prices[j]
        for i in range(n):
            k = j * n + i
            z[k] = weight[k] * (bx[k] - sizes[i] * price) - bz[k]
    time, rate = z[u0:r0], z[r0:]
    for i in range(n):
        time[i], rate[i] = bz[u0 + i], bz[r0 + i] - level
    _answer(types, n, blocks, z, time, rate, y)
    # From the shares, so that they and their slacks agree.
    for i in range(n):
        time[i], rate[i] = -time[i], -rate[i]
    for j in range(types):
        for i in range(n):
            k = j * n + i
            time[i] += y[k]
            rate[i] -= T[j, i] * y[k]
            z[k] = (-y[k] - bz[k]) / weight[k]
    for i in range(n):
        time[i] /= weight[u0 + i]
        rate[i] /= weight[r0 + i]


@compiled_within(releases_gil=True, divides_as_numpy=True)
def _answer(
    types: int, n: int, blocks: FloatTable, push: FloatArray, time: FloatArray, rate: FloatArray, y: FloatArray
) -> None:
    """Write F push + P (time, rate)."""
    for j in range(types):
        by_time, by_rate = blocks[types * types + 2 * j], blocks[types * types + 2 * j + 1]
        for i in range(n):
            y[j * n + i] = by_time[i] * time[i] + by_rate[i] * rate[i]
        for k in range(types):
            F = blocks[j * types + k]
            for i in range(n):
                y[j * n + i] += F[i] * push[k * n + i]
