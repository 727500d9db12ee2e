"""The linear programs that prices alone cannot take apart: pairs that share, sums, and rates that must be kept.

The variables are one level and the time that all members of a class spend on a type, alone or with a partner class;
the rows are

    capacity   sum over combinations of scale_factor * time <= N_j             (one row per type)
    time       time of a class, in whatever combination <= its members         (one row per class)
    rate       rate of a class >= members * (base + level * slope)             (one row per class)

The matrix goes straight into HiGHS, column by column; the solver is kept, so that a program whose demands or objective
change is solved again from its last basis. Pairs can be many: beyond `WHOLE` columns they are brought in only when the
dual values say that they pay (column generation), which is exact once none does. Beyond `PRUNE` columns only the best
partners of each class are looked at; the dual values then prove how far the optimum over all pairs can be.
"""

from __future__ import annotations

from dataclasses import dataclass

import highspy
import numpy as np

from fairway.allocate.arrays import BoolArray, FloatArray, IntArray
from fairway.allocate.kernels.classes import Classes
from fairway.errors import FairwayError

WHOLE = 20_000
"""Pair columns up to which the solver gets them all at once."""

PRUNE = 4_000_000
"""Pair columns beyond which each class keeps only its best partners."""

PARTNERS = 32
"""How many partners that are."""

_BATCH = 5_000
"""The most promising columns that one round of column generation adds."""

_OPTIONS: dict[str, str | int | float] = {
    "threads": 1,  # with no presolve: the same answer each time, and a basis to start the next solution from
    "presolve": "off",
    "random_seed": 0,
    "solver": "choose",
    "simplex_strategy": 1,
    "primal_feasibility_tolerance": 1e-9,
    "dual_feasibility_tolerance": 1e-9,
}

_LOOSE: dict[str, str | int | float] = {"primal_feasibility_tolerance": 1e-7, "dual_feasibility_tolerance": 1e-7}
_ATTEMPTS: tuple[dict[str, str | int | float], ...] = (
    {},
    {"presolve": "on"},
    {"simplex_strategy": 4},
    {"solver": "ipm", "presolve": "on"},
    _LOOSE | {"presolve": "on"},
)
"""What to change, one after the other, when numbers of very different size lead the solver astray."""

_LARGEST, _LARGEST_COST = 1e15, 1e20
"""Coefficients and bounds, and costs, of these sizes the solver refuses or takes for infinite."""

_PAYS = 1e-9
_INFINITY = highspy.kHighsInf


@dataclass(frozen=True, slots=True)
class Optimum:
    """An optimal solution: its value, an upper bound of any, and who runs where.

    `alone` is the share of one job of each class, `together` the total time of each pair of classes. `prices` are the
    dual values of the capacity rows; `worth[c]` is what a little more rate for one job of class c would cost.
    """

    value: float
    bound: float
    alone: FloatArray
    together: FloatArray | None
    prices: FloatArray
    worth: FloatArray


class SolverError(FairwayError):
    """The solver could not solve a program, which happens when its numbers differ by many orders of magnitude."""


