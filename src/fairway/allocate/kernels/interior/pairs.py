"""The interior answer where jobs may share: the method of `interior`, with columns for pairs.

    maximise t   subject to   sum over the rows r with job i of T_irj x_rj >= t d_i,   and x_rj in all <= 1,
                              sum_r s_r x_rj <= N_j,   x >= 0

A pair ties two jobs together, so jobs do not come apart as they do alone: the system that is left after the shares is
one of all types and jobs, J + 2n in each direction. The path is the same, in the same order of steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import csr_array

from fairway.allocate.arrays import BoolArray, FloatArray, IntArray
from fairway.allocate.kernels.interior.alone import (
    BACK_OFF,
    ENOUGH,
    LEAST_CENTRING,
    LONGEST_STEP,
    MOST_ITERATIONS,
    SHORTEST_STEP,
)
from fairway.allocate.pairs import Pairs


@dataclass(frozen=True, slots=True)
class _Program:
    """The rows of G below those of the shares: workers, time and rates, as a matrix; the level counts in `rates`."""

    matrix: csr_array
    rates: BoolArray
    limits: FloatArray

    def forward(self, y: FloatArray) -> FloatArray:
        """G y."""
        return np.concatenate([-y[:-1], self.matrix @ y[:-1] + np.where(self.rates, y[-1], 0.0)])

    def backward(self, z: FloatArray) -> FloatArray:
        """Z G."""
        columns = self.matrix.shape[1]
        return np.concatenate([self.matrix.T @ z[columns:] - z[:columns], [z[columns:][self.rates].sum()]])


def highest_level_with_pairs(
    rates: FloatArray, demand: FloatArray, scale_factors: FloatArray, workers: FloatArray, pairs: Pairs
) -> tuple[FloatArray, float]:
    """The interior shares of all jobs, then of all pairs, at the highest level; and that level."""
    program = _program(rates, demand, scale_factors, workers, pairs)
    y, level = _solve(program)
    return np.clip(y, 0.0, 1.0).reshape(-1, len(workers)), level


def _program(
    rates: FloatArray, demand: FloatArray, scale_factors: FloatArray, workers: FloatArray, pairs: Pairs
) -> _Program:
    n, types = rates.shape
    alone, shared = np.arange(n), n + np.arange(len(pairs))
    sizes = np.concatenate([scale_factors, scale_factors[pairs.first]])
    row, column, value = [], [], []

    def add(rows: IntArray, combinations: IntArray, values: FloatArray) -> None:
        row.append(np.broadcast_to(rows, values.shape).ravel())
        column.append((combinations[:, None] * types + np.arange(types)).ravel())
        value.append(values.ravel())

    everyone = np.arange(n + len(pairs))
    add(np.arange(types)[None, :], everyone, np.repeat(sizes[:, None], types, axis=1))
    members = ((alone, alone, rates), (pairs.first, shared, pairs.rates[:, :, 0]))
    for jobs, combinations, own in (*members, (pairs.second, shared, pairs.rates[:, :, 1])):
        add(types + jobs[:, None], combinations, np.ones_like(own))
        add(types + n + jobs[:, None], combinations, -own / demand[jobs][:, None])
    entries = (np.concatenate(value), (np.concatenate(row), np.concatenate(column)))
    return _Program(
        matrix=csr_array(entries, shape=(types + 2 * n, types * (n + len(pairs)))),
        rates=np.arange(types + 2 * n) >= types + n,
        limits=np.concatenate([np.zeros(types * (n + len(pairs))), workers, np.ones(n), np.zeros(n)]),
    )


class _System:
    """Solves z G = bx, G y - weight z = bz for one set of weights."""

    def __init__(self, program: _Program, weight: FloatArray) -> None:
        self._program, self._weight = program, weight
        matrix = program.matrix
        self._q = weight[: matrix.shape[1]]
        normal = (matrix.multiply(self._q[None, :]) @ matrix.T).toarray()
        normal[np.diag_indices_from(normal)] += weight[matrix.shape[1] :]
        self._factor = cho_factor(normal, lower=True, check_finite=False)
        self._by_level = cho_solve(self._factor, program.rates.astype(float), check_finite=False)

    def solve(self, bx: FloatArray, bz: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Y and z, each corrected once by what is left: weights differ by so much that rounding is felt."""
        y, z = self._solve(bx, bz)
        left = bz - self._program.forward(y) + self._weight * z
        more_y, more_z = self._solve(bx - self._program.backward(z), left)
        return y + more_y, z + more_z

    def _solve(self, bx: FloatArray, bz: FloatArray) -> tuple[FloatArray, FloatArray]:
        matrix, columns = self._program.matrix, len(self._q)
        push = self._q * bx[:-1] - bz[:columns]
        alone = cho_solve(self._factor, matrix @ push - bz[columns:], check_finite=False)
        rates = self._program.rates
        level = (bx[-1] - alone[rates].sum()) / self._by_level[rates].sum()
        prices = alone + level * self._by_level
        shares = push - self._q * (matrix.T @ prices)
        return np.append(shares, level), np.concatenate([(-shares - bz[:columns]) / self._q, prices])


