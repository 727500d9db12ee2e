"""Every policy against the recorded results of the original implementation, and against exact optima beside them.

The cases hold instances, the objectives of the original's allocations, and optima found by another solver.
Here the objectives are computed from the allocation and the instance alone, by the formulas that come with the cases.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from fairway import Allocation, Cluster, Job, Pair, Problem, policy_of
from fairway.allocate.arrays import FloatArray
from tests.figures import PolicyCase, mean_levels, policy_cases

NAMES = {
    "max_min_fairness": "max-min-fairness:agnostic",
    "max_min_fairness_perf": "max-min-fairness",
    "max_min_fairness_packed": "max-min-fairness:space-sharing",
    "max_min_fairness_water_filling": "water-filling:agnostic",
    "max_min_fairness_water_filling_perf": "water-filling",
    "max_min_fairness_water_filling_packed": "water-filling:space-sharing",
    "finish_time_fairness": "finish-time-fairness:agnostic,reference=v100",
    "finish_time_fairness_perf": "finish-time-fairness",
    "finish_time_fairness_packed": "finish-time-fairness:space-sharing",
    "min_total_duration": "makespan:agnostic,reference=v100",
    "min_total_duration_perf": "makespan",
    "min_total_duration_packed": "makespan:space-sharing",
    "max_sum_throughput_perf": "max-throughput",
    "max_sum_throughput_normalized_by_cost_perf": "min-cost",
    "max_sum_throughput_normalized_by_cost_perf_SLOs": "min-cost-slo",
    "max_sum_throughput_normalized_by_cost_packed_SLOs": "min-cost-slo:space-sharing",
}
"""The original's names, and ours."""

RULES = {
    "fifo": "fifo:agnostic",
    "fifo_perf": "fifo",
    "fifo_packed": "fifo:space-sharing",
    "gandiva": "gandiva",
    "isolated": "isolated",
}
"""Policies that follow a rule: nothing to compare but that the shares fit."""


def problem_of(case: PolicyCase, *, pairs: bool) -> Problem:
    jobs = [
        Job(
            id=str(job["id"]),
            throughputs=job["throughputs"],
            scale_factor=job["scale_factor"],
            weight=job["priority_weight"],
            steps_left=job["num_steps_remaining"],
            elapsed=job["time_since_start"],
            isolated_elapsed=job["cumulative_isolated_time"],
            slo_seconds=job["slo_seconds"],
        )
        for job in case.jobs
    ]
    shared = []
    for a in range(len(jobs)):
        for b in range(a + 1, len(jobs)):
            if pairs and jobs[a].scale_factor == jobs[b].scale_factor:
                rates = case.shared_rates(a, b).tolist()
                shared.append(Pair((jobs[a].id, jobs[b].id), dict(zip(case.types, map(tuple, rates), strict=True))))
    return Problem.of(Cluster(case.cluster, case.prices), jobs, shared)


@dataclass(frozen=True)
class Scored:
    """An allocation of a case, as printed, with everything that the formulas need."""

    case: PolicyCase
    rows: list[tuple[list[int], FloatArray]]

    @classmethod
    def of(cls, case: PolicyCase, allocation: Allocation) -> Scored:
        rows = [
            ([int(name) for name in row["jobs"]], np.array([row["shares"].get(name, 0.0) for name in case.types]))
            for row in allocation.to_dict()["allocation"]
        ]
        return cls(case, rows)

    def faults(self) -> list[str]:
        """How the shares break the rules, if they do."""
        scale = self.case.column("scale_factor")
        busy, used = np.zeros(len(self.case.jobs)), np.zeros(len(self.case.types))
        found = []
        for jobs, shares in self.rows:
            busy[jobs] += shares.sum()
            used += scale[jobs[0]] * shares
            if (shares < -1e-7).any():
                found.append(f"negative share of {jobs}")
            if len(set(scale[jobs])) > 1:
                found.append(f"{jobs} have different gangs")
            if ((scale[jobs[0]] > self.case.workers) & (shares > 0)).any():
                found.append(f"{jobs} run where the gang does not fit")
        if (busy > 1 + 1e-4).any():
            found.append(f"a job runs {busy.max()} of the time")
        if (used > self.case.workers + 1e-4 * np.maximum(self.case.workers, 1)).any():
            found.append(f"{used.tolist()} workers in use of {self.case.workers.tolist()}")
        return found

    def effective(self, rates: FloatArray | None = None) -> FloatArray:
        """eff_i, on the true rates or on the given ones."""
        alone = self.case.rates if rates is None else rates
        total = np.zeros(len(self.case.jobs))
        for jobs, shares in self.rows:
            beside = alone[jobs].T if len(jobs) == 1 else self.case.shared_rates(*jobs)
            total[jobs] += shares @ beside
        return total

    def levels(self, rates: FloatArray | None = None) -> FloatArray:
        alone = self.case.rates if rates is None else rates
        proportional = alone @ self.case.workers / self.case.workers.sum()
        scale, weight = self.case.column("scale_factor"), self.case.column("priority_weight")
        return scale * self.effective(rates) / (weight * proportional)

    def highest_ratio(self, rates: FloatArray | None = None, *, weighted: bool = False) -> float:
        alone = self.case.rates if rates is None else rates
        jobs, scale = len(self.case.jobs), self.case.column("scale_factor")
        split = self.case.workers / (jobs * scale[:, None])
        isolated = (alone * split / np.maximum(split.sum(axis=1, keepdims=True), 1.0)).sum(axis=1)
        steps = self.case.column("num_steps_remaining")
        effective = self.effective(rates) / (self.case.column("priority_weight") if weighted else 1.0)
        finish = self.case.column("time_since_start") + steps / effective
        return float((finish / (self.case.column("cumulative_isolated_time") + steps / isolated)).max())

    def makespan(self, rates: FloatArray | None = None) -> float:
        return float((self.case.column("num_steps_remaining") / self.effective(rates)).max())

    def sum_per_cost(self, costs: FloatArray) -> float:
        total = 0.0
        for jobs, shares in self.rows:
            beside = self.case.rates[jobs].T if len(jobs) == 1 else self.case.shared_rates(*jobs)
            total += float((shares / costs) @ beside.sum(axis=1))
        return total

    def misses_slo(self) -> bool:
        deadline = self.case.column("slo_seconds")
        needed = self.case.column("num_steps_remaining") / deadline
        return bool((self.effective()[~np.isnan(deadline)] < needed[~np.isnan(deadline)] * (1 - 1e-4)).any())

    def objective(self, name: str) -> float:
        """The objective of the original's policy of this name."""
        costs = np.array([self.case.prices[kind] for kind in self.case.types])
        ones = np.ones_like(self.case.rates)
        if name in {"max_min_fairness", "max_min_fairness_water_filling"}:
            return float(self.levels(ones).min())
        if name.startswith("max_min_fairness"):
            return float(self.levels().min())
        if name.startswith("max_sum_throughput"):
            return self.sum_per_cost(costs if "cost" in name else np.ones_like(costs))
        agnostic = name in {"finish_time_fairness", "min_total_duration"}
        seen = np.repeat(self.case.rates[:, [self.case.types.index("v100")]], len(costs), axis=1) if agnostic else None
        if name.startswith("finish_time_fairness"):
            return self.highest_ratio(seen, weighted=name.endswith("packed"))
        return self.makespan(seen)


