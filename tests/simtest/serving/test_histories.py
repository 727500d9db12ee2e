from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from fairway.simtest.serving.component import SERVING

HISTORIES = 300
"""Of each generator, in each of two tests: 1,800 histories in all."""


@pytest.mark.parametrize("first", [0, HISTORIES])
@pytest.mark.parametrize("generator", list(SERVING.generators))
def test_no_history_breaks_a_promise(generator: str, first: int) -> None:
    faults: Counter[str] = Counter()
    for seed in range(first, first + HISTORIES):
        history = SERVING.run(SERVING.generators[generator](seed, Random(seed)))
        assert history.violations == (), f"{generator}, seed {seed}"
        faults.update(history.faults)
    assert faults.total() > 20 * HISTORIES
    for kind in (
        "crash",
        "tear",
        "kill",
        "pause",
        "hang",
        "cut",
        "delay",
        "partition",
        "no-room",
        "harm-exit",
        "leave",
    ):
        assert faults[kind] > 0, kind
