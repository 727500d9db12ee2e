"""`fairway gpus`: the GPUs of this machine, and what of the way to them works here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from fairway.cli.output import STDOUT, write_json

if TYPE_CHECKING:
    from fairway.live.devices.gpus import Findings

_NONE = 1

JsonTo = Annotated[
    str | None,
    typer.Option("--json", metavar="FILE", help="Write JSON to FILE, or to standard output if FILE is -."),
]

gpus = typer.Typer(
    name="gpus",
    help="List the GPUs of this machine, and check what of the way to them works.",
    invoke_without_command=True,
    rich_markup_mode="rich",
)


@gpus.callback()
def listed(context: typer.Context, json_to: JsonTo = None) -> None:
    """List the GPUs of this machine with their MIG instances, memory, load and health. No server is asked.

    [bold]Examples[/bold]

    fairway gpus

    fairway gpus --json - | jq .gpus

    fairway gpus check
    """
    if context.invoked_subcommand is not None:
        return
    from dataclasses import asdict

    from fairway.live.devices.look import found_gpus

    findings = found_gpus()
    if json_to is not None:
        write_json(asdict(findings), json_to)
    if json_to != STDOUT:
        _print(findings)


@gpus.command()
def check(json_to: JsonTo = None) -> None:
    """Report what works here, a line each: driver, NVML, every GPU, MIG, MPS, permissions. Nothing is changed.

    The exit status is 0 if jobs can use every GPU, and 1 if there is none or one cannot be used. The lines are what to
    send with a report of a problem.

    [bold]Examples[/bold]

    fairway gpus check

    fairway gpus check --json checks.json
    """
    from dataclasses import asdict

    from fairway.cli import words
    from fairway.live.devices.checks import Surroundings, Verdict, checked

    checks, findings = checked(Surroundings.here())
    if json_to is not None:
        write_json({"checks": [asdict(one) for one in checks], **asdict(findings)}, json_to)
    if json_to != STDOUT:
        styles = {Verdict.OK: "green", Verdict.MISSING: "yellow", Verdict.BROKEN: "red"}
        for one in checks:
            line = words.text(f"{one.verdict:<8}", styles[one.verdict])
            words.console().print(line.append(f"{one.name}: {one.says}", style="default"), soft_wrap=True)
    if not findings.gpus or any(one.verdict is Verdict.BROKEN for one in checks):
        raise typer.Exit(_NONE)


@gpus.command()
def layouts(
    device: Annotated[
        str, typer.Argument(metavar="DEVICE", help="As in a100-40gb, a100-80gb, h100-80gb, b200-180gb or a30.")
    ],
    json_to: JsonTo = None,
) -> None:
    """List the ways in which MIG can cut a GPU so that no other instance fits in, with the place of each instance.

    [bold]Examples[/bold]

    fairway gpus layouts a100-40gb

    fairway gpus layouts a30 --json -
    """
    from fairway.configure.slices.layouts import largest_layouts
    from fairway.configure.slices.mig import mig_device

    found = largest_layouts(mig_device(device))
    if json_to is not None:
        rows = [[{"profile": one.profile, "start": one.start} for one in layout] for layout in found]
        write_json({"device": device, "layouts": rows}, json_to)
    if json_to != STDOUT:
        for layout in found:
            typer.echo("  ".join(f"{one.profile}@{one.start}" for one in layout))


def _print(findings: Findings) -> None:
    from rich.table import Table

    from fairway.cli import words

    if findings.gpus:
        columns = ["gpu", "name", "uuid", "memory", "load", "power", "mode", "nvlink", "health"]
        table = Table(*columns, box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for number, gpu in enumerate(findings.gpus):
            reading = gpu.reading
            memory = "of the machine" if gpu.memory_bytes is None else f"{gpu.memory_bytes / 2**30:.1f} GiB"
            peers = [str(other) for other, one in enumerate(findings.gpus) if one.uuid in gpu.links]
            table.add_row(
                words.text(number, "bold"),
                words.text(gpu.name),
                words.text(gpu.uuid),
                words.text(memory),
                words.text("" if reading.utilization is None else f"{100 * reading.utilization:.0f} %"),
                words.text("" if reading.power_watts is None else f"{reading.power_watts:.0f} W"),
                words.text(gpu.compute_mode),
                words.text(", ".join(peers)),
                words.text(gpu.sick or "ok", "red" if gpu.sick else "green"),
            )
            for one in gpu.instances:
                size = "" if one.memory_bytes is None else f"{one.memory_bytes / 2**30:.1f} GiB"
                table.add_row("", words.text(f"  MIG {one.profile}"), words.text(one.uuid), words.text(size))
        words.console().print(table, soft_wrap=True)
    for remark in findings.remarks:
        typer.echo(remark)
