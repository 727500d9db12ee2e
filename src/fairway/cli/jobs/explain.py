"""`fairway explain`: why a job waits, which jobs are ahead of it, when it will start, and what would start it now."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fairway.cli.jobs.which import Labels, OneJob, Team, the_job
from fairway.cli.output import STDOUT, write_json
from fairway.cli.remote import Address, JsonTo, Token, connected

if TYPE_CHECKING:
    from rich.console import RenderableType

    from fairway.client import Explanation

_MOST_AHEAD = 10


def explain(
    job: OneJob = None,
    label: Labels = None,
    team: Team = None,
    json_to: JsonTo = None,
    address: Address = None,
    token: Token = None,
) -> None:
    """Say why a job waits, which jobs are ahead, when it will start, and what would start it now.

    [bold]Examples[/bold]

    fairway explain job-7

    fairway explain resnet

    fairway explain job-7 --json - | jq .prediction
    """
    with connected(address, token) as client:
        explanation = client.explain(the_job(client, job, label, team))
    if json_to is not None:
        write_json(explanation.document, json_to)
    if json_to != STDOUT:
        from fairway.cli.words import console

        console().print(_panel(explanation, time.time()))


def _panel(found: Explanation, now: float) -> RenderableType:
    from rich.console import Group
    from rich.panel import Panel
    from rich.text import Text

    from fairway.cli import words
    from fairway.cli.jobs.story import facts

    dominant = Text.assemble(
        (found.code or found.state, "bold"), ": " if found.reason else "", words.text(found.reason or "")
    )
    rows: list[tuple[str, RenderableType | None]] = [
        (
            "since",
            None if found.since is None else f"{words.span(now - found.since)} ({words.moment(found.since, now)})",
        ),
        ("place in the queue", None if found.position is None else _place(found)),
    ]
    prediction = found.prediction
    if prediction is not None:
        rows.append(("will start", words.predicted(prediction, now) if found.state == "queued" else None))
        if prediction.finish_at is not None:
            finish = f"in {words.span(prediction.finish_at - now)} (at {words.moment(prediction.finish_at, now)})"
            rows.append(("will finish", finish))
        rows.append(("that is", words.text(prediction.basis, "dim") if prediction.basis else None))
    rows.append(("would start it now", words.text(found.smallest_change) if found.smallest_change else None))
    parts: list[RenderableType] = [dominant, Text(), facts(rows)]
    parts += _ahead(found) + _prices(found)
    if found.emulated:
        parts += [Text(), Text("the accelerators are emulated", style="magenta")]
    title = Text.assemble(words.text(found.job, "bold"), " ", words.state(found.state))
    return Panel(Group(*parts), title=title, title_align="left", expand=False)


def _place(found: Explanation) -> str:
    return str(found.position) if found.waiting is None else f"{found.position} of {found.waiting}"


def _ahead(found: Explanation) -> list[RenderableType]:
    from rich.table import Table
    from rich.text import Text

    from fairway.cli import words

    if not found.ahead:
        return []
    columns = ("ahead of it", "team", "accelerator", "workers", "why")
    table = Table(*columns, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for one in found.ahead[:_MOST_AHEAD]:
        table.add_row(*(words.text(one.get(name)) for name in ("job", "team", "accelerator", "workers", "why")))
    more = max(found.ahead_count, len(found.ahead)) - min(len(found.ahead), _MOST_AHEAD)
    return [Text(), table, *([Text(f"… and {more} more", style="dim")] if more > 0 else [])]


def _prices(found: Explanation) -> list[RenderableType]:
    """What a worker of each type costs in this market, and whether the job can pay it."""
    from rich.table import Table
    from rich.text import Text

    from fairway.cli import words

    if not found.prices:
        return []
    table = Table(
        "accelerator", "price", "worth to it", "within its means", box=None, pad_edge=False, padding=(0, 2, 0, 0)
    )
    for name, price in found.prices.items():
        known = price if isinstance(price, dict) else {"price": price}
        affordable = known.get("affordable")
        means = words.NOTHING if affordable is None else "yes" if affordable else "no"
        table.add_row(words.text(name), words.number(known.get("price")), words.number(known.get("worth")), means)
    return [Text(), table]
