"""`fairway place`: plans one request of a problem file with one scheduler and prints where each task goes."""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairway.cli.given import read_given
from fairway.cli.output import STDOUT, write_json
from fairway.errors import InputError

if TYPE_CHECKING:
    from fairway.place.plan import Plan

_TIMES = 7


def place(
    problem: Annotated[
        str, typer.Argument(metavar="PROBLEM.json", help="The problem file, - for standard input.", show_default=False)
    ],
    scheduler: Annotated[
        str,
        typer.Option(
            "--scheduler",
            "-s",
            metavar="NAME[:OPTION,...]",
            help="compass, jit, heft or hash, with options such as compass:ignore-cache, or a placer of your own as "
            "module:Class.",
        ),
    ] = "compass",
    json_to: Annotated[
        str | None,
        typer.Option(
            "--json",
            metavar="-|FILE",
            help="Print the answer as JSON (-, as without this option), or write it to a file and print the table.",
            show_default=False,
        ),
    ] = None,
    table: Annotated[bool, typer.Option("--table", help="Print a table instead of JSON.")] = False,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0, help="Decides between workers that are equal; goes before the file's own.", show_default=False
        ),
    ] = None,
) -> None:
    """Decide which worker runs each task of one request.

    [bold]Examples[/bold]

    fairway place request.json --scheduler compass

    fairway place request.yaml --scheduler heft --table

    cat request.json | fairway place - --scheduler compass:eviction-penalty=0 --json plan.json
    """
    if table and json_to == STDOUT:
        raise InputError("--table and --json - both print to standard output; choose one of them")

    import numpy as np

    from fairway.cli.first_use import tell_of_compiling
    from fairway.place.problem_file import parse_placement
    from fairway.place.registry import placer_of

    tell_of_compiling()
    chosen = placer_of(scheduler)
    given = parse_placement(*read_given(problem))
    # The same plan several times: the first loads the compiled code, and the median is what planning takes.
    durations = []
    for _ in range(_TIMES):
        draws = np.random.default_rng(given.seed if seed is None else seed)
        start = time.perf_counter()
        plan = chosen.plan(given.request, given.view, 0.0, draws)
        durations.append(time.perf_counter() - start)
    seconds = median(durations)
    if not table:
        write_json(_document(scheduler, plan, seconds), json_to or STDOUT)
    if table or json_to not in {None, STDOUT}:
        from fairway.cli.decide.plan_table import print_plan

        print_plan(scheduler, given, plan, seconds)


def _document(scheduler: str, plan: Plan, seconds: float) -> dict[str, Any]:
    """The answer in the form that is printed."""
    return {
        "scheduler": scheduler,
        "order": plan.order,
        "assignment": plan.assignment,
        "finish_seconds": plan.finish_seconds,
        "lower_bound_seconds": plan.graph.workflow.critical_path().seconds,
        "plan_seconds": seconds,
    }
