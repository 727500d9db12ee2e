"""`fairway simulate serving --find-rate`: JSON, table and page, and what makes no sense with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from fairway.cli.main import app
from tests.dashboard.inside import inside

SEARCH = ("--scenario", "loki-traffic", "--find-rate", "90%", "--requests", "60", "--processes", "1")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ("simulate", "serving", *arguments))


def test_the_rates_of_schedulers_and_seeds_come_in_order_with_their_means() -> None:
    result = run(*SEARCH, "-s", "front", "-s", "hash", "--seed", "1", "--seed", "2", "--json", "-")
    assert result.exit_code == 0, result.stderr
    answer = json.loads(result.stdout)
    assert (answer["in_time"], answer["precision"]) == (0.9, 0.05)
    rates = answer["rates"]
    assert [(each["scheduler"], each["seed"]) for each in rates] == [
        ("front", 1), ("hash", 1), ("front", 2), ("hash", 2),
    ]  # fmt: skip
    for each in rates:
        hits = {point["rate"]: point["slo_hit_rate"] for point in each["tried"]}
        assert hits[each["rate"]] >= 0.9
        assert each["settings"]["find-rate"] == "90%"
    front, hashed = answer["means"]
    assert front["rate"] == pytest.approx((rates[0]["rate"] + rates[2]["rate"]) / 2)
    assert front["least"] <= front["rate"] <= front["most"]
    assert front["rate"] > hashed["rate"]


def test_a_table_is_printed_and_a_page_shows_all_schedulers(tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    result = run(*SEARCH, "-s", "front", "-s", "esg", "--report", str(page))
    assert result.exit_code == 0, result.stderr
    assert "held at 90 %" in result.stdout
    saved = inside(page.read_text())
    (found,) = saved["runs"]
    assert found["rows"]["name"] == ["front", "esg"]
    assert "holds the highest rate" in found["finding"]
    assert set(found["points"]["curve"]) == {"front", "esg"}
    assert "--requests 60 --find-rate 90%" in saved["command"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--find-rate", "101%"), "--find-rate: '101%' given, expected the part of requests to be in time, as in 99%"),
        (("--find-rate", "often"), "--find-rate: 'often' given"),
        (("--find-rate", "0"), "--find-rate: '0' given"),
        (("--find-rate", "99%", "--rate", "3"), "--rate: given, but --find-rate searches for one; leave out one"),
        (("--find-rate", "99%", "--scenario", "esg-apps"), "--find-rate: requests of esg-apps come at the gaps"),
        (("--find-rate", "99%", "--requests-to", "r.csv"), "--requests-to: given, but --find-rate makes many runs"),
    ],
)
def test_what_makes_no_sense_is_one_line(arguments: tuple[str, ...], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"fairway: {message}")
