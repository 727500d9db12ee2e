"""Interior answers: of all best allocations, one from the middle, as solvers without crossover give it.

    maximise t, or sum_ij g_ij x_ij, or nothing
    subject to   sum_j T_ij x_ij >= d_i t, or d_i     (rates)
                 sum_j x_ij <= 1                      (time of a job)
                 sum_i s_i x_ij <= N_j                (workers of a type)
                 x >= 0

The best allocation is rarely unique, and the exact solvers answer with a corner of what is best: few jobs change their
type. The original implementation of Gavel's policies (§4) asks an interior-point solver, whose answer is far from all
corners, so that every job has a bit of everything that costs nothing, and its round mechanism (§5) then behaves
differently. Which answer it is depends on the path. This follows the same path: the homogeneous self-dual embedding
with Mehrotra's predictor and corrector, from the least-squares start and with the step rules that Domahidi, Chu and
Boyd describe ("ECOS: an SOCP solver for embedded systems", ECC 2013), for linear programs only.

In the standard form of the method, minimise c y such that G y + s = h, s >= 0, with multipliers z >= 0, where y holds
the shares and t; one iteration takes time in proportion to the number of jobs (`system`).
"""

from __future__ import annotations

import numpy as np

from fairway.allocate.arrays import FloatArray
from fairway.allocate.kernels.interior.system import back_solve, backward, factor, forward, row_scales
from fairway.compiled import FloatTable, compiled

ENOUGH = 3e-6
"""Gap and residuals at which the search ends."""

MOST_ITERATIONS = 100
LEAST_CENTRING = 1e-4
SHORTEST_STEP, LONGEST_STEP = 1e-6, 0.999

BACK_OFF = 0.99
"""The part of the way to the boundary that a step goes."""


def highest_level(
    rates: FloatArray, demand: FloatArray, scale_factors: FloatArray, workers: FloatArray
) -> tuple[FloatArray, float]:
    """The interior shares at the highest level t with sum_j rates_ij x_ij >= t demand_i, and that level.

    Every demand must be positive, every job must have a positive rate and every type workers.
    """
    shares = np.empty_like(rates)
    none = np.zeros(0)
    level: float = _solve(rates / demand[:, None], none, none.reshape(0, 0), scale_factors, workers, shares)[0]
    return shares, level


def middle(rates: FloatArray, demand: FloatArray, scale_factors: FloatArray, workers: FloatArray) -> FloatArray | None:
    """Interior shares with sum_j rates_ij x_ij >= demand_i, whatever else they are; None if the demands do not fit."""
    shares = np.empty_like(rates)
    _, found = _solve(rates, demand, np.zeros((0, 0)), scale_factors, workers, shares)
    return shares if found else None


def highest_sum(gains: FloatArray, scale_factors: FloatArray, workers: FloatArray) -> FloatArray:
    """The interior shares with the highest sum_ij gains_ij x_ij."""
    shares = np.empty_like(gains)
    none = np.zeros(0)
    _solve(none.reshape(0, 0), none, gains, scale_factors, workers, shares)
    return shares


