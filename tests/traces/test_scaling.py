"""More or less load from the same trace."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.cluster import Cluster
from fairway.errors import InputError
from fairway.sim.workload import Workload
from fairway.traces import Scaling, Trace, TraceJob

TRACE = Trace(tuple(TraceJob(str(n), 10.0 + 60.0 * n, duration_seconds=30.0) for n in range(20)), "x", "f")


def test_a_speed_up_brings_arrivals_together_and_leaves_jobs_as_long_as_they_are() -> None:
    jobs = Scaling(speed_up=4.0).applied(TRACE).jobs
    assert [job.arrival for job in jobs[:3]] == [10.0, 25.0, 40.0]
    assert {job.duration_seconds for job in jobs} == {30.0}


def test_a_fraction_keeps_jobs_at_their_times_drawn_by_the_seed() -> None:
    kept = Scaling(fraction=0.25, seed=1).applied(TRACE).jobs
    assert len(kept) == 5
    assert set(kept) < set(TRACE.jobs)
    assert kept == Scaling(fraction=0.25, seed=1).applied(TRACE).jobs
    assert kept != Scaling(fraction=0.25, seed=2).applied(TRACE).jobs


def test_copies_come_at_the_same_moment_under_names_of_their_own() -> None:
    jobs = Scaling(replicate=3).applied(TRACE).jobs
    assert [(job.id, job.arrival) for job in jobs[:4]] == [("0", 10.0), ("0~2", 10.0), ("0~3", 10.0), ("1", 70.0)]


@given(speed_up=st.floats(0.01, 100), fraction=st.floats(0.01, 1), replicate=st.integers(1, 4), seed=st.integers(0, 99))
def test_each_multiplies_the_load_by_its_number(speed_up: float, fraction: float, replicate: int, seed: int) -> None:
    scaling = Scaling(speed_up, fraction, replicate, seed)
    jobs = scaling.applied(TRACE).jobs
    assert len(jobs) == scaling.jobs_of(20) == max(round(20 * fraction), 1) * replicate
    assert len({job.id for job in jobs}) == len(jobs)
    originals = {job.id: job for job in TRACE.jobs}
    first = originals[jobs[0].id]
    for job in jobs:
        was = originals[job.id.partition("~")[0]]
        assert (job.arrival - first.arrival) * speed_up == pytest.approx(was.arrival - first.arrival, abs=1e-6)


@pytest.mark.parametrize("wrong", [{"speed_up": 0.0}, {"speed_up": float("inf")}, {"fraction": 0.0}, {"replicate": 0}])
def test_what_makes_no_load_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match="given, expected a"):
        Scaling(**wrong)  # type: ignore[arg-type]


def test_a_workload_has_the_load_that_was_asked_for(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "jobs.csv"
    path.write_text("arrival,duration\n0,60\n100,60\n")
    workload = Workload(str(path), scaling=Scaling(speed_up=2.0, replicate=2))
    assert [each.arrival for each in workload.submissions(Cluster({"v100": 1}))] == [0.0, 0.0, 50.0, 50.0]
