"""`fairway open`: shows a saved run in a browser, as one page that needs neither a server nor a network."""

from __future__ import annotations

from typing import Annotated

import typer


def open_run(
    run: Annotated[str, typer.Argument(metavar="FILE.fairway", help="The saved run.", show_default=False)],
    html: Annotated[
        str | None,
        typer.Option(metavar="FILE.html", help="Write the page there and open nothing.", show_default=False),
    ] = None,
) -> None:
    """Show a saved run: jobs, teams, workers, decisions, workflows and requests over time.

    The page holds the run, so that it can be sent to others and opened by them.

    [bold]Examples[/bold]

    fairway open run.fairway

    fairway open run.fairway --html run.html
    """
    import tempfile
    import webbrowser
    from pathlib import Path

    from fairway.dashboard.page import page_with
    from fairway.dashboard.run_file import read_run
    from fairway.report.whole_file import write_whole

    content = read_run(run)
    page = page_with(content, title=Path(run).name)
    if html is not None:
        write_whole(html, page)
        return
    target = Path(tempfile.mkdtemp(prefix="fairway-")) / f"{Path(run).stem}.html"
    write_whole(target, page)
    if webbrowser.open(target.as_uri()):
        typer.echo(f"opened {target}")
    else:
        typer.echo(f"no browser can be started here; open {target}")
