"""The built-in catalog, against numbers of the published file."""

from __future__ import annotations

import pytest

from fairway.cluster import Cluster
from fairway.profiles import catalog
from tests.figures import gavel_rates


def test_the_catalog_has_26_job_types_and_83_gangs_on_three_accelerator_types() -> None:
    table = catalog.builtin()
    assert table.accelerators == ("v100", "p100", "k80")
    assert len(table.job_types) == 26
    gangs = [(name, s) for name in table.job_types for s in table.scale_factors(name)]
    assert len(gangs) == 83
    assert all(len(table.rates(name, s)) == 3 for name, s in gangs)


@pytest.mark.parametrize(
    ("job_type", "scale_factor", "rates"),
    [
        ("ResNet-18 (batch size 16)", 1, {"v100": 32.35, "p100": 35.87, "k80": 4.795}),
        ("LM (batch size 10)", 8, {"v100": 615.1, "p100": 127.8, "k80": 75.57}),
        ("ResNet-50 (batch size 128)", 1, {"v100": 2.497, "p100": 1.584, "k80": 0.3472}),
        ("ResNet-50 (batch size 128)", 4, {"v100": 7.029, "p100": 5.191, "k80": 0.0}),
        ("CycleGAN", 1, {"v100": 4.426, "p100": 2.403, "k80": 0.5048}),
    ],
)
def test_the_catalog_has_the_published_rates(job_type: str, scale_factor: int, rates: dict[str, float]) -> None:
    assert catalog.builtin().rates(job_type, scale_factor) == rates


def test_the_catalog_has_the_published_rates_of_every_two_jobs_on_one_worker() -> None:
    table = catalog.builtin()
    assert len(table.shared) == 3 * 26 * 27 // 2
    pairs = table.pair_rates("ResNet-18 (batch size 16)", "ResNet-18 (batch size 32)", 1)
    assert set(pairs) == {"v100", "p100", "k80"}
    assert not table.pair_rates("LM (batch size 5)", "LM (batch size 10)", 2)  # gangs were not measured together


def test_no_job_is_faster_beside_another_than_alone() -> None:
    table = catalog.builtin()
    for pair in table.shared:
        assert pair.steps_per_second <= table.rate(pair.job_type, 1, pair.accelerator)
        assert pair.partner_steps_per_second <= table.rate(pair.partner, 1, pair.accelerator)


def test_the_catalog_agrees_with_the_published_file() -> None:
    for pair in catalog.builtin().shared:
        rates = gavel_rates().pair_rates(pair.job_type, pair.partner, 1)[pair.accelerator]
        assert (pair.steps_per_second, pair.partner_steps_per_second) == pytest.approx(rates, rel=6e-4)


def test_only_large_resnets_on_several_k80s_cannot_run() -> None:
    zeros = [row for row in catalog.builtin().isolated if row.steps_per_second == 0]
    assert [(row.job_type, row.scale_factor, row.accelerator) for row in zeros] == [
        ("ResNet-50 (batch size 128)", s, "k80") for s in (2, 4, 8)
    ]


def test_the_catalog_names_its_source() -> None:
    assert catalog.builtin().source == (
        "stanford-futuredata/gavel, simulation_throughputs.json, MIT licence, (c) 2020 Stanford Future Data Systems; "
        "Narayanan et al., OSDI 2020"
    )


def test_the_catalog_is_read_once() -> None:
    assert catalog.builtin() is catalog.builtin()


def test_every_accelerator_of_the_catalog_has_a_price() -> None:
    assert dict(catalog.PRICES) == {"v100": 0.74, "p100": 0.43, "k80": 0.135}
    assert Cluster(dict.fromkeys(catalog.builtin().accelerators, 1), catalog.PRICES).prices == catalog.PRICES
