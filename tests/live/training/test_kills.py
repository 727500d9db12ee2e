"""Killing the controller, the agent and jobs at random moments loses nothing; the benchmark does it for longer.

What looks for losses is tested too: it has to find those in traces that are made up.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks._live_kills import double_leases, kill_again_and_again, lost_jobs, lost_steps
from benchmarks._live_trace import Life, lives_of
from fairway.store.records import LeaseRecord


@pytest.mark.slow
def test_ten_kills_at_random_moments_lose_nothing(tmp_path: Path) -> None:
    found = kill_again_and_again(tmp_path, 10, seed=0, active=6)
    assert found.killed.total() == 10
    assert found.jobs >= 6
    assert (found.lost, found.double, found.undone, found.left_behind) == ([], [], [], [])


def written(path: Path, *lines: str) -> list[Life]:
    path.write_text("".join(f"{line}\n" for line in lines))
    return lives_of(path)


def test_a_job_that_is_gone_or_failed_or_unknown_is_found() -> None:
    jobs = [
        {"id": "job-1", "name": "a", "state": "succeeded", "reason": ""},
        {"id": "job-2", "name": "b", "state": "failed", "reason": "rank 0 ended with exit code 1"},
        {"id": "job-4", "name": "d", "state": "succeeded", "reason": ""},
    ]
    found = "\n".join(lost_jobs({"job-1": "a", "job-2": "b", "job-3": "c"}, jobs))
    assert "b (job-2) is failed" in found
    assert "c (job-3) was acknowledged and is gone" in found
    assert "d (job-4) is there though no client knows of it" in found
    assert "a (job-1)" not in found


def test_a_job_that_goes_back_beyond_its_checkpoint_is_found(tmp_path: Path) -> None:
    first = ["1.0 1 100 begin 0", "1.1 1 100 step 1", "1.2 1 100 step 2", "1.3 1 100 saved 2", "1.4 1 100 step 3"]
    good = ["2.0 2 200 begin 2", "2.1 2 200 step 3", "2.2 2 200 step 4", "2.3 2 200 end 4"]
    assert list(lost_steps("job", written(tmp_path / "job", *first, *good), 4)) == []
    back = ["2.0 2 200 begin 1", "2.1 2 200 step 2", "2.2 2 200 step 3", "2.3 2 200 step 4", "2.4 2 200 end 4"]
    (found,) = lost_steps("job", written(tmp_path / "job", *first, *back), 4)
    assert "went back to step 1, though step 2 was saved" in found
    beyond = ["2.0 2 200 begin 4", "2.1 2 200 end 4"]
    assert any("only 3 were done" in text for text in lost_steps("job", written(tmp_path / "job", *first, *beyond), 4))
    (found,) = lost_steps("job", written(tmp_path / "job", *first, *good[:-1]), 4)
    assert "never ended" in found


def test_two_leases_on_one_worker_at_once_are_found(tmp_path: Path) -> None:
    def lease(number: int, job: str, granted: float, ended: float) -> LeaseRecord:
        return LeaseRecord(number, (job,), "v100", (0,), 9.0, True, False, granted, granted, ended_at=ended)

    one = written(tmp_path / "one", "1.0 1 100 begin 0", "2.0 1 100 step 1")
    two = written(tmp_path / "two", "3.0 2 200 begin 0", "4.0 2 200 step 1")
    held = [lease(1, "one", 0.9, 2.5), lease(2, "two", 2.6, 4.5)]
    assert list(double_leases([*one, *two], held)) == []
    two = written(tmp_path / "two", "1.5 2 200 begin 0", "4.0 2 200 step 1")
    (found,) = double_leases([*one, *two], held)
    assert "lease 1 (one) and 2 (two) overlap by 0.500 s" in found
    (found,) = double_leases([], [held[0], lease(2, "two", 2.4, 4.5)])
    assert "lease 2 began before 1 ended" in found
