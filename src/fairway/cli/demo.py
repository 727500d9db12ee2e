"""`fairway demo`: what Fairway decides, in half a minute, with nothing but what a plain installation has.

It runs a few commands and shows each before its answer, so that every one of them can be run again and changed.
"""

from __future__ import annotations

import shlex

import typer

_SHOWN = (
    (
        "allocate",
        "200 training jobs come to 16 V100, 16 P100 and 16 K80. First a scheduler that is blind to how fast each job\n"
        "runs on which type, as most are; then two that know.",
        "fairway simulate training --generate jobs=200,rate=2.4 --cluster v100=16,p100=16,k80=16 "
        "-p max-min-fairness:agnostic -p max-min-fairness -p min-jct",
    ),
    (
        "place",
        "Workflows of several models, on 5 workers whose memory does not hold them all. First Compass, which goes by\n"
        "where the models are; then two schedulers that do not.",
        "fairway simulate serving --scenario compass-edge --rate 3 --requests 600 -s compass -s jit -s hash",
    ),
    (
        "configure",
        "Pipelines with deadlines, on shares of GPUs. First two schedulers that choose batch, CPUs and share out of\n"
        "what is left until the deadline, at the least cost; then one with a fixed rule.",
        "fairway simulate serving --scenario esg-apps --load light --slo strict --duration 60s "
        "-s esg -s front -s infless",
    ),
)


def demo(context: typer.Context) -> None:
    """See the three decisions at work: simulations of half a minute, and the commands that run them.

    [bold]Examples[/bold]

    fairway demo
    """
    fairway = context.find_root().command
    for decision, text, line in _SHOWN:
        typer.echo(f"\n{typer.style(decision, bold=True)}\n{text}\n\n$ {line}\n")
        fairway.main(shlex.split(line)[1:], prog_name="fairway", standalone_mode=False)
    typer.echo(
        "\nNext: `fairway policies` lists what can be tried, `fairway reproduce` repeats published experiments, and\n"
        "`fairway up --emulate v100=2,k80=1` runs real jobs on this machine, as if it had these accelerators."
    )
