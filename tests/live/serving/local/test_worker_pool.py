"""Processes of this machine as workers, beyond what every pool must do."""

from __future__ import annotations

import sys
import time
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
