"""The model of what the live training system promises, told by hand what happened."""

from __future__ import annotations

import pytest

from fairway.simtest.training.promises import Promises

PLACES = frozenset({("v100", 0)})


@pytest.fixture
def promises() -> Promises:
    """With a job of which a run has come to its end."""
    promises = Promises()
    promises.sent("key", 0, hostile=False)
    promises.acknowledged("key", "job")
    promises.began(1, "job", 1, PLACES, 0)
    promises.ended(1, code=0, whole=True)
    return promises


def test_a_job_that_runs_again_although_its_end_is_on_the_disk_is_found(promises: Promises) -> None:
    promises.exit_written(1)
    promises.began(2, "job", 2, PLACES, 0)
    assert promises.violations == ["job has come to its end and runs again under lease 2"]


def test_a_job_may_run_again_when_its_end_was_lost_with_the_power(promises: Promises) -> None:
    promises.exit_written(1)
    promises.forgot()
    promises.began(2, "job", 2, PLACES, 0)
    assert promises.violations == []


def test_a_job_whose_end_has_outlived_the_power_does_not_run_again(promises: Promises) -> None:
    promises.exit_written(1)
    promises.forgot(finished={"job"})
    promises.began(2, "job", 2, PLACES, 0)
    assert promises.violations == ["job has come to its end and runs again under lease 2"]


def test_the_exit_of_another_run_does_not_say_that_a_job_has_come_to_its_end(promises: Promises) -> None:
    promises.exit_written(1)
    promises.forgot()
    promises.exit_written(2)  # of a run that was stopped before it had started
    promises.began(3, "job", 3, PLACES, 0)
    assert promises.violations == []


def test_a_job_whose_files_were_spoilt_may_run_again_until_a_run_of_it_was_not(promises: Promises) -> None:
    promises.spoilt("job")
    promises.exit_written(1)
    promises.began(2, "job", 2, PLACES, 0)
    promises.ended(2, code=0, whole=True)
    promises.exit_written(2)
    assert promises.violations == []
    promises.began(3, "job", 3, PLACES, 0)
    assert promises.violations == ["job has come to its end and runs again under lease 3"]
