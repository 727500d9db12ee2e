"""`fairway policies`: which policies there are, what each is after and which options it takes.

Ours are described in a sentence without a formula; `docs/policies.md` has the objectives. Policies of installed
packages are listed by the first sentence of their documentation.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from fairway.cli.output import write_json

_SENTENCES = {
    "max-min-fairness": "Gives the job that is worst off as much as it can, for its weight and for what it could "
    "have alone.",
    "water-filling": "Does the same for the job that is worst off, then for the next, and so on, until nothing is "
    "left over.",
    "hierarchical": "Divides the cluster among teams by weight, and what a team gets among its jobs, fairly or first "
    "in, first out.",
    "finish-time-fairness": "Lets no job finish much later than it would with a cluster of its own share (Themis's "
    "rho).",
    "makespan": "Finishes the last of the present jobs as early as it can.",
    "max-throughput": "Does as many steps per second as it can, for whatever job; jobs with short steps come first.",
    "min-cost": "Does as many steps per dollar as it can.",
    "min-cost-slo": "Does as many steps per dollar as it can while jobs with a deadline meet theirs.",
    "fifo": "Serves jobs in order of arrival, each on the fastest type with room.",
    "shortest-job-first": "Starts the job that will be done soonest, again and again.",
    "allox": "Keeps the average time to completion low, by a queue for each worker (AlloX).",
    "gandiva": "Lets jobs share workers at random when the cluster is full, and keeps what works (Gandiva).",
    "isolated": "Splits every accelerator type equally among the jobs.",
    "proportional": "Gives every job time on all types in proportion to how many there are.",
    "nash-welfare": "Maximises the product of what jobs get, so that no job gains by lying about its rates.",
}


def policies(
    json_to: Annotated[
        str | None, typer.Option("--json", metavar="-|FILE", help="Print as JSON (-), or write it to a file.")
    ] = None,
) -> None:
    """List the policies, with what each is after and the options it takes.

    Those of installed packages are listed, too. A class of your own is named module:Class[:option,...], and
    [bold]fairway new policy NAME[/bold] writes one to begin with.

    [bold]Examples[/bold]

    fairway policies

    fairway policies --json -
    """
    from fairway.allocate.registry import POLICY_PARTS

    packages = {name: entry.dist.name if entry.dist else "unknown" for name, entry in POLICY_PARTS.installed().items()}
    listed = [
        {
            "name": name,
            "about": _SENTENCES.get(name) or _about(policy),
            "options": _options(policy),
            **({"package": packages[name]} if name in packages else {}),
        }
        for name, policy in POLICY_PARTS.everything().items()
    ]
    if json_to is not None:
        write_json({"policies": listed}, json_to)
    else:
        _print_table(listed)


def _about(policy: Callable[..., Any]) -> str:
    """The first sentence of its documentation."""
    text = " ".join((inspect.getdoc(policy) or "").split("\n\n")[0].split())
    return f"{text.split('. ')[0].rstrip('.')}."


def _options(policy: Callable[..., Any]) -> list[str]:
    """Its parameters as they are written after the name: a word for a flag, NAME=VALUE for the rest."""
    from fairway.options import options_of

    return [option.form for option in options_of(policy)]


def _print_table(listed: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("policy", "what it does", "options", box=None, pad_edge=False, padding=(0, 2, 1, 0))
    table.columns[0].no_wrap = True
    for policy in listed:
        package = f" (package {policy['package']})" if "package" in policy else ""
        table.add_row(policy["name"], Text(policy["about"] + package), Text("\n".join(policy["options"])))
    Console().print(table)
