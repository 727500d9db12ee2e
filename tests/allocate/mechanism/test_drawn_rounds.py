"""Many drawn rounds, full of ties and tight fits: each holds what every round must, and all are what they were."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from fairway.allocate.mechanism.places import keep_places
from fairway.allocate.mechanism.rounds import account, carry_over, choose, weigh_moves
from tests.digest import digest


def _table(draw: random.Random, rows: int, columns: int, among: list[float]) -> Any:
    return np.array([[draw.choice(among) for _ in range(columns)] for _ in range(rows)], dtype=float).reshape(
        rows, columns
    )


def _drawn(seed: int) -> dict[str, Any]:
    """What a round is chosen from: few jobs and types, round numbers."""
    draw = random.Random(seed)
    jobs, types = draw.randint(1, 5), draw.randint(1, 3)
    rates = _table(draw, jobs, types, [0.0, 1.0, 2.0, 2.0, 4.0])
    free = np.array([draw.randint(0, 3) for _ in range(types)])
    scale = np.array([draw.choice([1, 1, 2]) for _ in range(jobs)])
    on, beside = np.full(jobs, -1), np.full(jobs, -1)
    held = np.zeros(types, dtype=np.int64)
    for job in range(jobs):
        column = draw.randrange(types)
        if draw.random() < 0.6 and rates[job, column] > 0 and held[column] + scale[job] <= free[column]:
            on[job] = column
            held[column] += scale[job]
    members = [
        (first, second)
        for first in range(jobs)
        for second in range(first + 1, jobs)
        if scale[first] == scale[second] and draw.random() < 0.3
    ]
    for first, second in members:
        if on[first] >= 0 and beside[first] < 0 and on[second] < 0 and draw.random() < 0.5:
            on[second], beside[first], beside[second] = on[first], second, first
            rates[second, on[second]] = max(rates[second, on[second]], 1.0)
    pairs = np.array(members, dtype=np.int64).reshape(-1, 2)
    stays = np.array([on[job] >= 0 and beside[job] < 0 and draw.random() < 0.15 for job in range(jobs)])
    for job in np.flatnonzero(stays):
        free[on[job]] -= scale[job]
    together = [[[draw.choice([0.0, 0.5, 1.0, 1.5]) for _ in range(2)] for _ in range(types)] for _ in members]
    pair_rates = np.array(together).reshape(len(members), types, 2)
    pair_rates[rates[pairs].transpose(0, 2, 1) == 0.0] = 0.0
    return {
        "shares": _table(draw, jobs, types, [0.0, 0.0, 0.25, 0.5]),
        "owed": _table(draw, jobs, types, [0.0, 0.0, 60.0, 120.0, 240.0]),
        "rates": rates,
        "scale": scale,
        "on": on,
        "beside": beside,
        "pair_first": pairs[:, 0].copy(),
        "pair_second": pairs[:, 1].copy(),
        "pair_shares": _table(draw, len(pairs), types, [0.0, 0.25, 0.5]),
        "pair_owed": _table(draw, len(pairs), types, [0.0, 60.0, 240.0]),
        "pair_rates": pair_rates,
        "stays": stays,
        "free": free,
        "ahead": draw.choice([0.0, 120.0, 240.0]),
        "keep": draw.choice([0.0, 30.0, 60.0]),
    }


def _weighed(seed: int, rates: Any, on: Any, stays: Any = None) -> tuple[Any, Any]:
    draw = random.Random(-seed - 1)
    jobs, types = rates.shape
    rate = np.array([row[max(held, 0)] for row, held in zip(rates, on, strict=True)])
    gains, least = weigh_moves(
        on, rates, _table(draw, jobs, types, [0.0, 1.0, 1.0, 1.0]),
        np.array([draw.choice([0.0, 50.0, 100.0, 1800.0, 7200.0]) for _ in range(jobs)]), rate,
        np.array([draw.choice([0, 0, 0, 1]) for _ in range(jobs)]),
        np.array([draw.choice([0.0, 0.0, 1.0, 2.0]) for _ in range(types)]), draw.choice([0.0, 30.0, 50.0]), 1800.0,
        draw.random() < 0.2, draw.random() < 0.5,
    )  # fmt: skip
    return gains, least


def test_drawn_choices_fit_and_are_what_they_were() -> None:
    found = []
    for seed in range(1500):
        given = _drawn(seed)
        gains, least = _weighed(seed, given["rates"], given["on"])
        to, partner, charge, pair_charge = choose(*given.values(), gains, least)
        used = np.zeros(len(given["free"]), dtype=np.int64)
        for job, column in enumerate(to):
            if given["stays"][job]:
                assert (column, partner[job]) == (given["on"][job], given["beside"][job])
            elif column >= 0:
                assert given["rates"][job, column] > 0 or partner[job] >= 0
                if partner[job] < job:  # of two that share, the second holds the workers
                    used[column] += given["scale"][job]
                if partner[job] >= 0:
                    assert (partner[partner[job]], to[partner[job]]) == (job, column)
        assert (used <= given["free"]).all()
        found.append([to, partner, charge, pair_charge])
    assert digest(found) == "036cfca7cf7e"


def test_drawn_gains_are_what_they_were() -> None:
    drawn = [(seed, _drawn(seed)) for seed in range(600)]
    assert digest([_weighed(seed, given["rates"], given["on"]) for seed, given in drawn]) == "9891942c1153"


def test_drawn_places_fit_and_are_what_they_were() -> None:
    found = []
    for seed in range(1500):
        given = _drawn(seed)
        gains, least = _weighed(seed, given["rates"], given["on"])
        to, partner, _, _ = choose(*given.values(), gains, least)
        single = (partner < 0) & (given["beside"] < 0) & ~given["stays"]
        left = given["free"].copy()
        for job in np.flatnonzero((to >= 0) & ~given["stays"] & (partner < np.arange(len(to)))):
            left[to[job]] -= given["scale"][job]
        draw = random.Random(seed)
        columns = np.array(draw.sample(range(len(left)), len(left)))  # as a solver may have named equal types otherwise
        rates = np.where(draw.random() < 0.5, given["rates"], np.ones_like(given["rates"]))
        final = np.where((to >= 0) & single, to if draw.random() < 0.3 else columns[to], to)
        room = left if draw.random() < 0.3 else left + 1
        stays = keep_places(final, given["on"], single, given["scale"], rates, gains, room)
        assert (room >= 0).all()
        found.append([stays, final, room])
    assert digest(found) == "911f287c3473"


def test_drawn_debts_are_what_they_were() -> None:
    found = []
    for seed in range(300):
        draw = random.Random(seed)
        rows, types = draw.randint(1, 4), draw.randint(1, 3)
        shares = _table(draw, rows, types, [0.0, 0.25, 0.5])
        owed = _table(draw, rows, types, [0.0, 60.0, 400.0, 2000.0])
        charged = np.array([draw.randint(-1, types - 1) for _ in range(rows)])
        account(draw.choice([60.0, 100.0, 360.0]), shares, owed, charged, 120.0)
        found.append(owed.copy())
        carry_over(owed, _table(draw, rows, types, [0.0, 1.0, 3.0]), _table(draw, rows, types, [0.0, 0.0, 0.5, 0.25]))
        found.append(owed)
    assert digest(found) == "58e9511570b6"
