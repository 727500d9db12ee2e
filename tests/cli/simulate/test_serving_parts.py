"""`fairway simulate serving` with schedulers put together from parts: a configurator, a placer, or both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from fairway.cli.main import app
from fairway.configure.configurators import CONFIGURATORS
from fairway.place.placers import BATCH_PLACERS, PLACERS

UNLIKE = """
models: {opt: {bytes: 6e9}}
workflows: {answer: {stages: [{name: draft, model: opt, seconds: 0.5}]}}
workers: [{name: a, memory_bytes: 14e9}, {name: b, memory_bytes: 20e9}]
"""

SEVERAL_MODELS = """
models: {opt: {bytes: 6e9}, nli: {bytes: 2e9}}
workflows: {answer: {stages: [{name: draft, models: [opt, nli], seconds: 0.5}]}}
workers: [{name: w, count: 2, memory_bytes: 14e9}]
"""

BATCHES = """
models: {opt: {bytes: 6e9}}
workflows:
  answer: {stages: [{name: draft, model: opt, seconds: {gpu: {"1": 0.5, "4": 0.8}}}], slo_seconds: 2}
workers: [{name: w, count: 2, memory_bytes: 14e9}]
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


def test_any_configurator_runs_with_any_placer_on_compass_edge() -> None:
    configurators = [name for name in CONFIGURATORS if name != "aquatope"]  # needs what may not be installed
    names = [f"{configurator}+{placer}" for configurator in configurators for placer in BATCH_PLACERS]
    runs = answer("--requests", "20", "--rate", "2", *(word for name in (*PLACERS, *names) for word in ("-s", name)))
    assert [each["scheduler"] for each in runs] == [*PLACERS, *names]
    # What cannot be in time is refused: here, what waits for the first copies of models.
    drops = ("nexus", "clockwork", "shepherd", "inferline")
    assert {each["completed"] for each in runs if not each["scheduler"].startswith(drops)} == {20}
    assert {each["completed"] + each["refused"] for each in runs} == {20}
    # A planner that has a copy begun for one job gives no other copy up for it that a job still waits for.
    assert max(each["cold_starts"] for each in runs) < 200


def test_a_batch_waits_for_room_that_copies_under_way_will_give_up() -> None:
    (one,) = answer("--requests", "150", "--rate", "3", "--seed", "2", "-s", "orion+jit")
    assert (one["completed"], one["refused"]) == (150, 0)


def test_parts_have_options_of_their_own() -> None:
    given = ("--requests", "60", "--rate", "3", "-s", "esg:margin=0.1+compass:ignore-cache", "-s", "esg+compass")
    with_options, without = answer(*given)
    assert with_options["scheduler"] == "esg:margin=0.1+compass:ignore-cache"
    assert with_options["slowdown"] != without["slowdown"]


def test_a_configurator_makes_batches_where_a_scenario_has_times_for_them(tmp_path: Path) -> None:
    scenario = tmp_path / "s.yaml"
    scenario.write_text(BATCHES)
    (one,) = answer("--scenario", str(scenario), "--rate", "8", "--requests", "60", "-s", "front+best-fit")
    assert one["completed"] == 60
    assert one["mean_batch"] > 1


@pytest.mark.parametrize("scheduler", ["compass", "front+compass"])
def test_recovery_and_time_watching_change_no_decision_without_failures(scheduler: str) -> None:
    measured = {"wall_seconds", "decision_seconds", "settings", "events"}
    given = ("--requests", "60", "--rate", "3", "-s", scheduler)
    (usual,), (without,) = answer(*given), answer(*given, "--no-recovery", "--no-time-watching")
    assert without["settings"]["no-recovery"] is True
    assert without["settings"]["no-time-watching"] is True
    assert without["events"] <= usual["events"]
    assert {key: value for key, value in usual.items() if key not in measured} == {
        key: value for key, value in without.items() if key not in measured
    }


def test_what_changes_nothing_is_said() -> None:
    result = run("--requests", "5", "-s", "front+compass", "--staleness", "load=10ms", "--processes", "1")
    assert result.exit_code == 0
    assert "--staleness: changes nothing, since under front+compass one engine plans and knows all" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-s", "tightest"), "scheduler 'tightest': 'tightest' places batches, which a configurator has to make; add"),
        (("-s", "compass+esg"), "scheduler 'compass+esg' has the placer first; expected esg+compass"),
        (("-s", "front+compas"), "placer 'compas' is not known, did you mean 'compass'?"),
        (("-s", "esg+compass+jit"), "scheduler 'esg+compass+jit' names 2 placers, expected one"),
        (
            ("-s", "esg", "--nic-queues"),
            "--nic-queues: given, but the batches of 'esg' gather their inputs from several",
        ),
        (
            ("-s", "front+compass:compat", "--arrivals", "clients"),
            "--scheduler: 'front+compass:compat' has a configurator, which compat knows nothing of; leave out compat",
        ),
        (
            ("-s", "hash:compat", "--arrivals", "clients", "--noise", "0.1"),
            "--noise: given, but 'hash:compat' repeats the experiment of Compass's authors, which has no such thing",
        ),
        (
            ("--fail", "w1@1s", "--no-recovery"),
            "--no-recovery: given, but with --fail requests would be lost with their worker; leave out one",
        ),
    ],
)
def test_what_makes_no_sense_together_is_refused(arguments: tuple[str, ...], message: str) -> None:
    assert refused(*arguments).startswith(f"fairway: {message}")


@pytest.mark.parametrize(
    ("scenario", "message"),
    [
        (UNLIKE, "workers: 'b' and 'a' differ in memory bytes; a scheduler that chooses configurations needs workers"),
        (SEVERAL_MODELS, "workflows.answer: stage 'draft' has 2 models; a scheduler that chooses configurations needs"),
    ],
)
def test_a_scenario_that_a_configurator_cannot_choose_sizes_for_is_refused(
    tmp_path: Path, scenario: str, message: str
) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(scenario)
    told = refused("--scenario", str(file), "-s", "compass", "-s", "esg")
    assert told.startswith(f"fairway: --scheduler: 'esg': {message}")
    assert answer("--scenario", str(file), "--requests", "5", "-s", "compass")[0]["completed"] == 5
