"""A job for the live benchmarks: counts steps, saves checkpoints, and writes down all that it does, when it does it.

    python _live_job.py TRACE [EVERY]

Each line of the file TRACE is one fact: the time, the number of the lease, the process, what happened, and the step.
`begin` is the step that the process goes on from, `step` a step that is done, `saved` one whose checkpoint is on disk
for certain, `stop` the one after which it was asked to stop, and `end` the last one, after which it exits. EVERY saves
a checkpoint every so many steps. Nothing but `fairway.leased` is imported, since what a job loads it pays for with
every restart.
"""

import os
import sys
import time

import fairway


class Trace:
    """Appends lines to a file, each in one write, so that those of other processes do not get in between."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._who = f"{os.environ['FAIRWAY_RUN_DIR'].rpartition('/')[2].partition('-')[0]} {os.getpid()}"

    def note(self, what: str, step: int) -> None:
        os.write(self._file, f"{time.time():.6f} {self._who} {what} {step}\n".encode())


def main(path: str, every: int | None) -> None:
    trace = Trace(path)
    total = int(os.environ["FAIRWAY_STEPS"])
    saving: list[int] = []

    def checkpoint(step: int) -> dict[str, int]:
        saving.append(step)
        return {"sum": done}

    run = fairway.leased(range(total), checkpoint=checkpoint, every=every, at_end="break")
    done: int = run.state["sum"] if run.state is not None else 0
    trace.note("begin", run.start)
    for batch in run:
        if saving:  # the loop goes on after a checkpoint only when it is on disk
            trace.note("saved", saving.pop())
        done += batch
        trace.note("step", batch + 1)
    if saving:
        trace.note("saved", saving.pop())
    if run.stopped:
        trace.note("stop", run.step)
        sys.exit(75)
    if done != total * (total - 1) // 2:  # a step was left out, or done twice
        sys.exit(f"the batches add up to {done}, expected {total * (total - 1) // 2}")
    trace.note("end", run.step)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else None)
