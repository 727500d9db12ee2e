"""How a level is divided over a tree of teams and jobs.

Every node holds an amount of service: a job s_m * rate_m / proportional_m, a team the sum of its members. At level v,
each member of the root has the amount weight * v. A team passes its amount on to its members: a `fairness` team in
proportion to their weights, a `fifo` team to the first until it can take no more, then to the next. What a member
cannot take (its cap) flows to its siblings (Gavel §4.3). A cluster without teams is a root that holds all jobs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fairway.allocate.arrays import FloatArray, IntArray
from fairway.allocate.classes import Classes
from fairway.allocate.problem import Problem


@dataclass(slots=True)
class _Team:
    """Members of one team: classes of jobs (each standing for `counts` of them) and teams below."""

    weight: float = 1.0
    fifo: bool = False
    classes: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    teams: list[_Team] = field(default_factory=list)
    arrival: FloatArray = field(default_factory=lambda: np.zeros(0))


class Teams:
    """The tree over the classes of a problem."""

    def __init__(self, classes: Classes, *, flat: bool) -> None:
        self.weights = classes.of_jobs(classes.problem.weights)
        self._counts = classes.counts
        self._root = _Team(classes=np.arange(len(classes))) if flat else _tree(classes)

    @property
    def flat(self) -> bool:
        """Whether there are no teams: a root with nothing but jobs."""
        return not self._root.teams

    def amounts(self, level: float, caps: FloatArray) -> FloatArray:
        """The amount of one job of each class at this level, none above its cap."""
        if self.flat:
            return np.minimum(self.weights * level, caps)
        amounts = np.zeros(len(caps))
        weights, _, _ = self._members(self._root, caps)
        self._give(self._root, weights * level, caps, amounts)
        return amounts

    def full_level(self, caps: FloatArray) -> float:
        """The lowest level at which every job that can have anything has its cap."""
        weights, _, tops = self._members(self._root, caps)
        return float((tops / weights).max(initial=0.0))

    def root_level(self, amounts: FloatArray) -> float:
        """The lowest amount per weight of any member of the root."""
        weights, _, held = self._members(self._root, amounts)
        return float((held / weights).min(initial=np.inf))

    def _members(self, team: _Team, values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Weights, multiplicities and values of the members: one entry per class of jobs, then one per team."""
        weights = np.concatenate([self.weights[team.classes], [member.weight for member in team.teams]])
        times = np.concatenate([self._counts[team.classes], np.ones(len(team.teams))])
        totals = [self._total(member, values) for member in team.teams]
        return weights, times, np.concatenate([values[team.classes], totals])

    def _total(self, team: _Team, values: FloatArray) -> float:
        _, times, members = self._members(team, values)
        return float(times @ members)

    def _give(self, team: _Team, given: FloatArray, caps: FloatArray, amounts: FloatArray) -> None:
        """Give every member of a team its part, up to its cap; teams among them pass it on by their own rule."""
        _, _, tops = self._members(team, caps)
        given = np.minimum(given, tops)
        amounts[team.classes] = given[: len(team.classes)]
        for member, total in zip(team.teams, given[len(team.classes) :].tolist(), strict=True):
            weights, times, tops = self._members(member, caps)
            if member.fifo:
                order = np.argsort(member.arrival, kind="stable")
                parts = np.zeros(len(tops))
                parts[order] = np.maximum(total - np.concatenate([[0.0], np.cumsum(tops[order])[:-1]]), 0.0)
            else:
                parts = weights * _water_level(weights, times, tops, total)
            self._give(member, parts, caps, amounts)


def _water_level(weights: FloatArray, times: FloatArray, caps: FloatArray, total: float) -> float:
    """The level v with sum times * min(weight * v, cap) = total (the highest useful one if the caps hold less)."""
    full = caps / weights
    order = np.argsort(full, kind="stable")
    filled = np.cumsum((times * caps)[order])
    open_weight = np.sum(times * weights) - np.cumsum((times * weights)[order])
    at_full = filled + open_weight * full[order]  # what is held when the level reaches each cap
    reached = int(np.searchsorted(at_full, total))
    if reached == len(full):
        return float(full[order[-1]]) if len(full) else 0.0
    held = filled[reached - 1] if reached else 0.0
    weight_left = open_weight[reached] + (times * weights)[order[reached]]
    return float((total - held) / weight_left)


def _tree(classes: Classes) -> _Team:
    """The tree of the problem's entities; jobs of no entity are members of the root."""
    problem = classes.problem
    names = list(problem.entities)
    teams = {name: _Team(entity.weight, entity.policy == "fifo") for name, entity in problem.entities.items()}
    root = _Team()
    for name, entity in problem.entities.items():
        (root if entity.parent is None else teams[entity.parent]).teams.append(teams[name])
    owner = problem.team[classes.example]
    for position, team in [(-1, root), *((position, teams[name]) for position, name in enumerate(names))]:
        team.classes = np.flatnonzero(owner == position)
    _prune(root)
    first_arrival = classes.example.astype(float)
    for team in teams.values():
        below = [_first_arrival(member, first_arrival) for member in team.teams]
        team.arrival = np.concatenate([first_arrival[team.classes], below])
    return root


def _prune(team: _Team) -> None:
    """Drop the teams without any job: they would hold the root's lowest level at 0."""
    for member in team.teams:
        _prune(member)
    team.teams = [member for member in team.teams if len(member.classes) or member.teams]


def _first_arrival(team: _Team, arrival: FloatArray) -> float:
    own = arrival[team.classes].min(initial=np.inf)
    return float(min([own, *(_first_arrival(member, arrival) for member in team.teams)]))


def team_features(problem: Problem) -> list[FloatArray]:
    """What sets jobs of a tree apart: weight, team, and in a `fifo` team the place in the queue."""
    fifo = np.array([entity.policy == "fifo" for entity in problem.entities.values()] + [False])
    queued = fifo[problem.team]
    place = np.where(queued, np.cumsum(queued), 0.0)
    return [problem.weights, problem.team.astype(float), place]
