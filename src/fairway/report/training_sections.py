"""The parts of a page about runs of training jobs: heading, numbers, charts with what to see in them, settings.

Everything that comes from files or the command line is escaped here, where it becomes HTML.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from fairway.report.plain_json import plain
from fairway.report.training_comparison import MEASURES, SECONDS, Comparison, digits, shortfalls, time_unit
from fairway.report.training_metrics import teams_of
from fairway.report.training_runs import Run


@dataclass(frozen=True, slots=True)
class Origin:
    """How the runs of a page came about, in a word and in a paragraph."""

    word: str
    meaning: str


SIMULATED = Origin(
    "simulated",
    "Everything here is simulated, in virtual time: no accelerator ran any of these jobs. How fast a job runs on each "
    "accelerator type, alone and beside another job, comes from a table of profiles, and every job runs at exactly "
    "that rate; a restart costs what the settings say; machines do not fail.",
)

_SECTIONS = {
    "completion": (
        "How long jobs took",
        "Further left and higher is better: each curve tells what part of the jobs finished within a time after their "
        "arrival.",
    ),
    "teams": ("How long jobs took, by team", "Shorter is better: the mean completion time of each team's jobs."),
    "weights": ("How long jobs took, by weight", "Jobs of a higher weight should finish sooner."),
    "fairness": (
        "Who was served worse than an equal share would have",
        "ρ is a job's completion time over the time that it would have taken on an equal share of the cluster. Jobs "
        "above the dashed line at 1 were worse off; a fair policy keeps the right end of its curve low.",
    ),
    "queue": (
        "How many jobs waited and ran",
        "A queue that keeps growing says that jobs arrive faster than the policy gets them done.",
    ),
    "utilization": (
        "How busy each accelerator type was",
        "The part of its workers that held a lease. Idle workers while jobs wait are wasted; but a fast policy may "
        "also be less busy because its work is done sooner.",
    ),
    "cost": ("What it cost", "Time on each worker at its price, for all jobs and for each job that completed."),
}

_LINKS = {
    "completion": "completion times",
    "teams": "teams",
    "weights": "weights",
    "fairness": "fairness",
    "queue": "queue",
    "utilization": "utilisation",
    "cost": "cost",
    "gantt": "workers",
    "shares": "shares",
    "settings": "settings",
}

_EMPTY = {
    "completion": "No job completed.",
    "fairness": "No completed job has a time on an equal share to compare with.",
    "queue": "The run has no rounds.",
    "utilization": "The run has no rounds.",
    "cost": "The accelerator types of this cluster have no prices, so there is no cost to compare.",
}


def section(name: str, *, drawn: bool) -> str:
    """A chart with its heading, or what to know where there is none."""
    heading, meaning = _SECTIONS[name]
    chart = f'<div class="chart" id="{name}"></div>' if drawn else f'<p class="empty">{_EMPTY[name]}</p>'
    return f'<section id="about-{name}"><h2>{heading}</h2><p>{meaning}</p>{chart}</section>'


def title(runs: Sequence[Run]) -> str:
    """What the page is about."""
    policies = list(dict.fromkeys(run.record.policy for run in runs))
    if len(policies) > 3:
        return f"{len(policies)} policies compared on the same training jobs"
    return " against ".join(policies) if len(policies) < 3 else f"{policies[0]}, {policies[1]} and {policies[2]}"


def header(runs: Sequence[Run], comparison: Comparison, origin: Origin, shown: Sequence[str]) -> str:
    """The heading, what came of it, the table of numbers and links to the charts shown."""
    cluster = runs[0].record.cluster.workers
    machines = ", ".join(f"{count} {name}" for name, count in cluster.items())
    jobs = {len(run.record.jobs) for run in runs}
    counted = {run.summary["jobs"] for run in runs}
    number = "–".join(f"{value}" for value in sorted({min(jobs), max(jobs)}))
    about = f"{number} training jobs on {sum(cluster.values())} accelerators ({machines})"
    if counted != jobs:
        about += f"; averages are over {max(counted)} of them"
    links = "".join(f'<a href="#about-{name}">{_LINKS[name]}</a>' for name in [*shown, "gantt", "shares", "settings"])
    return (
        f'<header><h1>{escape(title(runs))}<span class="badge">{escape(origin.word)}</span></h1>'
        f'<p class="quiet">{escape(about)}.</p><p class="finding">{escape(_finding(comparison))}</p>'
        f"{_table(runs, comparison)}<nav>{links}</nav></header>"
    )


def _finding(comparison: Comparison) -> str:
    """The one sentence that a reader in a hurry should take away."""
    means = {row.policy: mean for row in comparison.rows if (mean := row.cells[0].mean if row.cells else None)}
    if not means or comparison.measures[0] is not MEASURES[0]:
        return "No job completed, so there are no completion times to compare."
    texts = {policy: f"{comparison.text(MEASURES[0], mean)} {comparison.unit}" for policy, mean in means.items()}
    best, *others = sorted(means, key=means.__getitem__)
    if not others:
        return f"A job took {texts[best]} on average from its arrival to its end."
    told = f"{best} finishes jobs soonest, in {texts[best]} on average"
    first = comparison.rows[0].policy
    if first in others:
        return f"{told}: {digits(means[best] / means[first])} times the {texts[first]} of {first}."
    return f"{told}; next is {others[0]} with {texts[others[0]]}."


def _table(runs: Sequence[Run], comparison: Comparison) -> str:
    looks = {run.record.policy: (run.colour, run.dash) for run in runs}
    head = ["<th scope=col>policy</th>"]
    for measure in comparison.measures:
        head.append(f'<th scope=col title="{escape(measure.meaning)}">{escape(comparison.title(measure))}</th>')
    if len(comparison.rows) > 1:
        head.insert(2, '<th scope=col title="mean JCT over that of the first policy">to first</th>')
    lines = []
    for row in comparison.rows:
        colour, dash = looks[row.policy]
        style = {"solid": "solid", "dot": "dotted"}.get(dash, "dashed")
        cells = [
            f"<td{' class=best' if cell.best else ''}>{comparison.text(measure, cell.mean)}"
            f"{f'<small>{comparison.spread(measure, cell)}</small>' if cell.spread is not None else ''}</td>"
            for measure, cell in zip(comparison.measures, row.cells, strict=True)
        ]
        if len(comparison.rows) > 1:
            cells.insert(1, f"<td>{'' if row.ratio is None else digits(row.ratio) + '×'}</td>")
        name = f'<i style="border-top-color:{colour};border-top-style:{style}"></i>{escape(row.policy)}'
        lines.append(f"<tr><th scope=row>{name}</th>{''.join(cells)}</tr>")
    notes = shortfalls(comparison)
    if comparison.seeds > 1:
        notes.insert(0, f"Means over {comparison.seeds} runs of each policy, ± half of their range.")
    noted = f'<ul class="notes">{"".join(f"<li>{escape(note)}</li>" for note in notes)}</ul>' if notes else ""
    return (
        f'<div class="scroll"><table id="numbers"><thead><tr>{"".join(head)}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>{noted}"
    )


def details_section(runs: Sequence[Run], details: Sequence[Mapping[str, Any]]) -> str:
    """What is shown of one run at a time: workers and shares."""
    buttons = "".join(f'<button type="button" aria-pressed="false">{escape(run.label)}</button>' for run in runs)
    choose = f'<div class="choices" id="runs" role="group" aria-label="run">{buttons}</div>' if len(runs) > 1 else ""
    if not any(detail["gantt"] for detail in details):
        empty = '<p class="empty">No leases were kept in these runs, so neither workers nor shares can be shown.</p>'
        return f'<section id="about-gantt"><h2 id="about-shares">What each worker did</h2>{empty}</section>'
    cut = [detail["gantt"]["until"] for detail in details if detail["gantt"] and not detail["gantt"]["complete"]]
    note = ""
    if cut:
        unit = time_unit(min(cut))
        spans = dict.fromkeys(f"{digits(until / SECONDS[unit])} {unit}" for until in (min(cut), max(cut)))
        note = f" To keep the page small, only the first {' to '.join(spans)} of a run are drawn."
    teams = any(teams_of(run.record) for run in runs)
    coloured = "by team" if teams else "in turn, so that neighbours differ"
    shares = (
        "The part of all workers that each team held (solid), and the part that its weight entitles it to among the "
        "teams that have jobs (dashed; no team is entitled to more than its jobs can use)."
        if teams
        else "The time that jobs held workers over the time that an equal share would have given them: the median job, "
        "and the range without the lowest and the highest 5 %. At 1, a job holds exactly its fair share."
    )
    return (
        f'<section id="about-gantt"><h2>What each worker did</h2>'
        f"<p>Each row is a worker, each bar a job that held it; jobs are coloured {coloured}. Drag to move; point at a "
        f"bar to read it; click it to see all that its job held.{note}</p>{choose}"
        '<div id="gantt"><div class="choices small" id="gantt-spans"></div><div class="chart" id="gantt-chart"></div>'
        '<input type="range" id="gantt-move" min="0" max="1000" value="0" step="1" aria-label="move through the run">'
        '<div id="gantt-tip" hidden></div></div>'
        '<p class="empty" id="no-gantt" hidden>No job held a worker in this run.</p>'
        f'<h3 id="about-shares">Shares over time against the fair share</h3><p>{shares} Time counts the same on every '
        "accelerator type.</p>"
        '<div class="chart" id="shares"></div>'
        '<p class="empty" id="no-shares" hidden>No job held a worker in this run.</p></section>'
    )


def settings_section(runs: Sequence[Run], command: str, origin: Origin) -> str:
    """How the runs came about and what repeats them."""
    settings = [plain(run.record.settings) for run in runs]
    common = {
        key: value for key, value in settings[0].items() if all(key in own and own[key] == value for own in settings)
    }
    told = {
        "cluster": plain(runs[0].record.cluster),
        "settings": common,
        "runs": [
            {"policy": run.record.policy, **{key: value for key, value in own.items() if key not in common}}
            for run, own in zip(runs, settings, strict=True)
        ],
    }
    text = json.dumps(told, indent=2, ensure_ascii=False, allow_nan=False)
    return (
        f'<section id="about-settings"><h2>How to repeat it</h2><p>{escape(origin.meaning)}</p>'
        f'<pre class="command">{escape(command)}</pre>'
        f"<details><summary>All settings as JSON</summary><pre>{escape(text)}</pre></details></section>"
    )
