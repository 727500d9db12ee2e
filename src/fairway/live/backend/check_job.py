"""The jobs that the conformance kit of backends starts: a real program wherever a backend runs real processes.

    python -m fairway.live.backend.check_job '{"cooperative": true}'

Such a job writes to its log what the kit wants to see: the line `begins`, the variables that it was promised, what it
does when it is noticed to stop, and `ends`. A simulated backend reads the same description and acts accordingly.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

BEGINS, NOTICED, SAVED, STILL_HERE, ENDS = "begins", "noticed", "saved", "still here", "ends"
"""The lines of a log: at the start, at SIGTERM, after saving in the grace, while ignoring it, and at the end."""

STEP_SECONDS, SAVE_SECONDS, LINE_SECONDS = 0.02, 0.3, 0.1
"""How long a step takes, saving in the grace, and how often a job that ignores the notice says that it is there."""

_MODULE = "fairway.live.backend.check_job"


@dataclass(frozen=True, slots=True)
class CheckJob:
    """What a job of the kit does.

    A cooperative one does the steps of its description, or steps without end, through `fairway.leased`. A plain one
    waits for so many seconds and ends with `code`. At SIGTERM a plain one leaves at once, saves for a moment, or goes
    on as if nothing were.
    """

    cooperative: bool = False
    seconds: float = 0.0
    code: int = 0
    at_notice: Literal["leave", "save", "ignore"] = "leave"

    def command(self, python: str) -> tuple[str, ...]:
        """The command that runs it, with this interpreter."""
        return (python, "-m", _MODULE, json.dumps(asdict(self)))

    @classmethod
    def of(cls, command: Sequence[str]) -> CheckJob | None:
        """What a command of the kit describes; None if it is another command."""
        return cls(**json.loads(command[3])) if tuple(command[1:3]) == ("-m", _MODULE) else None


def _wait(job: CheckJob) -> int:
    """Wait until the time is over, or for what is to follow a notice."""
    noticed = False

    def notice(*_: object) -> None:
        nonlocal noticed
        noticed = True

    if job.at_notice != "leave":
        signal.signal(signal.SIGTERM, notice)
    print(BEGINS, *_environment(), sep="\n", flush=True)  # not before the notice would be heard
    deadline = time.monotonic() + job.seconds
    while time.monotonic() < deadline and not noticed:
        time.sleep(min(0.01, max(deadline - time.monotonic(), 0.0)))
    if noticed:
        print(NOTICED, flush=True)
        if job.at_notice == "save":
            time.sleep(SAVE_SECONDS)
            print(SAVED, flush=True)
            return 0
        while time.monotonic() < deadline:
            time.sleep(LINE_SECONDS)
            print(STILL_HERE, flush=True)
    return job.code


def _step(job: CheckJob) -> int:
    """Do steps for as long as the lease lasts, or until all are done."""
    from fairway.live.job.leased import leased  # noqa: PLC0415 - a plain job needs nothing of it

    print(BEGINS, *_environment(), sep="\n", flush=True)
    for _ in leased(itertools.repeat(None), checkpoint=lambda step: {"step": step}):
        time.sleep(STEP_SECONDS)
    return job.code


def _environment() -> list[str]:
    names = ("CUDA_VISIBLE_DEVICES", "LOCAL_RANK", "MASTER_", "RANK", "WORLD_SIZE", "FAIRWAY_")
    return sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith(names))


def main(text: str) -> int:
    """Run the job that a description stands for; returns its exit code."""
    job = CheckJob(**json.loads(text))
    code = _step(job) if job.cooperative else _wait(job)
    print(ENDS, flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
