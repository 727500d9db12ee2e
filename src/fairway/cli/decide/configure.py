"""`fairway configure`: chooses batch sizes, CPUs and GPU slices for one problem file and prints the best plans."""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairway.cli.given import read_given
from fairway.cli.output import STDOUT, write_json
from fairway.errors import InputError

if TYPE_CHECKING:
    from fairway.configure.problem import ConfigurationProblem
    from fairway.configure.search.answer import Answer

_TIMES = 7
_LONG = 0.25
"""Seconds beyond which a search is not repeated to measure it."""


def configure(
    problem: Annotated[
        str, typer.Argument(metavar="PROBLEM.json", help="The problem file, - for standard input.", show_default=False)
    ],
    algorithm: Annotated[
        str,
        typer.Option(
            "--algorithm",
            "-a",
            metavar="NAME[:OPTION,...]",
            help="front, esg (esg:a-star for its best-first form) or brute-force.",
        ),
    ] = "front",
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
) -> None:
    """Decide how large a batch and which part of a GPU each stage of a pipeline gets.

    [bold]Examples[/bold]

    fairway configure pipeline.json --algorithm front

    fairway configure pipeline.yaml --algorithm esg --table

    cat pipeline.json | fairway configure - --algorithm brute-force --json plans.json
    """
    if table and json_to == STDOUT:
        raise InputError("--table and --json - both print to standard output; choose one of them")

    from fairway.cli.first_use import tell_of_compiling
    from fairway.configure.problem_file import parse_configuration
    from fairway.configure.search.algorithms import algorithm_of

    tell_of_compiling()
    chosen = algorithm_of(algorithm)
    given = parse_configuration(*read_given(problem))
    # The same search several times: the first loads the compiled code and builds the tables that all others share.
    durations: list[float] = []
    for _ in range(_TIMES):
        start = time.perf_counter()
        answer = chosen.search(given)
        durations.append(time.perf_counter() - start)
        if len(durations) > 1 and durations[-1] > _LONG:
            break
    seconds = median(durations[1:])
    if not table:
        write_json(_document(algorithm, given, answer, seconds), json_to or STDOUT)
    if table or json_to not in {None, STDOUT}:
        from fairway.cli.decide.configuration_table import print_answer

        print_answer(algorithm, given, answer, seconds)


def _document(algorithm: str, problem: ConfigurationProblem, answer: Answer, seconds: float) -> dict[str, Any]:
    """The answer in the form that is printed."""
    names = [stage.name for stage in problem.application.workflow.stages]
    return {
        "algorithm": algorithm,
        "budgets": problem.budgets,
        "groups": [[names[stage] for stage in group] for group in problem.shares.groups],
        "candidates": [
            {
                "path": {names[stage]: each._asdict() for stage, each in candidate.plan.items()},
                "seconds": candidate.seconds,
                "cost_dollars": candidate.cost_dollars,
            }
            for candidate in answer.candidates
        ],
        "feasible": answer.feasible,
        "expanded": answer.expanded,
        "fastest_seconds": problem.fastest_seconds,
        "search_seconds": seconds,
    }
