"""How many requests that wait for the same stage run together: as many as save time, within the time the stage has.

Asked when an accelerator is free and requests wait for the same stage. With t(n) the time of a batch of n, the answer
for w that wait is

    the n <= w  with the least  t(n) / n,    of those with  t(n) <= budget

and one, if no larger batch fits. A larger batch has to be cheaper for each of its requests than a smaller one by more
than measured times differ from run to run: where a batch saves nothing, all of its requests would wait for the last.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

_LEAST_SAVING = 0.05
"""The part of a request's time that a larger batch has to save; repeats of a measurement agree to about as much."""

_MOST_TOGETHER = 1024


class BatchSize(NamedTuple):
    """How many requests to run together, and how long they take."""

    requests: int
    seconds: float


def batch_sizes(
    seconds_of: Callable[[int], float], largest: int, budget_seconds: float = math.inf
) -> tuple[BatchSize, ...]:
    """The answer for each number of requests that wait, from one on; for more than it has, the last one holds.

    `seconds_of` is the time of a batch of any size up to the `largest`.
    """
    best = BatchSize(1, seconds_of(1))
    sizes = [best]
    for count in range(2, min(largest, _MOST_TOGETHER) + 1):
        seconds = seconds_of(count)
        saves = seconds / count < (1.0 - _LEAST_SAVING) * (best.seconds / best.requests)
        if saves and seconds <= budget_seconds:
            best = BatchSize(count, seconds)
        sizes.append(best)
    return tuple(sizes[: best.requests])
