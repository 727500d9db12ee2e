"""How fast an emulated accelerator lets a job go: what its description or the profile says, alone or beside another."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fairway.engine.training.messages import Grant
from fairway.jobs.description import JobDescription, parse_job
from fairway.live.training.commands import pace
from fairway.live.training.leases import LiveJob
from fairway.profiles.catalog import builtin

RESNET, RESNET_50 = "ResNet-18 (batch size 16)", "ResNet-50 (batch size 16)"


def described(text: str) -> JobDescription:
    return parse_job(f"run: a\n{text}", "job.yaml")


def paces(grant: Grant, *descriptions: str, table: Any = None) -> list[float | None]:
    """The pace of every job of a grant; the jobs are called a and b."""
    jobs = {name: LiveJob(name, described(text), 0, 0) for name, text in zip("ab", descriptions, strict=False)}
    scheduler: Any = SimpleNamespace(table=table, jobs=jobs)
    return [pace(scheduler, grant, jobs[name]) for name in grant.jobs]


def alone(accelerator: str = "v100", **fields: Any) -> Grant:
    return Grant(1, ("a",), accelerator, (0,), until=1.0, **fields)


BOTH = Grant(1, ("a", "b"), "v100", (0,), until=1.0)


def test_a_job_goes_as_fast_as_its_description_says() -> None:
    rates = "throughputs: {V100: 3.5, k80: 0}"
    assert paces(alone(), rates, table=builtin()) == [3.5]
    assert paces(alone("K80"), rates) == [None], "a rate of 0 is no pace"
    assert paces(alone("p100"), rates) == [None]


def test_a_known_type_of_job_goes_as_fast_as_its_profile_says() -> None:
    text = f"job_type: {RESNET}"
    assert paces(alone(), text, table=builtin()) == [builtin().rate(RESNET, 1, "v100")]
    assert paces(alone("h100"), text, table=builtin()) == [None]
    assert paces(alone(), text) == [None], "without profiles nothing is known of it"


def test_a_job_of_which_nothing_is_known_goes_as_fast_as_it_can() -> None:
    assert paces(alone(), "steps: 10", table=builtin()) == [None]


def test_two_that_share_go_as_fast_as_the_profile_of_both_says() -> None:
    texts = (f"job_type: {RESNET}", f"job_type: {RESNET_50}")
    first, second = builtin().pair_rates(RESNET, RESNET_50, 1)["v100"]
    assert first != second
    assert paces(BOTH, *texts, table=builtin()) == pytest.approx([first, second])
    elsewhere = Grant(1, ("a", "b"), "h100", (0,), until=1.0)
    assert paces(elsewhere, *texts, table=builtin()) == [None, None], "no profile has them on this type"


def test_beside_one_of_which_nothing_is_known_a_job_goes_as_it_would_alone() -> None:
    rates = "throughputs: {v100: 3.5}"
    assert paces(BOTH, rates, "steps: 10", table=builtin()) == [3.5, None]
