"""What happens when the server does not answer: wait a little longer each time, and try again for a few seconds.

A controller that is restarted is back within seconds, and a client should not notice. A request that may be repeated is
sent again whatever became of it; any other only if it cannot have arrived.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from fairway.back_off import BackOff
from fairway.client.errors import ServiceError, UnreachableError, error_of
from fairway.client.place import Place
from fairway.client.steps import Answer, NoAnswer, Open, Part, Pause, Request, Send

PATIENCE_SECONDS = 10.0
"""Twice what a restart with many jobs may take."""

_BACK_OFF = BackOff(0.1, 1.0)
_PASSING = {502, 503, 504}
"""Statuses of a server, or of what stands before it, that is about to be back."""


@dataclass(frozen=True, slots=True)
class Patience:
    """The server that requests go to, and for how many seconds they are tried again."""

    address: str
    has_token: bool
    seconds: float

    @classmethod
    def towards(cls, place: Place, seconds: float | None) -> Patience:
        """So many seconds; by default, none at an address that neither the user nor `fairway up` has named."""
        if seconds is None:
            seconds = PATIENCE_SECONDS if place.expected else 0.0
        return cls(place.address, place.token is not None, seconds)

    def answered(self, request: Request) -> Part[Answer]:
        """Send a request until it is answered; raises what the answer, or its absence, stands for."""
        return self._insisted(request, Send)

    def opened(self, request: Request) -> Part[Answer]:
        """The same for a request whose answer is then read piece by piece."""
        return self._insisted(request, Open)

    def _insisted(self, request: Request, step: Callable[[Request], Send | Open]) -> Part[Answer]:
        pauses = Pauses(self.seconds)
        while True:
            answer: Answer | NoAnswer = yield step(request)
            if isinstance(answer, Answer):
                if answer.status < 300:
                    return answer
                error: ServiceError = error_of(answer, self.address, has_token=self.has_token)
                again = answer.status in _PASSING and request.repeatable
            else:
                done_perhaps = answer.arrived and not request.repeatable
                error = unreachable(self.address, answer, done_perhaps=done_perhaps)
                again = answer.remedy is None and not done_perhaps
            seconds = pauses.next() if again else None
            if seconds is None:
                raise error
            yield Pause(seconds, str(error))


def unreachable(address: str, gone: NoAnswer, *, done_perhaps: bool = False) -> UnreachableError:
    """The error for a request without an answer; `done_perhaps` says that it may have had its effect."""
    remedy = gone.remedy or "start one with 'fairway up' or give --address"
    if done_perhaps:
        remedy = "look whether it was done before you try again"
    return UnreachableError(f"no Fairway answers at {address} ({gone.why}); {remedy}")


class Pauses:
    """Pauses that grow, until so many seconds are over."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self._failures = 0

    def next(self) -> float | None:
        """How long to wait before the next attempt; None if it is time to give up."""
        left = self._until - time.monotonic()
        if left <= 0:
            return None
        # Not all clients of a server that comes back should knock in the same moment.
        self._failures += 1
        return min(_BACK_OFF.seconds(self._failures) * random.uniform(0.7, 1.3), left)
