"""What becomes of the workers that the highest level does not need?

Max-min fairness on the recorded instances of the original's own policies, those whose gangs fit on every type: how high
is the mean level of all jobs, beside the same lowest level, if the policy stops there (`bare`), spends what is left on
the most work (ours), hands it out by levels (water-filling), or answers as the original did? Each mean level is divided
by that of `bare`; a row has the mean of that over the instances with 20 jobs or more, and over all instances the number
of those where the mean level is below the original's.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks._report import Options, Result, run
from fairway import Problem, policy_of
from tests.figures import mean_levels, policy_cases

LARGE = 20
RECORDED = {"": "max_min_fairness_perf", "space-sharing": "max_min_fairness_packed"}
"""Options of ours, and the original's policies of that kind."""


def measure(options: Options) -> Iterator[Result]:
    cases = [case for case in policy_cases() if not case.wider_than_some_type]
    if options.quick:
        cases = [case for case in cases if len(case.jobs) <= LARGE]
    for option, name in RECORDED.items():
        problems = [(case.id, case.problem()) for case in cases]
        original = mean_levels(name)
        bare = {number: _mean_level("max-min-fairness", f"{option},bare", problem) for number, problem in problems}
        large = [number for number, problem in problems if len(problem) >= LARGE]
        kind = f"max-min fairness{', ' if option else ''}{option}: mean level against bare's"
        for spent, policy in (("the most work", "max-min-fairness"), ("by levels", "water-filling")):
            found = {number: _mean_level(policy, option, problem) for number, problem in problems}
            below = [number for number in found if found[number] < original[number] * (1 - 1e-6)]
            ours, peer = (float(np.mean([level[n] / bare[n] for n in large])) for level in (found, original))
            name_of_row = f"{kind}, {spent}, {len(large)} instances"
            yield Result(name_of_row, "x", ours, "the original, recorded", peer, ours / peer, extra={"below": below})
            yield Result(f"instances below the original's mean, {spent}, of {len(found)}", "instances", len(below))


def _mean_level(policy: str, options: str, problem: Problem) -> float:
    """The mean of s * rate / (weight * rate on a proportional share)."""
    rates = policy_of(f"{policy}:{options.strip(',')}".rstrip(":")).allocate(problem).throughputs
    return float((problem.scale_factors * rates / (problem.weights * problem.proportional_throughputs)).mean())


if __name__ == "__main__":
    run("left_over", measure)
