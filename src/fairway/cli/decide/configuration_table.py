"""The table that `fairway configure` prints for people: the best plan stage by stage, and the other candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from fairway.configure.problem import ConfigurationProblem
    from fairway.configure.search.answer import Answer, Candidate

_MOST_ROWS = 200


def print_answer(algorithm: str, problem: ConfigurationProblem, answer: Answer, seconds: float) -> None:
    """Print the configurations of the first candidate, then what the others differ in at the first stage."""
    console = Console(highlight=False)
    best = answer.candidates[0]
    console.print(_plan_table(algorithm, problem, best))
    if len(best.plan) > _MOST_ROWS:
        console.print(f"… and {len(best.plan) - _MOST_ROWS} more stages, all of them in the JSON")
    if len(answer.candidates) > 1:
        console.print()
        console.print(_candidate_table(problem, answer))
    slo = problem.application.slo_seconds
    verdict = "in time" if answer.feasible else "not in time: no plan found that is, this is the best effort"
    console.print(
        f"done after {_milliseconds(best.seconds)} of {_milliseconds(slo)}, {verdict}; "
        f"searched in {1e6 * seconds:.0f} µs"
    )


def _plan_table(algorithm: str, problem: ConfigurationProblem, best: Candidate) -> Table:
    table = Table(title=Text(algorithm), title_justify="left", pad_edge=False, show_edge=False)
    table.add_column("stage", overflow="fold")
    for heading in ("batch", "CPUs", "slices", "runs", "budget"):
        table.add_column(heading, justify="right")
    budgets = problem.budgets
    for number, (batch, cpu, gpu) in list(best.plan.items())[:_MOST_ROWS]:
        name = problem.application.workflow.stages[number].name
        runs = problem.application.profiles[number].seconds_of(batch, cpu, gpu)
        table.add_row(Text(name), str(batch), str(cpu), str(gpu), _milliseconds(runs), _milliseconds(budgets[name]))
    return table


def _candidate_table(problem: ConfigurationProblem, answer: Answer) -> Table:
    first = problem.application.entries[0]
    name = problem.application.workflow.stages[first].name
    table = Table(title=Text(f"candidates for '{name}'"), title_justify="left", pad_edge=False, show_edge=False)
    for heading in ("batch", "CPUs", "slices", "ends after", "$ per 1,000 jobs"):
        table.add_column(heading, justify="right")
    for candidate in answer.candidates[:_MOST_ROWS]:
        batch, cpu, gpu = candidate.plan[first]
        cost = f"{1000 * candidate.cost_dollars:.4f}"
        table.add_row(str(batch), str(cpu), str(gpu), _milliseconds(candidate.seconds), cost)
    return table


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:,.1f} ms"
