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
from fairway.allocate.kernels.classes import Classes
from fairway.allocate.problem import Problem


@dataclass(slots=True)
class _Team:
    """Members of one team: classes of jobs and, after them, teams below.

    `weights` are those of the members, `times` how many jobs each class stands for (1 for a team).
    """

    weight: float = 1.0
    fifo: bool = False
    classes: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    teams: list[_Team] = field(default_factory=list)
    arrival: FloatArray = field(default_factory=lambda: np.zeros(0))
    weights: FloatArray = field(default_factory=lambda: np.zeros(0))
    times: FloatArray = field(default_factory=lambda: np.zeros(0))

    def know(self, weights: FloatArray, counts: FloatArray) -> None:
        """Take down the weights and multiplicities of all members, here and below."""
        self.weights = np.concatenate([weights[self.classes], [team.weight for team in self.teams]])
        self.times = np.concatenate([counts[self.classes], np.ones(len(self.teams))])
        for team in self.teams:
            team.know(weights, counts)

    def held(self, values: FloatArray) -> FloatArray:
        """The value of each member, of a team the total of its members."""
        return np.concatenate([values[self.classes], [float(team.times @ team.held(values)) for team in self.teams]])


class Teams:
    """The tree over the classes of a problem."""

    def __init__(self, classes: Classes, *, flat: bool) -> None:
        self.weights = classes.of_jobs(classes.problem.weights)
        self._root = _Team(classes=np.arange(len(classes))) if flat else _tree(classes)
        self._root.know(self.weights, classes.counts)

    @property
    def flat(self) -> bool:
        """Whether there are no teams: a root with nothing but jobs."""
        return not self._root.teams

    def up_to(self, caps: FloatArray) -> Filling:
        """How the amounts grow with the level when no job can have more than its cap."""
        return Filling(self._root, caps)

    def amounts(self, level: float, caps: FloatArray) -> FloatArray:
        """The amount of one job of each class at this level, none above its cap."""
        return self.up_to(caps).amounts(level)

    def full_level(self, caps: FloatArray) -> float:
        """The lowest level at which every job that can have anything has its cap."""
        return float((self._root.held(caps) / self._root.weights).max(initial=0.0))

    def divided(self, total: float, caps: FloatArray) -> FloatArray:
        """What one job of each class has when the root divides a total, none above its cap."""
        amounts = np.zeros(len(caps))
        _Rule(self._root, caps).divide(total, amounts)
        return amounts

    def root_level(self, amounts: FloatArray) -> float:
        """The lowest amount per weight of any member of the root."""
        return float((self._root.held(amounts) / self._root.weights).min(initial=np.inf))


class Filling:
    """A tree whose jobs have caps: what depends on these alone is worked out once, for all levels."""

    def __init__(self, root: _Team, caps: FloatArray) -> None:
        self._root, self._size = root, len(caps)
        self._tops = root.held(caps)
        self._rules = [_Rule(team, caps) for team in root.teams]

    def amounts(self, level: float) -> FloatArray:
        """The amount of one job of each class at this level."""
        given = np.minimum(self._root.weights * level, self._tops)
        if not self._rules:
            return given
        amounts = np.zeros(self._size)
        _pass_on(self._root, self._rules, given, amounts)
        return amounts


class _Rule:
    """How one team divides a total among its members, none of whom takes more than its cap."""

    def __init__(self, team: _Team, caps: FloatArray) -> None:
        self._team = team
        self._tops = team.held(caps)
        self._below = [_Rule(member, caps) for member in team.teams]
        if team.fifo:
            order = np.argsort(team.arrival, kind="stable")
            self._before = np.zeros(len(order))
            self._before[order] = np.concatenate([[0.0], np.cumsum(self._tops[order])[:-1]])
            return
        # By weight, like water rising over a floor of steps: member k is full at the level tops[k] / weights[k].
        full = self._tops / team.weights
        order = np.argsort(full, kind="stable")
        weight = (team.times * team.weights)[order]
        filled = np.cumsum((team.times * self._tops)[order])
        self._full = full[order]
        self._held = np.concatenate([[0.0], filled])  # by members that are full before each step
        self._open = weight.sum() - np.concatenate([[0.0], np.cumsum(weight)])  # the weight of those that are not
        self._at_full = filled + self._open[1:] * self._full

    def divide(self, total: float, amounts: FloatArray) -> None:
        """Write what the jobs of this team have when it has this total."""
        if self._team.fifo:
            given = np.minimum(np.maximum(total - self._before, 0.0), self._tops)
        else:
            given = np.minimum(self._team.weights * self._level(total), self._tops)
        _pass_on(self._team, self._below, given, amounts)

    def _level(self, total: float) -> float:
        """The level v with sum times * min(weight * v, cap) = total (the highest useful one if the caps hold less)."""
        step = int(np.searchsorted(self._at_full, total))
        if step == len(self._full):
            return float(self._full[-1])
        return float((total - self._held[step]) / self._open[step])


def _pass_on(team: _Team, rules: list[_Rule], given: FloatArray, amounts: FloatArray) -> None:
    """Write the part of every job of a team, and let the teams among its members divide theirs."""
    amounts[team.classes] = given[: len(team.classes)]
    for rule, total in zip(rules, given[len(team.classes) :].tolist(), strict=True):
        rule.divide(total, amounts)


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
