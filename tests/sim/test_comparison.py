"""Several runs at once: their order, what is told on the way, and how they end when one fails or is stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairway.cluster import Cluster
from fairway.errors import FairwayError, InputError
from fairway.report.training.record import Outcome, TrainingRecord
from fairway.sim.comparison import TrainingRun, Watcher, compare, usable_cores
from fairway.sim.submissions import Progress, TrainingOptions
from fairway.sim.workload import Workload
from fairway.traces import parse_generate

EXAMPLES = Path(__file__).parents[2] / "examples"
ROOT = Path(__file__).parents[2]
CLUSTER = Cluster({"v100": 8, "p100": 8, "k80": 16})


@dataclass(frozen=True)
class Acted:
    """In the place of a run: takes a while, tells of it, and ends in one of several ways."""

    name: str
    seconds: float = 0.0
    ends: str = "well"
    workload: Workload = Workload(generator=parse_generate("rate=4"))  # noqa: RUF009

    @property
    def files(self) -> tuple[str, ...]:
        return () if self.workload.trace is None else (self.workload.trace,)

    def __call__(self, progress: Progress) -> Any:
        progress(1, 10.0)
        time.sleep(self.seconds)
        progress(2, 20.0)
        if self.ends == "refused":
            raise InputError(f"{self.name}: nothing to run")
        if self.ends == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        return (self.name, os.getpid())


class Notes(Watcher):
    def __init__(self) -> None:
        self.advances: list[tuple[int, int, float]] = []
        self.ends: list[int] = []

    def advanced(self, run: int, jobs_ended: int, now: float) -> None:
        self.advances.append((run, jobs_ended, now))

    def ended(self, run: int, record: TrainingRecord) -> None:  # noqa: ARG002
        self.ends.append(run)


def acted(*runs: Acted, processes: int | None = None) -> tuple[list[Any], Notes]:
    notes = Notes()
    return compare(runs, processes=processes, watcher=notes), notes  # type: ignore[arg-type]


def test_records_come_in_the_order_asked_for_whichever_run_ends_first() -> None:
    (slow, fast), notes = acted(Acted("slow", seconds=1.0), Acted("fast"), processes=2)
    assert (slow[0], fast[0]) == ("slow", "fast")
    assert os.getpid() not in {slow[1], fast[1]}
    assert slow[1] != fast[1]
    assert notes.ends == [1, 0]
    assert {(0, 1, 10.0), (1, 1, 10.0), (0, 2, 20.0)} <= set(notes.advances)


def test_one_run_or_one_process_needs_no_other() -> None:
    (only,), notes = acted(Acted("only"))
    assert only == ("only", os.getpid())
    assert notes.advances == [(0, 1, 10.0)]  # the second is too soon after the first to be told
    both, notes = acted(Acted("a"), Acted("b"), processes=1)
    assert both == [("a", os.getpid()), ("b", os.getpid())]
    assert notes.ends == [0, 1]
    assert compare([]) == []
    assert usable_cores() >= 1


@pytest.mark.skipif(os.name != "posix", reason="pipes as POSIX has them")
def test_a_trace_that_comes_through_a_pipe_is_read_once_and_run_here(tmp_path: Path) -> None:
    pipe = tmp_path / "jobs.tsv"
    os.mkfifo(pipe)
    workload = Workload(trace=str(pipe))
    writer = threading.Thread(target=pipe.write_bytes, args=((EXAMPLES / "jobs.tsv").read_bytes(),))
    writer.start()
    assert len(list(workload.submissions(CLUSTER))) == 40
    writer.join()
    both, _ = acted(Acted("a", workload=workload), Acted("b", workload=workload), processes=2)
    assert both == [("a", os.getpid()), ("b", os.getpid())]
    assert len(list(workload.submissions(CLUSTER))) == 40


def test_a_run_that_is_refused_ends_the_others_at_once() -> None:
    start = time.monotonic()
    with pytest.raises(InputError, match=r"^bad: nothing to run$"):
        acted(Acted("long", seconds=60.0), Acted("bad", ends="refused"), processes=2)
    assert time.monotonic() - start < 30


def test_a_run_that_is_killed_is_told_from_one_that_failed() -> None:
    with pytest.raises(FairwayError, match=r"killed from outside.*use fewer processes"):
        acted(Acted("a", ends="killed"), Acted("b", seconds=60.0), processes=2)


INTERRUPTED = """
import sys
from fairway.sim.comparison import Watcher, compare
from tests.sim.test_comparison import Acted
class Teller(Watcher):
    def advanced(self, run, jobs_ended, now):
        print(run, flush=True)
