"""`fairway allocate`: decides one problem file with one policy and prints the decision."""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairway.cli import completion
from fairway.cli.given import read_given
from fairway.cli.output import STDOUT, write_json
from fairway.errors import InputError

if TYPE_CHECKING:
    from fairway.allocate.allocation import Allocation
    from fairway.allocate.policy import Policy
    from fairway.allocate.problem import Problem

_NAMES_IN_A_WARNING = 5


def allocate(
    problem: Annotated[
        str, typer.Argument(metavar="PROBLEM.json", help="The problem file, - for standard input.", show_default=False)
    ],
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            "-p",
            autocompletion=completion.policies,
            metavar="NAME[:OPTION,...]",
            help="The goal, such as max-min-fairness; [bold]fairway policies[/bold] lists them; "
            "a class of your own is [bold]module:Class[/bold].",
            show_default=False,
        ),
    ],
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
        typer.Option(min=0, help="For policies that draw; goes before the file's own.", show_default=False),
    ] = None,
) -> None:
    """Decide which job gets which accelerators, for what share of the time.

    [bold]Examples[/bold]

    fairway allocate cluster.json --policy max-min-fairness

    fairway allocate cluster.json --policy makespan:space-sharing --table

    cat cluster.json | fairway allocate - --policy min-cost --json answer.json
    """
    if table and json_to == STDOUT:
        raise InputError("--table and --json - both print to standard output; choose one of them")

    from fairway.allocate.problem_file import parse_problem
    from fairway.allocate.registry import policy_of
    from fairway.cli.first_use import tell_of_compiling

    tell_of_compiling()
    chosen = policy_of(policy)
    given = parse_problem(*read_given(problem))
    if seed is not None:
        given = replace(given, seed=seed)
    _load_compiled_code(chosen, given)
    start = time.perf_counter()
    allocation = chosen.allocate(given)
    seconds = time.perf_counter() - start
    _warn(given, allocation)
    if not table:
        write_json(_document(policy, given, allocation, seconds), json_to or STDOUT)
    if table or json_to not in {None, STDOUT}:
        from fairway.cli.decide.allocation_table import print_allocation

        print_allocation(policy, given, allocation, seconds)


def _load_compiled_code(policy: Policy, problem: Problem) -> None:
    """Let the policy decide a toy problem, so that loading its compiled code does not count as time to decide."""
    from fairway.allocate.problem import Problem

    if not problem.types:
        return
    columns = range(len(problem.types))
    toy = Problem.of_arrays(
        dict.fromkeys(problem.types, 1),
        [[1.0 + job + column for column in columns] for job in range(3)],
        steps_left=[1.0, 2.0, 3.0],
        prices=dict.fromkeys(problem.types, 1.0),
    )
    with contextlib.suppress(InputError):  # what the policy refuses here it will refuse again, where it counts
        policy.allocate(toy)


def _document(policy: str, problem: Problem, allocation: Allocation, seconds: float) -> dict[str, Any]:
    """The answer in the form that is printed."""
    answer = allocation.to_dict()
    prices = allocation.prices
    document = {
        "policy": policy,
        "objective": answer["objective"],
        "sense": answer["sense"],
        "solve_seconds": seconds,
        "gap": allocation.gap,
        "optimal": None if allocation.gap is None else allocation.optimal,
        "prices": None if prices is None else dict(zip(allocation.types, prices.tolist(), strict=True)),
        "allocation": answer["allocation"],
        "bindings": {
            name: {"kind": binding.kind, "accelerator": binding.accelerator}
            for name, binding in zip(allocation.ids, allocation.bindings, strict=True)
        },
    }
    unrunnable = _unrunnable(problem)
    if unrunnable:
        document["unrunnable"] = unrunnable
    if allocation.details:
        document["details"] = allocation.details
    return document


def _unrunnable(problem: Problem) -> list[str]:
    return [name for name, can_run in zip(problem.ids, problem.can_run.tolist(), strict=True) if not can_run]


def _warn(problem: Problem, allocation: Allocation) -> None:
    """Say on standard error what a reader of the numbers alone could miss."""
    unrunnable = _unrunnable(problem)
    if unrunnable:
        named = ", ".join(repr(name) for name in unrunnable[:_NAMES_IN_A_WARNING])
        more = f" and {len(unrunnable) - _NAMES_IN_A_WARNING} more" if len(unrunnable) > _NAMES_IN_A_WARNING else ""
        typer.echo(f"fairway: warning: no accelerator type of this cluster can run {named}{more}", err=True)
    if allocation.gap is not None and not allocation.optimal:
        typer.echo(f"fairway: warning: not proven optimal: gap {100 * allocation.gap:.2g} %", err=True)
