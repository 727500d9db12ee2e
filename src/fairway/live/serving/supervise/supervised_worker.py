"""One worker as its supervisor knows it, over all of its lives: its line, and the signs of life that it gives over it.

With everything that the supervisor tells a worker goes a numbered wish for a sign. So the number of the last sign says
what the worker has taken in, and how long a sign has been wanted for, for how long its loop has not turned.
"""

from __future__ import annotations

from collections.abc import Callable

from fairway.back_off import BackOff
from fairway.live.serving.seams.transport import Line, Message, WireError

_BACK_OFF = BackOff(0.05, 5.0)
_WELL_SECONDS = 5.0
"""A worker that has lived so long is well: should it die, it is started again at once."""


class SupervisedWorker:
    """A worker; `epoch` counts its lives, and `connect` makes a line to it.

    `wanted` and `given` are the numbers of the last sign that was wanted of it and of the last that it gave. It
    `is_there` once it has given one. `silent` and `stopped` are for how many seconds, as far as the supervisor was
    awake to see it, it has given no sign though one was wanted, and has been kept from running. `reports` are what it
    has said beside its signs, `waiting` how many tasks waited there at the last one. One that `has_row` runs stages,
    and has a row in the state table.
    """

    def __init__(self, number: int, name: str, connect: Callable[[int], Line], *, has_row: bool) -> None:
        self.number, self.name, self.has_row = number, name, has_row
        self.epoch = -1
        self.is_there = False
        self.line: Line | None = None
        self.wanted = self.given = 0
        self.last_sign_at = 0.0
        self.silent = 0.0
        self.stopped = 0.0
        self.reports: list[Message] = []
        self.waiting = 0
        self._connect = connect
        self._started_at = 0.0
        self._deaths = 0

    def begin_life(self, now: float) -> None:
        """Its process is about to be started."""
        self.epoch += 1
        self._started_at = now
        self.silent = self.stopped = 0.0
        self.waiting = 0

    def end_life(self, now: float) -> float:
        """Its process is dead; returns how long to wait before the next is started."""
        self.is_there = False
        self._hang_up()
        self._deaths = 1 if now - self._started_at > _WELL_SECONDS else self._deaths + 1
        return _BACK_OFF.seconds(self._deaths)

    def call(self) -> bool:
        """Have a line to it; False if it cannot be reached."""
        if self.line is None:
            try:
                self.line = self._connect(self.number)
            except OSError:
                return False
            self.wanted = self.given = 0
        return True

    def tell(self, now: float, *messages: Message) -> None:
        """Tell it something, if it can be reached, and want a sign that it has taken that in."""
        if self.line is None:
            return
        if self.wanted == self.given:
            self.last_sign_at = now
        self.wanted += 1
        try:
            for message in (*messages, ("ping", self.wanted)):
                self.line.send(message)
        except OSError:
            self._hang_up()

    def take_signs(self, now: float) -> None:
        """Take the signs that it has given."""
        if self.line is None:
            return
        try:
            if self.line.unwritten:
                self.line.flush()
            messages = self.line.receive()
        except (OSError, WireError):
            messages = None
        if messages is None:
            self._hang_up()
        for message in messages or ():
            if message[0] != "pong":
                self.reports.append(message)
                continue
            self.given, self.waiting = message[1], message[2]
            self.last_sign_at = now
            self.is_there = True
            self.silent = 0.0

    def age(self, now: float) -> float:
        """How long ago its process was started."""
        return now - self._started_at

    def silent_seconds(self, now: float) -> float:
        """For how long a sign has been wanted of it."""
        return now - self.last_sign_at if self.line is not None and self.given < self.wanted else 0.0

    def close(self) -> None:
        """End its line."""
        self._hang_up()

    def _hang_up(self) -> None:
        if self.line is not None:
            self.line.close()
            self.line = None
        self.wanted = self.given = 0
