"""Jobs that can never run here, in virtual time: they have failed, with what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairway.store.states import JobState
from tests.live.training.virtual import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path, "v100=2,k80=1").running() as made:
        yield made


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"throughputs": {"v100": 1.0}, "resources": {"accelerators": "v100:3"}}, "3"),
        ({"throughputs": {"a100": 1.0}, "resources": {"accelerators": "a100:1"}}, "a100"),
    ],
)
def test_a_job_that_no_worker_can_run_has_failed(world: World, fields: dict[str, Any], words: str) -> None:
    job = world.submit(10, **fields)
    other = world.submit(10)
    world.run_for(3.0)
    record = world.job(job)
    assert (record.state, record.reason_code, record.attempts) == (JobState.FAILED, "Unrunnable", 0)
    assert words in (record.reason or "")
    assert job not in world.session.scheduler.jobs
    world.finish()
    assert world.job(other).state is JobState.SUCCEEDED
