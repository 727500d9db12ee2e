"""What workers tell each other of themselves, by messages: how they stand, what waits there, who came and who went.

Where rows are shared memory, most of this is read there instead.
"""

from __future__ import annotations

from typing import NamedTuple


class PeerCopies(NamedTuple):
    """To the engine that plans: how many copies of a model a worker has there, and how many are on their way.

    `answered` is the number of the last `Warm` message for this model, 0 before the first. `failed` is why a copy did
    not come.
    """

    worker: int
    model: int
    there: int
    coming: int
    answered: int
    failed: str | None = None

    @property
    def cause(self) -> str:
        """The worker."""
        return f"worker {self.worker}"


class PeerLoad(NamedTuple):
    """Another worker has pushed its load, and what waits there where planners ask for that."""

    worker: int
    sequence: int
    queued: float
    busy_until: float
    line: tuple[float, ...] = ()

    @property
    def cause(self) -> str:
        """The worker."""
        return f"worker {self.worker}"


class PeerModels(NamedTuple):
    """Another worker has pushed which models its memory holds."""

    worker: int
    sequence: int
    models: tuple[int, ...]

    @property
    def cause(self) -> str:
        """The worker."""
        return f"worker {self.worker}"


class RowAsked(NamedTuple):
    """Another worker wants to know the row of this one as it is now; it numbers its questions."""

    worker: int
    number: int

    @property
    def cause(self) -> str:
        """The worker."""
        return f"worker {self.worker}"


class RowTold(NamedTuple):
    """The row of a worker as it was when it was asked: its load, the models in its memory, and what waits there."""

    worker: int
    number: int
    queued: float
    busy_until: float
    models: tuple[int, ...]
    line: tuple[float, ...]

    @property
    def cause(self) -> str:
        """The worker."""
        return f"worker {self.worker}"


class TasksWanted(NamedTuple):
    """Another worker is about to be free, and wants what waits here in a row of its line; so many wait `there`."""

    worker: int
    row: int
    there: int

    @property
    def cause(self) -> str:
        """The worker."""
        return f"worker {self.worker}"


class PeerLost(NamedTuple):
    """Another worker is gone, with all that it held; or the engine that plans, `OUTSIDE`."""

    worker: int

    @property
    def cause(self) -> str:
        """The worker."""
        return f"worker {self.worker}"


class PeerJoined(NamedTuple):
    """Another worker is there, or back: idle, with empty memory; or the engine that plans, `OUTSIDE`."""

    worker: int

    @property
    def cause(self) -> str:
        """The worker."""
        return f"worker {self.worker}"
