"""Does the live system do what the simulator says, lose nothing when it is killed, and keep up with many jobs?

- `simulator`: 60 jobs of Gavel's generator, live on emulated accelerators, an hour a second, against the simulator.
  What a restart costs is measured first, with other jobs, and told to both.
- `kills`: `kill -9` of the controller, the agent or a job at random moments, under load.
- `restart`: the controller is killed and started again with 10,000 jobs in the store.
- `requests`: 32 clients submit 10,000 jobs, each acknowledged when it is on disk; then pages of them are listed.
- `decision`: a round's decision with 10,000 jobs on 1,000 workers.
- `short-jobs`: how many jobs that do nothing run in a second, on 8 workers.

All processes run on this machine, jobs and clients too: an emulated accelerator is a process that waits. The run fails
if a job does not succeed; what was lost or done twice is counted.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import mean, median
from typing import Annotated

import typer

from benchmarks import _live_against_sim as against_sim
from benchmarks import _live_decision as decision
from benchmarks import _live_service as service
from benchmarks import _live_short_jobs as short
from benchmarks._live_kills import kill_again_and_again
from benchmarks._live_workload import generated
from benchmarks._report import Result, show, spread
from fairway.cluster import Cluster

POLICY = "max-min-fairness"
CLUSTER = Cluster({"v100": 3, "p100": 3, "k80": 3})
TIME_SCALE = 3600.0
ROUND_SECONDS = 4.0
"""On the wall clock. A restart then takes about a tenth of a round, as one of 30 s does of six minutes."""
FIRST_GUESS = 0.4
"""What a restart costs, before it was measured."""


def simulator(quick: bool, seed: int, _: int) -> Iterator[Result]:
    _say("measuring what a restart costs")
    others = f"jobs={6 if quick else 24},rate=4.0,duration={7200 if quick else 14400},seed={seed + 1000}"
    before = against_sim.run_live(generated(others, CLUSTER, TIME_SCALE), POLICY, ROUND_SECONDS, FIRST_GUESS)
    restart_seconds = before.lost_per_lease
    _say(f"a restart costs {restart_seconds:.2f} s; running the jobs")
    jobs = f"jobs={6 if quick else 60},rate=1.0,seed={seed}"
    workload = generated(jobs if not quick else f"{jobs},duration=7200", CLUSTER, TIME_SCALE)
    live = against_sim.run_live(workload, POLICY, ROUND_SECONDS, restart_seconds)
    record = against_sim.run_simulated(workload, POLICY, ROUND_SECONDS, restart_seconds)
    once = against_sim.simulated_seconds(record, TIME_SCALE)
    often = against_sim.simulated_often(
        workload, POLICY, ROUND_SECONDS, restart_seconds, runs=5 if quick else 50, seed=seed
    )
    extra = {
        "jobs": len(workload.jobs),
        "restart_seconds": restart_seconds,
        "restart_seconds_afterwards": live.lost_per_lease,
        "live_preemptions": live.preemptions,
        "simulated_preemptions": int(record.jobs.preemptions.sum()),
        "latest_submission_seconds": live.late,
        "load_average": os.getloadavg()[1],
    }
    for name, ours, alone, each in zip(
        ("mean JCT", "makespan"), (live.mean_jct, live.makespan), once, zip(*often, strict=True), strict=True
    ):
        simulated = mean(each)
        yield Result(
            f"{name} of {len(workload.jobs)} jobs, live against simulated",
            "%",
            100 * abs(ours / simulated - 1),
            target=None if quick else 5.0,
            extra={
                "difference": ours / simulated - 1,
                "live_seconds": ours,
                "simulated_seconds": simulated,
                "simulated_runs": len(each),
                "simulated_spread": spread(each),
                "difference_to_one_run": ours / alone - 1,
                **extra,
            },
        )


def kills(quick: bool, seed: int, count: int) -> Iterator[Result]:
    count = 5 if quick else count
    _say(f"killing {count} times")
    with tempfile.TemporaryDirectory(prefix="fairway-") as name:
        found = kill_again_and_again(Path(name), count, seed)
    extra = {"kills": dict(found.killed), "jobs": found.jobs, "attempts": found.attempts, "seconds": found.seconds}
    for what, wrong in (
        ("acknowledged jobs lost", found.lost),
        ("double leases", found.double),
        ("checkpoints lost, or steps left out", found.undone),
        ("processes left behind", found.left_behind),
    ):
        for each in wrong:
            _say(f"{what}: {each}")
        yield Result(f"{what}, {count} kills", "", len(wrong), target=0.0, extra=extra)


def restart(quick: bool, _: int, __: int) -> Iterator[Result]:
    jobs = 200 if quick else 10_000
    _say(f"restarting with {jobs:,} jobs in the store")
    with service.new_system(jobs) as system:
        times = [service.restart(system) for _ in range(2 if quick else 5)]
    seconds = [each["seconds"] for each in times]
    yield Result(
        f"restart with {jobs:,} jobs, until it answers",
        "s",
        median(seconds),
        target=None if quick else 5.0,
        spread=spread(seconds),
        extra={
            "repeats": len(seconds),
            "slowest": max(seconds),
            "cpu_seconds": median(each["cpu_seconds"] for each in times),
        },
    )
    touched = sum(each["running"] - each["untouched"] for each in times)
    yield Result("running jobs that a restart touched", "", touched, target=0.0, extra={"running": times[0]["running"]})


def requests(quick: bool, _: int, __: int) -> Iterator[Result]:
    jobs, clients = (200, 32) if quick else (10_000, 32)
    _say(f"submitting {jobs:,} jobs")
    with service.new_system() as system:
        taken = service.take_in(system, jobs, clients)
        yield Result(
            f"{jobs:,} submissions by {clients} clients, all durable",
            "s",
            taken["seconds"],
            target=None if quick else jobs / 500,
            extra={
                "submissions_per_second": taken["per_second"],
                "cpu_seconds": taken["cpu_seconds"],
                "p50_seconds": taken["p50"],
                "p99_seconds": taken["p99"],
            },
        )
        for readers, target in ((1, 0.1), (8, None)):
            listed = service.list_jobs(system, 100 if quick else 1000, readers, jobs)
            yield Result(
                f"p99 of GET /jobs with {jobs:,} jobs, {readers} client{'s' if readers > 1 else ''}",
                "s",
                listed["p99"],
                target=None if quick else target,
                extra={"p50_seconds": listed["p50"], "per_second": listed["per_second"]},
            )


def round_decision(quick: bool, seed: int, _: int) -> Iterator[Result]:
    jobs, workers = (500, 60) if quick else (10_000, 1_000)
    _say(f"deciding on {jobs:,} jobs")
    rounds = decision.engine_rounds(jobs, workers, jobs // 500, 8, seed)
    name = f"a round's decision, {jobs:,} jobs on {workers:,} workers"
    target = None if quick else 1.0
    yield Result(f"{name}, the first", "s", rounds[0], target=target)
    yield Result(f"{name}, later ones", "s", median(rounds[1:]), target=target, spread=spread(rounds[1:]),
                 extra={"repeats": len(rounds) - 1, "slowest": max(rounds[1:])})  # fmt: skip
    whole = decision.controller_round(jobs, workers, seed)
    yield Result("the first round of a controller, with reasons", "s", whole["decided"], target=target)
    yield Result("the same, until it is in the store", "s", whole["durable"])


def short_jobs(quick: bool, _: int, __: int) -> Iterator[Result]:
    count = 100 if quick else 2_000
    _say(f"running {count:,} jobs that do nothing")
    runs = [short.run_short_jobs(count) for _ in range(1 if quick else 3)]
    each = [1 / run["per_second"] for run in runs]
    yield Result(
        f"a job that does nothing, {count:,} on 8 emulated workers",
        "s",
        median(each),
        target=None if quick else 1 / 50,
        spread=spread(each),
        extra={
            "repeats": len(each),
            "jobs_per_second": 1 / median(each),
            "controller_cpu_seconds": median(run["cpu_seconds"] for run in runs),
            "cores": os.cpu_count(),
            "load_average": os.getloadavg()[0],
        },
    )


PARTS: dict[str, Callable[[bool, int, int], Iterator[Result]]] = {
    "simulator": simulator,
    "kills": kills,
    "restart": restart,
    "requests": requests,
    "decision": round_decision,
    "short-jobs": short_jobs,
}


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(
    destination: Annotated[str | None, typer.Option("--json", help="Write the results here, - for stdout.")] = None,
    only: Annotated[list[str] | None, typer.Option(help=f"One of the parts: {', '.join(PARTS)}.")] = None,
    kills: Annotated[int, typer.Option(min=1, help="How often something is killed.")] = 100,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes, to see that it runs; few targets.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Other jobs, and other moments.")] = 0,
) -> None:
    unknown = set(only or ()) - set(PARTS)
    if unknown:
        raise typer.BadParameter(f"'{unknown.pop()}' given, expected one of {', '.join(PARTS)}", param_hint="--only")
    parts = [part for name, part in PARTS.items() if not only or name in only]
    show("live_training", (result for part in parts for result in part(quick, seed, kills)), destination)


if __name__ == "__main__":
    typer.run(main)
