"""`fairway simulate serving --scenario esg-apps`: the options of its own, and those that it shares or refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from fairway.cli.main import app
from tests.dashboard.inside import inside

SHORT = ("--scenario", "esg-apps", "--load", "light", "--slo", "strict", "--warmup", "1s", "--duration", "3s")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ("simulate", "serving", *arguments))


def answer(*arguments: str) -> list[dict[str, Any]]:
    result = run(*SHORT, *arguments, "--json", "-", "--processes", "1")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)["runs"]  # type: ignore[no-any-return]


def decided(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The numbers that do not depend on how fast this machine is, nor on what only repeats the options."""
    measured = {"wall_seconds", "decision_seconds", "settings", "events"}
    return [{key: value for key, value in each.items() if key not in measured} for each in runs]


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
        assert each["window"] == [1.0, 4.0]


def test_left_out_are_esg_seed_1_and_noise_of_8_percent() -> None:
    (left_out,) = answer()
    (given,) = answer("-s", "esg", "--seed", "1", "--noise", "0.08", "--overhead", "1ms", "--containers", "all")
    assert decided([left_out]) == decided([given])
    assert left_out["settings"] == given["settings"]


def test_the_same_command_gives_the_same_numbers() -> None:
    first, second = (answer("--apps", "dag", "--containers", "0", "--container-limit", "9") for _ in range(2))
    assert decided(first) == decided(second)
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
    saved = inside(page.read_text())
    assert "--overhead measured" in saved["command"]
    assert [run["policy"] for run in saved["runs"]] == ["esg", "front"]
    assert all(run["stages"]["start"] and run["summary"]["cost_per_1000_requests"] for run in saved["runs"])
    for flow in saved["runs"][0]["workflows"]:
        assert sum(flow["budgets"]) == pytest.approx(flow["slo_seconds"], rel=1e-3), "a chain spends all of it"


def test_it_runs_on_other_workers_that_fail_under_any_scheduler() -> None:
    runs = answer(
        "-s", "esg", "-s", "front+compass", "-s", "compass", "--workers", "8", "--fail", "w1@1s-2s", "--detection",
        "100ms", "--staleness", "load=10ms,cache=100ms", "--eviction", "free",
    )  # fmt: skip
    assert [each["workers"] for each in runs] == [8, 8, 8]
    assert [each["completed"] for each in runs] == [each["requests"] for each in runs]
    assert runs[0]["settings"]["fail"] == ["w1@1s-2s"]


def test_placers_alone_have_cold_starts_too() -> None:
    (cold,) = answer("-s", "compass", "--containers", "1")
    (warm,) = answer("-s", "compass")
    assert cold["cold_starts"] > warm["cold_starts"] == 0


def test_a_wider_slo_is_met_more_often() -> None:
    (strict,), (wide,) = answer("-s", "esg"), answer("-s", "esg", "--slo-scale", "1.5")
    assert wide["slo_hit_rate"] > strict["slo_hit_rate"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ("--load", "havy"),
            "--load: 'havy' given, expected one of light, normal, heavy, surge, did you mean",
        ),
        (("--slo", "x"), "--slo: 'x' given"),
        (("--apps", "x"), "--apps: 'x' given"),
        (("--noise", "-1"), "--noise: -1.0 given"),
        (("--overhead", "soon"), "--overhead: 'soon' given"),
        (("--duration", "0s"), "--duration: '0s' given"),
        (("--warmup", "-1s"), "--warmup: '-1s' given"),
        (("--workers", "0"), "--workers: 0 given"),
        (("--fail", "w16@1s"), "--fail: there is no worker 'w16'"),
        (("--containers", "many"), "--containers: 'many' given"),
        (("--containers", "2,hold"), "--containers: '2,hold' given"),
        (("--container-limit", "3"), "--container-limit: given, but all functions are warm"),
        (("--containers", "1", "--container-limit", "0"), "--container-limit: 0 given"),
        (
            ("--rate", "3"),
            "--rate: belongs to other scenarios than esg-apps, whose requests come at the gaps of --load",
        ),
        (("--requests", "3"), "--requests: belongs to other scenarios than esg-apps, whose requests come for as long"),
        (("--arrivals", "poisson"), "--arrivals: belongs to other scenarios than esg-apps"),
        (
            ("--discard", "0.1"),
            "--discard: belongs to other scenarios than esg-apps, in which requests of the --warmup",
        ),
        (("--nic-queues",), "--nic-queues: belongs to other scenarios than esg-apps, whose tasks fetch their inputs"),
        (("--eviction", "copies"), "--eviction: 'copies' given, but a container of esg-apps that goes is copied"),
        (("-s", "esgg"), "scheduler 'esgg' is not known, did you mean 'esg'?"),
        (("-s", "esg:margin=2"), "margin: 2 given"),
        (("-s", "compass:compat"), "leave out compat"),
        (
            ("-s", "compass", "--containers", "2,held"),
            "--containers: 'held' is about jobs that wait for a configurator",
        ),
        (
            ("-s", "esg", "-s", "jit", "--overhead", "measured"),
            "--overhead: 'measured' is the time that a configurator",
        ),
        (("-s", "near-data"), "'near-data' places batches, which a configurator has to make; add one"),
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


@pytest.mark.parametrize(
    "given",
    [("--load", "light"), ("--slo", "strict"), ("--apps", "dag"), ("--warmup", "1s"), ("--duration", "1s"),
     ("--overhead", "1ms"), ("--containers", "1"), ("--container-limit", "9")],
)  # fmt: skip
def test_options_of_the_scenario_are_refused_elsewhere(given: tuple[str, str]) -> None:
    result = run(*given)
    assert result.exit_code == 2
    assert f"{given[0]}: belongs to --scenario esg-apps" in result.stderr
