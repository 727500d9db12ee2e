"""Processes of this machine as workers, beyond what every pool must do."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from fairway.live.serving.local.worker_pool import ProcessPool


def _pool(place: Path, program: str) -> ProcessPool:
    return ProcessPool(
        lambda number, epoch: [sys.executable, "-c", program, str(number), str(epoch)],
        lambda number: {"NUMBER": str(number)},
        lambda number: place / f"{number}.log",
    )


def _until_said(pool: ProcessPool, number: int, words: str) -> None:
    deadline = time.monotonic() + 30
    while pool.last_words(number) != words:
        assert time.monotonic() < deadline
        pool.wait(0.02, ())


def test_a_process_that_does_not_want_to_end_is_killed(tmp_path: Path) -> None:
    ignores = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True)\n"
    pool = _pool(tmp_path, ignores + "time.sleep(600)")
    pool.start(0, 0)
    _until_said(pool, 0, "deaf")
    pool.stop(0.2)
    assert pool.ended(0) == "-9"
    pool.close()


def test_a_process_knows_its_number_its_life_and_its_environment(tmp_path: Path) -> None:
    pool = _pool(tmp_path, "import os, sys; print(sys.argv[1:], os.environ['NUMBER'])")
    for epoch in (0, 3):
        pool.start(7, epoch)
        _until_said(pool, 7, f"['7', '{epoch}'] 7")
        while pool.ended(7) is None:
            pool.wait(0.05, ())
        assert pool.ended(7) == "0"
    pool.stop(1.0)
    pool.close()


def test_what_a_process_has_started_ends_with_it(tmp_path: Path) -> None:
    """Its children would keep its sockets open, also those that have left its session."""
    program = "import os, time\nif os.fork() == 0: os.setsid(); print(os.getpid(), flush=True)\ntime.sleep(600)"
    pool = _pool(tmp_path, program)
    pool.start(0, 0)
    _until(lambda: pool.last_words(0).isdecimal())
    child = int(pool.last_words(0))
    pool.kill(0)
    _until(lambda: pool.ended(0) is not None)
    _until(lambda: not _runs(child))
    pool.stop(1.0)
    pool.close()


def test_the_process_that_stands_by_becomes_the_next_worker(tmp_path: Path) -> None:
    program = "import json, os, sys, time\nbecome = json.loads(sys.stdin.readline())\n"
    program += "open(become['log'], 'a').write(f\"{become['number']} {become['epoch']} {become['environment']}\\n\")\n"
    pool = ProcessPool(
        lambda *_: [sys.executable, "-c", "print('a new one')"],
        lambda number: {"NUMBER": str(number)},
        lambda number: tmp_path / f"{number}.log",
        [sys.executable, "-c", program + "time.sleep(600)"],
    )
    pool.stand_by()
    pool.stand_by()
    pool.start(3, 1)
    _until_said(pool, 3, "3 1 {'NUMBER': '3'}")
    assert not pool.is_stopped(3)
    os.kill(pool.pid(3), signal.SIGSTOP)
    _until(lambda: pool.is_stopped(3))
    pool.kill(3)
    _until(lambda: pool.ended(3) == "-9")
    pool.start(3, 2)
    _until_said(pool, 3, "a new one")
    pool.stand_by()
    pool.stop(1.0)
    pool.close()


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def _runs(pid: int) -> bool:
    """Whether a process runs; one that is dead may still have its number until its parent has heard of it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in {"Z", "X"}
    except OSError:
        return False


def test_the_log_of_a_process_that_prints_without_end_has_a_bound_and_its_last_words_are_kept(tmp_path: Path) -> None:
    program = "for number in range(60_000): print(f'line {number} ' + 80 * '.')\nprint('done', flush=True)\n"
    pool = ProcessPool(
        lambda number, epoch: [sys.executable, "-c", program, str(number), str(epoch)],
        lambda _: {},
        lambda number: tmp_path / f"{number}.log",
        log_bytes=131_072,
    )
    pool.start(0, 0)
    _until_said(pool, 0, "done")
    log = tmp_path / "0.log"

    def is_bounded() -> bool:
        pool.wait(0.02, ())
        return log.stat().st_blocks * 512 <= 131_072

    _until(is_bounded)
    assert log.stat().st_size > 5_000_000, "what is dropped leaves a hole, so that the process goes on at its end"
    assert pool.last_words(0) == "done"
    pool.stop(1.0)
    pool.close()


def test_a_log_that_a_stage_has_replaced_by_something_else_holds_nobody_up(tmp_path: Path) -> None:
    pool = _pool(tmp_path, "import time; print('here', flush=True); time.sleep(600)")
    pool.start(0, 0)
    _until_said(pool, 0, "here")
    (tmp_path / "0.log").unlink()
    os.mkfifo(tmp_path / "0.log")
    pool.wait(0.6, ())
    pool.wait(0.6, ())
    assert pool.last_words(0) == "it said nothing"
    pool.kill(0)
    _until(lambda: pool.ended(0) is not None)
    pool.start(0, 1)
    assert pool.ended(0) is None
    pool.stop(1.0)
    pool.close()


def test_a_directory_that_is_a_link_has_logs_as_any_other(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    pool = _pool(tmp_path / "link", "print('here', flush=True)")
    pool.start(0, 0)
    _until_said(pool, 0, "here")
    assert (tmp_path / "real" / "0.log").read_text() == "here\n"
    pool.stop(1.0)
    pool.close()
