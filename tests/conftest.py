"""What all tests share: signals as they should be, property tests that repeat exactly, and data from outside."""

from __future__ import annotations

import faulthandler
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

_REPOSITORY = Path(__file__).resolve().parents[1]
_SECONDS_TO_CLEAN_UP = 120.0
_STDERR = pytest.StashKey[int]()

settings.register_profile(
    "fairway", derandomize=True, deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("fairway")


def pytest_configure(config: pytest.Config) -> None:
    """Let interrupts through: a shell that starts the tests in the background has them ignored by every child."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.stash[_STDERR] = os.dup(2)  # later, what tests write there is captured


@pytest.hookimpl(trylast=True)
def pytest_exception_interact(node: pytest.Item | pytest.Collector) -> None:
    """Watch over what a failed test still has to clean up: pytest stops watching at the first exception."""
    if isinstance(node, pytest.Item):
        faulthandler.dump_traceback_later(_SECONDS_TO_CLEAN_UP, file=node.config.stash[_STDERR], exit=True)


@pytest.fixture(scope="session")
def shared_data() -> Callable[[str], Path]:
    """Gives the path of a file that is too large to ship, or skips the test where the machine does not have it.

    What tests compare with otherwise is in `tests/fixtures`, and read by `tests.figures`.
    """
    shared = Path(os.environ.get("FAIRWAY_SHARED_DATA", _REPOSITORY / "../shared/data"))

    def path_of(name: str) -> Path:
        if not (shared / name).is_file():
            pytest.skip(f"FAIRWAY_SHARED_DATA: no file {shared / name}")
        return shared / name

    return path_of
