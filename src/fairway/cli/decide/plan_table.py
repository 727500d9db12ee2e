"""The table that `fairway place` prints for people: the tasks in the order in which they were planned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from fairway.place.plan import Plan
    from fairway.place.problem import PlacementProblem

_MOST_ROWS = 200


def print_plan(scheduler: str, problem: PlacementProblem, plan: Plan, seconds: float) -> None:
    """Print where each task goes, whether its models are there and when it is expected to run."""
    console = Console(highlight=False)
    table = Table(title=Text(scheduler), title_justify="left", pad_edge=False, show_edge=False)
    for heading in ("task", "worker", "models"):
        table.add_column(heading, overflow="fold")
    for heading in ("runs", "finishes"):
        table.add_column(heading, justify="right")
    graph = plan.graph
    order = graph.order.tolist()
    for stage in order[:_MOST_ROWS]:
        worker = int(plan.workers[stage])
        table.add_row(
            Text(graph.workflow.stages[stage].name),
            Text(graph.fleet.workers[worker].name),
            Text(_models(problem, plan, stage)),
            _milliseconds(float(graph.seconds[stage, worker])),
            _milliseconds(float(plan.finish[stage])),
        )
    console.print(table)
    if len(order) > _MOST_ROWS:
        console.print(f"… and {len(order) - _MOST_ROWS} more rows, all of them in the JSON")
    bound = graph.workflow.critical_path()
    console.print(
        f"done after {_milliseconds(float(plan.finish.max()))}, at best {_milliseconds(bound.seconds)}; "
        f"planned in {1e6 * seconds:.0f} µs"
    )


def _models(problem: PlacementProblem, plan: Plan, stage: int) -> str:
    """The models of a task, each with whether it is in its worker's memory when the request arrives."""
    graph, worker = plan.graph, int(plan.workers[stage])
    return ", ".join(
        f"{graph.fleet.models[model].name} ({'there' if problem.view.holds(worker, model) else 'to fetch'})"
        for model in graph.needed[stage].tolist()
    )


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:,.1f} ms"
