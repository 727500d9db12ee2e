"""Rates of jobs that share, by their kinds: looked up once, the right way round, and replaced by what was measured."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fairway.engine.training.pair_rates import PairRates

TYPES = ("v100", "k80")


class Table:
    """Partners whose rates tell who is asked for beside whom."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, int]] = []

    def pair_rates(self, first: str, second: str, scale_factor: int) -> Mapping[str, tuple[float, float]]:
        self.asked.append((first, second, scale_factor))
        if "lonely" in {first, second}:
            return {}
        return {"v100": (len(first) + scale_factor / 10, len(second) + scale_factor / 10)}


def test_kinds_are_numbered_as_they_come_and_looked_up_with_those_of_their_size() -> None:
    table = Table()
    rates = PairRates(TYPES, table)
    assert [rates.kind("a", 1), rates.kind("bb", 1), rates.kind("a", 2), rates.kind("bb", 1)] == [1, 2, 3, 2]
    assert rates.kind(None, 1) == 0
    assert rates._rates.shape == (4, 4, 2, 2)
    assert table.asked == [("a", "a", 1), ("bb", "a", 1), ("bb", "bb", 1), ("a", "a", 2)]
    assert rates.of(1, 2).tolist() == [[1.1, 2.1], [0.0, 0.0]]
    assert rates.of(2, 1).tolist() == [[2.1, 1.1], [0.0, 0.0]]
    assert rates.of(3, 3).tolist() == [[1.2, 1.2], [0.0, 0.0]]
    assert not rates.of(1, 3).any(), "gangs of different sizes share with no other"
    assert not rates.of(0, 1).any()


def test_what_was_measured_replaces_what_was_believed_both_ways_round() -> None:
    rates = PairRates(TYPES, Table())
    first, second = rates.kind("a", 1), rates.kind("bb", 1)
    rates.measured(first, second, 1, (5.0, 7.0))
    assert rates.of(first, second).tolist() == [[1.1, 2.1], [5.0, 7.0]]
    assert rates.of(second, first).tolist() == [[2.1, 1.1], [7.0, 5.0]]
    both = rates.between(np.array([first, second]), np.array([second, second]))
    assert both.tolist() == [[[1.1, 2.1], [5.0, 7.0]], [[2.1, 2.1], [0.0, 0.0]]]


def test_pairs_are_of_those_that_both_make_progress_somewhere() -> None:
    rates = PairRates(TYPES, Table())
    kinds = np.array([rates.kind("a", 1), rates.kind("lonely", 1), rates.kind("bb", 1), 0])
    pairs = rates.pairs(kinds)
    assert pairs is not None
    assert (pairs.first.tolist(), pairs.second.tolist()) == ([0], [2])
    assert pairs.rates.tolist() == [[[1.1, 2.1], [0.0, 0.0]]]
    assert rates.pairs(kinds[1:2]) is None
    assert rates.pairs(kinds[[1, 3]]) is None
    rates.measured(int(kinds[0]), int(kinds[2]), 0, (3.0, 0.0))
    assert rates.pairs(kinds[[0, 2]]) is None, "one of them would stand still"


def test_without_partners_no_job_shares() -> None:
    rates = PairRates(TYPES, None)
    assert rates.kind("a", 1) == 0
    assert rates.pairs(np.array([0, 0])) is None