@compiled(releases_gil=True, divides_as_numpy=True)
def _solve(
    rates: FloatTable, base: FloatArray, gains: FloatTable, sizes: FloatArray, workers: FloatArray, shares: FloatTable
) -> tuple[float, bool]:
    """Write the shares; returns the level, and whether the search came to its end.

    One of three programs: `rates` alone, the highest level that they all reach; with `base`, any rates above it;
    `gains` alone, their highest sum. Arrays are by type and then by job, so that all jobs are worked on at once. Where
    there are no rates, the last n entries of what belongs to rows are there but never looked at.
    """
    n, types = shares.shape
    w0, u0, r0 = n * types, n * types + types, n * types + types + n
    has_level = len(rates) > 0 and len(base) == 0
    rows, columns = r0 + len(rates), w0 + (1 if has_level else 0)
    T, c, h = np.zeros((types, n)), np.zeros(columns), np.zeros(r0 + n)
    h[w0:u0] = workers
    h[u0:r0] = 1.0
    if has_level:
        c[w0] = -1.0
    for i in range(n):
        if len(base) > 0:
            h[r0 + i] = -base[i]
        for j in range(types):
            if len(rates) > 0:
                T[j, i] = rates[i, j]
            else:
                c[j * n + i] = -gains[i, j]

    scale = row_scales(T, sizes, has_level)
    blocks, load = np.empty((types * types + 2 * types + 4, n)), np.empty((types + 1, types + 1))
    y, y1, y2, none_y = np.empty(columns), np.empty(columns), np.empty(columns), np.zeros(columns)
    s, ds, weight = np.empty(rows), np.empty(rows), np.ones(r0 + n)
    z, z1, z2, dz, none_z = np.empty(r0 + n), np.empty(r0 + n), np.empty(r0 + n), np.empty(rows), np.zeros(r0 + n)
    rx, rz, bx, bz = np.empty(columns), np.empty(r0 + n), np.empty(columns), np.zeros(r0 + n)

    # The least-squares start, in scaled rows: as near as possible to the equations, then moved into the interior.
    for k in range(rows):
        weight[k] = scale[k] * scale[k]
    factor(T, sizes, has_level, weight, blocks, load)
    back_solve(T, sizes, has_level, weight, blocks, load, none_y, h, y, z1)
    for k in range(columns):
        bx[k] = -c[k]
    back_solve(T, sizes, has_level, weight, blocks, load, bx, none_z, y2, z)
    lowest_s, lowest_z = np.inf, np.inf
    for k in range(rows):
        s[k] = -scale[k] * z1[k]
        z[k] *= scale[k]
        lowest_s, lowest_z = min(lowest_s, s[k]), min(lowest_z, z[k])
    move_s = 1.0 - lowest_s if lowest_s <= 0.0 else 0.0
    move_z = 1.0 - lowest_z if lowest_z <= 0.0 else 0.0
    for k in range(rows):
        s[k] = scale[k] * (s[k] + move_s)
        z[k] = (z[k] + move_z) / scale[k]
    tau, kappa = 1.0, 1.0
    size_c, size_h = max(1.0, np.abs(c).max()), max(1.0, np.abs(h).max())

    found = False
    for _ in range(MOST_ITERATIONS):
        # What is left of the equations, and of the products of the slacks with their multipliers.
        forward(T, sizes, has_level, y, rz)
        backward(T, sizes, has_level, z, rx)
        gap, cost, bound, size_rz, size_rx = 0.0, 0.0, 0.0, 0.0, 0.0
        for k in range(rows):
            rz[k] += s[k] - tau * h[k]
            gap += s[k] * z[k]
            bound += h[k] * z[k]
        for k in range(columns):
            rx[k] = -rx[k] - tau * c[k]
            cost += c[k] * y[k]
        for k in range(rows):
            size_rz = max(size_rz, abs(rz[k]))
        for k in range(columns):
            size_rx = max(size_rx, abs(rx[k]))
        rt = kappa + cost + bound
        mu = (gap + kappa * tau) / (rows + 1)
        met = size_rz <= ENOUGH * tau * size_h and size_rx <= ENOUGH * tau * size_c
        if met and (gap <= ENOUGH or gap * tau <= ENOUGH * abs(cost)):
            found = True
            break

        for k in range(rows):
            weight[k] = s[k] / z[k]
        if not factor(T, sizes, has_level, weight, blocks, load):
            break
        for k in range(columns):
            bx[k] = -c[k]
        back_solve(T, sizes, has_level, weight, blocks, load, bx, h, y1, z1)
        # c y1 + h z1 and, below, c y2 + h z2 in forms whose terms are as small as the sums.
        denominator = 0.0
        for k in range(rows):
            denominator += weight[k] * z1[k] * z1[k]
        denominator = -kappa / tau - denominator

        # First the affine step; then the one that is centred, and corrected by what the first one showed.
        sigma, d_tau, d_kappa, step = 0.0, 0.0, 0.0, 0.0
        for corrected in (False, True):
            keep = 1.0 - sigma
            for k in range(columns):
                bx[k] = keep * rx[k]
            if corrected:
                for k in range(rows):
                    ds[k] = s[k] + (ds[k] * dz[k] - sigma * mu) / z[k]
            else:
                ds[:] = s
            for k in range(rows):
                bz[k] = ds[k] - keep * rz[k]
            ask = kappa * tau + d_kappa * d_tau - sigma * mu
            back_solve(T, sizes, has_level, weight, blocks, load, bx, bz, y2, z2)
            by_y, by_z = 0.0, 0.0
            for k in range(columns):
                by_y += bx[k] * y1[k]
            for k in range(rows):
                by_z += z1[k] * (bz[k] + 2.0 * weight[k] * z2[k])
            d_tau = (ask / tau - keep * rt - by_y + by_z) / denominator
            d_kappa = -(ask + kappa * d_tau) / tau
            shrink = max(-d_tau / tau, -d_kappa / kappa)  # the largest relative decrease of anything
            for k in range(rows):
                dz[k] = z2[k] + d_tau * z1[k]
                ds[k] = -ds[k] - weight[k] * dz[k]
                z2[k] = max(-dz[k] / z[k], -ds[k] / s[k])
            for k in range(rows):
                shrink = max(shrink, z2[k])
            step = max(1.0 / shrink, SHORTEST_STEP) if shrink * LONGEST_STEP > 1.0 else LONGEST_STEP
            if not corrected:
                sigma = max((1.0 - step) ** 3, LEAST_CENTRING)
        step *= BACK_OFF
        if not step > SHORTEST_STEP:
            break
        for k in range(columns):
            y[k] += step * (y2[k] + d_tau * y1[k])
        for k in range(rows):
            s[k] += step * ds[k]
            z[k] += step * dz[k]
        tau += step * d_tau
        kappa += step * d_kappa

    for i in range(n):
        for j in range(types):
            shares[i, j] = min(max(y[j * n + i] / tau, 0.0), 1.0)
    return y[w0] / tau if has_level else 0.0, found
