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

from fairway.allocate.arrays import FloatArray
from fairway.allocate.kernels.master import Master
from fairway.allocate.kernels.secant import Secant

_ROUNDS_PER_TYPE = 300

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
    # Values are counted from the first one, so that the master works with numbers of the size of what is gained.
    origin, bound = modest.value, modest.proven
    master = Master(modest.usage, 0.0)
    waiting = list(starts)
    budgets, proof, value = waiting.pop(0), None, origin
    secant = Secant(len(budgets), relative=relative)
    for _ in range(_ROUNDS_PER_TYPE * len(budgets)):
        answer = ask(budgets)
        if answer.proven < bound:
            bound, proof = answer.proven, budgets
        master.add(answer.usage, answer.value - origin)
        secant.add(budgets, answer.usage)
        gained, dual = master.solve()
        before, value = value, origin + gained
        if done(value, bound):
            break
        if waiting:
            budgets = waiting.pop(0)
            continue
        last, budgets = budgets, dual / dual.sum() if relative else dual
        guess = secant.guess() if (dual > 0).all() else None
        if guess is not None:
            budgets = guess
        elif proof is not None and value > before:
            budgets = _SMOOTHING * proof + (1 - _SMOOTHING) * budgets
        elif np.array_equal(budgets, last):  # the same question would get the same answer
            break
    return Balance(min(value, bound), bound, proof, master.mixture())
