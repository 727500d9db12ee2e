"""What the dispatcher and its invokers say to each other about tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from fairway.live.serving.data import Parcel


class Member(NamedTuple):
    """One request of a task: its key, the parcels of its inputs, and the trace that it belongs to.

    `given` is what the request brought, if the stage takes any of it; `outputs` are those of the stages before.
    """

    key: int
    given: Parcel | None
    outputs: dict[int, Parcel]
    trace: str | None


class Order(NamedTuple):
    """Run a stage of a workflow for these requests.

    By the profile it takes `seconds`; each request has `waited` so long, and `found` is what the oldest found in
    memory, as in `fairway.engine.serving_messages`.
    """

    task: int
    workflow: int
    stage: int
    members: Sequence[Member]
    seconds: float
    waited: Sequence[float]
    found: int

    def message(self) -> tuple[Any, ...]:
        """As it goes over a socket."""
        return ("run", *self)

    @classmethod
    def read(cls, content: Sequence[Any]) -> Order:
        """What came over a socket."""
        return cls(*content)


class Told(NamedTuple):
    """How a request of a task has fared: what the stage has put out for it, or why there is nothing."""

    parcel: Parcel | None
    reason: str | None
