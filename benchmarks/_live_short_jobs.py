"""How many jobs that do nothing run in a second: what is measured is all that a turn costs besides the job itself.

The jobs are in the store before `fairway up` starts. The rate is that between the first and the last end of a job, by
the times in the store, so that the start of the system does not count.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from sqlalchemy import select

from benchmarks._live_system import System
from fairway.store import open_store
from fairway.store.database.schema import jobs as table
from fairway.store.submissions import Submission, submit

EMULATE = "v100=8"
PATIENCE = 1200.0


def run_short_jobs(count: int) -> dict[str, float]:
    """Run so many jobs that print a word: how many ended in a second, and the processor time of the controller."""
    with tempfile.TemporaryDirectory(prefix="fairway-") as name:
        system = System(Path(name) / "home", ["--emulate", EMULATE, "--round", "10s"])
        system.directory.mkdir(parents=True)
        with open_store(system.directory) as store:
            store.write(submit, [Submission(spec={"run": "echo done"}) for _ in range(count)], at=time.time())
            try:
                system.start()
                wanted = select(table.c.state, table.c.ended_at)
                deadline = time.monotonic() + PATIENCE
                while True:
                    ends = store.read(lambda connection: connection.execute(wanted).all())
                    if all(ended is not None for _, ended in ends):
                        break
                    assert time.monotonic() < deadline, "the jobs do not end"
                    time.sleep(0.5)
                cpu_seconds = system.cpu_seconds
            finally:
                system.stop()
    wrong = [state for state, _ in ends if str(state) != "succeeded"]
    assert not wrong, f"{len(wrong)} jobs did not succeed"
    times = sorted(ended for _, ended in ends)
    return {
        "per_second": (count - 1) / (times[-1] - times[0]),
        "seconds": times[-1] - times[0],
        "cpu_seconds": cpu_seconds,
    }
