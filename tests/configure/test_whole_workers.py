"""The times of batches on whole workers."""

from __future__ import annotations

import pytest

from fairway import Application, Configuration, Platform, Profile
from fairway.configure.whole_workers import WholeWorkers

PROFILE = Profile.of(
    {
        Configuration(1, 1, 1): 0.3,
        Configuration(1, 2, 1): 0.2,
        Configuration(1, 1, 2): 0.2,
        Configuration(4, 1, 1): 0.5,
        Configuration(8, 20, 1): 0.6,
    }
)
ONE = Application.of({"a": PROFILE}, [], 1.0, input_bytes={"a": 10**6})


def test_of_a_batch_size_the_fastest_counts_and_of_equals_the_first() -> None:
    whole = WholeWorkers.of(ONE)
    assert whole.times == (((1, 0.2), (4, 0.5), (8, 0.6)),)
    first = next(each for each in PROFILE.configurations() if each in {(1, 2, 1), (1, 1, 2)})
    assert whole.configurations == ((first, Configuration(4, 1, 1), Configuration(8, 20, 1)),)


@pytest.mark.parametrize(("jobs", "size"), [(1, 1), (2, 4), (4, 4), (5, 8), (8, 8), (9, 8)])
def test_jobs_run_in_the_smallest_size_that_has_them_and_at_most_in_the_largest(jobs: int, size: int) -> None:
    whole = WholeWorkers.of(ONE)
    assert whole.configuration(0, jobs).batch == size
    assert whole.seconds_of(0, jobs) == dict(whole.times[0])[size]


def test_the_most_jobs_within_a_time_are_those_of_a_size_that_is_done_exactly_then() -> None:
    whole = WholeWorkers.of(ONE)
    assert [whole.largest_within(0, seconds, 9) for seconds in (0.19, 0.2, 0.5, 0.59, 0.6)] == [0, 1, 4, 4, 8]
    assert whole.largest_within(0, 0.6, 3) == 3, "no more than there are"


def test_on_a_platform_a_batch_takes_what_its_inputs_take_too_and_fits_a_worker() -> None:
    pair = Application.of({"a": PROFILE, "b": PROFILE}, [("a", "b")], 1.0, input_bytes={"a": 10**6, "b": 2 * 10**6})
    platform = Platform(overhead_seconds=0.01)
    whole = WholeWorkers.of(pair, platform)
    links = platform.transfers
    assert whole.times[0] == (
        (1, 0.2 + 0.01 + links.entry_seconds(10**6)),
        (4, 0.5 + 0.01 + links.entry_seconds(10**6)),
    ), "no worker has 20 CPUs"
    assert whole.times[1][0][1] > 0.2 + 0.01
