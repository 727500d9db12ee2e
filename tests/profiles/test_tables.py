"""The throughput table: what it answers, and what it refuses."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import pytest

from fairway.errors import InputError
from fairway.jobs import Job, Pair
from fairway.profiles import IsolatedRate, PairRate, ThroughputTable

TABLE = ThroughputTable(
    (
        IsolatedRate("resnet", 1, "v100", 30.0),
        IsolatedRate("resnet", 1, "k80", 5.0),
        IsolatedRate("resnet", 2, "v100", 50.0, 20.0),
        IsolatedRate("resnet", 2, "k80", 9.0),
        IsolatedRate("lm", 1, "v100", 100.0),
        IsolatedRate("lm", 1, "k80", 25.0),
        IsolatedRate("lm", 2, "v100", 180.0),
        IsolatedRate("huge", 1, "v100", 1.0),
        IsolatedRate("huge", 1, "k80", 0.0),
        IsolatedRate("rare", 1, "k80", 2.0),
    ),
    (
        PairRate("resnet", "lm", 1, "v100", 20.0, 60.0),
        PairRate("resnet", "lm", 1, "k80", 0.0, 0.0),
        PairRate("lm", "lm", 1, "v100", 55.0, 55.0),
        PairRate("resnet", "huge", 1, "v100", 0.0, 0.0),
        PairRate("resnet", "lm", 2, "v100", 30.0, 90.0),
    ),
    source="a test",
)


def table(*rows: IsolatedRate, shared: tuple[PairRate, ...] = ()) -> ThroughputTable:
    return ThroughputTable(rows, shared, source="a test")


def test_names_stand_in_the_order_of_the_rows() -> None:
    assert TABLE.accelerators == ("v100", "k80")
    assert TABLE.job_types == ("resnet", "lm", "huge", "rare")
    assert TABLE.source == "a test"


def test_scale_factors_are_the_known_ones_in_increasing_order() -> None:
    rows = (IsolatedRate("a", s, "v100", 1.0) for s in (8, 1, 2))
    assert table(*rows).scale_factors("a") == (1, 2, 8)


def test_a_rate_is_that_of_its_row() -> None:
    assert TABLE.rate("resnet", 1, "k80") == 5.0
    assert TABLE.rates("resnet", 2) == {"v100": 50.0, "k80": 9.0}


def test_a_rate_of_zero_stays_and_an_absent_rate_is_left_out() -> None:
    assert TABLE.rates("huge", 1) == {"v100": 1.0, "k80": 0.0}
    assert TABLE.rates("rare", 1) == {"k80": 2.0}


def test_a_spread_rate_that_is_not_known_is_the_consolidated_one() -> None:
    assert TABLE.rate("resnet", 2, "v100", spread=True) == 20.0
    assert TABLE.rates("resnet", 2, spread=True) == {"v100": 20.0, "k80": 9.0}
    assert TABLE.rates("resnet", 1, spread=True) == TABLE.rates("resnet", 1)


def test_pair_rates_follow_the_order_of_the_question() -> None:
    assert TABLE.pair_rates("resnet", "lm", 1) == {"v100": (20.0, 60.0), "k80": (0.0, 0.0)}
    assert TABLE.pair_rates("lm", "resnet", 1) == {"v100": (60.0, 20.0), "k80": (0.0, 0.0)}
    assert TABLE.pair_rates("lm", "lm", 1) == {"v100": (55.0, 55.0)}


def test_a_pair_that_was_never_measured_has_no_rates() -> None:
    assert TABLE.pair_rates("lm", "huge", 1) == {}


def test_a_job_gets_the_rates_of_its_type() -> None:
    assert TABLE.job("7", "lm", weight=2.0, steps_left=10.0) == Job(
        id="7", throughputs={"v100": 100.0, "k80": 25.0}, weight=2.0, steps_left=10.0, job_type="lm"
    )


def test_a_job_with_a_known_spread_rate_gets_spread_rates_on_every_type() -> None:
    assert TABLE.job("7", "resnet", 2).spread_throughputs == {"v100": 20.0, "k80": 9.0}
    assert TABLE.job("7", "lm", 2).spread_throughputs is None


def test_pairs_are_the_jobs_of_equal_scale_that_both_advance_together() -> None:
    jobs = [("0", "resnet", 1), ("1", "lm", 1), ("2", "lm", 1), ("3", "huge", 1), ("4", "lm", 2), ("5", "resnet", 2)]
    assert TABLE.pairs(jobs) == [
        Pair(jobs=("0", "1"), throughputs={"v100": (20.0, 60.0)}),
        Pair(jobs=("0", "2"), throughputs={"v100": (20.0, 60.0)}),
        Pair(jobs=("1", "2"), throughputs={"v100": (55.0, 55.0)}),
        Pair(jobs=("4", "5"), throughputs={"v100": (90.0, 30.0)}),
    ]


def test_what_a_table_hands_out_cannot_change_it() -> None:
    TABLE.rates("resnet", 1)["v100"] = 0.0
    TABLE.pair_rates("resnet", "lm", 1).clear()
    assert TABLE.rate("resnet", 1, "v100") == 30.0
    assert "v100" in TABLE.pair_rates("resnet", "lm", 1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        TABLE.source = "elsewhere"  # type: ignore[misc]


@pytest.mark.parametrize(
    "ask",
    [
        lambda: TABLE.rate("ResNet", 1, "v100"),
        lambda: TABLE.rates("ResNet", 1),
        lambda: TABLE.pair_rates("ResNet", "lm", 1),
        lambda: TABLE.pair_rates("lm", "ResNet", 1),
        lambda: TABLE.job("7", "ResNet"),
        lambda: TABLE.pairs([("0", "lm", 1), ("1", "ResNet", 1)]),
        lambda: TABLE.scale_factors("ResNet"),
    ],
)
def test_an_unknown_job_type_is_refused_with_the_nearest_known_one(ask: Callable[[], object]) -> None:
    with pytest.raises(InputError, match=r"job type 'ResNet' is not in the table \(a test\); the nearest is 'resnet'"):
        ask()


def test_an_unknown_scale_factor_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"'resnet' has no rates at scale factor 4 in the table .*; known: 1, 2$"):
        TABLE.rates("resnet", 4)


def test_an_unknown_accelerator_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        InputError, match=r"'resnet' \(scale factor 2\) has no rate on 'a100' .*; known: 'v100', 'k80'$"
    ):
        TABLE.rate("resnet", 2, "a100")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"job_type": ""}, "job_type: '' given"),
        ({"job_type": " resnet"}, "job_type: ' resnet' given"),
        ({"accelerator": "v\n100"}, r"accelerator: 'v\\n100' given"),
        ({"scale_factor": 0}, "scale_factor: 0 given, expected a whole number of at least 1"),
        ({"steps_per_second": -1.0}, "steps_per_second: -1.0 given"),
        ({"steps_per_second": math.nan}, "steps_per_second: nan given"),
        ({"steps_per_second": math.inf}, "steps_per_second: inf given"),
    ],
)
@pytest.mark.parametrize(
    "row",
    [IsolatedRate("resnet", 2, "v100", 1.0), PairRate("resnet", "lm", 2, "v100", 1.0, 2.0)],
    ids=["alone", "pair"],
)
def test_a_row_refuses_what_cannot_be_and_says_where_it_was_read(
    row: IsolatedRate | PairRate, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        dataclasses.replace(row, **change)
    with pytest.raises(InputError, match=f"^rates.csv, line 3: {message}"):
        dataclasses.replace(row, origin="rates.csv, line 3", **change)


def test_a_spread_rate_is_checked_like_any_other() -> None:
    with pytest.raises(InputError, match=r"^spread_steps_per_second: -2.0 given"):
        IsolatedRate("resnet", 2, "v100", 1.0, -2.0)


def test_a_single_worker_cannot_be_spread() -> None:
    with pytest.raises(InputError, match=r"spread_steps_per_second: 1.0 given with a scale_factor of 1, expected none"):
        IsolatedRate("resnet", 1, "v100", 1.0, 1.0)


def test_a_partner_is_checked_like_the_job() -> None:
    with pytest.raises(InputError, match=r"^partner: '' given"):
        PairRate("resnet", "", 1, "v100", 1.0, 1.0)
    with pytest.raises(InputError, match=r"^partner_steps_per_second: -1.0 given"):
        PairRate("resnet", "lm", 1, "v100", 1.0, -1.0)


def test_a_job_type_paired_with_itself_has_one_rate() -> None:
    with pytest.raises(InputError, match=r"2.0 given, expected 1.0, since 'lm' is paired with itself"):
        PairRate("lm", "lm", 1, "v100", 1.0, 2.0)


def test_a_second_rate_for_the_same_gang_is_refused() -> None:
    row = IsolatedRate("lm", 1, "v100", 1.0, origin="line 2")
    with pytest.raises(
        InputError, match=r"^line 9: a second rate of 'lm' \(scale factor 1\) on 'v100' given \(first at"
    ):
        table(row, dataclasses.replace(row, origin="line 9"))
    with pytest.raises(InputError, match=r"^a second rate of 'lm' \(scale factor 1\) on 'v100' given; keep one$"):
        table(IsolatedRate("lm", 1, "v100", 1.0), IsolatedRate("lm", 1, "v100", 2.0))


@pytest.mark.parametrize("again", [PairRate("a", "b", 1, "v100", 1.0, 3.0), PairRate("b", "a", 1, "v100", 1.0, 2.0)])
def test_a_pair_given_in_both_orders_must_agree(again: PairRate) -> None:
    rows = (IsolatedRate("a", 1, "v100", 4.0), IsolatedRate("b", 1, "v100", 4.0))
    pair = PairRate("a", "b", 1, "v100", 1.0, 2.0)
    same = PairRate("b", "a", 1, "v100", 2.0, 1.0)
    assert table(*rows, shared=(pair, same)).pair_rates("b", "a", 1) == {"v100": (2.0, 1.0)}
    with pytest.raises(InputError, match=r"on 'v100' given, but \(.*\) given before; keep one"):
        table(*rows, shared=(pair, again))


def test_a_pair_needs_the_rate_of_each_job_alone() -> None:
    rows = (IsolatedRate("a", 1, "v100", 4.0), IsolatedRate("b", 1, "k80", 4.0))
    with pytest.raises(InputError, match=r"no rate of 'b' \(scale factor 1\) alone on 'v100'; give that as well"):
        table(*rows, shared=(PairRate("a", "b", 1, "v100", 1.0, 2.0),))


def test_a_table_needs_rates_and_a_source() -> None:
    with pytest.raises(InputError, match="no rates given"):
        table()
    with pytest.raises(InputError, match="source: nothing given"):
        ThroughputTable((IsolatedRate("a", 1, "v100", 4.0),), source="")
