"""Which process is meant: a number whose process has changed stands for nothing, and remains are found and killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from fairway.live.local.identity import (
    ProcessIdentity,
    any_process,
    boot,
    identify,
    kill_remains,
    open_process,
    process_row,
    process_table,
    send_signal,
)

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that leads a session of its own and carries a mark."""
    process = subprocess.Popen(SLEEP, start_new_session=True, env={**os.environ, "MARK": "ours"})
    yield process
    process.kill()
    process.wait()


def identity_of(process: subprocess.Popen[bytes]) -> ProcessIdentity:
    found = identify(process.pid)
    assert found is not None
    return found


def ends(process: subprocess.Popen[bytes]) -> int:
    return process.wait(timeout=10)


def test_the_process_table_has_a_row_for_this_process() -> None:
    row = process_row(os.getpid())
    assert row is not None
    assert (row.pid, row.parent, row.group, row.session) == (os.getpid(), os.getppid(), os.getpgrp(), os.getsid(0))
    assert row.state == "R"
    assert os.getpid() in {each.pid for each in process_table()}
    assert any_process(lambda each: each.pid == os.getpid())
    assert not any_process(lambda each: each.pid < 0)


def test_a_command_may_be_called_anything(tmp_path: Path) -> None:
    program = tmp_path / "a) R 1 (b"
    program.symlink_to("/bin/sleep")
    process = subprocess.Popen([program, "60"])
    try:
        row = process_row(process.pid)
        assert row is not None
        assert row.parent == os.getpid()
    finally:
        process.kill()
        process.wait()


def test_the_same_number_at_another_time_is_another_process(sleeper: subprocess.Popen[bytes]) -> None:
    ours = identity_of(sleeper)
    assert ours.alive
    assert ProcessIdentity.of(asdict(ours)) == ours
    for other in (replace(ours, start=ours.start - 1), replace(ours, boot="another")):
        assert not other.alive
        assert open_process(other) is None
        assert not send_signal(other, signal.SIGKILL)
    assert sleeper.poll() is None, "no other process was signalled"
    assert send_signal(ours, signal.SIGKILL)
    assert ends(sleeper) == -signal.SIGKILL
    assert not ours.alive
    assert not send_signal(ours, signal.SIGKILL)
    assert process_row(sleeper.pid) is None


def test_a_process_that_nobody_has_waited_for_is_not_alive(sleeper: subprocess.Popen[bytes]) -> None:
    ours = identity_of(sleeper)
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    sleeper.kill()
    deadline = time.monotonic() + 10
    while (row := process_row(sleeper.pid)) is not None and row.state != "Z" and time.monotonic() < deadline:
        time.sleep(0.001)
    assert identify(sleeper.pid) is None
    assert not ours.alive
    assert open_process(ours) is None
    assert sleeper.pid not in {each.pid for each in process_table()}
    assert len(list(Path("/proc/self/fd").iterdir())) == descriptors, "none is left open"


def test_the_session_of_a_keeper_is_killed_and_nothing_else(sleeper: subprocess.Popen[bytes]) -> None:
    bystander = subprocess.Popen(SLEEP, start_new_session=True)
    try:
        assert kill_remains(identity_of(sleeper), "MARK=none", patience=10.0)
        assert ends(sleeper) == -signal.SIGKILL
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_what_carries_the_mark_is_killed_also_without_a_keeper(sleeper: subprocess.Popen[bytes]) -> None:
    assert kill_remains(None, "MARK=our", patience=0.0), "another mark, though it begins alike"
    assert sleeper.poll() is None
    assert kill_remains(None, "MARK=ours", patience=10.0)
    assert ends(sleeper) == -signal.SIGKILL


def test_the_session_of_a_number_that_another_process_has_now_is_left_alone(sleeper: subprocess.Popen[bytes]) -> None:
    before = replace(identity_of(sleeper), start=1)
    assert kill_remains(before, "MARK=none")
    assert sleeper.poll() is None


def test_of_another_boot_nothing_remains(sleeper: subprocess.Popen[bytes]) -> None:
    assert kill_remains(replace(identity_of(sleeper), boot="before"), "MARK=ours")
    assert sleeper.poll() is None
    assert boot() == identity_of(sleeper).boot


def test_what_does_not_end_is_told_when_patience_is_over(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairway.live.local.identity.send_signal", lambda *_: True)
    began = time.monotonic()
    assert not kill_remains(identity_of(sleeper), "MARK=ours", patience=0.1)
    assert time.monotonic() - began < 5.0
