"""One self-contained HTML page about one or more serverless runs: numbers, charts, and what is needed to repeat them.

Everything that comes from files or the command line is escaped. Nothing in it depends on when it was written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from fairway.errors import InputError
from fairway.report.page_document import document, parts
from fairway.report.plain_json import plain
from fairway.report.serverless_charts import (
    ServerlessShown,
    cold_chart,
    deadline_curves,
    shown_serverless,
    sizes_chart,
    trade_chart,
)
from fairway.report.serverless_comparison import SERVERLESS_MEASURES
from fairway.report.serverless_record import ServerlessRecord
from fairway.report.serving_comparison import ServingComparison, compare_serving
from fairway.report.serving_page import comparison_table
from fairway.report.training_charts import Figure
from fairway.report.training_comparison import digits
from fairway.report.whole_file import write_whole

_SECTIONS: Mapping[str, tuple[str, str, str]] = {
    "trade": (
        "In time, and for how much",
        "in time against cost",
        "Further up and left is better: the part of the requests that were answered before their deadline, and what a "
        "thousand of them cost, late ones included. A scheduler that leaves requests unanswered looks cheaper than it "
        "is.",
    ),
    "latency": (
        "How long requests took",
        "latency",
        "The part of the requests of each application that were answered within a time after their arrival. The dotted "
        "line is the deadline: where a curve crosses it is the part that was in time.",
    ),
    "sizes": (
        "What tasks were given",
        "sizes",
        "The mean batch, GPU slices and CPUs of the tasks that started at a time.",
    ),
    "cold": (
        "Cold starts",
        "cold starts",
        "How many containers had been begun: because a job waited for one, and ahead of any that would.",
    ),
}


def write_serverless_page(records: Sequence[ServerlessRecord], path: str | Path, *, command: str) -> None:
    """Write the page about some runs; `command` repeats them."""
    write_whole(path, serverless_page(records, command=command))


def serverless_page(records: Sequence[ServerlessRecord], *, command: str) -> str:
    """The page's HTML."""
    if not records:
        raise InputError("report: no runs given, expected at least one")
    runs = shown_serverless(records)
    figures: dict[str, Figure | None] = {
        "trade": trade_chart(runs),
        "latency": deadline_curves(runs),
        "sizes": sizes_chart(runs),
        "cold": cold_chart(runs),
    }
    body = [_header(runs, compare_serving([run.summary for run in runs], SERVERLESS_MEASURES))]
    for name, (heading, _, meaning) in _SECTIONS.items():
        chart = f'<div class="chart" id="{name}"></div>'
        if figures[name] is None:
            chart = f'<p class="empty">{_EMPTY[name]}</p>'
        body.append(f'<section id="about-{name}"><h2>{heading}</h2><p>{meaning}</p>{chart}</section>')
    body.append(_settings(runs, command))
    shown = {name: parts(figure) for name, figure in figures.items() if figure is not None}
    return document(_title(runs), "\n".join(body), {"figures": shown, "details": []})


_EMPTY: Mapping[str, str] = {
    "trade": "No request counts, or nothing has a price.",
    "latency": "No request was answered.",
    "sizes": "No task ran.",
    "cold": "All functions were warm everywhere, so no container had to be created.",
}


def _title(runs: Sequence[ServerlessShown]) -> str:
    names = list(dict.fromkeys(run.record.scheduler for run in runs))
    return " against ".join(names) if len(names) < 3 else f"{len(names)} schedulers compared on the same requests"


def _header(runs: Sequence[ServerlessShown], comparison: ServingComparison) -> str:
    first = runs[0]
    about = (
        f"{first.summary['requests']} requests for {len(first.record.applications)} applications on "
        f"{first.record.invokers} invokers of {first.record.cpu} CPUs and {first.record.gpu} GPU slices"
    )
    links = "".join(f'<a href="#about-{name}">{short}</a>' for name, (_, short, _) in _SECTIONS.items())
    links += '<a href="#about-settings">settings</a>'
    looks = {run.record.scheduler: (run.colour, run.dash) for run in runs}
    return (
        f'<header><h1>{escape(_title(runs))}<span class="badge">simulated</span></h1>'
        f'<p class="quiet">{escape(about)}.</p><p class="finding">{escape(_finding(comparison))}</p>'
        f"{comparison_table(looks, comparison)}<nav>{links}</nav></header>"
    )


def _finding(comparison: ServingComparison) -> str:
    """The one sentence that a reader in a hurry should take away."""
    hits = {row.scheduler: row.cells[0].mean for row in comparison.rows if row.cells}
    known = {name: hit for name, hit in hits.items() if hit is not None}
    if not known:
        return "No request counts, so there is nothing to compare."
    best = max(known, key=lambda name: known[name])
    told = f"{best} answers {digits(100 * known[best])} % of the requests in time"
    worst = min(known, key=lambda name: known[name])
    return f"{told}." if worst == best else f"{told}; {worst} {digits(100 * known[worst])} %."


def _settings(runs: Sequence[ServerlessShown], command: str) -> str:
    told = {
        "applications": plain(runs[0].record.applications),
        "runs": [plain(run.record.settings) for run in runs],
    }
    text = json.dumps(told, indent=2, ensure_ascii=False, allow_nan=False)
    return (
        '<section id="about-settings"><h2>How to repeat it</h2><p>Everything here is simulated, in virtual time: no '
        "accelerator ran any of these tasks. Run times follow the profiles of the scenario, which are synthetic.</p>"
        f'<pre class="command">{escape(command)}</pre>'
        f"<details><summary>All settings as JSON</summary><pre>{escape(text)}</pre></details></section>"
    )
