"""What a worker did lately, for pages that show it: requests it took, stages it ran, models that came or went.

Rows are plain tuples with times of the worker's own clock, and only the newest are kept. A request is known by its key,
which is the same on all workers.
"""

from __future__ import annotations

from collections import deque
from typing import Any

MOST_REQUESTS = 2000
MOST_STAGES = 8000
MOST_MODELS = 1000


class Recent:
    """The newest rows of each kind."""

    __slots__ = ("_loading", "models", "requests", "stages")

    def __init__(self) -> None:
        self.requests: deque[tuple[int, int, float, float, str]] = deque(maxlen=MOST_REQUESTS)
        self.stages: deque[tuple[int, int, int, int, float, float, float, int, int]] = deque(maxlen=MOST_STAGES)
        self.models: deque[tuple[str, bool, float, float]] = deque(maxlen=MOST_MODELS)
        self._loading: dict[str, float] = {}

    def load_began(self, model: str, now: float) -> None:
        """A model is on its way."""
        self._loading[model] = now

    def load_ended(self, model: str, now: float) -> None:
        """It is there, or could not be loaded."""
        self.models.append((model, False, self._loading.pop(model, now), now))

    def evicted(self, model: str, now: float) -> None:
        """A model was let go."""
        self.models.append((model, True, now, now))

    def document(self, now: float) -> dict[str, Any]:
        """All of it as plain values, with what the worker's clock shows."""
        return {
            "now": now,
            "requests": list(self.requests),
            "stages": list(self.stages),
            "models": list(self.models),
        }