def _solve(program: _Program) -> tuple[FloatArray, float]:
    """The path of `interior`, in the same steps and with the same rules."""
    h, rows, columns = program.limits, len(program.limits), program.matrix.shape[1] + 1
    c = np.zeros(columns)
    c[-1] = -1.0
    scale = _row_scales(program)
    start = _System(program, scale**2)
    y, least_squares = start.solve(np.zeros(columns), h)
    s = _inside(-scale * least_squares) * scale
    z = _inside(scale * start.solve(-c, np.zeros(rows))[1]) / scale
    tau, kappa = 1.0, 1.0
    for _ in range(MOST_ITERATIONS):
        rz = program.forward(y) + s - tau * h
        rx = -program.backward(z) - tau * c
        gap, cost = float(s @ z), float(c @ y)
        rt = kappa + cost + float(h @ z)
        mu = (gap + kappa * tau) / (rows + 1)
        met = np.abs(rz).max() <= ENOUGH * tau * max(1.0, h.max()) and np.abs(rx).max() <= ENOUGH * tau
        if met and (gap <= ENOUGH or gap * tau <= ENOUGH * abs(cost)):
            break
        weight = s / z
        try:
            system = _System(program, weight)
        except LinAlgError:
            break
        y1, z1 = system.solve(-c, h)
        denominator = -kappa / tau - float((weight * z1) @ z1)
        sigma, d_tau, d_kappa, step = 0.0, 0.0, 0.0, 0.0
        ds, dz = np.zeros(rows), np.zeros(rows)
        for _corrected in (False, True):
            keep = 1.0 - sigma
            push = s + (ds * dz - sigma * mu) / z
            bx, bz = keep * rx, push - keep * rz
            ask = kappa * tau + d_kappa * d_tau - sigma * mu
            y2, z2 = system.solve(bx, bz)
            d_tau = ask / tau - keep * rt - float(bx @ y1) + float(z1 @ (bz + 2.0 * weight * z2))
            d_tau /= denominator
            d_kappa = -(ask + kappa * d_tau) / tau
            dz = z2 + d_tau * z1
            ds = -push - weight * dz
            shrink = max(-d_tau / tau, -d_kappa / kappa, float((-dz / z).max()), float((-ds / s).max()))
            step = max(1.0 / shrink, SHORTEST_STEP) if shrink * LONGEST_STEP > 1.0 else LONGEST_STEP
            sigma = max((1.0 - step) ** 3, LEAST_CENTRING)
        step *= BACK_OFF
        if not step > SHORTEST_STEP:
            break
        y, s, z = y + step * (y2 + d_tau * y1), s + step * ds, z + step * dz
        tau, kappa = tau + step * d_tau, kappa + step * d_kappa
    return y[:-1] / tau, float(y[-1] / tau)


def _inside(slacks: FloatArray) -> FloatArray:
    lowest = float(slacks.min())
    return slacks if lowest > 0 else slacks + (1.0 - lowest)


def _row_scales(program: _Program, scalings: int = 3) -> FloatArray:
    """Scales that make the largest entries of all rows and columns about equal (Ruiz's iteration)."""
    matrix = program.matrix.tocoo()
    entries = np.abs(matrix.data)
    row, column = matrix.coords
    rows, columns = matrix.shape
    own, below = np.ones(columns), np.ones(rows)
    across, level = np.ones(columns), 1.0
    for _ in range(scalings):
        scaled = entries / (below[row] * across[column])
        by_row, by_column = np.where(program.rates, 1.0 / (below * level), 0.0), 1.0 / (own * across)
        own_most = by_column.copy()
        level_most = (1.0 / below[program.rates]).max() / level
        np.maximum.at(by_row, row, scaled)
        np.maximum.at(by_column, column, scaled)
        own, below = own * np.sqrt(own_most), below * np.sqrt(by_row)
        across, level = across * np.sqrt(by_column), level * np.sqrt(level_most)
    return np.concatenate([own, below])
