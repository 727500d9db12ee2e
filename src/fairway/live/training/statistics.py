"""Counts what a controller does, for its status and its metrics."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Statistics:
    """Since the controller started. `round_ends_at` is on the engine's clock, None while nothing is to be done.

    `undecided` is why the last decision was given up, None if it was not.
    """

    started_at: float
    leases_granted_total: int = 0
    preemptions_total: int = 0
    restarts_total: int = 0
    failures_total: int = 0
    agent_restarts_total: int = 0
    recoveries_total: int = 0
    rounds: int = 0
    solves: int = 0
    round_ends_at: float | None = None
    undecided_total: int = 0
    undecided: str | None = None
    decision_seconds: list[float] = field(default_factory=list)

    def count_decision(self, seconds: float) -> None:
        """A policy has decided; the last thousand durations are kept."""
        self.solves += 1
        self.undecided = None
        self.decision_seconds.append(seconds)
        del self.decision_seconds[:-1000]