class Program:
    """The program of one set of classes; ask it to maximise a level or a sum, as often as the demands change.

    `typical` are demands of the size that will be asked for. Rates are counted in them, so that a solver's tolerance is
    as small for a job that needs little as for one that needs much.
    """

    def __init__(
        self, classes: Classes, typical: FloatArray | None = None, *, whole: int = WHOLE, prune: int = PRUNE
    ) -> None:
        self.classes = classes
        self._unit = classes.fastest if typical is None else np.where(typical > 0, typical, classes.fastest)
        self._alone_class, self._alone_type = np.nonzero(classes.rates)
        self._usable, self._looked_at, self._inside = _pair_columns(classes, whole, prune)
        self._pair, self._pair_type = np.nonzero(self._inside)
        self._solver = self._build()

    def maximise_level(self, base: FloatArray, slope: FloatArray) -> Optimum:
        """Maximise the level such that one job of every class has rate base + level * slope."""
        self._ask(base, slope)
        self._solver.changeColBounds(0, -_INFINITY, _INFINITY)
        self._value_columns(1.0, None, None)
        optimum = self._solve(1.0, None)
        if optimum is None:
            raise SolverError(
                "the solver found no way to keep these rates; they differ by too many orders of magnitude"
            )
        return optimum

    def maximise_sum(
        self, values: FloatArray, pair_values: FloatArray | None = None, base: FloatArray | None = None
    ) -> Optimum | None:
        """Maximise the value of all time, with every job at least at rate `base`; None if these rates cannot be had.

        `values[c, j]` is the value of a unit of time of a job of class c on type j, `pair_values[k, j]` that of pair k.
        """
        none = np.zeros(len(self.classes))
        self._ask(none if base is None else base, none)
        self._solver.changeColBounds(0, 0.0, 0.0)
        scale = float(values.max(initial=0.0)) or 1.0
        scaled = None if pair_values is None else pair_values / scale
        self._value_columns(0.0, values / scale, scaled)
        return self._solve(scale, scaled)

    def _build(self) -> highspy.Highs:
        """The program without demands: the level is column 0, the rate rows ask for nothing yet."""
        classes = self.classes
        solver = highspy.Highs()
        solver.silent()
        for option, value in _OPTIONS.items():
            solver.setOptionValue(option, value)
        size, types = len(classes), len(classes.capacity)
        alone = self._alone_matrix()
        pairs = self._pair_matrix(self._pair, self._pair_type)
        level = types + size + np.arange(size)
        lengths = np.concatenate([[size], alone[0], pairs[0]])
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(lengths), types + 2 * size
        lp.sense_ = highspy.ObjSense.kMaximize
        lp.col_cost_ = np.zeros(len(lengths))
        lp.col_lower_, lp.col_upper_ = np.zeros(len(lengths)), np.full(len(lengths), _INFINITY)
        lp.row_lower_ = np.concatenate([np.full(types + size, -_INFINITY), np.zeros(size)])
        lp.row_upper_ = np.concatenate([classes.capacity, classes.counts, np.full(size, _INFINITY)])
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_ = np.concatenate([[0], np.cumsum(lengths)])
        lp.a_matrix_.index_ = np.concatenate([level, alone[1], pairs[1]])
        lp.a_matrix_.value_ = _solvable(np.concatenate([-classes.counts, alone[2], pairs[2]]))
        solver.passModel(lp)
        return solver

    def _alone_matrix(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Lengths, rows and values of the columns of classes that run alone."""
        a, j = self._alone_class, self._alone_type
        types, size = len(self.classes.capacity), len(self.classes)
        rows = np.stack([j, types + a, types + size + a], axis=1)
        scale, rate = self.classes.scale_factors[a], self.classes.rates[a, j] / self._unit[a]
        values = np.stack([scale, np.ones(len(a)), rate], axis=1)
        return np.full(len(a), 3), rows.ravel(), values.ravel()

    def _pair_matrix(self, pair: IntArray, j: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """The same for pairs: five entries each, three where a class shares with itself."""
        if self.classes.pairs is None:
            return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
        types, size = len(self.classes.capacity), len(self.classes)
        a, b = self.classes.pairs.first[pair], self.classes.pairs.second[pair]
        rates = self.classes.pairs.rates[pair, j]
        within, one = a == b, np.ones(len(a))
        rows = np.stack([j, types + a, types + size + a, types + b, types + size + b], axis=1)
        rate_a, rate_b = rates[:, 0] / self._unit[a], rates[:, 1] / self._unit[b]
        values = np.stack(
            [self.classes.scale_factors[a], one + within, rate_a + np.where(within, rate_b, 0.0), one, rate_b], axis=1
        )
        entries = np.ones_like(rows, dtype=bool)
        entries[within, 3:] = False
        return entries.sum(axis=1), rows[entries], values[entries]

    def _ask(self, base: FloatArray, slope: FloatArray) -> None:
        """Set what the rate rows ask for."""
        size, types = len(self.classes), len(self.classes.capacity)
        members = self.classes.counts / self._unit
        rows = types + size + np.arange(size)
        wanted, rising = _solvable(members * base), _solvable(-members * slope)
        demands = zip(rows.tolist(), wanted.tolist(), rising.tolist(), strict=True)
        for row, at_least, coefficient in demands:
            self._solver.changeRowBounds(row, at_least, _INFINITY)
            self._solver.changeCoeff(row, 0, coefficient)

    def _value_columns(self, level: float, values: FloatArray | None, pair_values: FloatArray | None) -> None:
        """Set the objective; None values nothing."""
        alone = np.zeros(len(self._alone_class)) if values is None else values[self._alone_class, self._alone_type]
        together = np.zeros(len(self._pair)) if pair_values is None else pair_values[self._pair, self._pair_type]
        cost = _solvable(np.concatenate([[level], alone, together]), _LARGEST_COST)
        self._solver.changeColsCost(len(cost), np.arange(len(cost), dtype=np.int32), cost)

    def _solve(self, scale: float, pair_values: FloatArray | None) -> Optimum | None:
        """Solve, bringing in pairs until none pays."""
        while True:
            status = self._run()
            if status == highspy.HighsModelStatus.kInfeasible:
                outside = self._looked_at & ~self._inside
                if not outside.any():
                    return None
                self._bring_in(outside, pair_values)
                continue
            dual = np.array(self._solver.getSolution().row_dual)
            if self.classes.pairs is None:
                return self._optimum(scale, dual, 0.0)
            gains = self._gains(dual, pair_values)
            paying = (gains > _PAYS) & self._looked_at & ~self._inside
            if not paying.any():
                return self._optimum(scale, dual, self._missed(gains))
            if np.count_nonzero(paying) > _BATCH:
                paying &= gains >= np.partition(gains[paying], -_BATCH)[-_BATCH]
            self._bring_in(paying, pair_values)

    def _run(self) -> highspy.HighsModelStatus:
        """Run the solver; where it loses its way, once more from the beginning with other means."""
        ended = (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kInfeasible)
        for attempt in _ATTEMPTS:
            for option, value in attempt.items():
                self._solver.setOptionValue(option, value)
            self._solver.run()
            status = self._solver.getModelStatus()
            for option in attempt:
                self._solver.setOptionValue(option, _OPTIONS[option])
            if status in ended:
                return status
            self._solver.clearSolver()
        raise SolverError(f"the solver gave up on this problem: {self._solver.modelStatusToString(status)}")

    def _bring_in(self, marked: BoolArray, pair_values: FloatArray | None) -> None:
        pair, j = np.nonzero(marked)
        lengths, rows, values = self._pair_matrix(pair, j)
        values = _solvable(values)
        cost = _solvable(np.zeros(len(pair)) if pair_values is None else pair_values[pair, j], _LARGEST_COST)
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int32)
        lower, upper = np.zeros(len(pair)), np.full(len(pair), _INFINITY)
        self._solver.addCols(len(pair), cost, lower, upper, len(rows), starts, rows.astype(np.int32), values)
        self._pair, self._pair_type = np.concatenate([self._pair, pair]), np.concatenate([self._pair_type, j])
        self._inside |= marked

    def _gains(self, dual: FloatArray, pair_values: FloatArray | None) -> FloatArray:
        """What a unit of time of each pair would add to the objective at these dual values (its reduced cost)."""
        pairs = self.classes.pairs
        assert pairs is not None
        types, size = len(self.classes.capacity), len(self.classes)
        capacity, time, rate = dual[:types], dual[types : types + size], dual[types + size :] / self._unit
        a, b = pairs.first, pairs.second
        gains = -self.classes.scale_factors[a][:, None] * capacity - (time[a] + time[b])[:, None]
        gains -= pairs.rates[:, :, 0] * rate[a][:, None] + pairs.rates[:, :, 1] * rate[b][:, None]
        if pair_values is not None:
            gains += pair_values
        return np.where(self._usable, gains, 0.0)

    def _missed(self, gains: FloatArray) -> float:
        """What all pairs together could still add: raising the price of the members' time pays for their gain."""
        pairs = self.classes.pairs
        assert pairs is not None
        half = np.maximum(gains.max(axis=1), 0.0) / 2
        raised = np.zeros(len(self.classes))
        np.maximum.at(raised, pairs.first, half)
        np.maximum.at(raised, pairs.second, half)
        return float(raised @ self.classes.counts)

    def _optimum(self, scale: float, dual: FloatArray, missed: float) -> Optimum:
        classes = self.classes
        types, size = len(classes.capacity), len(classes)
        columns = np.maximum(np.array(self._solver.getSolution().col_value), 0.0)
        count = 1 + len(self._alone_class)
        alone = np.zeros_like(classes.rates)
        alone[self._alone_class, self._alone_type] = columns[1:count]
        together = None
        if classes.pairs is not None:
            together = np.zeros((len(classes.pairs), types))
            together[self._pair, self._pair_type] = columns[count:]
        value = self._solver.getInfo().objective_function_value
        return Optimum(
            value=value * scale,
            bound=(value + missed) * scale,
            alone=alone / classes.counts[:, None],
            together=together,
            prices=np.maximum(dual[:types], 0.0) * scale,
            worth=np.maximum(-dual[types + size :], 0.0) / self._unit * scale,
        )


def _solvable(numbers: FloatArray, largest: float = _LARGEST) -> FloatArray:
    """The numbers themselves; refuses those that a solver refuses, after which it would crash at the next question."""
    if not (np.abs(numbers) < largest).all():
        raise SolverError("the solver takes no numbers of this size; they differ by too many orders of magnitude")
    return numbers


def _pair_columns(classes: Classes, whole: int, prune: int) -> tuple[BoolArray, BoolArray, BoolArray]:
    """Which pairs could share at all, which to look at, and which to give to the solver from the start (by type)."""
    if classes.pairs is None:
        nothing = np.zeros((0, len(classes.capacity)), dtype=bool)
        return nothing, nothing, nothing
    usable = classes.pairs.together
    looked_at = usable if np.count_nonzero(usable) <= prune else usable & _best_partners(classes)[:, None]
    few = np.count_nonzero(looked_at) <= whole
    return usable, looked_at, looked_at.copy() if few else np.zeros_like(usable)


def _best_partners(classes: Classes) -> BoolArray:
    """The pairs that are among the best of either member, by how much of both rates sharing leaves on the best type."""
    pairs = classes.pairs
    assert pairs is not None
    alone = np.maximum(classes.rates, 1e-300)
    kept = (pairs.rates[:, :, 0] / alone[pairs.first] + pairs.rates[:, :, 1] / alone[pairs.second]).max(axis=1)
    best = np.zeros(len(pairs), dtype=bool)
    for member in (pairs.first, pairs.second):
        order = np.lexsort((-kept, member))
        position = np.arange(len(order)) - np.searchsorted(member[order], member[order])
        best[order[position < PARTNERS]] = True
    return best
