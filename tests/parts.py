"""Parts as a third party would write them, in a module that is theirs: some are right, the others are wrong somehow."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from fairway import Allocation, Policy, Problem


@dataclass(frozen=True, slots=True)
class Halves(Policy):
    """Gives every job a part of what it would have alone, half of it by default. The second sentence is not shown."""

    name: ClassVar[str] = "halves"
    part: float = 0.5
    agnostic: bool = False
    reference: str | None = None

    def allocate(self, problem: Problem) -> Allocation:
        return Allocation.of_jobs(self.name, problem, self.part * problem.isolated_shares, objective=1.0)


class Plain(Policy):
    """No dataclass: its options are its parameters."""

    name: ClassVar[str] = "plain"

    def __init__(self, limit: float, *, loud: bool = False, most: int | None = None) -> None:
        self.limit, self.loud, self.most = limit, loud, most

    def allocate(self, problem: Problem) -> Allocation:
        return Allocation.of_jobs(self.name, problem, self.limit * problem.isolated_shares, objective=1.0)


class Structural:
    """Has a name and its verb, and says nothing of what engines have to know."""

    name: ClassVar[str] = "structural"

    def allocate(self, problem: Problem) -> Allocation:
        return replace(Halves().allocate(problem), policy=self.name)


class Fails(Policy):
    name: ClassVar[str] = "fails"

    def __init__(self) -> None:
        raise ZeroDivisionError("on purpose")

    def allocate(self, problem: Problem) -> Allocation:
        raise NotImplementedError


class NoPolicy:
    """Nothing of the kind."""


READY = Halves(part=0.25)
NUMBER = 7
