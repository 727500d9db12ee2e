"""What jobs and teams held over time against what was fair.

The fair share follows Gavel §4.1 and §4.3: jobs present at the same time divide the workers by weight, and where there
are teams, teams with jobs do. Both are counted in time on workers of any type, which is what leases show: an hour on a
slow type counts as an hour on a fast one, although less is done in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairway.jobs import Entity
from fairway.report.intervals import Series, held_between, held_by_owner, mean_of_steps
from fairway.report.training.metrics import owned_by, teams_of
from fairway.report.training.record import BoolArray, FloatArray, IntArray, Outcome, TrainingRecord
from fairway.report.training.series import end_of

NO_TEAM = "no team"
"""Stands for the jobs that have none, where others do."""

_MOST_INTERVALS = 100

_ROUNDS_PER_INTERVAL = 10
"""Jobs take turns, so a share shows only over several rounds."""


@dataclass(frozen=True, eq=False)
class TeamShare:
    """The part of all workers that a team held, and the part that it was entitled to.

    That is a division by weight of the workers among the teams that have jobs, where no team gets more than its jobs
    can use and what it leaves goes to the others.
    """

    team: str
    held: Series
    fair: Series


@dataclass(frozen=True, eq=False)
class ShareBand:
    """Held time over fair time, as the 5th, 50th and 95th percentile of the jobs present: 1 is exactly fair.

    NaN in an interval without jobs.
    """

    edges: FloatArray
    p5: FloatArray
    p50: FloatArray
    p95: FloatArray
    jobs: IntArray


def team_settings(record: TrainingRecord) -> dict[str, Entity]:
    """The teams that the settings describe under `entities`; a team that they do not has weight 1."""
    described = record.settings.get("entities")
    return {str(name): _entity(value) for name, value in described.items()} if isinstance(described, Mapping) else {}


def team_shares(record: TrainingRecord) -> list[TeamShare]:
    """What each team that owns jobs held and was entitled to."""
    edges = _edges(record)
    present = _present(record)
    workers = sum(record.cluster.workers.values())
    if len(edges) < 2 or not workers or not len(record.leases) or not present.any() or not teams_of(record):
        return []
    job, start, end, amount = _holdings(record)
    arrival, leave = record.jobs.arrival, _leave(record)
    # Who is present changes only when a job comes or goes: what a team is entitled to is constant between these times.
    steps = np.unique(np.concatenate([arrival[present], leave[present]]))
    owned = {team: owned_by(record, team) for team in teams_of(record)}
    if None in record.jobs.entities:
        owned[NO_TEAM] = owned_by(record, None)
    demand = {}
    for team, mine in owned.items():
        size = record.jobs.scale_factor[mine & present] / workers
        demand[team] = _passed(arrival[mine & present], size, steps) - _passed(leave[mine & present], size, steps)
    fair = _entitlements(demand, team_settings(record))
    available = workers * np.diff(edges)
    shares = []
    for team, mine in owned.items():
        own = mine[job]
        held = held_between(start[own], end[own], amount[own], edges) / available
        due = mean_of_steps(steps, fair[team], edges)
        shares.append(TeamShare(team, Series(edges, held), Series(edges, due)))
    return shares


def share_band(record: TrainingRecord) -> ShareBand | None:
    """Held time over fair time of the jobs in the system, or None where no leases are known.

    The fair time of job m on s_m workers is min(1, W w_m / (s_m sum of w)) of the time that it is in the system: W
    workers go round, and no job can use more than all of the time. A job counts in an interval if it is in the system
    for at least half of it.
    """
    edges = _edges(record)
    present = _present(record)
    if len(edges) < 2 or not len(record.leases) or not present.any():
        return None
    jobs, width = record.jobs, np.diff(edges)
    workers = sum(record.cluster.workers.values())
    arrival, leave = jobs.arrival, _leave(record)
    crowd = held_between(arrival[present], leave[present], jobs.weight[present], edges) / width
    job, start, end, amount = _holdings(record)
    held = held_by_owner(job, start, end, amount / jobs.scale_factor[job], edges, len(jobs))
    bands = np.full((3, len(width)), np.nan)
    number = np.zeros(len(width), dtype=np.int64)
    for k in range(len(width)):
        here = np.clip(np.minimum(leave, edges[k + 1]) - np.maximum(arrival, edges[k]), 0.0, None)
        who = present & (here >= width[k] / 2)
        number[k] = who.sum()
        if number[k]:
            fair = np.minimum(1.0, workers * jobs.weight[who] / (jobs.scale_factor[who] * crowd[k]))
            bands[:, k] = np.percentile(held[k][who] / (here[who] * fair), [5, 50, 95])
    p5, p50, p95 = bands
    return ShareBand(edges, p5, p50, p95, number)


def _entity(value: Any) -> Entity:
    match value:
        case Entity():
            return value
        case int() | float():
            return Entity(weight=value)
        case Mapping():
            return Entity(weight=value.get("weight", 1.0), parent=value.get("parent"))
    return Entity()


def _entitlements(demand: Mapping[str, FloatArray], described: Mapping[str, Entity]) -> dict[str, FloatArray]:
    """The share of each team at each step, when teams want these parts of all workers."""
    members: dict[str | None, list[str]] = {}
    parent: dict[str, str | None] = {}
    for team in demand:
        node: str | None = team
        while node is not None and node not in parent:
            parent[node] = described[node].parent if node in described else None
            members.setdefault(parent[node], []).append(node)
            node = parent[node]
    weight = {node: described[node].weight if node in described else 1.0 for node in parent}
    share: dict[str, FloatArray] = {}

    def wanted(node: str) -> FloatArray:
        return np.asarray(demand.get(node, 0.0) + sum(map(wanted, members.get(node, []))), dtype=np.float64)

    def divide(node: str | None, amount: FloatArray) -> None:
        below = members.get(node, [])
        wants = [wanted(member) for member in below]
        weights = [weight[member] for member in below]
        if node is not None and node in demand and below:  # its own jobs stand beside the teams below it
            wants, weights = [*wants, demand[node]], [*weights, 1.0]
        parts: list[FloatArray] = list(_by_weight(amount, np.array(wants), np.array(weights))) if wants else []
        for member, part in zip(below, parts, strict=False):
            divide(member, part)
        if node is not None:
            share[node] = parts[-1] if len(parts) > len(below) else amount

    divide(None, np.ones(len(next(iter(demand.values())))))
    return {team: share[team] for team in demand}


def _by_weight(amount: FloatArray, wants: FloatArray, weights: FloatArray) -> FloatArray:
    """Divide an amount by weight, where no team gets more than it wants: what one leaves goes to the others."""
    given = np.zeros_like(wants)
    for _ in weights:  # each time, all is given out or at least one more has what it wants
        open_weights = weights[:, None] * (given < wants)
        total = open_weights.sum(axis=0)
        left = amount - given.sum(axis=0)
        level = np.divide(left, total, out=np.zeros_like(left), where=total > 0)
        given = np.minimum(wants, given + level * open_weights)
    return given


def _edges(record: TrainingRecord) -> FloatArray:
    time, end = record.timeline.time, end_of(record)
    if end <= 0:
        return np.zeros(0)
    gap = float(np.median(np.diff(time))) if len(time) > 1 else 0.0
    number = end / (_ROUNDS_PER_INTERVAL * gap) if gap > 0 else _MOST_INTERVALS
    return np.linspace(0.0, end, int(np.clip(number, 1, _MOST_INTERVALS)) + 1)


def _holdings(record: TrainingRecord) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
    """Job, start, end and number of workers of all leases; each job of a pair holds half of their workers."""
    leases = record.leases
    amount = np.diff(leases.offset).astype(np.float64)
    if np.issubdtype(record.jobs.scale_factor.dtype, np.floating):  # parts of workers
        amount = record.jobs.scale_factor[leases.job].astype(np.float64)
    paired = leases.partner >= 0
    amount[paired] /= 2
    return (
        np.concatenate([leases.job, leases.partner[paired]]),
        np.concatenate([leases.start, leases.start[paired]]),
        np.concatenate([leases.end, leases.end[paired]]),
        np.concatenate([amount, amount[paired]]),
    )


def _leave(record: TrainingRecord) -> FloatArray:
    """When each job left the system: at its end, or with the run."""
    finish = record.jobs.finish
    return np.where(np.isfinite(finish), finish, np.maximum(end_of(record), record.jobs.arrival))


def _present(record: TrainingRecord) -> BoolArray:
    """The jobs that could run and arrived before the end."""
    jobs = record.jobs
    able = jobs.outcome != Outcome.UNRUNNABLE
    return np.asarray(able & (jobs.arrival < end_of(record)) & (_leave(record) > jobs.arrival), dtype=np.bool_)


def _passed(times: FloatArray, amount: FloatArray, steps: FloatArray) -> FloatArray:
    """The sum of the amounts whose time has passed at each step."""
    order = np.argsort(times, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(amount[order])])
    return np.asarray(sums[np.searchsorted(times[order], steps, side="right")], dtype=np.float64)
