"""Published experiments: what stands beside ours is what the fixtures say, and a quick run claims nothing."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from fairway.cli.main import app
from fairway.errors import InputError
from fairway.experiments.published import EXPERIMENTS, PublishedRow, experiment_of, reproduce
from tests.figures import compass_reference, esg_totals


def rows_of(name: str) -> dict[str, PublishedRow]:
    return {row.name: row for row in experiment_of(name).rows(False)}


def test_every_experiment_says_whose_figures_it_has_and_can_be_made_small() -> None:
    for experiment in EXPERIMENTS.values():
        full, quick = experiment.rows(False), experiment.rows(True)
        assert full
        assert quick
        assert len({row.name for row in full}) == len(full)
        assert "arXiv" in experiment.source or "doi" in experiment.source


def test_figures_of_a_reference_simulation_are_those_of_the_fixtures_and_are_not_called_the_papers() -> None:
    reference = compass_reference()
    edge = rows_of("compass-edge")
    for scheduler in ("hash", "heft", "jit"):
        for point, figure in zip(reference.points, reference.slowdowns[scheduler], strict=True):
            row = edge.get(f"{point[0]} workers, {point[1]:g} requests/s, {scheduler}: mean slow-down")
            assert row is None or row.figure == figure
    for setting, theirs in esg_totals().items():
        rows = rows_of(f"esg-{setting}")
        for ours, name in {"esg": "esg", "esg:margin=0.1": "esg-m10", "orion": "orion", "infless": "infless"}.items():
            assert rows[f"{ours}: in time"].figure == pytest.approx(100 * theirs[name][0])
            assert rows[f"{ours}: cost of 1,000"].figure == theirs[name][1]
    for name in ("compass-edge", *(f"esg-{setting}" for setting in esg_totals())):
        assert "not figures of the paper" in experiment_of(name).source


def test_a_quick_run_has_numbers_and_nothing_beside_them() -> None:
    for name in ("gavel-multi-gpu", "compass-scalability", "esg-strict-light"):
        for row in reproduce(name, quick=True, processes=1):
            assert row.ours > 0.0
            assert row.figure is None
            assert row.difference is None


def test_what_it_prints() -> None:
    result = CliRunner().invoke(app, ["reproduce", "compass-scalability", "--quick", "--processes", "1", "--json", "-"])
    document = json.loads(result.stdout)
    assert document["quick"] is True
    assert document["rows"][0]["ours"] > 1.0
    listed = CliRunner().invoke(app, ["reproduce"]).stdout
    assert all(name in listed for name in EXPERIMENTS)


def test_an_experiment_that_nobody_published_is_refused() -> None:
    with pytest.raises(InputError, match="'gavel-single' is no published experiment, did you mean 'gavel-single-gpu'"):
        reproduce("gavel-single")
    result = CliRunner().invoke(app, ["reproduce", "nosuch"])
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
