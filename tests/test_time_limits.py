"""Tests end: what they start can be interrupted, and one that hangs is ended, with the stacks in the output."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
RAISES = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"

WAITS = """
import time
def test_waits():
    time.sleep(1000)
"""
WAITS_ON_THE_WAY_OUT = """
import subprocess
def test_waits():
    with subprocess.Popen(["sleep", "30"], stdout=subprocess.PIPE) as running:
        running.stdout.read()
"""
CLEANS_UP_FOR_EVER = """
import time
import pytest
@pytest.fixture
def resource():
    yield
    time.sleep(1000)
def test_waits(resource):
    raise ValueError
"""


def run_pytest(*options: str | Path, ignoring: str = "") -> subprocess.CompletedProcess[str]:
    """Run tests in a process of their own, in which a signal is ignored as in the background of a shell."""
    start = ("sh", "-c", f'trap "" {ignoring}; exec "$@"', "sh") if ignoring else ()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        [*start, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *map(str, options)],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def test_a_child_can_be_interrupted() -> None:
    child = subprocess.run([sys.executable, "-c", RAISES], capture_output=True, text=True, check=True)
    assert child.stdout == "True\n"


@pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
@pytest.mark.parametrize("options", [("-n", "0"), ("-n", "1")])
def test_a_child_can_be_interrupted_when_tests_run_in_the_background(options: tuple[str, ...]) -> None:
    one = f"{Path(__file__).relative_to(ROOT)}::test_a_child_can_be_interrupted"
    ended = run_pytest(*options, one, ignoring="INT")
    assert ended.returncode == 0, ended.stdout
    assert "1 passed" in ended.stdout


@pytest.mark.skipif(os.name != "posix", reason="an alarm as POSIX has it")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (WAITS, ["Failed: Timeout (>1.0s)", "1 failed"]),
        (WAITS_ON_THE_WAY_OUT, ["in _wait", "in test_waits"]),
        (CLEANS_UP_FOR_EVER, ["in resource"]),
    ],
    ids=["waits", "waits on the way out", "cleans up for ever"],
)
def test_a_test_that_hangs_is_ended_and_shows_where_it_was(tmp_path: Path, text: str, shown: list[str]) -> None:
    (tmp_path / "test_hanging.py").write_text(text)
    # With the settings and the hooks of the project, but shorter times.
    (tmp_path / "conftest.py").write_text("from tests import conftest\nconftest._SECONDS_TO_CLEAN_UP = 1.0\n")
    settings = ("-c", ROOT / "pyproject.toml", "--rootdir", ROOT, "-o", "timeout=1", "-o", "faulthandler_timeout=4")
    ended = run_pytest(*settings, "-p", "tests.conftest", tmp_path)
    assert ended.returncode == 1
    for line in shown:
        assert line in ended.stdout + ended.stderr
