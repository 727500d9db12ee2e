"""`fairway workers` and `fairway drain`: the accelerators, and which of them get no more jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from fairway.cli.output import STDOUT, write_json
from fairway.cli.remote import Address, JsonTo, Token, connected

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairway.client import Worker


def workers(json_to: JsonTo = None, address: Address = None, token: Token = None) -> None:
    """List the accelerators, and what runs on them.

    [bold]Examples[/bold]

    fairway workers

    fairway workers --json - | jq .workers
    """
    with connected(address, token) as client:
        found = client.workers()
        reserved = client.reservations() if json_to != STDOUT else []
        caveats = client.status().caveats if json_to != STDOUT else ()
    _print(found, json_to)
    if caveats:
        from fairway.cli import words

        for caveat in caveats:
            words.console().print(words.text(caveat, "yellow"))
    if reserved:
        from fairway.cli.reservations import print_reservations

        print_reservations(reserved)


def drain(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="WORKER", help="Workers such as v100/0, or v100 for all of the type.", show_default=False
        ),
    ],
    undo: Annotated[bool, typer.Option("--undo", help="Let them get jobs again.")] = False,
    json_to: JsonTo = None,
    address: Address = None,
    token: Token = None,
) -> None:
    """Take workers out of service: jobs that run on them go elsewhere, and no others come.

    [bold]Examples[/bold]

    fairway drain v100/0 v100/1

    fairway drain k80

    fairway drain k80 --undo
    """
    with connected(address, token) as client:
        found = client.drain(*names, on=not undo)
    _print(found, json_to)


def _print(found: Sequence[Worker], json_to: str | None) -> None:
    if json_to is not None:
        emulated = any(worker.emulated for worker in found)
        write_json({"workers": [worker.document for worker in found], "emulated": emulated}, json_to)
    if json_to == STDOUT:
        return
    from rich.table import Table

    from fairway.cli import words

    measured = any(worker.utilization is not None or worker.memory_used_bytes is not None for worker in found)
    sick = any(worker.trouble for worker in found)
    columns = ["worker", "state", "jobs", "lease", "device", "agent"]
    columns += (["load"] if measured else []) + (["trouble"] if sick else [])
    table = Table(*columns, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for worker in found:
        device = "emulated" if worker.emulated else worker.device
        row = [
            words.text(worker.name, "bold"),
            words.state(worker.state),
            words.text(", ".join(_with_part(worker, job) for job in worker.jobs)),
            words.text(worker.lease),
            words.text(device, "magenta" if worker.emulated else ""),
            words.text(worker.agent),
        ]
        row += [words.text(load_of(worker))] if measured else []
        row += [words.text(worker.trouble, "red")] if sick else []
        table.add_row(*row)
    words.console().print(table)


def _with_part(worker: Worker, job: str) -> str:
    """A job, and how much of the worker it has if not the whole."""
    return f"{job} ({worker.parts[job]:g})" if job in worker.parts else job


def load_of(worker: Worker) -> str:
    """How busy a device is, as in `35 %, 2.0 of 40.0 GiB, 98 W`; only what it says."""
    parts = [] if worker.utilization is None else [f"{worker.utilization:.0%}".replace("%", " %")]
    if worker.memory_used_bytes is not None and worker.memory_bytes:
        parts.append(f"{worker.memory_used_bytes / 2**30:.1f} of {worker.memory_bytes / 2**30:.1f} GiB")
    parts += [] if worker.power_watts is None else [f"{worker.power_watts:.0f} W"]
    return ", ".join(parts)
