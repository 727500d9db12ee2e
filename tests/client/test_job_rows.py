"""Live jobs as a table: what they waited, ran and held, worked out by hand."""

from __future__ import annotations

from fairway.client.job_rows import job_rows
from fairway.client.records import Job, Lease


def lease(number: int, granted: float, ended: float | None, workers: int = 1, accelerator: str = "v100") -> Lease:
    return Lease(number=number, accelerator=accelerator, workers=range(workers), granted_at=granted, ended_at=ended)


def test_times_are_sums_of_leases_and_what_has_not_ended_counts_up_to_now() -> None:
    done = Job(
        id="job-1", state="succeeded", submitted_at=100.0, started_at=110.0, ended_at=200.0, attempt_count=2, count=2,
        leases=(lease(1, 110.0, 130.0, 2), lease(2, 150.0, 200.0, 2, "k80")),
    )  # fmt: skip
    runs = Job(id="job-2", state="running", submitted_at=150.0, attempt_count=1, leases=(lease(3, 160.0, None),))
    waits = Job(id="job-3", state="queued", submitted_at=190.0)
    rows = job_rows([done, runs, waits], now=210.0)
    assert rows["run"] == [70.0, 50.0, 0]
    assert rows["wait"] == [30.0, 10.0, 20.0]
    assert rows["jct"] == [100.0, None, None]
    assert rows["preemptions"] == [1, 0, 0]
    assert (rows["v100_seconds"], rows["k80_seconds"]) == ([40.0, 50.0, 0], [100.0, 0, 0])


def test_jobs_that_share_a_lease_count_half_of_it_each() -> None:
    both = [Job(id=name, state="running", submitted_at=0.0, leases=(lease(7, 0.0, 100.0),)) for name in ("a", "b")]
    assert job_rows(both, now=100.0)["v100_seconds"] == [50.0, 50.0]
