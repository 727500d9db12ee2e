"""Independent answers to compare with: plain linear programs over single jobs, solved by scipy, and slow iterations.

Nothing here uses the solvers of the project; a problem is taken apart into combinations (a job alone, or two jobs, on
one accelerator type), and every quantity is a row of a dense matrix.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import linprog

from fairway.allocate.arrays import BoolArray, FloatArray, IntArray
from fairway.allocate.problem import Problem

_OPTIONS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
_SATURATED = 1e-6


class Reference:
    """The linear program of a problem: one column per combination and type."""

    def __init__(self, problem: Problem, *, sharing: bool = False, workers: FloatArray | None = None) -> None:
        self.problem = problem
        self.jobs: IntArray = np.flatnonzero(problem.can_run)
        size, types = len(problem), len(problem.types)
        columns: list[tuple[int, float, dict[int, float]]] = [
            (column, problem.scale_factors[job], {job: problem.rates[job, column]})
            for job, column in np.argwhere(problem.runnable).tolist()
        ]
        if sharing and problem.pairs is not None:
            pairs = problem.pairs
            for a, b, rates in zip(pairs.first.tolist(), pairs.second.tolist(), pairs.rates, strict=True):
                both = problem.runnable[a] & problem.runnable[b] & (rates > 0).all(axis=1)
                if problem.scale_factors[a] == problem.scale_factors[b]:
                    columns += [
                        (column, problem.scale_factors[a], {a: rates[column, 0], b: rates[column, 1]})
                        for column in np.flatnonzero(both).tolist()
                    ]
        self.rate = np.zeros((size, len(columns)))
        time = np.zeros((size, len(columns)))
        use = np.zeros((types, len(columns)))
        for position, (column, gang, rates) in enumerate(columns):
            use[column, position] = gang
            for job, rate in rates.items():
                self.rate[job, position] = rate
                time[job, position] = 1.0
        counts = problem.workers if workers is None else workers
        self._limits = np.vstack([use / np.maximum(counts, 1e-9)[:, None], time])
        self._bounds = np.concatenate([(counts > 0).astype(float), np.ones(size)])
        self.type_of = np.array([column for column, *_ in columns], dtype=np.int64)

    def highest_level(self, base: FloatArray, slope: FloatArray) -> float:
        """The largest z such that every job can have rate base + z * slope."""
        asks = self.jobs[(base[self.jobs] > 0) | (slope[self.jobs] > 0)]
        rises = self.jobs[slope[self.jobs] > 0]
        fastest = self.rate.max(axis=1)
        unit = float(((fastest[rises] - base[rises]) / slope[rises]).min())  # so that the level is a number near 1
        unit = unit if unit > 0 else 1.0
        demand = -self.rate[asks] / fastest[asks, None]
        matrix = np.block(
            [
                [self._limits, np.zeros((len(self._limits), 1))],
                [demand, (slope[asks] * unit / fastest[asks])[:, None]],
            ]
        )
        limits = np.concatenate([self._bounds, -base[asks] / fastest[asks]])
        goal = np.zeros(matrix.shape[1])
        goal[-1] = -1.0
        bounds = [(0.0, None)] * (matrix.shape[1] - 1) + [(None, None)]
        found = linprog(goal, A_ub=matrix, b_ub=limits, bounds=bounds, method="highs", options=_OPTIONS)
        assert found.status == 0, found.message
        return float(-found.fun) * unit

    def highest_sum(self, value: FloatArray, base: FloatArray | None = None) -> float | None:
        """The largest total value of all columns, every job at least at its base rate; None if that is impossible."""
        matrix, limits = self._limits, self._bounds
        if base is not None:
            asks = np.flatnonzero(base > 0)
            fastest = self.rate[asks].max(axis=1)
            matrix = np.vstack([matrix, -self.rate[asks] / fastest[:, None]])
            limits = np.concatenate([limits, -base[asks] / fastest])
        scale = float(np.abs(value).max(initial=0.0)) or 1.0
        found = linprog(-value / scale, A_ub=matrix, b_ub=limits, bounds=(0.0, None), method="highs", options=_OPTIONS)
        return float(-found.fun) * scale if found.status == 0 else None

    def lowest_ratio(self, work: FloatArray, elapsed: FloatArray, alone: FloatArray) -> float:
        """The least max_i (elapsed_i + work_i / rate_i) / alone_i, by bisection."""
        busy = self.jobs[work[self.jobs] > 0]
        fastest = self.rate.max(axis=1)
        low = float(((elapsed[busy] + work[busy] / fastest[busy]) / alone[busy]).max())

        def fits(ratio: float) -> bool:
            needed = np.zeros(len(work))
            needed[busy] = work[busy] / (ratio * alone[busy] - elapsed[busy])
            return self.highest_level(np.zeros(len(work)), needed) >= 1.0 - 1e-9

        high = low
        while not fits(high * (1 + 1e-12)):
            low, high = high, 2.0 * high
        while high - low > 1e-9 * high:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if fits(middle) else (middle, high)
        return high


def filled_amounts(problem: Problem, growth: Callable[[BoolArray], FloatArray], *, sharing: bool = False) -> FloatArray:
    """How much service (s * rate / proportional rate) each job ends up with under water filling.

    `growth` says, from which jobs are still open, how fast the amount of each rises; 0 for those that wait. All rise
    together as far as possible; then a job is saturated if it could not have more even at the others' present amounts.
    """
    reference = Reference(problem, sharing=sharing)
    unit = problem.proportional_throughputs / problem.scale_factors
    amounts = np.zeros(len(problem))
    is_open = problem.can_run.copy()
    while is_open.any():
        rising = np.where(is_open, growth(is_open), 0.0)
        amounts += rising * max(reference.highest_level(amounts * unit * (1 - 1e-9), rising * unit), 0.0)
        for job in np.flatnonzero(rising > 0):
            others = amounts * unit * (1 - 1e-9)
            others[job] = 0.0
            alone = np.zeros(len(problem))
            alone[job] = unit[job]
            most = reference.highest_level(others, alone)
            if most <= amounts[job] * (1 + _SATURATED) + 1e-9:
                is_open[job] = False
    return amounts


def flat_growth(problem: Problem) -> Callable[[BoolArray], FloatArray]:
    """Every job rises by its weight."""
    return lambda _: problem.weights


def team_growth(problem: Problem) -> Callable[[BoolArray], FloatArray]:
    """How the teams of a problem pass on what they get: by weight among the open ones, or all to the first open one."""
    names = list(problem.entities)
    children: dict[str | None, list[str]] = {name: [] for name in [None, *names]}
    for name, entity in problem.entities.items():
        children[entity.parent].append(name)
    jobs_of: dict[str | None, list[int]] = {name: [] for name in [None, *names]}
    for job in np.flatnonzero(problem.can_run).tolist():
        jobs_of[names[problem.team[job]] if problem.team[job] >= 0 else None].append(job)

    def below(name: str) -> list[int]:
        return jobs_of[name] + [job for child in children[name] for job in below(child)]

    def growth(is_open: BoolArray) -> FloatArray:
        rises = np.zeros(len(problem))

        def give(name: str | None, amount: float | None) -> None:
            members: list[tuple[int, float, int | str]] = [
                (job, float(problem.weights[job]), job) for job in jobs_of[name] if is_open[job]
            ]
            members += [
                (min(below(child)), problem.entities[child].weight, child)
                for child in children[name]
                if is_open[below(child)].any()
            ]
            total = sum(weight for _, weight, _ in members)
            first = min((arrival for arrival, *_ in members), default=None)
            for arrival, weight, member in members:
                if amount is None:
                    part = weight
                elif name is not None and problem.entities[name].policy == "fifo":
                    part = amount if arrival == first else 0.0
                else:
                    part = amount * weight / total
                if isinstance(member, str):
                    give(member, part)
                else:
                    rises[member] = part

        give(None, None)
        return rises

    return growth
