"""How long does a decision take, against the same problem in cvxpy, and how does that grow with the jobs?

Timed for ours: making a `Problem` of arrays and `policy.allocate(problem)`, without a previous decision to start from,
in a process that has compiled its kernels (a small decision of every kind goes first). Timed for the peer: building the
cvxpy problem and solving it, with cvxpy imported and warmed up in the same way. Both answers are scored by the same
formulas; the run fails if ours does not fit, is not proven optimal, or is worse than the peer's by more than 1e-6.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from statistics import median
from typing import Literal

import numpy as np

from benchmarks import _cvxpy_peers as peers
from benchmarks._instances import FloatArray, Instance, distinct_jobs, sharing_jobs
from benchmarks._report import Options, Result, Turns, compared, ratios, run, spread, take_turns
from fairway import Allocation, policy_of

EXACT = 1e-6
CVXPY = f"cvxpy {version('cvxpy')}"


@dataclass(frozen=True, slots=True)
class Peer:
    """Another way to decide; one that takes long has one turn."""

    name: str
    decide: Callable[[Instance], FloatArray]
    target: float | None
    once: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """A policy on a kind of instance, and whom it is compared with.

    `score` is what the policy optimises; `profile`, where there is one, is what is compared element by element,
    ascending, after it.
    """

    name: str
    policy: str
    jobs: int
    quick_jobs: int
    make: Callable[[int, int], Instance]
    score: Callable[[Instance, FloatArray], float]
    sense: Literal["max", "min"]
    peers: tuple[Peer, ...]
    profile: Callable[[Instance, FloatArray], FloatArray] | None = None

    def decide(self, instance: Instance) -> Allocation:
        """Our decision, from arrays on."""
        return policy_of(self.policy).allocate(instance.problem())


def quarter(jobs: int, seed: int, priorities: Sequence[float] = (1.0,)) -> Instance:
    """A worker of each type for every four jobs."""
    return distinct_jobs(jobs, jobs // 4, priorities=priorities, seed=seed)


QUESTIONS = (
    Question(
        name="max-min fairness",
        policy="max-min-fairness",
        jobs=2048,
        quick_jobs=128,
        make=quarter,
        score=Instance.lowest_level,
        sense="max",
        peers=(Peer(f"{CVXPY}, one LP", peers.max_min_fairness, 10),),
    ),
    # With these durations the longest job, always on its fastest type, decides the makespan even in a busy cluster.
    Question(
        name="makespan, longest job decides",
        policy="makespan",
        jobs=2048,
        quick_jobs=128,
        make=quarter,
        score=Instance.makespan,
        sense="min",
        peers=(
            Peer(f"{CVXPY}, one LP", peers.makespan, 20),
            Peer(f"{CVXPY}, the original's search", peers.makespan_by_search, 20),
        ),
    ),
    # So this one has an eighth of the workers: about ten jobs for each.
    Question(
        name="makespan, workers decide",
        policy="makespan",
        jobs=2048,
        quick_jobs=128,
        make=lambda jobs, seed: distinct_jobs(jobs, jobs // 32, seed=seed),
        score=Instance.makespan,
        sense="min",
        peers=(
            Peer(f"{CVXPY}, one LP", peers.makespan, 20),
            Peer(f"{CVXPY}, the original's search", peers.makespan_by_search, 20),
        ),
    ),
    Question(
        name="finish-time fairness",
        policy="finish-time-fairness",
        jobs=2048,
        quick_jobs=128,
        make=quarter,
        score=Instance.worst_finish,
        sense="min",
        peers=(
            Peer(f"{CVXPY}, one conic program", peers.finish_time_fairness, 200),
            Peer(f"{CVXPY}, the original's list", peers.finish_time_fairness_in_a_list, 200, once=True),
        ),
    ),
    # All weights 1: every type is exhausted by the first rise, which ends it.
    Question(
        name="water filling, one level",
        policy="water-filling",
        jobs=2048,
        quick_jobs=128,
        make=quarter,
        score=Instance.lowest_level,
        sense="max",
        peers=(Peer(f"{CVXPY}, an LP per rise", peers.water_filling, 20),),
        profile=Instance.levels,
    ),
    # Weights 1, 2 and 5: hundreds of jobs stop one by one at their own limits before the types are exhausted.
    Question(
        name="water filling, many levels",
        policy="water-filling",
        jobs=2048,
        quick_jobs=128,
        make=partial(quarter, priorities=(1.0, 2.0, 5.0)),
        score=Instance.lowest_level,
        sense="max",
        peers=(Peer(f"{CVXPY}, an LP per rise", peers.water_filling, 20, once=True),),
        profile=Instance.levels,
    ),
    Question(
        name="space sharing, 26 job types",
        policy="max-min-fairness:space-sharing",
        jobs=512,
        quick_jobs=48,
        make=lambda jobs, seed: sharing_jobs(jobs, jobs // 4, distinct=False, seed=seed),
        score=Instance.lowest_level,
        sense="max",
        peers=(Peer(f"{CVXPY}, one sparse LP", peers.max_min_fairness_with_pairs, 100, once=True),),
    ),
    Question(
        name="space sharing, all distinct",
        policy="max-min-fairness:space-sharing",
        jobs=256,
        quick_jobs=32,
        make=lambda jobs, seed: sharing_jobs(jobs, jobs // 4, distinct=True, seed=seed),
        score=Instance.lowest_level,
        sense="max",
        peers=(Peer(f"{CVXPY}, one sparse LP", peers.max_min_fairness_with_pairs, None, once=True),),
    ),
)


def measure(options: Options) -> Iterator[Result]:
    """All rows, in turn."""
    for question in QUESTIONS:
        yield from answer(question, options)
    yield from growth(options)


def answer(question: Question, options: Options) -> Iterator[Result]:
    """Our policy against each of its peers."""
    jobs = question.quick_jobs if options.quick else question.jobs
    instance, small = question.make(jobs, options.seed), question.make(32, options.seed)
    question.decide(small)
    for peer in question.peers:
        peer.decide(small)
    for peer in question.peers:
        ours, theirs = take_turns(
            (partial(question.decide, instance), options.repeats),
            (partial(peer.decide, instance), 1 if peer.once else options.repeats),
        )
        name = f"{question.name}, {jobs:,} jobs"
        target = None if options.quick else peer.target
        yield compared(name, ours, peer.name, theirs, target, judged(question, instance, name, ours, theirs))


def judged(question: Question, instance: Instance, name: str, ours: Turns, theirs: Turns) -> dict[str, float]:
    """Both objectives; ends the run if ours is not what it promises to be."""
    found = instance.shares_of(ours.answer)
    fitted = instance.fitted(found)
    overbooked = float(np.abs(fitted - found).max())
    if overbooked > 1e-9:
        raise SystemExit(f"{name}: our shares overbook time or workers, by {overbooked:.1e}")
    check_gap(name, ours.answer.gap)
    fitted_peer = instance.fitted(theirs.answer)
    objectives = question.score(instance, fitted), question.score(instance, fitted_peer)
    compare(name, question.sense, *objectives)
    judgement = {"ours_objective": objectives[0], "peer_objective": objectives[1]}
    if question.profile is not None:
        mine, peer = np.sort(question.profile(instance, fitted)), np.sort(question.profile(instance, fitted_peer))
        difference = np.abs(mine - peer) / np.abs(peer)
        if (differs := np.flatnonzero(difference > EXACT)).size:
            compare(f"{name}, level {differs[0]}", question.sense, float(mine[differs[0]]), float(peer[differs[0]]))
        judgement["largest_level_difference"] = float(difference.max())
    return judgement


def compare(name: str, sense: Literal["max", "min"], ours: float, peer: float) -> None:
    """End the run if ours is worse."""
    worse = (peer - ours if sense == "max" else ours - peer) / abs(peer)
    if not worse <= EXACT:
        raise SystemExit(f"{name}: our objective {ours!r} is worse than the peer's {peer!r}, by {worse:.1e}")


def check_gap(name: str, gap: float | None) -> None:
    """End the run if ours is not proven to be optimal."""
    if gap is None or not gap <= EXACT:
        raise SystemExit(f"{name}: our answer has a gap of {gap}, more than {EXACT}")


def growth(options: Options) -> Iterator[Result]:
    """Max-min fairness of very many distinct jobs, without a peer."""
    sizes = (1_000, 10_000) if options.quick else (10_000, 100_000)
    policy = policy_of("max-min-fairness")
    instances = [quarter(jobs, options.seed) for jobs in sizes]
    few, many = take_turns(
        *((lambda instance=instance: policy.allocate(instance.problem()), options.repeats) for instance in instances)
    )
    for jobs, turns in zip(sizes, (few, many), strict=True):
        name = f"max-min fairness, {jobs:,} jobs"
        check_gap(name, turns.answer.gap)
        objective = {"ours_objective": turns.answer.objective}
        yield Result(name, "s", median(turns.seconds), spread=spread(turns.seconds), extra=objective)
    yield Result(
        f"growth {sizes[0]:,} -> {sizes[1]:,} jobs",
        "x",
        median(many.seconds) / median(few.seconds),
        target=None if options.quick else 15,
        spread=spread(ratios(many.seconds, few.seconds)),
    )
    name = f"peak memory of a process, {sizes[1]:,} jobs"
    child = [sys.executable, "-m", "benchmarks._peak_memory", str(sizes[1])]
    peak = json.loads(subprocess.run(child, check=True, capture_output=True, text=True).stdout)
    check_gap(name, peak["gap"])
    yield Result(name, "MB", peak["megabytes"], target=None if options.quick else 2000)


if __name__ == "__main__":
    run("allocate", measure)
