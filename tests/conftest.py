"""What all tests share: where data from outside the project is, and property tests that repeat exactly."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

_REPOSITORY = Path(__file__).resolve().parents[1]

settings.register_profile(
    "fairway", derandomize=True, deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("fairway")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    shared = Path(os.environ.get("FAIRWAY_SHARED_DATA", _REPOSITORY / "../shared/data"))
    if not shared.is_dir():
        pytest.skip(f"FAIRWAY_SHARED_DATA: no directory {shared} with the published results to compare with")
    return shared
