"""What is believed of a job's rates before and after it was measured."""

from __future__ import annotations

import pytest

from fairway.jobs.description import JobDescription, parse_job
from fairway.live.training.beliefs import Beliefs, is_telling, is_unknown, relative_speeds
from fairway.profiles import catalog
from fairway.profiles.tables import IsolatedRate, ThroughputTable

TABLE = ThroughputTable(
    tuple(
        IsolatedRate(job_type, 1, accelerator, rate)
        for job_type, rates in {
            "a": {"fast": 8.0, "slow": 1.0},
            "b": {"fast": 4.0, "slow": 2.0},
            "c": {"fast": 9.0, "slow": 0.0},
        }.items()
        for accelerator, rate in rates.items()
    ),
    source="test",
)


def spec(text: str = "run: x") -> JobDescription:
    return parse_job(text, "job")


def test_types_are_compared_by_the_jobs_that_run_on_all_of_them() -> None:
    speeds = relative_speeds(["fast", "slow"], TABLE)
    assert speeds["fast"] / speeds["slow"] == pytest.approx(4.0)  # the geometric mean of 8 and 2
    assert relative_speeds(["fast", "new"], TABLE)["new"] == 1.0
    assert relative_speeds(["fast", "slow"], None) == {"fast": 1.0, "slow": 1.0}
    builtin = relative_speeds(["v100", "p100", "k80"], catalog.builtin())
    assert builtin["v100"] > builtin["p100"] > builtin["k80"]


def test_a_type_that_a_job_was_never_seen_on_says_nothing_of_the_others() -> None:
    """Of `c` only the rates on one of the two are known, which compares nothing; nor does a table without the types."""
    rows = tuple(row for row in TABLE.isolated if row.job_type == "c" and row.accelerator == "fast")
    assert relative_speeds(["fast", "slow"], ThroughputTable(rows, source="test")) == {"fast": 1.0, "slow": 1.0}
    half = tuple(row for row in TABLE.isolated if (row.job_type, row.accelerator) != ("a", "slow"))
    speeds = relative_speeds(["fast", "slow"], ThroughputTable(half, source="test"))
    assert speeds["fast"] / speeds["slow"] == pytest.approx(2.0), "`b` alone was seen on both"


def test_of_a_job_that_says_nothing_the_types_are_all_that_is_known() -> None:
    beliefs = Beliefs(["fast", "slow"], TABLE)
    first = beliefs.first(spec(), {"fast": 1.0, "slow": 1.0}, {})
    assert first["fast"] / first["slow"] == pytest.approx(4.0)
    assert beliefs.first(spec(), {"fast": 0.0, "slow": 1.0}, {})["fast"] == 0.0


def test_a_measurement_replaces_the_estimate_and_scales_the_others() -> None:
    beliefs = Beliefs(["fast", "slow"], TABLE)
    seen = beliefs.first(spec(), {"fast": 1.0, "slow": 1.0}, {"slow": 10.0})
    assert seen == {"fast": pytest.approx(40.0), "slow": 10.0}
    both = beliefs.first(spec(), {"fast": 1.0, "slow": 1.0}, {"slow": 10.0, "fast": 11.0})
    assert both == {"fast": 11.0, "slow": 10.0}
    assert beliefs.first(spec(), {"fast": 0.0, "slow": 1.0}, {"slow": 10.0})["fast"] == 0.0


def test_what_a_job_says_of_itself_holds_where_nothing_was_measured() -> None:
    beliefs = Beliefs(["fast", "slow"], TABLE)
    told = spec("run: x\nthroughputs: {fast: 3.0, slow: 2.0}")
    assert not is_unknown(told)
    assert beliefs.first(told, {"fast": 3.0, "slow": 2.0}, {"slow": 5.0}) == {"fast": 3.0, "slow": 5.0}


def test_small_differences_are_noise() -> None:
    assert not is_telling(104.0, 100.0)
    assert not is_telling(96.0, 100.0)
    assert is_telling(106.0, 100.0)
    assert is_telling(90.0, 100.0)
    assert not is_telling(0.0, 100.0)
