"""Short training runs of drawn jobs: each is, to the lease and to the problem that its policy is given, what it was.

The policies here decide by plain arithmetic, so that nothing but the engine's and the rounds' own decisions can change.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np
import pytest

from fairway.allocate.allocation import Allocation
from fairway.allocate.policy import Policy
from fairway.allocate.problem import Pairs, Problem
from fairway.cluster import Cluster
from fairway.jobs import Entity, Job
from fairway.profiles.catalog import builtin
from fairway.report.training.record import TrainingRecord
from fairway.sim.submissions import PriceChange, Submission, TrainingOptions
from fairway.sim.training import simulate_training
from tests.digest import digest

CLUSTER = Cluster({"v100": 3, "p100": 2, "k80": 3}, {"v100": 3.0, "p100": 1.5, "k80": 0.5}, {"v100": 2, "k80": 2})
CHEAPER = PriceChange(1000.0, {"v100": 0.1, "p100": 3.0, "k80": 2.0})
LINES = ("ResNet-18 (batch size 32)", "LM (batch size 20)", "Transformer (batch size 32)")


def _jobs(seed: int, count: int = 24) -> Iterator[Submission]:
    draw, table, now = random.Random(seed), builtin(), 0.0
    for number in range(count):
        now += draw.choice([0.0, 30.0, 400.0, 900.0])
        scale = draw.choice([1, 1, 1, 2])
        kind = draw.choice(LINES)
        job: Any = table.job(f"j{number}", kind, scale, steps_left=float(draw.choice([1e3, 1e4, 3e4])))
        given = {one.name: getattr(job, one.name) for one in fields(Job)}
        given |= {
            "weight": draw.choice([1.0, 2.0]),
            "entity": draw.choice(["a", "b"]),
            "preemptible": draw.random() < 0.85,
            "resumes": draw.random() < 0.85,
        }
        yield Submission(now, Job(**given), deadline=now + 5000.0 if draw.random() < 0.3 else None)


@dataclass
class Turns(Policy):
    """Gives each job its isolated shares, half of them together with another job if it may; keeps all problems."""

    name: ClassVar[str] = "turns"
    agnostic: bool = False  # type: ignore[misc]
    space_sharing: bool = False  # type: ignore[misc]
    by_cost: bool = False  # type: ignore[misc]
    whole_jobs: bool = False  # type: ignore[misc]
    by_progress: bool = False  # type: ignore[misc]
    problems: list[Any] = field(default_factory=list)

    def allocate(self, problem: Problem) -> Allocation:
        pairs = problem.pairs or Pairs(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((0, 3, 2)))
        self.problems.append(
            [problem.types, problem.workers, problem.ids, problem.throughputs, problem.scale_factors, problem.weights,
             problem.steps_left, problem.elapsed, problem.isolated_elapsed, problem.slo_seconds, problem.team,
             pairs.first, pairs.second, pairs.rates, problem.seed, problem.classes, problem.done, problem.on,
             problem.beside, problem.restart_seconds, problem.dollars_per_hour]
        )  # fmt: skip
        shares = np.where(problem.throughputs > 0, problem.isolated_shares, 0.0)
        if self.whole_jobs:
            return Allocation.of_jobs(self.name, problem, _whole(problem), objective=0.0)
        rows = [(job, -1, shares[job] * (0.5 if self.space_sharing else 1.0)) for job in range(len(problem))]
        taken: set[int] = set()
        if self.space_sharing:
            for first, second, rates in zip(pairs.first.tolist(), pairs.second.tolist(), pairs.rates, strict=True):
                if first not in taken and second not in taken:
                    taken |= {first, second}
                    both = 0.5 * np.minimum(shares[first], shares[second]) * (rates.min(axis=1) > 0)
                    rows.append((first, second, both))
        first, second, given = (np.array(column) for column in zip(*rows, strict=True))
        return Allocation(self.name, problem, first, second, given, 0.0, "max")


def _whole(problem: Problem) -> Any:
    """Whole workers, first come, first served, each on its fastest type with room."""
    left, shares = problem.workers.copy(), np.zeros_like(problem.throughputs)
    for job in range(len(problem)):
        for column in np.argsort(-problem.throughputs[job], kind="stable"):
            if problem.throughputs[job, column] > 0 and problem.scale_factors[job] <= left[column]:
                shares[job, column] = 1.0
                left[column] -= problem.scale_factors[job]
                break
    return shares


def _word(record: TrainingRecord, *more: Any) -> str:
    found = {
        f"{type(part).__name__}.{one.name}": value
        for part in (record.jobs, record.leases)
        for one in fields(part)
        if isinstance(value := getattr(part, one.name), np.ndarray)
    }
    assert len(found["JobColumns.finish"]) == 24
    numbers = [record.rounds, record.solves, record.leases_granted, record.busy_seconds]
    return digest([{name: np.nan_to_num(each, nan=-1.0) for name, each in sorted(found.items())}, numbers, *more])


def _run(seed: int, policy: Any, **options: Any) -> TrainingRecord:
    chosen: dict[str, Any] = {
        "keep_leases": True, "round_seconds": 300.0, "restart_seconds": 20.0, "seed": 7,
        "entities": {"a": Entity(2.0), "b": Entity(1.0, "fifo")}, **options,
    }  # fmt: skip
    return simulate_training(_jobs(seed), CLUSTER, policy, TrainingOptions(**chosen), table=builtin())


@pytest.mark.parametrize(
    ("seed", "flags", "options", "word"),
    [
        (1, {}, {}, "9041263e3f51"),
        (2, {"agnostic": True}, {}, "28fe8d3d875d"),
        (3, {"space_sharing": True}, {}, "8d16912fb597"),
        (4, {"space_sharing": True, "by_progress": True}, {"restart_seconds": 0.0}, "5003840725b6"),
        (
            5,
            {"by_cost": True},
            {"price_changes": (CHEAPER,)},
            "8a72b849cc7a",
        ),
        (6, {"whole_jobs": True}, {}, "679fb8da6b0e"),
        (7, {"by_progress": True}, {"round_seconds": 120.0, "restart_seconds": 60.0}, "d066bee2221e"),
        (8, {}, {"hide_lengths": True}, "d8ba2ef909c3"),
    ],
)
def test_runs_by_turns_are_what_they_were(seed: int, flags: dict[str, Any], options: dict[str, Any], word: str) -> None:
    policy = Turns(**flags)
    record = _run(seed, policy, **options)
    assert len(policy.problems) > 10
    problems = [[np.nan_to_num(np.asarray(each), nan=-1.0) if isinstance(each, np.ndarray) else each for each in one]
                for one in policy.problems]  # fmt: skip
    assert _word(record, problems) == word


@pytest.mark.parametrize(
    ("seed", "policy", "word"),
    [
        (11, "fifo", "3a10cd2b91ec"),
        (12, "shortest-job-first", "c93100519b29"),
        (13, "isolated", "70a5aa49fa67"),
        (14, "gandiva", "c3af38947b56"),
    ],
)
def test_runs_of_policies_that_follow_a_rule_are_what_they_were(seed: int, policy: str, word: str) -> None:
    assert _word(_run(seed, policy)) == word
