"""Where the tests of the profiles find data from outside the project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def gavel_data() -> Path:
    shared = Path(os.environ.get("FAIRWAY_SHARED_DATA", _REPOSITORY / "../shared/data"))
    if not (shared / "gavel").is_dir():
        pytest.skip(f"FAIRWAY_SHARED_DATA: no directory {shared / 'gavel'} with the throughput files of Gavel")
    return shared / "gavel"
