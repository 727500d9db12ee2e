"""`fairway new` writes parts whose tests pass, and overwrites nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fairway.cli.main import app
from fairway.cli.new import Kind

QUICK = [kind for kind in Kind if kind is not Kind.BACKEND]


def new(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["new", *words])
    return result.exit_code, result.output


def test_what_is_written_passes_its_test_at_once(tmp_path: Path) -> None:
    for kind in QUICK:
        status, said = new(kind.value, f"my-{kind.value}", "-d", str(tmp_path))
        assert (status, said.count("\n")) == (0, 3)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "10 passed" in done.stdout


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc, as on Linux")
def test_a_backend_that_is_written_passes_its_test_at_once(tmp_path: Path) -> None:
    assert new("backend", "my_backend", "-d", str(tmp_path))[0] == 0
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("policy", "1st"), "'1st' cannot be the name of a Python module; expected letters, as in my-policy"),
        (("policy", "class"), "'class' cannot be the name of a Python module"),
        (("policy", "json"), "'json' is the name of a Python module that is there already"),
        (("trace", "ours", "-d", "no/such"), "no/such: no such directory; make it first"),
        (("polic", "ours"), "'polic' is not one of 'policy', 'placer'"),
    ],
)
def test_what_cannot_be_written_is_refused(words: tuple[str, ...], message: str) -> None:
    status, said = new(*words)
    assert status == 2
    assert message in " ".join(said.replace("│", "").split())


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "test_ours.py").write_text("mine")
    status, said = new("policy", "ours", "-d", str(tmp_path))
    assert status == 2
    assert "test_ours.py: is there already; choose another name, or remove it" in said
    assert not (tmp_path / "ours.py").exists()
