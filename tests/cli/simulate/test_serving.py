"""`fairway simulate serving`: what is printed where, and what is refused before anything runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from fairway.cli.main import app
from tests.dashboard.inside import inside

SHORT = ("--requests", "40", "--rate", "3", "--arrivals", "clients")

SCENARIO = """
models: {opt: {bytes: 6e9}}
workflows:
  answer:
    stages: [{name: draft, model: opt, seconds: 0.5, output_bytes: 2048}, {name: check, seconds: 0.1}]
    edges: [[draft, check]]
workers: [{name: w, count: 2, memory_bytes: 14e9, dollars_per_hour: 0.5}]
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ("simulate", "serving", *arguments))


def answer(*arguments: str) -> list[dict[str, Any]]:
    result = run(*arguments, "--json", "-", "--processes", "1")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)["runs"]  # type: ignore[no-any-return]


def refused(*arguments: str) -> str:
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    return line


def test_several_schedulers_and_seeds_come_in_order() -> None:
    runs = answer(*SHORT, "-s", "compass", "-s", "hash", "--seed", "1", "--seed", "2")
    assert [(each["scheduler"], each["seed"]) for each in runs] == [
        ("compass", 1), ("hash", 1), ("compass", 2), ("hash", 2),
    ]  # fmt: skip
    assert all(each["completed"] == 40 and each["workers"] == 5 for each in runs)
    assert runs[0]["slowdown"]["mean"] < runs[1]["slowdown"]["mean"]


def test_the_same_command_gives_the_same_numbers() -> None:
    measured = {"wall_seconds", "decision_seconds"}
    first, second = (
        [
            {key: value for key, value in each.items() if key not in measured}
            for each in answer(*SHORT, "--noise", "0.2")
        ]
        for _ in range(2)
    )
    assert first == second


def test_a_table_is_printed_and_files_are_written(tmp_path: Path) -> None:
    page, numbers = tmp_path / "r.html", tmp_path / "r.json"
    result = run(*SHORT, "-s", "compass", "-s", "jit", "--json", str(numbers), "--report", str(page))
    assert result.exit_code == 0, result.stderr
    assert "compass" in result.stdout
    assert len(json.loads(numbers.read_text())["runs"]) == 2
    saved = inside(page.read_text())
    assert saved["command"].startswith("fairway simulate serving --scenario compass-edge --rate 3")
    assert [run["policy"] for run in saved["runs"]] == ["compass", "jit"]
    assert all(run["stages"]["start"] and run["staleness"]["time"] for run in saved["runs"])


def test_a_scenario_file_with_prices_staleness_and_a_failure(tmp_path: Path) -> None:
    scenario = tmp_path / "s.yaml"
    scenario.write_text(SCENARIO)
    (one,) = answer(
        "--scenario", str(scenario), "--requests", "50", "--arrivals", "gamma:4", "--rate", "1", "--slo-scale", "3",
        "--staleness", "load=10ms,cache=100ms", "--fail", "w-1@5s-15s", "--nic-queues", "--workers", "3",
    )  # fmt: skip
    assert one["completed"] == 50
    assert one["workers"] == 3
    assert one["cost_dollars"] == pytest.approx(1.5 * one["end_seconds"] / 3600)
    assert one["settings"]["staleness"] == "load=10ms,cache=100ms"
    assert list(one["per_workflow"]) == ["answer"]


def test_the_experiment_of_the_authors_runs_by_name() -> None:
    (one,) = answer(
        "--requests", "100", "--rate", "40", "--arrivals", "clients", "--workers", "60", "-s", "hash:compat"
    )
    assert one["completed"] == 100
    assert one["requests"] == 111


