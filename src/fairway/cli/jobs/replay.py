"""`fairway replay`: makes the decisions in a journal again and says whether they are the same."""

from __future__ import annotations

import os
import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairway.cli.output import STDOUT, write_json
from fairway.errors import InputError

if TYPE_CHECKING:
    from fairway.sim.replay import ReplayedDecision, ReplayedEngine

_MOST_ROWS = 40
SUFFIX = ".fairway"
"""Of saved runs."""


def replay(
    store: Annotated[
        str | None,
        typer.Argument(
            metavar="DIRECTORY|FILE|URL",
            help="Where the journal is: the directory of [bold]fairway up[/bold], a database file, "
            "postgresql://…, or a saved run; FAIRWAY_HOME or ~/.fairway otherwise.",
            show_default=False,
        ),
    ] = None,
    after: Annotated[int, typer.Option(metavar="N", min=0, help="Only decisions after this entry of the journal.")] = 0,
    profiles: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="The profiles that jobs shared by, if they are not where they were.",
            show_default=False,
        ),
    ] = None,
    json_to: Annotated[
        str | None,
        typer.Option(
            "--json",
            metavar="-|FILE",
            help="Print the result as JSON (-), or write it to a file and print the table.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Decide again what the live system decided, and tell a new engine what the last one was told since its start.

    Of a saved run, which may be simulated, the decisions that it holds are made again. Exits with 1 if anything comes
    out differently.

    [bold]Examples[/bold]

    fairway replay

    fairway replay postgresql://fairway@db/fairway --after 12000 --json -

    fairway replay run.fairway
    """
    if store is not None and store.endswith(SUFFIX) and Path(store).is_file():
        _tell(store, _of_saved_runs(store, after), None, json_to)
        return
    address = existing_store(store or os.environ.get("FAIRWAY_HOME") or "~/.fairway")

    from fairway.profiles.files import read_table
    from fairway.sim.replay import replay_decisions, replay_engine
    from fairway.store import open_store

    table = None if profiles is None else read_table(profiles)
    with open_store(address) as opened:
        shown = opened.address
        decisions = list(replay_decisions(opened, after=after))
        engine = replay_engine(opened, table=table)
    _tell(shown, decisions, engine, json_to)


def _of_saved_runs(path: str, after: int) -> list[ReplayedDecision]:
    from fairway.dashboard.run_file import read_run
    from fairway.sim.replay import decide_again

    runs = [run for run in read_run(path)["runs"] if run["kind"] == "training"]
    tables = [run["decisions"] for run in runs]
    if not any(table["entry"] for table in tables):
        raise InputError(f"{path}: no decisions of training jobs in it; simulate training, or export without "
                         "--no-decisions")  # fmt: skip
    return [
        decide_again(number, at, policy, body)
        for table in tables
        for number, at, policy, body in zip(*(table[name] for name in ("entry", "time", "policy", "body")), strict=True)
        if number > after
    ]


def _tell(shown: str, decisions: list[ReplayedDecision], engine: ReplayedEngine | None, json_to: str | None) -> None:
    same = all(decision.same for decision in decisions) and (engine is None or engine.same)
    if json_to is not None:
        write_json(_document(shown, decisions, engine, same), json_to)
    if json_to != STDOUT:
        _print(decisions, engine, saved=shown.endswith(SUFFIX))
    if not same:
        raise typer.Exit(1)


def existing_store(store: str) -> str:
    """The address, if there is a store: one that is not there would be made, and be empty."""
    if re.match(r"postgres(ql)?(\+psycopg)?://", store):
        return store
    path = Path(re.sub(r"^sqlite(\+pysqlite)?:///", "", store)).expanduser()
    if path.is_dir():
        path /= "fairway.db"
    if not path.is_file():
        raise InputError(f"{path}: there is no store; give the directory of 'fairway up', a file or postgresql://…")
    return str(path)


def _document(
    address: str, decisions: list[ReplayedDecision], engine: ReplayedEngine | None, same: bool
) -> dict[str, Any]:
    return {
        "store": address,
        "same": same,
        "decisions": [{**asdict(decision), "same": decision.same} for decision in decisions],
        "engine": None if engine is None else {**asdict(engine), "same": engine.same},
    }


def _print(decisions: list[ReplayedDecision], engine: ReplayedEngine | None, *, saved: bool) -> None:
    from datetime import datetime

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    different = [decision for decision in decisions if not decision.same]
    rows = decisions if len(decisions) <= _MOST_ROWS else different[:_MOST_ROWS]
    if rows:
        table = Table(pad_edge=False, show_edge=False)
        for name in ("entry", "decided at"):
            table.add_column(name, no_wrap=True)
        table.add_column("policy", overflow="fold")
        table.add_column("jobs", justify="right")
        table.add_column("largest difference", justify="right")
        table.add_column("")
        for row in rows:
            size = "" if row.difference is None else f"{row.difference:.1e}"
            at = f"{row.at:.0f} s" if saved else datetime.fromtimestamp(row.at).strftime("%Y-%m-%d %H:%M:%S")
            verdict = "same" if row.same else row.problem or "different"
            table.add_row(str(row.sequence), at, Text(row.policy), str(row.jobs), size, Text(verdict))
        console.print(table)
    count = f"{len(decisions)} decision{'' if len(decisions) == 1 else 's'} made again"
    console.print(f"{count}: {f'{len(different)} different' if different else 'all the same'}")
    if engine is None and not saved:
        console.print("no start of an engine in the journal: events are not replayed")
    elif engine is None:
        return
    elif engine.same:
        console.print(
            f"{engine.events} events since the start at entry {engine.start}: the same {engine.commands} commands"
        )
    else:
        console.print(Text(f"after {engine.events} events since the start at entry {engine.start}: {engine.problem}"))
