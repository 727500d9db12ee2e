"""The rounds of the engine: keeps what jobs and pairs are owed, and says which jobs stop and which start.

The rule itself is `allocate.mechanism.rounds`; here its numbers live between decisions. A turn is five rounds, or fifty
restarts if that is longer, so that restarts cost at most a fiftieth of the time. A job that holds workers keeps them
until another job is owed a turn more. A job that is new is owed a turn from the start: it need not wait until its
share has added up to one, which could take longer than the job.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from fairway.allocate.allocation import Allocation
from fairway.allocate.arrays import BoolArray, FloatArray, IntArray
from fairway.allocate.mechanism.places import keep_places
from fairway.allocate.mechanism.rounds import account, carry_over, changes, choose, movable, weigh_moves
from fairway.allocate.packing.packer import Rule
from fairway.engine.training.fitting import Fitting, by_claim
from fairway.engine.training.job_table import NONE, JobTable
from fairway.engine.training.pair_rates import PairRates
from fairway.engine.training.precedence import before_all, precedence
from fairway.engine.training.reservations import Kept, Reservations
from fairway.engine.training.sharing import MOST_OWED, account_work, serve
from fairway.engine.training.worker_pool import WorkerPool

_ROUNDS_PER_TURN = 5.0
_RESTARTS_PER_TURN = 50.0

_MOST_FITTINGS = 4
"""How often jobs are chosen anew in the place of those that do not fit on their machines."""

_NEGLIGIBLE = 1e-9


class Chosen(NamedTuple):
    """Positions of the jobs that stop; those that start, one job or two that share, and on which type.

    `workers` are those that each of them is to have, by its first job, where not any of the type will do.
    """

    stopped: IntArray
    started: list[tuple[int, ...]]
    columns: list[int]
    workers: Mapping[int, tuple[int, ...]] = MappingProxyType({})


class Rounds:
    """What every job and pair is owed, and the choice of the next round.

    `agnostic` rounds do not look at how fast a job is on a type, only at whether it runs there at all; rounds `by_cost`
    let a job move to a type that gives more steps for a dollar as they do to one that is faster. Where a policy chooses
    `whole_jobs`, no job is owed anything: those that it chose run until it chooses again. With `pair_rates`, jobs are
    owed work, in whatever pairs they do it (`sharing`). Jobs that have parts of workers are put where the rule of
    `packing` says.
    """

    def __init__(
        self,
        types: int,
        *,
        round_seconds: float,
        restart_seconds: float,
        agnostic: bool = False,
        by_cost: bool = False,
        whole_jobs: bool = False,
        pair_rates: PairRates | None = None,
        packing: Rule = "fgd",
    ) -> None:
        self._packing: Rule = packing
        self._agnostic, self._by_cost, self._whole = agnostic, by_cost, whole_jobs
        self._pair_rates = pair_rates
        self.turn_seconds = max(_ROUNDS_PER_TURN * round_seconds, _RESTARTS_PER_TURN * restart_seconds)
        self._restart = restart_seconds
        self._types = types
        self._set_pairs(np.zeros((0, 2), dtype=np.int64), np.zeros((0, types)), np.zeros((0, types, 2)))
        self._owed = np.zeros((0, types))

    def _set_pairs(self, numbers: IntArray, shares: FloatArray, rates: FloatArray) -> None:
        self._numbers, self._shares, self._rates = numbers, shares, rates
        self._charged = np.full(len(numbers), NONE)

    def account(self, seconds: float, jobs: JobTable) -> None:
        """Let time pass."""
        if self._whole:
            return
        if self._pair_rates is not None:
            account_work(seconds, jobs.due, jobs.rate, jobs.owed, MOST_OWED * self.turn_seconds)
            return
        account(seconds, jobs.shares, jobs.owed, jobs.charged, self.turn_seconds)
        if len(self._numbers):
            account(seconds, self._shares, self._owed, self._charged, self.turn_seconds)

    def follow(self, allocation: Allocation, jobs: JobTable) -> None:
        """Go by a new decision from now on; what was owed under the last one stays owed."""
        new = (jobs.isolated == 0) & (jobs.on == NONE) & ~jobs.shares.any(axis=1)
        if self._pair_rates is not None:
            jobs.shares, jobs.due = allocation.job_shares, allocation.throughputs
            jobs.owed[new, 0] = self.turn_seconds
            return
        shares = np.where(allocation.shares > _NEGLIGIBLE, allocation.shares, 0.0)
        if (allocation.second < 0).all() and not len(self._numbers):
            jobs.shares = shares
        else:
            self._follow_pairs(allocation, shares, jobs)
        if self._whole:
            jobs.owed = 0.0
            return
        if new.any():
            share = jobs.shares[new]
            jobs.owed[new] += self.turn_seconds * share / np.maximum(share.sum(axis=1, keepdims=True), _NEGLIGIBLE)
        carry_over(jobs.owed, jobs.rates, jobs.shares)

    def _follow_pairs(self, allocation: Allocation, shares: FloatArray, jobs: JobTable) -> None:
        alone = allocation.second < 0
        single = np.zeros((len(jobs), self._types))
        np.add.at(single, allocation.first[alone], shares[alone])
        jobs.shares = single
        rows = np.flatnonzero(~alone & shares.any(axis=1))
        first, second = allocation.first[rows], allocation.second[rows]
        pairs = allocation.problem.pairs
        numbers = np.stack([jobs.number[first], jobs.number[second]], axis=1).astype(np.int64)
        rates = np.zeros((len(rows), self._types, 2))
        if len(rows):
            assert pairs is not None
            key = pairs.first * len(jobs) + pairs.second
            rates = pairs.rates[np.searchsorted(key, first * len(jobs) + second)]
        before = {(int(a), int(b)): row for row, (a, b) in enumerate(self._numbers)}
        owed, kept = np.zeros((len(rows), self._types)), set()
        for row, (a, b) in enumerate(numbers.tolist()):
            if (a, b) in before:
                owed[row] = self._owed[before[a, b]]
                kept.add(before[a, b])
        self._return_debts(jobs, [row for row in range(len(self._numbers)) if row not in kept])
        self._set_pairs(numbers, shares[rows], rates)
        self._owed = owed

    def _return_debts(self, jobs: JobTable, rows: list[int]) -> None:
        """What was owed to pairs that no longer share is owed to their members alone, as work."""
        for row in rows:
            for side, position in enumerate(jobs.positions(self._numbers[row]).tolist()):
                alone = jobs.rates[position]
                work = self._owed[row] * self._rates[row, :, side]
                jobs.owed[position] += np.divide(work, alone, out=np.zeros_like(work), where=alone > 0)

    def forget(self, number: int) -> None:
        """A job is gone, and with it the pairs that it was in."""
        if len(self._numbers):
            kept = (self._numbers != number).all(axis=1)
            charged = self._charged[kept]
            self._set_pairs(self._numbers[kept], self._shares[kept], self._rates[kept])
            self._owed, self._charged = self._owed[kept], charged

    def choose(
        self,
        jobs: JobTable,
        pool: WorkerPool,
        prices: FloatArray | None,
        reservations: Reservations,
        *,
        now: float,
        seconds: float,
        preempt: bool,
    ) -> Chosen:
        """Decide which jobs run until the next round."""
        dollars = prices if self._by_cost and prices is not None else np.zeros(self._types)
        on, scale, partner, ahead = jobs.on, jobs.held, jobs.partners(), precedence(jobs)
        pairs = np.searchsorted(jobs.number, self._numbers) if len(self._numbers) else self._numbers
        stays, free = movable(on, jobs.fixed, partner, scale, pool.room, preempt)
        rates, shares = (jobs.rates > 0).astype(float) if self._agnostic else jobs.rates, jobs.shares
        kept = reservations.kept(jobs, now, seconds)
        if kept is not None:
            rates, mine = rates.copy(), kept.holders(now, seconds)
            kept.leave_out_impossible(rates, pool.present)
            ahead, shares = before_all(ahead, mine), np.where(mine[:, None], 0.0, shares)
        if preempt:
            crowded = self._agnostic and bool(scale[~stays].sum() > free.sum())
            to_do = np.where(jobs.left > 0, jobs.left, np.inf)  # one that runs on has more to do than it said
            gains, least = weigh_moves(
                on, jobs.rates, jobs.known, to_do, jobs.rate, jobs.bound, dollars, self._restart, self.turn_seconds,
                self._agnostic, crowded,
            )  # fmt: skip
        else:  # no job that runs is moved
            gains, least = np.zeros(rates.shape, np.int64), np.ones(len(on))
        if self._pair_rates is not None:
            shares = np.zeros_like(jobs.rates)
            if preempt:
                shares[...] = self._serve(jobs, self._pair_rates, rates, stays, free, ahead)
                pairs = np.searchsorted(jobs.number, self._numbers)
        first, second = np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])
        to, together, charged, pair_charged = choose(
            shares, jobs.owed, rates, scale, on, partner, first, second, self._shares, self._owed, self._rates,
            stays, free, seconds, self.turn_seconds, gains, least, ahead,
        )  # fmt: skip
        if preempt and ((to != on) & (np.minimum(to, on) >= 0)).any():
            left = free.copy()
            given = (to >= 0) & ~stays & (together < np.arange(len(to)))
            np.subtract.at(left, to[given], scale[given])
            alone = (together < 0) & (partner < 0) & ~stays
            waits = to < 0
            able = jobs.rates if kept is None else np.where(rates > 0, jobs.rates, 0.0)
            if keep_places(to, on, alone, scale, able, gains, left) and waits.any():
                # Other workers are left than before, which jobs that wait may be able to use.
                then, _, gifts, _ = choose(
                    shares, jobs.owed, rates, scale, to, together, first[:0], second[:0], self._shares[:0],
                    self._owed[:0], self._rates[:0], ~waits, left, seconds, self.turn_seconds, gains, least, ahead,
                )  # fmt: skip
                to, charged = np.where(waits, then, to), np.where(waits, gifts, charged)
        workers: Mapping[int, tuple[int, ...]] = {}
        if kept is not None or Fitting.is_needed(jobs, pool):
            served = charged >= 0
            served[pairs[pair_charged >= 0].ravel()] = True
            to, together, charged, workers = self._fitted(
                jobs, pool, kept, to, together, charged, served, ahead, stays, free, rates, now=now, seconds=seconds
            )
            if len(pairs):
                pair_charged = np.where(together[first] == second, pair_charged, NONE)
        stopped, starting = changes(to, on, together, partner, scale)
        jobs.charged = np.where(stays, jobs.charged, charged)
        self._charged = pair_charged if preempt else np.where(pair_charged >= 0, pair_charged, self._charged)
        started: list[tuple[int, ...]] = [
            (job,) if other < 0 else (job, other)
            for job, other in zip(starting.tolist(), together[starting].tolist(), strict=True)
        ]
        return Chosen(stopped, started, to[starting].tolist(), workers)

    def _serve(
        self, jobs: JobTable, pair_rates: PairRates, rates: FloatArray, stays: BoolArray, free: IntArray,
        ahead: FloatArray,
    ) -> FloatArray:  # fmt: skip
        """The shares of this round: all of it for those jobs and pairs that do most of the work that is owed."""
        to, mate = serve(jobs, pair_rates.table, rates, stays, free, ahead, self.turn_seconds)
        chosen = (to[:, None] == np.arange(self._types)).astype(float)
        first = np.flatnonzero(mate > np.arange(len(mate)))
        second = mate[first]
        numbers = np.stack([jobs.number[first], jobs.number[second]], axis=1)
        self._set_pairs(numbers, chosen[first], pair_rates.between(jobs.kind[first], jobs.kind[second]))
        self._owed = np.zeros_like(self._shares)
        return np.where(mate[:, None] < 0, chosen, 0.0)

    def _fitted(
        self, jobs: JobTable, pool: WorkerPool, kept: Kept | None, to: IntArray, together: IntArray,
        charged: IntArray, served: BoolArray, ahead: FloatArray, stays: BoolArray, free: IntArray,
        rates: FloatArray, *, now: float, seconds: float,
    ) -> tuple[IntArray, IntArray, IntArray, Mapping[int, tuple[int, ...]]]:  # fmt: skip
        """Let only those jobs run that fit on their machines, and others that do in the place of the rest."""
        to, together, charged, rates = to.copy(), together.copy(), charged.copy(), rates.copy()
        none = np.zeros(0, np.int64)
        for attempt in range(_MOST_FITTINGS):
            known = kept is None and bool(stays[jobs.on >= 0].all())
            fitting = Fitting(jobs, pool, None if kept is None else kept.fresh(), self._packing, all_stay=known)
            units = by_claim(jobs, to, together, served, stays, ahead, now=now, turn=self.turn_seconds, only_new=known)
            workers, failed = fitting.fit(units)
            for unit in failed:
                members = list(unit.members)
                to[members] = together[members] = charged[members] = NONE
            if not failed or attempt == _MOST_FITTINGS - 1:
                return to, together, charged, workers
            waits = to < 0
            for job, column in np.argwhere(waits[:, None] & (rates > 0)).tolist():
                if not fitting.has_room(job, column):
                    rates[job, column] = 0.0
            left = free.copy()
            given = (to >= 0) & ~stays & (together < np.arange(len(to)))
            np.subtract.at(left, to[given], jobs.held[given])
            then, _, gifts, _ = choose(
                jobs.shares, jobs.owed, rates, jobs.held, to, together, none, none, self._shares[:0],
                self._owed[:0], self._rates[:0], ~waits, left, seconds, self.turn_seconds,
                np.zeros(rates.shape, np.int64), np.ones(len(to)), ahead,
            )  # fmt: skip
            to, charged = np.where(waits, then, to), np.where(waits, gifts, charged)
            served |= waits & (gifts >= 0)
        raise AssertionError  # the last attempt returns


def charge_alone(jobs: JobTable, position: int, column: int) -> None:
    """Charge a job that runs on without a choice of the rounds for its time, where it has a share of its own."""
    jobs.charged[position] = column if jobs.shares[position, column] > 0 else NONE