# The original lets gangs run on types with fewer workers than they need; such cases cannot be compared.
CASES = [case for case in policy_cases() if not case.wider_than_some_type]


@pytest.mark.parametrize("name", NAMES)
def test_as_good_as_the_original_and_as_the_optimum(name: str) -> None:
    policy = policy_of(NAMES[name])
    results = [(case, case.results[name]) for case in CASES if name in case.results and case.results[name]["feasible"]]
    assert len(results) > 5
    for case, result in results:
        decision = policy.allocate(problem_of(case, pairs=name.endswith(("packed", "packed_SLOs"))))
        scored, where = Scored.of(case, decision), f"case {case.id}"
        assert scored.faults() == [], where
        ours, worse = scored.objective(name), 1.0 if result["sense"] == "min" else -1.0
        assert decision.sense == result["sense"]
        assert worse * (ours - result["objective"]) <= 1e-3 * abs(result["objective"]), where
        assert ours == pytest.approx(result["optimum"], rel=1e-3), where
        assert ours == pytest.approx(decision.objective, rel=1e-6), where
        assert decision.optimal, where
        if result.get("slos_feasible"):
            assert not scored.misses_slo(), where
        if "water_filling" in name:
            levels = np.sort(scored.levels(np.ones_like(case.rates) if name.endswith("filling") else None))
            for bar in (result["levels_sorted"], result["optimum_levels_sorted"]):
                differs = np.flatnonzero(np.abs(levels - bar) > 1e-3 * np.abs(bar))
                assert not len(differs) or levels[differs[0]] > bar[differs[0]], where
            assert levels == pytest.approx(result["optimum_levels_sorted"], rel=1e-3), where


@pytest.mark.parametrize("name", ["max_min_fairness", "max_min_fairness_perf", "max_min_fairness_packed"])
def test_beside_the_lowest_level_the_mean_is_at_least_the_originals(name: str) -> None:
    recorded = mean_levels(name)
    assert len(recorded) > 60
    bare = policy_of(f"{NAMES[name]},bare" if ":" in NAMES[name] else f"{NAMES[name]}:bare")
    for case in CASES:
        problem, where = problem_of(case, pairs=name.endswith("packed")), f"case {case.id}"
        scored = Scored.of(case, policy_of(NAMES[name]).allocate(problem))
        levels = scored.levels(np.ones_like(case.rates) if name == "max_min_fairness" else None)
        assert levels.min() == pytest.approx(bare.allocate(problem).objective, rel=1e-6), where
        assert levels.mean() >= recorded[case.id] * (1 - 1e-6), where


@pytest.mark.parametrize("name", RULES)
def test_rules_give_shares_that_fit(name: str) -> None:
    for case in CASES:
        decision = policy_of(RULES[name]).allocate(problem_of(case, pairs=name in {"fifo_packed", "gandiva"}))
        assert Scored.of(case, decision).faults() == [], f"case {case.id}"


def test_an_example_of_three_jobs_as_the_original_answers_it() -> None:
    # In the original, the gang of two runs on single workers. Everything twice is the same program without that.
    problem = Problem.of_arrays(
        {"k80": 2, "p100": 2, "v100": 4}, [[1, 2, 4], [1, 3, 4], [1, 2, 6]] * 2, scale_factors=[1, 1, 2] * 2
    )
    decision = policy_of("max-min-fairness").allocate(problem)
    assert decision.objective == pytest.approx(1.2706, abs=5e-5)
    levels = problem.scale_factors * decision.throughputs / problem.proportional_throughputs
    assert levels == pytest.approx([1.2706] * 6, abs=5e-5)