def test_old_news_and_free_eviction_change_the_numbers() -> None:
    load = (*SHORT[:2], "--rate", "4", "--arrivals", "clients")
    (usual,), (old,), (free,) = (
        answer(*load, *more) for more in ((), ("--staleness", "load=2s,cache=2s"), ("--eviction", "free"))
    )
    assert old["slowdown"]["mean"] != usual["slowdown"]["mean"]
    assert free["slowdown"]["mean"] != usual["slowdown"]["mean"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-s", "compas"), "scheduler 'compas' is not known, did you mean 'compass'?"),
        (("-s", "compass:no-adjst"), "scheduler 'compass' has no option 'no-adjst', did you mean 'no-adjust'?"),
        (
            ("-s", "hash:compat"),
            "--scheduler: 'hash:compat' repeats the experiment of Compass's authors; add --arrivals",
        ),
        (("--scenario", "compass-egde"), "--scenario: 'compass-egde' is not known"),
        (("--scenario", "esg-app"), "--scenario: 'esg-app' is not known, did you mean 'esg-apps'?"),
        (
            ("--scenario", "absent.yaml"),
            "absent.yaml: cannot be read: No such file or directory; name a scenario file, or",
        ),
        (("--arrivals", "weekly"), "--arrivals: 'weekly' given, expected one of"),
        (("--arrivals", "gamma:x"), "--arrivals: 'gamma:x' given"),
        (("--rate", "0"), "--rate: 0.0 given"),
        (("--rate", "1e300"), "--rate: 1e+300 given, expected a size from 1e-09 to 1e+12"),
        (("--rate", "inf"), "--rate: inf given, expected a size from 1e-09 to 1e+12"),
        (("--requests", "0"), "--requests: 0 given"),
        (("--workers", "-1"), "--workers: -1 given"),
        (("--seed", "-1"), "--seed: -1 given"),
        (("--noise", "-1"), "--noise: -1.0 given"),
        (("--slo-scale", "nan"), "--slo-scale: nan given"),
        (
            ("--scenario", "loki-traffic", "--slo-scale", "0.4"),
            "--slo-scale: workflow 'traffic': an SLO of 0.1 s given, which no configuration can meet; a request takes "
            "0.1163 s at least",
        ),
        (("--slo-scale", "0.49"), "--slo-scale: workflow 'translation': an SLO of 1.338 s given"),
        (("--discard", "1"), "--discard: 1.0 given"),
        (("--processes", "0"), "--processes: 0 given"),
        (("--eviction", "maybe"), "--eviction: 'maybe' given, expected free or copies"),
        (("--staleness", "loads=1ms"), "--staleness: 'loads=1ms' given, expected load=TIME,cache=TIME"),
        (("--staleness", "load=1ms,load=2ms"), "--staleness: 'load' given twice"),
        (("--staleness", "load=-1"), "--staleness: load: '-1' given, expected a time"),
        (("--detection", "soon"), "--detection: 'soon' given, expected a time"),
        (("--fail", "w9@1s"), "--fail: there is no worker 'w9'"),
        (("--fail", "w1"), "--fail: 'w1' given, expected WORKER@TIME"),
        (("--fail", "w1@5s-2s"), "--fail: 'w1@5s-2s' given, but a worker comes back after it failed"),
        (("--report", "-"), "--report: '-' given"),
    ],
)
def test_what_is_wrong_is_one_line_and_status_2(arguments: tuple[str, ...], message: str) -> None:
    assert refused(*arguments).startswith(f"fairway: {message}")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "edges: [[draft, check]]",
            "edges: [[draft, check], [check, draft]]",
            "edges: 'draft' -> 'check' -> 'draft' is",
        ),
        (
            "edges: [[draft, check]]",
            "edges: [[draft, gone]]",
            "edges[0]: 'draft' -> 'gone' given, but there is no stage",
        ),
        ("6e9", "60e9", "stages[0] ('draft'): 'opt' with 60000000000 bytes fits in the memory of no worker"),
        ("seconds: 0.5", "seconds: {a100: 0.5}", "stages[0] ('draft'): has a time on 'a100', but on none"),
        ("2048", "-2048", "stages[0] ('draft').output_bytes: -2048 given"),
    ],
)
def test_a_scenario_that_cannot_work_is_refused_with_the_name_of_the_stage(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    scenario = tmp_path / "s.yaml"
    scenario.write_text(SCENARIO.replace(old, new))
    assert refused("--scenario", str(scenario)).startswith(f"fairway: {scenario}: workflows.answer.{message}")


def test_help_names_every_option_of_the_contract() -> None:
    text = CliRunner().invoke(app, ("simulate", "serving", "--help"), env={"COLUMNS": "200"}).stdout
    for option in (
        "scenario",
        "scheduler",
        "workers",
        "rate",
        "arrivals",
        "requests",
        "slo-scale",
        "staleness",
        "seed",
        "json",
        "report",
    ):
        assert f"--{option}" in text
