"""Is any job moved without gain, where there is room for all of them?

1,000 random workloads that fit their cluster at every moment, whichever job runs where, each under every policy, the
blind variants included: types that are equal, equal for some jobs, or not, single workers or gangs, restarts that cost
nothing, 30 or 200 s. Every stop of a job is judged by a watcher that looks at nothing but the rates of the jobs
(`tests.engine.training.moves`): the job has to end sooner for it, the restart included, or its place has to be needed
by a job that is faster there. Moves without gain are counted, and beside them all moves.

Then the preemptions of 20 jobs that run everywhere at one rate, on 2 workers of one type and 10 of another, under each
policy.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks._report import Options, Result
from benchmarks._report import run as report
from fairway.allocate.policies import POLICIES
from fairway.cluster import Cluster
from fairway.jobs import Job
from tests.engine.training.moves import underloaded, watch

BLIND = tuple(f"{name}:agnostic" for name in ("max-min-fairness", "finish-time-fairness", "fifo", "shortest-job-first"))
EVERY = (*POLICIES, *BLIND)


def measure(options: Options) -> Iterator[Result]:
    yield gainless(20 if options.quick else 1000, options.seed)
    for policy in EVERY:
        yield equal_jobs(policy)


def gainless(workloads: int, seed: int) -> Result:
    moves, contended, found = 0, 0, list[str]()
    for number in range(workloads):
        workload, cluster, restart = underloaded(seed * workloads + number)
        for policy in EVERY:
            seen = watch(workload, cluster, policy, restart=restart, seed=number)
            moves += seen.moves
            contended += seen.contended
            found += [f"workload {number}, {policy}: {move}" for move in seen.gainless]
    return Result(
        f"jobs moved without gain, {workloads:,} underloaded workloads under {len(EVERY)} policies",
        "moves",
        len(found),
        target=0,
        extra={"all_moves": moves, "moments_with_jobs_that_wait": contended, "first": found[:3]},
    )


def equal_jobs(policy: str) -> Result:
    jobs = [(400.0 * n, Job(f"j{n}", {"a": 1.0, "b": 1.0}, steps_left=3600.0 + 500.0 * (n % 3))) for n in range(20)]
    seen = watch(jobs, Cluster({"a": 2, "b": 10}), policy)
    return Result(f"20 equal jobs on a=2,b=10, {policy}", "preemptions/job", seen.moves / len(jobs), target=0)


if __name__ == "__main__":
    report("moves", measure)
