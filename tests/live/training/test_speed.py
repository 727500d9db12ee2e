"""Ten thousand jobs: a controller is there soon, and a round on a thousand workers is decided and durable soon.

Time of this process is measured, not of the clock on the wall, since the machine may be busy with other things.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

from fairway.live.backend.accelerators import emulated_accelerators
from fairway.live.training.clock import Clock
from fairway.live.training.session import Session, Surroundings, write_all
from fairway.live.training.settings import ControllerSettings
from fairway.live.training.statistics import Statistics
from fairway.profiles import catalog
from fairway.store import counters, open_store
from fairway.store.submissions import Submission, submit

JOBS, EMULATE = 10_000, "v100=334,p100=333,k80=333"


def seconds(action: Callable[[], object]) -> float:
    began = time.process_time()
    action()
    return time.process_time() - began


def test_ten_thousand_jobs_are_taken_over_and_decided_about_in_seconds(tmp_path: Path) -> None:
    draw = random.Random(0)
    with open_store(tmp_path) as store:
        given = [
            Submission(
                spec={
                    "run": "python train.py --epochs 30",
                    "steps": 50_000,
                    "throughputs": {name: draw.uniform(0.1, 20.0) for name in ("v100", "p100", "k80")},
                },
                steps=50_000,
                team=f"team-{number % 5}",
            )
            for number in range(JOBS)
        ]
        store.write(submit, given, at=time.time())
        settings = ControllerSettings(tmp_path, emulate=EMULATE)
        around = Surroundings(settings, store, catalog.builtin(), Clock(), Statistics(time.time()))
        accelerators = emulated_accelerators(EMULATE)
        epoch = store.write(counters.take, counters.EPOCHS, 1)
        made: list[Session] = []

        def commit() -> None:
            changes, _ = made[-1].scheduler.take()
            store.write(write_all, epoch, changes)

        start = seconds(lambda: made.append(Session(around, accelerators)))
        start += seconds(commit)
        scheduler = made[-1].scheduler
        assert len(scheduler.jobs) == JOBS
        decided = seconds(scheduler.tick)
        durable = seconds(commit)
        assert len(scheduler.leases) == 1000
        assert start < 5.0
        assert decided < 2.0
        assert durable < 2.0
