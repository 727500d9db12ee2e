"""Answers that many pages ask for at once, made once: kept for a second, also for whoever asks meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from threading import Lock

KEPT_SECONDS = 1.0
_MOST_BYTES = 64 * 1024 * 1024


class SameAnswers:
    """Texts by what was asked. Used on many threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._making: dict[Hashable, Lock] = {}
        self._made: dict[Hashable, tuple[float, bytes]] = {}

    def text(self, asked: Hashable, make: Callable[[], bytes]) -> bytes:
        """The text for this question, made anew if the last is more than a second old."""
        with self._lock:
            turn = self._making.setdefault(asked, Lock())
        try:
            with turn:
                at, text = self._made.get(asked, (0.0, None))
                if text is not None and self._clock() - at < KEPT_SECONDS:
                    return text
                begun = self._clock()
                text = make()
                self._keep(asked, begun, text)
                return text
        finally:
            with self._lock:
                self._making.pop(asked, None)

    def _keep(self, asked: Hashable, begun: float, text: bytes) -> None:
        with self._lock:
            now = self._clock()
            self._made = {key: one for key, one in self._made.items() if now - one[0] < KEPT_SECONDS}
            if len(text) + sum(len(one) for _, one in self._made.values()) <= _MOST_BYTES:
                self._made[asked] = begun, text
