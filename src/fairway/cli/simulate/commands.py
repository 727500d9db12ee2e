"""`fairway simulate`: the commands that try a scheduler on a workload in virtual time, one file each."""

from __future__ import annotations

import typer

from fairway.cli.simulate.serving import serving
from fairway.cli.simulate.training import training

simulate = typer.Typer(
    name="simulate",
    help="Try schedulers on a workload, in virtual time.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
simulate.command()(serving)
simulate.command()(training)


@simulate.callback()
def _group() -> None:
    """Try schedulers on a workload, in virtual time."""
