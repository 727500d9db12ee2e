"""How many accelerators the jobs of a team may have at a time, by type and in all.

What counts is what jobs that are let in ask for, whether they run or wait for workers, so that a team never holds more.
A job counts for its team and for all teams above it. A job that any of several types would do for counts against the
quota of each of them. A part of an accelerator counts as that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fairway.errors import InputError
from fairway.jobs import Entity
from fairway.jobs.description import JobDescription

WHOLE = 1000
"""What is taken is counted in thousandths, of which parts of accelerators are exact sums."""

TOTAL = ""
"""The name under which a quota has the number of accelerators of all types."""


def asked_of(spec: JobDescription) -> int:
    """What a job asks for, in thousandths of an accelerator."""
    return round(spec.workers * spec.accelerators.part * WHOLE)


@dataclass(slots=True)
class Quotas:
    """The quotas of teams, by type in small letters, and what is taken of them; `types` are those of the cluster."""

    of_teams: Mapping[str, Mapping[str, int]]
    entities: Mapping[str, Entity]
    types: Sequence[str]
    _taken: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))

    def over(self, spec: JobDescription, team: str | None) -> tuple[str, str] | None:
        """The team whose quota has no room for a job now, and what to say of it; None if there is room."""
        for name, kind, most in self._limits(spec, team):
            taken = self._taken.get((name, kind), 0)
            if taken + asked_of(spec) > most * WHOLE:
                may = f"team '{name}' may have {most} {kind or 'accelerators'} at a time"
                return name, f"{may}, its jobs have {taken / WHOLE:g} and this one asks for {asked_of(spec) / WHOLE:g}"
        return None

    def teams_of(self, team: str | None) -> Iterator[str]:
        """The teams with a quota that a job of a team counts for: its own, and those above it."""
        while team is not None:
            if team in self.of_teams:
                yield team
            entity = self.entities.get(team)
            team = None if entity is None else entity.parent

    def take(self, spec: JobDescription, team: str | None) -> None:
        """A job is let in."""
        for name, kind, _ in self._limits(spec, team):
            self._taken[name, kind] += asked_of(spec)

    def give_back(self, spec: JobDescription, team: str | None) -> None:
        """A job that was let in has ended."""
        for name, kind, _ in self._limits(spec, team):
            self._taken[name, kind] -= asked_of(spec)

    def refuse_too_large(self, spec: JobDescription, team: str | None) -> None:
        """Refuse a job that is larger than a quota, which could never run."""
        for name, kind, most in self._limits(spec, team):
            if asked_of(spec) > most * WHOLE:
                raise InputError(
                    f"resources.accelerators: {asked_of(spec) / WHOLE:g} asked for, but team '{name}' may have {most} "
                    f"{kind or 'accelerators'} at a time; ask for fewer, or for another type"
                )

    def _limits(self, spec: JobDescription, team: str | None) -> Iterator[tuple[str, str, int]]:
        if not self.of_teams:
            return
        types = {*spec.accelerators.types} or {name.lower() for name in self.types}
        for name in self.teams_of(team):
            for kind, most in self.of_teams[name].items():
                if kind == TOTAL or kind in types:
                    yield name, kind, most
