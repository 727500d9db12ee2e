"""`fairway history`: what a cluster did, read from its store, also when no controller runs any more."""

from __future__ import annotations

from typing import Annotated

import typer

from fairway.cli.remote import Token
from fairway.errors import InputError

history = typer.Typer(no_args_is_help=True, help="Save what a cluster did, to look at it anywhere.")

_LIVE = {
    "kind": "live",
    "meaning": "What a controller wrote down while it scheduled these jobs, on accelerators that may be emulated.",
}


@history.command()
def export(
    target: Annotated[str, typer.Argument(metavar="FILE.fairway", help="Where to write it.", show_default=False)],
    store: Annotated[
        str | None,
        typer.Option(
            metavar="DIRECTORY|FILE|URL",
            help="Where the history is: the directory of [bold]fairway up[/bold], a database file, or "
            "postgresql://…; FAIRWAY_HOME or ~/.fairway otherwise.",
            show_default=False,
        ),
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Ask a server that runs, of [bold]fairway serve[/bold] or [bold]fairway up[/bold], instead.",
            show_default=False,
        ),
    ] = None,
    token: Token = None,
    no_decisions: Annotated[
        bool, typer.Option("--no-decisions", help="Leave the decisions out, which are long where there are many jobs.")
    ] = False,
    perfetto: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write a timeline for Perfetto's viewer, too.", show_default=False),
    ] = None,
) -> None:
    """Save jobs, leases, attempts, rates and decisions of a cluster, whether its controller runs or not.

    Of an application that is served, its newest requests, stages and models: name its [bold]--server[/bold].

    Descriptions, environments and logs of jobs stay where they are. Look at it with [bold]fairway open[/bold].

    [bold]Examples[/bold]

    fairway history export yesterday.fairway

    fairway history export run.fairway --store postgresql://fairway@db/fairway --perfetto run.perfetto-trace

    fairway history export served.fairway --server http://127.0.0.1:8643 --token @DIRECTORY/token
    """
    import os

    from fairway.cli.jobs.replay import existing_store
    from fairway.cli.simulate.saving import save_runs
    from fairway.cli.simulate.training_options import check_outputs
    from fairway.dashboard.of_store import saved_store
    from fairway.store import open_store

    check_outputs(None, None, target, perfetto)
    if server is not None:
        if store is not None:
            raise InputError("--server and --store given; a history is read from one of them")
        _of_server(server, token, target, perfetto)
        return
    address = existing_store(store or os.environ.get("FAIRWAY_HOME") or "~/.fairway")
    with open_store(address) as opened:
        run = opened.read(saved_store, decisions=not no_decisions)
    if not run["jobs"]["id"]:
        raise InputError(f"{address}: no job was ever submitted there, so there is nothing to save")
    save_runs([run], saved=target, perfetto=perfetto, command=None, origin=_LIVE)
    jobs, leases = len(run["jobs"]["id"]), len(run["leases"]["number"])
    typer.echo(f"saved {jobs} job{'' if jobs == 1 else 's'} and {leases} lease{'' if leases == 1 else 's'} to {target}")


def _of_server(server: str, token: str | None, target: str, perfetto: str | None) -> None:
    from fairway.cli.remote import connected
    from fairway.cli.simulate.saving import save_runs
    from fairway.dashboard.run_file import check

    with connected(server, token) as client:
        content = client.history()
    check(content, server)
    (run,) = content["runs"]
    save_runs([run], saved=target, perfetto=perfetto, command=None, origin=content["origin"] or _LIVE)
    counted = ("job", run["jobs"]["id"]) if run["kind"] == "training" else ("request", run["requests"]["arrival"])
    typer.echo(f"saved {len(counted[1])} {counted[0]}{'' if len(counted[1]) == 1 else 's'} to {target}")
