"""What a newcomer meets first: completion, lengths of rounds, a Fairway that is starting, and one that is not there."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from numba.core import event
from typer.testing import CliRunner

from fairway.cli import completion, first_use
from fairway.cli.main import app
from fairway.cli.server.presence import (
    ADDRESS_FILE,
    PROCESS_FILE,
    announce,
    process_in,
    wait_until_it_answers,
    withdraw,
)
from fairway.cli.simulate.training_options import round_of
from fairway.errors import InputError


def test_names_and_options_of_policies_are_completed() -> None:
    assert completion.policies("max") == ["max-min-fairness", "max-throughput"]
    assert completion.policies("makespan:a") == ["makespan:agnostic"]
    assert completion.policies("makespan:agnostic,") == [
        "makespan:agnostic,space-sharing",
        "makespan:agnostic,bare",
        "makespan:agnostic,reference=",
    ]
    assert completion.policies("nosuch:") == []


def test_schedulers_and_scenarios_are_completed() -> None:
    assert completion.schedulers("fr") == ["front"]
    assert completion.schedulers("front+ti") == ["front+tightest"]
    assert completion.scenarios("e") == ["esg-apps"]


@pytest.mark.parametrize(
    ("span", "seconds", "expected"), [("6m", None, 360.0), (None, 90.0, 90.0), (None, None, 360.0)]
)
def test_a_round_has_a_length_however_it_is_given(span: str | None, seconds: float | None, expected: float) -> None:
    assert round_of(span, seconds) == expected


def test_a_round_is_given_once_and_is_a_length_of_time() -> None:
    with pytest.raises(InputError, match="--round and --round-seconds both given"):
        round_of("6m", 360.0)
    with pytest.raises(InputError, match='--round: "soon" given, expected seconds, or a length of time'):
        round_of("soon", None)


def test_a_process_is_known_by_its_number_and_its_beginning(tmp_path: Path) -> None:
    assert process_in(tmp_path) is None
    announce(tmp_path)
    assert process_in(tmp_path) == os.getpid()
    (tmp_path / PROCESS_FILE).write_text(f"{os.getpid()} 1\n")
    assert process_in(tmp_path) is None, "the number was given to another process"
    announce(tmp_path)
    withdraw(tmp_path)
    assert not (tmp_path / PROCESS_FILE).exists()


def test_an_ended_process_is_not_waited_for(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    (tmp_path / PROCESS_FILE).write_text(f"{int(ended.stdout)} 5\n")
    assert not wait_until_it_answers(tmp_path, 60.0)


def test_one_that_is_starting_is_waited_for(tmp_path: Path) -> None:
    announce(tmp_path)
    timer = threading.Timer(0.2, (tmp_path / ADDRESS_FILE).write_text, ("http://127.0.0.1:1\n",))
    timer.start()
    assert wait_until_it_answers(tmp_path, 60.0)
    timer.join()
    result = CliRunner().invoke(app, ["up", "--wait", "--directory", str(tmp_path)])
    assert (result.exit_code, result.stdout) == (0, "Fairway answers at http://127.0.0.1:1\n")


def test_what_does_not_run_cannot_be_stopped_or_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairway.cli.server.up._GRACE_SECONDS", 0.0)
    for command, message in ((["down"], "no Fairway runs there"), (["up", "--wait"], "no Fairway is starting there")):
        result = CliRunner().invoke(app, [*command, "--directory", str(tmp_path)])
        assert result.exit_code == 2
        assert message in result.stderr


@pytest.mark.parametrize("options", [["--detach"], ["--detach", "--wait"]])
def test_a_second_one_is_not_started_in_the_background(tmp_path: Path, options: list[str]) -> None:
    announce(tmp_path)
    result = CliRunner().invoke(app, ["up", *options, "--directory", str(tmp_path)])
    assert result.exit_code == 2
    assert f"Fairway runs there already, as process {os.getpid()}; 'fairway down' stops it" in result.stderr


def test_compiling_is_told_once_and_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    registered: list[Any] = []
    monkeypatch.setattr(first_use, "opened", lambda: None)
    monkeypatch.setattr(event, "register", lambda _, listener: registered.append(listener))
    first_use.tell_of_compiling()
    assert not registered
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    first_use.tell_of_compiling()
    for _ in range(2):
        registered[0].on_start(None)
    assert capsys.readouterr().err.count("compiling numerical code, once after installation") == 1


@pytest.mark.parametrize(
    "words",
    [
        ("allocate", "examples/mixed-cluster.json", "-p", "fifo"),
        ("configure", "examples/configure-pipeline.json", "--algorithm", "front"),
        ("place", "examples/place-request.json", "--scheduler", "compass"),
    ],
    ids=lambda words: words[0],
)
def test_a_decision_is_ready_to_say_that_it_compiles(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[bool] = []
    monkeypatch.setattr(first_use, "tell_of_compiling", lambda: told.append(True))
    monkeypatch.chdir(Path(__file__).parents[2])
    assert CliRunner().invoke(app, words).exit_code == 0
    assert told == [True]
