"""`fairway profile`: from an application to a profile that a simulation runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fairway.cli.main import app

HERE = "tests.live.serving.authored"


def test_it_writes_a_profile_that_a_simulation_runs(tmp_path: Path) -> None:
    profile, details = tmp_path / "profile.yaml", tmp_path / "measured.json"
    asked = ["profile", f"{HERE}:small", "--batches", "1,2", "--repeats", "3", "--workers", "2", "--memory", "32MB"]
    done = CliRunner().invoke(app, [*asked, "--sample", f"{HERE}:numbers", "-o", str(profile), "--json", str(details)])
    assert done.exit_code == 0, done.output
    assert "table-16000000" in done.output
    assert "fairway profile" in profile.read_text().splitlines()[0]
    measured = json.loads(details.read_text())
    assert measured["workers"][0]["memory_bytes"] == 32_000_000
    assert measured["details"]["table-16000000"]["left_bytes"] < 1e6
    simulated = CliRunner().invoke(
        app,
        ["simulate", "serving", "--scenario", str(profile), "--requests", "50", "--rate", "20", "-q", "--json", "-"],
    )
    assert simulated.exit_code == 0, simulated.output
    (run,) = json.loads(simulated.stdout)["runs"]
    assert (run["workers"], run["completed"]) == (2, 50)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no_such_module_here:w"], "no module 'no_such_module_here'"),
        ([f"{HERE}:spell"], "what should it be measured with? Give --input FILE"),
        ([f"{HERE}:tables", "--batches", "1,two"], "--batches: '1,two' given, expected whole numbers"),
        ([f"{HERE}:tables", "--threads", "0"], "--threads: 0 given, expected different whole numbers"),
        ([f"{HERE}:tables", "--memory", "much"], '--memory: "much" given, expected bytes'),
        ([f"{HERE}:tables", "--workers", "0"], "--workers: 0 given"),
        ([f"{HERE}:tables", "--slices", "0.5,2"], "--slices: a part of 2 given, which no worker has"),
        ([f"{HERE}:tables", "--slices", "half"], "--slices: 'half' given, expected a part of a worker"),
        ([f"{HERE}:tables", "--input", "a.png", "--sample", "a:b"], "--input and --sample both say"),
        ([f"{HERE}:several", "--input", "a.json"], "--input: is for one workflow, but there are several"),
        ([f"{HERE}:tables", "--input", "no-such-file.json"], "no-such-file.json: cannot be read"),
        ([f"{HERE}:tables", "--output", "no/such/directory/p.yaml"], "--output: there is no directory"),
    ],
)
def test_bad_input_is_one_line_and_status_2(arguments: list[str], message: str) -> None:
    done = CliRunner().invoke(app, ["profile", *arguments])
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
