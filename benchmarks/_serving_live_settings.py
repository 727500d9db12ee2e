"""What all parts of `live_serving` share: how long to measure, and what is measured once: the documents' stages."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from benchmarks import _serving_live_documents as documents
from benchmarks._serving_live_driver import Driver
from benchmarks._serving_live_load import poisson

UTILISATION = 0.6
"""Requests come at this part of what ours can do."""


@dataclass(frozen=True)
class Served:
    """Documents of one kind: their profile, and the requests per second that ours can answer."""

    kind: type[documents.Document]
    profile: documents.Profile
    capacity: float
    seconds: float
    seed: int

    @property
    def rate(self) -> float:
        return UTILISATION * self.capacity

    @property
    def ours(self) -> dict[str, Any]:
        """The options of our side."""
        return options_of(self.kind, self.profile)

    def requests(self, turn: int) -> tuple[list[float], list[int]]:
        """When requests come in a turn, and which."""
        count = round(self.rate * self.seconds)
        first = (1000 * self.seed + turn) * 100_000
        return poisson(self.rate, count, 1000 * self.seed + turn), list(range(first, first + count))


@dataclass
class Settings:
    """What the command line asks for; use it as a context."""

    repeats: int
    kills: int
    quick: bool
    seed: int
    _stack: ExitStack = field(default_factory=ExitStack)
    _served: dict[type[documents.Document], Served] = field(default_factory=dict)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def target(self, ratio: float) -> float | None:
        """A target counts where the turns are long enough."""
        return None if self.quick else ratio

    def served(self, kind: type[documents.Document] = documents.Document) -> Served:
        """Documents of a kind, measured when they are needed first."""
        if kind not in self._served:
            say("measuring the stages and models of the documents")
            profile = self._stack.enter_context(documents.measured(kind, repeats=3 if self.quick else 7))
            say(f"measuring what {documents.WORKERS} workers can do")
            with Driver("ours", **options_of(kind, profile)) as ours:
                ours.clients(8, 3 if self.quick else 10)
                capacity = ours.clients(8, 4 if self.quick else 20).throughput
            say(f"{capacity:.1f} requests/s, where each has room for any {profile.half} of {profile.models} models")
            self._served[kind] = Served(kind, profile, capacity, 8 if self.quick else 25, self.seed)
        return self._served[kind]


def options_of(kind: type[documents.Document], profile: documents.Profile) -> dict[str, Any]:
    """How documents are served, on our side."""
    return {
        "target": documents.TARGET,
        "requests": kind.NAME,
        "profile": str(profile.file),
        "workers": documents.WORKERS,
        "memory_bytes": profile.budget,
    }


def say(text: str) -> None:
    """What is going on."""
    print(text, file=sys.stderr, flush=True)
