"""A workflow with an SLO that two requests at a time cannot keep, for tests of shedding; workers import it by name."""

from __future__ import annotations

import time
from typing import Any

import fairway


@fairway.stage(seconds=0.1)
class Slow:
    def __call__(self, numbers: list[int]) -> list[int]:
        time.sleep(0.1 * len(numbers))
        return numbers


@fairway.workflow(slo="350ms")
def slow(x: int) -> Any:
    return Slow()(x)
