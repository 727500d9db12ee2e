"""The priority classes of jobs: what each is worth, whether its jobs preempt others, and which teams may use it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fairway.errors import InputError
from fairway.jobs import Entity
from fairway.jobs.description import JobDescription


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """Jobs of a class of a higher `value` come first; jobs without a class have 0.

    Jobs of a class that `preempts` also take the workers of lower ones that run. `teams` may use it, with the teams
    below them; all if there are none.
    """

    value: int
    preempts: bool = True
    teams: tuple[str, ...] = ()


USUAL = PriorityClass(0)
"""What jobs have that name no class."""


@dataclass(frozen=True, slots=True)
class Priorities:
    """The priority classes by name, and the teams."""

    classes: Mapping[str, PriorityClass] = field(default_factory=dict)
    entities: Mapping[str, Entity] = field(default_factory=dict)

    def of(self, spec: JobDescription, team: str | None) -> PriorityClass:
        """The class of a job; refuses one that there is not, or that its team may not use."""
        name = spec.priority_class
        if name is None:
            return USUAL
        if name not in self.classes:
            known = ", ".join(self.classes) or "none; the admin declares them in the file of 'fairway up --teams'"
            raise InputError(f"priority_class: '{name}' given, but there is no such class; known: {known}")
        found = self.classes[name]
        if found.teams and not any(one in found.teams for one in self._with_those_above(team)):
            whose = "no team" if team is None else f"team '{team}'"
            raise InputError(
                f"priority_class: '{name}' given for a job of {whose}, but it is for {', '.join(found.teams)}; "
                "take it out, or name another"
            )
        return found

    def _with_those_above(self, team: str | None) -> list[str]:
        teams: list[str] = []
        while team is not None and team not in teams:
            teams.append(team)
            entity = self.entities.get(team)
            team = None if entity is None else entity.parent
        return teams
