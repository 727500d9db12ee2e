"""The unit for systemd: it starts the same command, and what is wrong is said before it is written."""

from __future__ import annotations

import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest

from fairway.cli.server.systemd_unit import unit_text
from fairway.errors import InputError


def read(text: str) -> ConfigParser:
    parser = ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(text)
    return parser


def test_it_starts_the_same_command_and_leaves_jobs_running_when_it_stops() -> None:
    words = ["up", "--emulate", "v100=2", "--print-systemd-unit", "--detach", "--teams", 'a "b" $c 100%\\d.yaml']
    unit = read(unit_text(words, Path("/var/lib/fairway"), root=True))
    command = '"up" "--emulate" "v100=2" "--teams" "a \\"b\\" $$c 100%%\\\\d.yaml"'
    assert unit["Service"]["ExecStart"] == f'"{sys.executable}" "-m" "fairway.cli.main" {command}'
    assert unit["Service"]["KillMode"] == "process"
    assert unit["Service"]["Environment"] == '"FAIRWAY_HOME=/var/lib/fairway"'
    assert unit["Install"]["WantedBy"] == "multi-user.target"
    assert read(unit_text(["up"], Path("/x"), root=False))["Install"]["WantedBy"] == "default.target"


def test_a_word_cannot_add_a_line_of_its_own() -> None:
    with pytest.raises(InputError, match="no line of a unit can have"):
        unit_text(["up", "--teams", "x\nExecStartPre=/bin/false"], Path("/x"))


def test_the_command_prints_it_or_says_what_is_wrong(tmp_path: Path) -> None:
    def up(*options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "fairway.cli.main", "up", "--directory", str(tmp_path / "home"), *options]
        return subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)

    done = up("--emulate", "v100=1", "--print-systemd-unit")
    assert (done.returncode, done.stderr) == (0, "")
    assert '"--emulate" "v100=1"' in read(done.stdout)["Service"]["ExecStart"]
    assert not (tmp_path / "home").exists(), "nothing was started"
    wrong = up("--round", "soon", "--print-systemd-unit")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    for options in (["--notify", "file:///x"], ["--allow-notify", "a b"]):
        refused = up("--emulate", "v100=1", *options)
        assert refused.returncode == 2
        assert refused.stderr.startswith(f"fairway: {options[0]}: ")
        assert refused.stderr.count("\n") == 1
