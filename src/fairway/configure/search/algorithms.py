"""The searches by name, each for a whole problem: `esg`, `front` and `brute-force`.

An answer has plans for every stage. `esg` plans group by group: what it finds for the first group is continued as ESG
would go on if everything took as long as expected, each later group with its share of the time then left. `front` and
`brute-force` plan the graph at once. If nothing is in time, the fastest plan is answered, and that it is not feasible.

An application with several entry stages has a queue at each, and no first configuration: the answer is then one plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from fairway.configure.configuration import Configuration
from fairway.configure.problem import ConfigurationProblem
from fairway.configure.search.answer import Answer, Candidate
from fairway.configure.search.brute_force import search_everything
from fairway.configure.search.esg_search import Form, search_group
from fairway.configure.search.fallback import fastest_configurations
from fairway.configure.search.front import named_plan, search_front
from fairway.configure.search.graph_front import graph_front
from fairway.configure.search.kernels import TOLERANCE
from fairway.configure.search.rollout import UNLIMITED, fastest_plan, planned_ahead
from fairway.options import named


@runtime_checkable
class Algorithm(Protocol):
    """Answers a configuration problem."""

    name: ClassVar[str]

    def search(self, problem: ConfigurationProblem) -> Answer:
        """The best plans."""
        ...


@dataclass(frozen=True, slots=True)
class FrontSearch:
    """Look up the cheapest rest for each first configuration (`front`); exact on any graph."""

    name: ClassVar[str] = "front"

    def search(self, problem: ConfigurationProblem) -> Answer:
        """The k cheapest plans."""
        application, tables = problem.application, problem.tables
        if len(application.entries) > 1:
            answer = self._one_plan(problem)
        else:
            entry = application.entries[0]
            answer = search_front(
                tables, entry, application.after[entry], problem.queue_length, application.slo_seconds, problem.k
            )
        return answer if answer.feasible else _best_effort(problem, answer.expanded)

    def _one_plan(self, problem: ConfigurationProblem) -> Answer:
        application, tables = problem.application, problem.tables
        fronts = {
            stage: tables.stage_front(stage, problem.queue_length if stage in application.entries else None)
            for stage in range(len(application))
        }
        front = graph_front(application.workflow, range(len(application)), fronts)
        point = int(np.searchsorted(front.seconds, application.slo_seconds + TOLERANCE, side="right")) - 1
        if point < 0:
            return Answer((), False, len(front))
        plan = named_plan(tables, front.plan(point))
        return Answer((Candidate(plan, float(front.seconds[point]), float(front.cost[point])),), True, len(front))


@dataclass(frozen=True, slots=True)
class BruteForce:
    """Try every plan (`brute_force`)."""

    name: ClassVar[str] = "brute-force"

    def search(self, problem: ConfigurationProblem) -> Answer:
        """The k cheapest plans."""
        application = problem.application
        k = problem.k if len(application.entries) == 1 else 1
        answer = search_everything(
            problem.tables,
            application.workflow.topological_order,
            problem.queue_length,
            application.slo_seconds,
            k,
        )
        return answer if answer.feasible else _best_effort(problem, answer.expanded)


@dataclass(frozen=True, slots=True)
class EsgSearch:
    """ESG_1Q for each group of stages (`esg_search`), layer by layer or, with `a_star`, best first."""

    name: ClassVar[str] = "esg"
    a_star: bool = False

    def search(self, problem: ConfigurationProblem) -> Answer:
        """The k cheapest plans of the first group, each continued to the end."""
        application = problem.application
        begun, total = ([{}], 0) if len(application.entries) > 1 else self._first_group(problem)
        candidates = []
        for plan in begun:
            whole, expanded = planned_ahead(
                problem.tables, problem.shares, application.slo_seconds, problem.queue_length, plan, self._form
            )
            candidates.append(_candidate(problem, whole))
            total += expanded
        return Answer(tuple(candidates), _in_time(candidates[0], problem), total)

    @property
    def _form(self) -> Form:
        return "a-star" if self.a_star else "layered"

    def _first_group(self, problem: ConfigurationProblem) -> tuple[list[dict[int, Configuration]], int]:
        """The plans of the first group, the best first, and how many partial ones were looked at."""
        application, tables, shares = problem.application, problem.tables, problem.shares
        entry = application.entries[0]
        group = shares.group_rests[entry]
        budget = application.slo_seconds * shares.share(entry)
        answer = search_group(tables, group, problem.queue_length, budget, problem.k, form=self._form)
        if answer.feasible:
            return [candidate.plan for candidate in answer.candidates], answer.expanded
        rest = fastest_plan(tables, group, problem.queue_length)
        starts = fastest_configurations(tables, entry, problem.queue_length, problem.k)
        profile = application.profiles[entry]
        return [{**rest, entry: profile.configuration(number)} for number in starts], answer.expanded


def _best_effort(problem: ConfigurationProblem, expanded: int) -> Answer:
    """The k fastest configurations of the first stage, each with the fastest of all others."""
    application, tables, length = problem.application, problem.tables, problem.queue_length
    fastest: dict[int, Configuration] = {}
    for stage in range(len(application)):
        fastest.update(fastest_plan(tables, (stage,), length if stage in application.entries else UNLIMITED))
    first = application.entries[0]
    several = len(application.entries) > 1
    starts = fastest_configurations(tables, first, length, 1 if several else problem.k)
    profile = application.profiles[first]
    plans = ({**fastest, first: profile.configuration(number)} for number in starts)
    return Answer(tuple(_candidate(problem, plan) for plan in plans), False, expanded)


def _candidate(problem: ConfigurationProblem, plan: Mapping[int, Configuration]) -> Candidate:
    """A plan with when it ends and what it costs."""
    application, prices = problem.application, problem.platform.prices
    finish: dict[int, float] = {}
    cost = 0.0
    for stage in application.workflow.topological_order:
        batch, cpu, gpu = plan[stage]
        seconds = application.profiles[stage].seconds_of(batch, cpu, gpu)
        start = max((finish[before] for before in application.workflow.predecessors[stage]), default=0.0)
        finish[stage] = start + seconds
        cost += prices.rate(cpu, gpu) * seconds / batch / 3600.0
    return Candidate({stage: plan[stage] for stage in sorted(plan)}, max(finish.values()), cost)


def _in_time(candidate: Candidate, problem: ConfigurationProblem) -> bool:
    return candidate.seconds <= problem.application.slo_seconds + TOLERANCE


ALGORITHMS: Mapping[str, Callable[..., Algorithm]] = MappingProxyType(
    {algorithm.name: algorithm for algorithm in (EsgSearch, FrontSearch, BruteForce)}
)
"""All searches, by name."""


def algorithm_of(text: str) -> Algorithm:
    """The search that a name with options stands for."""
    return named("algorithm", text, ALGORITHMS)


def configure(algorithm: str | Algorithm, problem: ConfigurationProblem) -> Answer:
    """Answer a problem with a search, given as an object or by its name."""
    chosen = algorithm_of(algorithm) if isinstance(algorithm, str) else algorithm
    return chosen.search(problem)
