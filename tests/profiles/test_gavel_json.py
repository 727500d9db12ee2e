"""The reader of Gavel's throughput files, on small texts and on their own content, written as they write it.

The golden values are facts about the published files, not output of this project.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from statistics import mean

import pytest

from fairway.errors import InputError
from fairway.profiles import IsolatedRate, PairRate, ThroughputTable, catalog, parse_gavel_json, read_table
from tests.figures import GAVEL_CLUSTER_RATES, gavel_rates

SMALL = """
{"v100": {"('LM (batch size 5)', 1)": {"null": 109, "('A3C', 1)": [61.0, 4.1]},
          "('A3C', 1)": {"null": 7.2, "('LM (batch size 5)', 1)": [4.1, 61.0], "('A3C', 1)": [0.0, 0]},
          "('A3C', 2)": {"null": 9.5},
          "('A3C', 4)": {"null": 11.5}},
 "v100_unconsolidated": {"('A3C', 1)": {"null": 7.3, "('A3C', 1)": [1.0, 2.0]},
                         "('A3C', 2)": {"null": 8.5}}}
"""


def test_keys_are_read_as_job_type_and_scale_factor() -> None:
    table = parse_gavel_json(SMALL, "small.json")
    assert table.source == "small.json"
    assert table.accelerators == ("v100",)
    assert table.isolated == (
        IsolatedRate("LM (batch size 5)", 1, "v100", 109.0),
        IsolatedRate("A3C", 1, "v100", 7.2),
        IsolatedRate("A3C", 2, "v100", 9.5, 8.5),
        IsolatedRate("A3C", 4, "v100", 11.5),
    )
    assert table.shared == (
        PairRate("LM (batch size 5)", "A3C", 1, "v100", 61.0, 4.1),
        PairRate("A3C", "LM (batch size 5)", 1, "v100", 4.1, 61.0),
        PairRate("A3C", "A3C", 1, "v100", 0.0, 0.0),
    )


def test_a_job_type_may_contain_quotes() -> None:
    assert parse_gavel_json(r"""{"k80": {"(\"BERT's\", 1)": {"null": 1.5}}}""", "x").job_types == ("BERT's",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "x.json: not valid JSON: Expecting property name"),
        ("[" * 200_000, "x.json: not valid JSON: "),
        ("[]", "x.json: list given, expected an object of worker types"),
        ("{}", "x.json: no rates given"),
        ('{"v100": 3}', "x.json, v100: float given, expected an object of job types"),
        ("""{"v100": {"LM": {"null": 1.0}}}""", "x.json, v100, LM: not a job key"),
        ("""{"v100": {"['LM', 1]": {"null": 1.0}}}""", r"x.json, v100, \['LM', 1\]: not a job key"),
        ("""{"v100": {"('LM', True)": {"null": 1.0}}}""", r"x.json, v100, \('LM', True\): not a job key"),
        ("""{"v100": {"('LM', 1.5)": {"null": 1.0}}}""", r"x.json, v100, \('LM', 1.5\): not a job key"),
        ("""{"v100": {"exit()": {"null": 1.0}}}""", r"x.json, v100, exit\(\): not a job key"),
        (r"""{"v100": {"a\nb": {"null": 1.0}}}""", r"x.json, v100, 'a\\nb': not a job key"),
        ("""{"v100": {"('LM', 0)": {"null": 1.0}}}""", r"x.json, v100, \('LM', 0\): scale_factor: 0 given"),
        ("""{"v100": {"('LM', 1)": [1.0]}}""", r"x.json, v100, \('LM', 1\): list given, expected an object of rates"),
        ("""{"v100": {"('LM', 1)": {}}}""", r"""x.json, v100, \('LM', 1\): "null" is missing"""),
        ("""{"v100": {"('LM', 1)": {"null": -1}}}""", r"x.json, v100, \('LM', 1\): steps_per_second: -1.0 given"),
        ("""{"v100": {"('LM', 1)": {"null": NaN}}}""", r"x.json, v100, \('LM', 1\): steps_per_second: nan given"),
        ("""{"v100": {"('LM', 1)": {"null": 1""" + "0" * 400 + "}}}", r"x.json, .*: steps_per_second: inf given"),
        ("""{"v100": {"('LM', 1)": {"null": "1"}}}""", r"""x.json, v100, \('LM', 1\): "1" given, expected steps per"""),
        (
            """{"v100_unconsolidated": {"('LM', 2)": {"null": 1.0}}}""",
            r"x.json, v100_unconsolidated, \('LM', 2\): the same under 'v100' is missing",
        ),
        (
            """{"v100": {"('LM', 2)": {"null": 1.0}}, "v100_unconsolidated": {"('LM', 2)": {"null": -1.0}}}""",
            r"x.json, v100_unconsolidated, \('LM', 2\): steps_per_second: -1.0 given",
        ),
        (
            """{"v100": {"('LM', 1)": {"null": 1.0, "LM": [1.0, 1.0]}}}""",
            r"x.json, v100, \('LM', 1\), LM: not a job key",
        ),
        (
            """{"v100": {"('LM', 1)": {"null": 1.0, "('LM', 2)": [1.0, 1.0]}}}""",
            r"x.json, v100, \('LM', 1\), \('LM', 2\): scale factors 1 and 2 given, expected equal ones",
        ),
        (
            """{"v100": {"('LM', 1)": {"null": 1.0, "('LM', 1)": [1.0]}}}""",
            r"x.json, v100, \('LM', 1\), \('LM', 1\): \[1.0\] given, expected two rates",
        ),
        (
            """{"v100": {"('LM', 1)": {"null": 1.0, "('LM', 1)": [1.0, null]}}}""",
            r"x.json, v100, \('LM', 1\), \('LM', 1\): null given, expected steps per second",
        ),
        (
            """{"v100": {"('LM', 1)": {"null": 1.0, "('A3C', 1)": [1.0, 1.0]}}}""",
            r"x.json, v100, \('LM', 1\), \('A3C', 1\): no rate of 'A3C' \(scale factor 1\) alone on 'v100'",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line_with_file_and_key(text: str, message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}") as caught:
        parse_gavel_json(text, "x.json")
    assert "\n" not in str(caught.value)


def as_gavel_writes(table: ThroughputTable) -> str:
    """As in its files, every two jobs of one size are there in both orders, and gangs get nowhere together."""
    content: dict[str, dict[str, dict[str, float | list[float]]]] = {}
    gangs = [(name, s) for name in table.job_types for s in table.scale_factors(name)]
    for row in table.isolated:
        entry: dict[str, float | list[float]] = {"null": row.steps_per_second}
        for partner in (name for name, s in gangs if s == row.scale_factor):
            both = table.pair_rates(row.job_type, partner, row.scale_factor).get(row.accelerator, (0.0, 0.0))
            entry[str((partner, row.scale_factor))] = list(both)
        key = str((row.job_type, row.scale_factor))
        content.setdefault(row.accelerator, {})[key] = entry
        if row.scale_factor == 1 or row.spread_steps_per_second is not None:
            apart = row.steps_per_second if row.scale_factor == 1 else row.spread_steps_per_second
            content.setdefault(f"{row.accelerator}_unconsolidated", {})[key] = {"null": apart, key: [1.0, 2.0]}
    return json.dumps(content)


@pytest.fixture(scope="module")
def simulation() -> ThroughputTable:
    return parse_gavel_json(as_gavel_writes(gavel_rates()), "simulation_throughputs.json")


@pytest.fixture(scope="module")
def physical() -> ThroughputTable:
    return read_table(GAVEL_CLUSTER_RATES)


def test_every_rate_is_read(simulation: ThroughputTable) -> None:
    rates = gavel_rates()
    assert simulation.isolated == rates.isolated
    for pair in rates.shared:
        one, two = pair.job_type, pair.partner
        assert simulation.pair_rates(one, two, 1) == rates.pair_rates(one, two, 1)
        assert simulation.pair_rates(two, one, 1) == rates.pair_rates(two, one, 1)
    assert len(simulation.shared) == 3 * (26 * 26 + 3 * 19 * 19)


def test_the_published_files_have_26_job_types_and_83_gangs_on_three_types(
    simulation: ThroughputTable, physical: ThroughputTable
) -> None:
    for table in (simulation, physical):
        assert table.accelerators == ("k80", "p100", "v100")
        assert len(table.job_types) == 26
        assert sum(len(table.scale_factors(name)) for name in table.job_types) == 83


def test_the_catalog_is_the_published_simulation_file_to_four_digits(simulation: ThroughputTable) -> None:
    builtin = catalog.builtin()
    assert set(builtin.job_types) == set(simulation.job_types)
    assert len(builtin.isolated) == len(simulation.isolated) == 249
    for row in builtin.isolated:
        published = simulation.rate(row.job_type, row.scale_factor, row.accelerator)
        assert row.steps_per_second == float(f"{published:.4g}")


def test_the_physical_file_has_its_own_single_worker_rates(physical: ThroughputTable) -> None:
    assert physical.rate("Recommendation (batch size 512)", 1, "v100") == pytest.approx(253.6, rel=1e-3)
    assert physical.rate("ResNet-50 (batch size 128)", 1, "k80") == 0.0


def test_spread_rates_come_from_the_unconsolidated_types(simulation: ThroughputTable) -> None:
    spread = simulation.rates("ResNet-18 (batch size 16)", 2, spread=True)
    assert spread == pytest.approx({"k80": 9.264, "p100": 34.89, "v100": 35.34}, rel=1e-3)
    not_spread = [row for row in simulation.isolated if row.scale_factor > 1 and row.spread_steps_per_second is None]
    assert {(row.job_type, row.accelerator) for row in not_spread} == {
        ("ResNet-50 (batch size 64)", "k80"),
        ("ResNet-50 (batch size 128)", "k80"),
    }


@pytest.mark.parametrize(
    ("accelerator", "unfit", "mean_sum", "share_above_one"),
    [("v100", 40, 1.24, 0.74), ("p100", 20, 1.16, 0.85), ("k80", 87, 0.94, 0.65)],
)
def test_the_published_pairs_have_the_published_sums(
    simulation: ThroughputTable, accelerator: str, unfit: int, mean_sum: float, share_above_one: float
) -> None:
    alone = {name: simulation.rate(name, 1, accelerator) for name in simulation.job_types}
    sums = []
    for a in simulation.job_types:
        for b in simulation.job_types:
            rate, partner_rate = simulation.pair_rates(a, b, 1)[accelerator]
            sums.append(rate / alone[a] + partner_rate / alone[b])
    assert len(sums) == 676
    assert sums.count(0.0) == unfit
    assert mean(sums) == pytest.approx(mean_sum, abs=0.005)
    assert mean(total > 1 for total in sums) == pytest.approx(share_above_one, abs=0.005)


def test_gangs_of_several_workers_never_share_in_the_published_files(simulation: ThroughputTable) -> None:
    jobs = [(f"{name}, {s}", name, s) for name in simulation.job_types for s in simulation.scale_factors(name) if s > 1]
    assert simulation.pairs(jobs) == []


def test_the_files_themselves_hold_these_rates(shared_data: Callable[[str], Path], physical: ThroughputTable) -> None:
    published = read_table(shared_data("gavel/simulation_throughputs.json"))
    assert published.isolated == gavel_rates().isolated
    for a in published.job_types:
        for b in published.job_types:
            assert published.pair_rates(a, b, 1) == gavel_rates().pair_rates(a, b, 1)
    assert read_table(shared_data("gavel/physical_cluster_throughputs.json")).isolated == physical.isolated
