"""What does a plan take, and does what it says happen?

The first row is a plan for a queue of 1,000 jobs, on as many workers as some of them can run on: as it is and with
5 changes, 5 simulations of each, on all cores, from the state as a document to the result. The second is a live run on
emulated accelerators, an hour of the engine's clock in a second: once all of its jobs have come, a plan without a
change is made, and what it says of the mean completion time of the jobs that are left is compared with what then
becomes of them. Its target is a bound on the difference.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from statistics import mean

from benchmarks._live_against_sim import run_live
from benchmarks._live_workload import generated
from benchmarks._report import Options, Result
from benchmarks._report import run as report
from fairway.allocate.registry import policy_of
from fairway.cluster import Cluster
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.messages import JobArrived, RoundBegan
from fairway.engine.training.options import EngineOptions
from fairway.experiments.planning import Change, LiveQueue, Outlook, Present, plan
from fairway.live.training.controller import Controller
from fairway.profiles import catalog
from fairway.service.present import present_of
from fairway.sim.workload import Workload
from fairway.traces import parse_generate

POLICY = "max-min-fairness"
CHANGES = ("add v100=16", "remove k80=16", "policy fifo", "policy shortest-job-first", "add p100=8, remove k80=8")
TIME_SCALE = 3600.0
ROUND_SECONDS = 4.0
RESTART_SECONDS = 0.4


def measure(options: Options) -> Iterator[Result]:
    yield how_long(50 if options.quick else 1000, options.seed)
    yield how_true(8 if options.quick else 40, options.seed)


def how_long(jobs: int, seed: int) -> Result:
    """The seconds of a plan."""
    cluster = catalog.priced(Cluster({"v100": 36, "p100": 36, "k80": 36}))
    coming = Workload(generator=parse_generate(f"jobs={jobs},rate=1000,seed={seed}")).submissions(cluster)
    engine = TrainingEngine(cluster, policy_of(POLICY), EngineOptions(360.0, 30.0))
    engine.handle(0.0, [JobArrived(one.job) for one in coming])
    engine.handle(0.0, [RoundBegan()])
    document = json.dumps(Present.of(engine, POLICY, None).document())
    began = time.perf_counter()
    world = LiveQueue(Present.of_document(json.loads(document)))
    made = plan(world, [Change.parse(text) for text in CHANGES], seeds=5)
    seconds = time.perf_counter() - began
    assert made.base["unfinished"].mean == 0
    return Result(f"a plan for {jobs:,} jobs, {len(CHANGES)} changes, 5 simulations of each", "s", seconds, target=60.0)


def how_true(jobs: int, seed: int) -> Result:
    """How far what happens is from what was planned."""
    told: list[tuple[float, Outlook]] = []

    def look(controller: Controller) -> None:
        told.append((time.time(), LiveQueue(present_of(controller)).run(0)))

    began = time.time()
    workload = generated(f"jobs={jobs},rate=3.0,seed={seed}", Cluster({"v100": 3, "p100": 3, "k80": 3}), TIME_SCALE)
    live = run_live(workload, POLICY, ROUND_SECONDS, RESTART_SECONDS, once_all_came=look)
    ((_, outlook),) = told
    planned = {one.job: one.jct for one in outlook.jobs}
    happened = {job: live.finishes[job] - live.arrivals[job] for job in planned}
    difference = abs(mean(planned.values()) / mean(happened.values()) - 1)
    return Result(
        f"mean completion time of {len(planned)} jobs, planned against live on emulated accelerators", "part",
        difference, target=0.10,
        extra={"planned_seconds": mean(planned.values()), "live_seconds": mean(happened.values()),
               "wall_seconds": time.time() - began},
    )  # fmt: skip


if __name__ == "__main__":
    report("plan", measure)
