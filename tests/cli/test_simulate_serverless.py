"""`fairway simulate serving --scenario esg-apps`: what is printed where, and what is refused before anything runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from fairway.cli.main import app

SHORT = ("--scenario", "esg-apps", "--load", "light", "--slo", "strict", "--warmup", "1s", "--duration", "3s")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ("simulate", "serving", *arguments))


def answer(*arguments: str) -> list[dict[str, Any]]:
    result = run(*SHORT, *arguments, "--json", "-", "--processes", "1")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)["runs"]  # type: ignore[no-any-return]


def test_the_numbers_are_those_of_the_contract() -> None:
    runs = answer("-s", "esg:margin=0.1", "-s", "compass", "--seed", "1", "--seed", "2")
    assert [(each["scheduler"], each["seed"]) for each in runs] == [
        ("esg:margin=0.1", 1), ("compass", 1), ("esg:margin=0.1", 2), ("compass", 2),
    ]  # fmt: skip
    for each in runs:
        assert set(each) >= {
            "scheduler", "workers", "workers_used", "requests", "completed", "latency_seconds", "slowdown",
            "per_workflow", "cache_hit_rate", "slo_hit_rate", "cost_dollars", "cost_per_1000_requests", "cold_starts",
            "utilization", "energy_joules", "decision_seconds", "events", "wall_seconds",
        }  # fmt: skip
        assert each["workers"] == 16
        assert each["completed"] == each["requests"]
        assert each["cost_per_1000_requests"] == pytest.approx(1e3 * each["cost_dollars"] / each["requests"])
        assert len(each["per_workflow"]) == 4


def test_the_same_command_gives_the_same_numbers() -> None:
    measured = {"wall_seconds", "decision_seconds"}
    first, second = (
        [
            {key: value for key, value in each.items() if key not in measured}
            for each in answer("--apps", "dag", "--containers", "0", "--container-limit", "9")
        ]
        for _ in range(2)
    )
    assert first == second
    assert len(first[0]["per_workflow"]) == 6
    assert first[0]["settings"]["containers"] == "0"
    assert first[0]["seed"] == 1


def test_a_table_is_printed_and_files_are_written(tmp_path: Path) -> None:
    page, numbers = tmp_path / "r.html", tmp_path / "r.json"
    given = ("-s", "esg", "-s", "front", "--overhead", "measured", "--noise", "0.1")
    result = run(*SHORT, *given, "--json", str(numbers), "--report", str(page))
    assert result.exit_code == 0, result.stderr
    assert "front" in result.stdout
    assert len(json.loads(numbers.read_text())["runs"]) == 2
    html = page.read_text()
    assert "--overhead measured" in html
    assert "In time, and for how much" in html


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ("--load", "havy"),
            "--load: 'havy' given, expected one of light, normal, heavy, surge, did you mean",
        ),
        (("--slo", "x"), "--slo: 'x' given"),
        (("--apps", "x"), "--apps: 'x' given"),
        (("--noise", "-1"), "--noise: -1 given"),
        (("--overhead", "soon"), "--overhead: 'soon' given"),
        (("--duration", "0s"), "--duration: '0s' given"),
        (("--warmup", "-1s"), "--warmup: '-1s' given"),
        (("--containers", "many"), "--containers: 'many' given"),
        (("--containers", "2,hold"), "--containers: '2,hold' given"),
        (("--container-limit", "3"), "--container-limit: given, but all functions are warm"),
        (("--containers", "1", "--container-limit", "0"), "--container-limit: 0 given"),
        (("--rate", "3"), "--rate: belongs to other scenarios"),
        (("-s", "esgg"), "--scheduler: 'esgg' given"),
        (("-s", "esg:margin=2"), "margin: 2 given"),
        (("-s", "compass:compat"), "leave out compat"),
        (("-s", "compass", "--containers", "2"), "only places tasks"),
        (("--seed", "-1"), "--seed: -1 given"),
        (("--processes", "0"), "--processes: 0 given"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(arguments: tuple[str, ...], told: str) -> None:
    result = run("--scenario", "esg-apps", *arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert told in line


def test_options_of_the_scenario_are_refused_elsewhere() -> None:
    result = run("--load", "light")
    assert result.exit_code == 2
    assert "--load: belongs to --scenario esg-apps" in result.stderr


def test_configurators_run_on_compass_edge() -> None:
    result = run("--requests", "40", "--rate", "2", "-s", "esg", "-s", "compass", "--json", "-", "--processes", "1")
    assert result.exit_code == 0, result.stderr
    assert [each["completed"] for each in json.loads(result.stdout)["runs"]] == [40, 40]
    assert run("-s", "ecg").exit_code == 2
    assert run("-s", "esg", "--nic-queues", "--requests", "5").exit_code == 2
