"""The command that simulates: what it prints, and how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fairway.simtest.__main__ import main
from fairway.simtest.runner import plan_of
from fairway.simtest.training.component import TRAINING
from fairway.store import submissions


def test_histories_are_counted_with_their_faults(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--component", "training", "--generator", "uniform", "--seed", "5", "--histories", "2"]) == 0
    said = capsys.readouterr().out
    assert "training: 2 histories from seed 5 on (uniform)" in said
    assert "0 with a broken promise" in said


def test_a_broken_promise_ends_with_1_and_a_plan_that_repeats_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submissions, "_known", lambda *_: {})
    assert main(["--component", "training", "--generator", "swarm", "--histories", "60"]) == 1
    said = capsys.readouterr().out
    assert "A promise was broken" in said
    plan = next(line for line in said.splitlines() if line.startswith("{"))
    (tmp_path / "plan.json").write_text(plan)
    assert main(["--plan", str(tmp_path / "plan.json")]) == 1
    monkeypatch.undo()
    assert main(["--plan", str(tmp_path / "plan.json")]) == 0


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--plan", "/nonexistent"], "plan: /nonexistent cannot be read"),
        (["--component", "training", "--generator", "wild"], "generator: 'wild' given, expected uniform or swarm"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert expected in said
    assert said.count("\n") == 1


def test_a_plan_has_one_form_in_json() -> None:
    plan = plan_of(TRAINING, "swarm", 11)
    assert json.dumps(plan.to_dict()) == json.dumps(
        type(plan).from_dict(json.loads(json.dumps(plan.to_dict()))).to_dict()
    )


def test_a_reader_of_the_output_that_has_seen_enough_is_no_error() -> None:
    command = [
        sys.executable,
        "-m",
        "fairway.simtest",
        "--component",
        "training",
        "--generator",
        "uniform",
        "--seed",
        "5",
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    with process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1
