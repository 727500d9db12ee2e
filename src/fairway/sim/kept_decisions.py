"""Which decisions of a run are kept whole: the problem, the answer, and why each job waits.

A decision takes about a hundred bytes for each of its jobs, and a long run decides tens of thousands of times. When
what is kept holds more jobs than `MOST_JOBS`, every second decision is let go and from then on twice as many are passed
over between two that are kept: what is left is spread evenly over the run, and the same run keeps the same ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fairway.allocate.allocation import Allocation
from fairway.allocate.decision_document import decision_document
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.reasons import reasons

MOST_JOBS = 5_000
"""In the decisions of a run, all together."""

_HAVE_WORKERS = {"Running", "Starting"}


@dataclass(frozen=True, slots=True)
class KeptDecision:
    """The number of a decision in its run, from 1, when it was made, and all of it as a JSON object."""

    number: int
    time: float
    body: dict[str, Any]

    @property
    def jobs(self) -> int:
        """The jobs that it was about."""
        return len(self.body["problem"]["jobs"])


@dataclass(slots=True)
class KeptDecisions:
    """The decisions of a run as it is simulated; `policy` is the name with options by which to ask again."""

    policy: str
    kept: list[KeptDecision] = field(default_factory=list)
    _every: int = 1
    _jobs: int = 0

    def decided(self, engine: TrainingEngine, previous: Allocation | None) -> None:
        """The engine has just made a decision; `previous` is the one before it."""
        allocation = engine.allocation
        assert allocation is not None
        if (engine.solves - 1) % self._every:
            return
        waiting = {job: why for job, why in reasons(engine).items() if why.code not in _HAVE_WORKERS}
        body = decision_document(self.policy, allocation.problem, allocation, waiting, previous)
        self.kept.append(KeptDecision(engine.solves, engine.now, body))
        self._jobs += self.kept[-1].jobs
        while self._jobs > MOST_JOBS and len(self.kept) > 1:
            self._every *= 2
            self.kept = [decision for decision in self.kept if (decision.number - 1) % self._every == 0]
            self._jobs = sum(decision.jobs for decision in self.kept)
