"""Three stages that do next to nothing, one after the other, so that what is measured is the way between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import fairway


@fairway.stage(seconds=1e-6)
class First:
    def __call__(self, numbers: Sequence[int]) -> list[int]:
        return [number + 1 for number in numbers]


@fairway.stage(seconds=1e-6)
class Second:
    def __call__(self, numbers: Sequence[int]) -> list[int]:
        return [number + 1 for number in numbers]


@fairway.stage(seconds=1e-6)
class Third:
    def __call__(self, numbers: Sequence[int]) -> list[int]:
        return [number + 1 for number in numbers]


@fairway.workflow(name="trivial")
def trivial(number: int) -> Any:
    return Third()(Second()(First()(number)))


class Trivial(NamedTuple):
    """One request."""

    number: int
    workflow: str = "trivial"

    @property
    def inputs(self) -> dict[str, Any]:
        return {"number": self.number}

    def check(self, answer: Any) -> None:
        assert answer == self.number + 3, f"{answer} came for {self.number}"
