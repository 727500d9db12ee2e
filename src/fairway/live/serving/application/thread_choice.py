"""How many threads each worker should have, chosen from what was measured (floor 2, `configure`).

For each number of threads that was measured, the cheapest plan of every workflow that keeps its SLO is looked up, with

    cost of a request = Σ over stages of  threads · seconds of the batch / batch size          CPU-seconds

The number with the least cost over all workflows is chosen, between equals the smaller one. If none keeps all SLOs, the
one with the fastest plans is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fairway.configure.application import Application
from fairway.configure.configuration import SECONDS_PER_HOUR, Prices
from fairway.configure.platform import Platform
from fairway.configure.problem import ConfigurationProblem
from fairway.configure.search.algorithms import configure
from fairway.errors import InputError
from fairway.links import NO_TRANSFERS
from fairway.live.serving.application.configurations import configured
from fairway.live.serving.application.definition import ServedWorkflow

_CPU_SECONDS = Prices(SECONDS_PER_HOUR, 0.0)
"""With these, what a job costs is the time for which it has a CPU."""


@dataclass(frozen=True, slots=True)
class ThreadChoice:
    """So many threads; a request of each workflow then takes `cpu_seconds` of them together, and `seconds` each.

    `in_time` says whether all SLOs are kept.
    """

    threads: int
    in_time: bool
    cpu_seconds: float
    seconds: tuple[float, ...]

    def __str__(self) -> str:
        why = "the cheapest that keep the SLOs" if self.in_time else "the fastest, but too slow for the SLOs"
        return f"{self.threads} ({why}: {self.cpu_seconds:.3g} CPU-seconds for a request of each workflow)"


def choose_threads(workflows: Sequence[ServedWorkflow]) -> ThreadChoice:
    """The best of those numbers of threads that all stages were measured with."""
    applications = [configured(served) for served in workflows]
    measured = [{*profile.cpu.tolist()} for application in applications for profile in application.profiles]
    threads = sorted(set.intersection(*measured))
    if not threads:
        raise InputError(
            "--threads: auto given, but no number of threads was measured for all stages; measure them again with "
            "'fairway profile --threads 1,2'"
        )
    choices = [_with(applications, number) for number in threads]
    in_time = [choice for choice in choices if choice.in_time]
    if in_time:
        return min(in_time, key=lambda choice: (_rounded(choice.cpu_seconds), choice.threads))
    return min(choices, key=lambda choice: (_rounded(sum(choice.seconds)), choice.threads))


def _with(applications: Sequence[Application], threads: int) -> ThreadChoice:
    platform = Platform(_CPU_SECONDS, NO_TRANSFERS, 0.0, threads, 0)
    in_time, cost, seconds = True, 0.0, []
    for application in applications:
        profiles = tuple(profile.only(profile.cpu == threads) for profile in application.profiles)
        largest = max(int(profile.batch.max()) for profile in profiles)
        problem = ConfigurationProblem(replace(application, profiles=profiles), largest, 1, platform=platform)
        answer = configure("front", problem)
        in_time &= answer.feasible
        cost += answer.candidates[0].cost_dollars
        seconds.append(answer.candidates[0].seconds)
    return ThreadChoice(threads, in_time, cost, tuple(seconds))


def _rounded(value: float) -> float:
    """Without the digits in which sums of the same times may differ."""
    return float(f"{value:.9g}")
