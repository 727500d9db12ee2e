"""Find the prices that balance a cluster: the search that all price-based kernels share.

Once each accelerator type has a price, jobs are independent of each other, and a kernel knows its best answer in closed
form: how to run all jobs, what that is worth, and a bound that these prices prove for any answer that fits. Mixtures of
answers that fit are worth at least the mixture of their values, which bounds the optimum from the other side; the best
mixture (`master`) also names the prices to ask for next. Both bounds meet after a few dozen questions, at any number of
jobs (Dantzig and Wolfe 1960; prices are smoothed as in Wentges 1997). While every type has a price, guesses from the
last answers (`secant`) come near the balance first.

Prices are given as budgets: what all workers of a type cost together. Types without workers take no part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fairway.allocate.arrays import FloatArray, IntArray
from fairway.allocate.kernels.master import Master, begin, mixture, offer
from fairway.allocate.kernels.secant import Secant, begin_guessing, guess, take_down
from fairway.compiled import FloatTable, compiled, compiled_within

ROUNDS_PER_TYPE = 300

_SMOOTHING = 0.5
"""New prices are half-way between the master's and the best so far: it takes about half as many questions."""


class Answer(NamedTuple):
    """One way to run all jobs: its value, the fraction of each type that it uses, and what its prices prove."""

    value: float
    usage: FloatArray
    proven: float


@dataclass(frozen=True, slots=True)
class Balance:
    """The best mixture of answers reaches `value`; no answer that fits reaches more than `bound`.

    `proof` are the budgets that prove the bound, None if it was known before. `mixture` holds the numbers of the
    answers in the mixture and their parts: 0 is the modest answer that the search began with, k the k-th one asked for.
    """

    value: float
    bound: float
    proof: FloatArray | None
    mixture: list[tuple[int, float]]


class Search(NamedTuple):
    """What is known so far: the answers (`master`, `secant`), the budgets to ask next and those that prove the bound.

    `bounds` are the value of the best mixture, the bound, and the value of the first answer, from which the master
    counts, so that it works with numbers of the size of what is gained; `proven` says whether there is a proof.
    """

    columns: FloatTable
    values: FloatArray
    basis: IntArray
    best: FloatArray
    column_count: IntArray
    budgets: FloatTable
    excess: FloatTable
    imbalance: FloatArray
    numbers: IntArray
    following: FloatArray
    proof: FloatArray
    bounds: FloatArray
    proven: IntArray


@compiled_within(releases_gil=True)
def begin_search(usage: FloatArray, value: float, bound: float, relative: bool) -> Search:
    """The search with one answer that fits with room to spare, and a bound that is known beforehand."""
    types = len(usage)
    master, secant = begin(usage, 0.0, ROUNDS_PER_TYPE * types), begin_guessing(types, relative)
    bounds = np.empty(3)
    bounds[0], bounds[1], bounds[2] = value, bound, value
    return Search(
        master.columns, master.values, master.basis, master.best, master.column_count, secant.budgets, secant.excess,
        secant.imbalance, secant.numbers, np.zeros(types), np.zeros(types), bounds, np.zeros(1, np.int64),
    )  # fmt: skip


@compiled_within(releases_gil=True)
def master_of(search: Search) -> Master:
    """The answers as the master sees them."""
    return Master(search.columns, search.values, search.basis, search.best, search.column_count)


@compiled(releases_gil=True, divides_as_numpy=True)
def learn(search: Search, asked: FloatArray, value: float, usage: FloatArray, proven: float) -> bool:
    """Take an answer in and find the budgets to ask next (`following`); whether they are the same question again."""
    bounds, following, types = search.bounds, search.following, len(asked)
    if proven < bounds[1]:
        bounds[1] = proven
        search.proof[:] = asked
        search.proven[0] = 1
    offer(master_of(search), usage, value - bounds[2])
    secant = Secant(search.budgets, search.excess, search.imbalance, search.numbers)
    take_down(secant, asked, usage)
    before = bounds[0]
    bounds[0] = bounds[2] + search.best[types]
    total, every = 0.0, True
    for j in range(types):
        total += search.best[j]
        every = every and search.best[j] > 0
    if every and guess(secant, following):
        return False
    for j in range(types):
        following[j] = search.best[j] / total if search.numbers[3] else search.best[j]
    if search.proven[0] and bounds[0] > before:
        for j in range(types):
            following[j] = _SMOOTHING * search.proof[j] + (1 - _SMOOTHING) * following[j]
        return False
    return bool((following == asked).all())  # the same question would get the same answer


def find_prices(
    ask: Callable[[FloatArray], Answer],
    modest: Answer,
    starts: Sequence[FloatArray],
    *,
    done: Callable[[float, float], bool],
    relative: bool = False,
) -> Balance:
    """Ask for answers, first at the prices in `starts`, until the two bounds are `done`.

    `modest` is an answer that fits with room to spare; its `proven` is a bound known beforehand. With `relative`, only
    the relation of prices matters, and budgets always add up to 1.
    """
    search = begin_search(modest.usage, modest.value, modest.proven, relative)
    waiting = list(starts)
    budgets = waiting.pop(0)
    for _ in range(ROUNDS_PER_TYPE * len(budgets)):
        answer = ask(budgets)
        same = learn(search, budgets, answer.value, answer.usage, answer.proven)
        value, bound, _ = search.bounds.tolist()
        if done(value, bound):
            break
        if waiting:
            budgets = waiting.pop(0)
        elif same:
            break
        else:
            budgets = search.following.copy()
    return balance_of(search)


def balance_of(search: Search) -> Balance:
    """What a search has found."""
    value, bound, _ = search.bounds.tolist()
    numbers, parts = mixture(master_of(search))
    return Balance(
        min(value, bound),
        bound,
        search.proof if search.proven[0] else None,
        list(zip(numbers.tolist(), parts.tolist(), strict=True)),
    )