if __name__ == "__main__":
    try:
        compare([Acted("a", seconds=60.0), Acted("b", seconds=60.0)], processes=2, watcher=Teller())
    except KeyboardInterrupt:
        sys.exit(130)
"""


@pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_all_processes_end_with_the_one_that_asked(tmp_path: Path, number: int, status: int) -> None:
    script = tmp_path / "script.py"
    script.write_text(INTERRUPTED)
    with subprocess.Popen(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert {running.stdout.readline(), running.stdout.readline()} == {b"0\n", b"1\n"}
        if number == signal.SIGINT:  # as a terminal does: to all of them
            os.killpg(running.pid, number)
        else:
            running.kill()
        # The end of standard error comes when the last process that holds it is gone.
        assert b"Traceback" not in running.stderr.read()
        assert running.wait(timeout=30) == status


def run(policy: str, seed: int = 0, **options: Any) -> TrainingRun:
    workload = Workload(generator=parse_generate(f"jobs=12,rate=6,seed={seed}"))
    return TrainingRun(
        workload, CLUSTER, policy, TrainingOptions(seed=seed, **options), {"policy": policy, "seed": seed}
    )


def times(record: TrainingRecord) -> list[float]:
    return record.jobs.finish.tolist()


def test_real_runs_are_the_same_here_and_in_other_processes() -> None:
    runs = [run(policy, seed) for seed in (0, 1) for policy in ("max-min-fairness", "fifo")]
    here, there = compare(runs, processes=1), compare(runs, processes=2)
    assert [record.policy for record in there] == ["max-min-fairness", "fifo"] * 2
    assert [record.settings["seed"] for record in there] == [0, 0, 1, 1]
    assert [times(record) for record in here] == [times(record) for record in there]
    assert times(here[0]) != times(here[2])
    for record in there:
        assert (record.jobs.outcome == Outcome.COMPLETED).all()
        assert (record.jobs.finish > record.jobs.arrival).all()


def test_a_record_tells_of_its_settings_and_of_rows_that_were_skipped(tmp_path: Path) -> None:
    trace = tmp_path / "jobs.tsv"
    trace.write_text((EXAMPLES / "jobs.tsv").read_text() + "not a job\n")
    (record,) = compare(
        [TrainingRun(Workload(trace=str(trace)), CLUSTER, "fifo", TrainingOptions(), {"trace": "jobs.tsv"})]
    )
    assert record.settings == {"trace": "jobs.tsv"}
    assert record.skipped_rows == 1
    assert len(record.jobs) == 40


def test_a_job_that_can_never_run_is_told_and_the_run_ends() -> None:
    small = Cluster({"v100": 2, "p100": 2, "k80": 2})
    (record,) = compare(
        [TrainingRun(Workload(trace=str(EXAMPLES / "jobs.tsv")), small, "max-min-fairness", TrainingOptions())]
    )
    stuck = record.jobs.scale_factor > 2
    assert stuck.any()
    assert np.array_equal(record.jobs.outcome == Outcome.UNRUNNABLE, stuck)
    assert (record.jobs.outcome[~stuck] == Outcome.COMPLETED).all()


def test_what_a_policy_refuses_in_another_process_is_an_input_error_here() -> None:
    unpriced = Workload(generator=parse_generate("jobs=5,rate=6,reference=tpu"))
    with pytest.raises(InputError, match="'tpu'"):
        compare(
            [TrainingRun(unpriced, CLUSTER, policy, TrainingOptions()) for policy in ("fifo", "makespan")], processes=2
        )
