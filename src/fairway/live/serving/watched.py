"""One worker as its supervisor sees it: its process, and the line over which it is told things and asked for a sign.

A worker that takes orders from a dispatcher is an invoker, which is another program; the dispatcher itself is watched
in the same way.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from fairway.live.serving.environment import stage_environment
from fairway.live.serving.settings import ServingSettings
from fairway.live.serving.wire import Channel, WireError, connect

_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 0.05, 5.0
_WELL_SECONDS = 5.0
"""A worker that has lived so long is well: should it die, it is started again at once."""


class Watched:
    """A worker, over all of its lives: `epoch` counts them.

    `said` and `heard` are the numbers of the last sign that it was asked for and of the last that it gave, `asked_at`
    when the one that is missing was asked for.
    """

    process: subprocess.Popen[bytes]

    def __init__(self, settings: ServingSettings, number: int) -> None:
        self._settings = settings
        self.number = number
        self.name = settings.name_of(number)
        self.epoch = -1
        self.line: Channel | None = None
        self.descriptor: int | None = None
        self.said = self.heard = 0
        self.asked_at = 0.0
        self._started = 0.0
        self._wait = _FIRST_WAIT_SECONDS

    def spawn(self) -> None:
        """Start its process."""
        self.epoch += 1
        settings = self._settings
        arguments = (settings.directory / "settings.json", self.number, self.epoch, os.getpid())
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", f"fairway.live.serving.{self._program}", *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self._environment},
            )
        self.descriptor = os.pidfd_open(self.process.pid)
        self._started = time.monotonic()

    @property
    def _environment(self) -> dict[str, str]:
        settings = self._settings
        own = {**stage_environment(settings.threads), "FAIRWAY_WORKER": str(self.number)}
        if settings.devices and self.takes_tasks:
            own["CUDA_VISIBLE_DEVICES"] = settings.devices[self.number]
        return own

    @property
    def takes_tasks(self) -> bool:
        """Whether it has a row in the state table; the dispatcher has none."""
        return self.number != self._settings.dispatcher

    @property
    def listens(self) -> bool:
        """Whether its socket takes connections; from any thread."""
        if self.line is not None:
            return True
        try:
            connect(self._settings.socket(self.number)).close()
        except OSError:
            return False
        return True

    @property
    def _program(self) -> str:
        if self._settings.dispatcher is None:
            return "worker"
        return "invoker" if self.takes_tasks else "dispatcher"

    @property
    def _log(self) -> Path:
        return self._settings.directory / f"{self.name}.log"

    def has_ended(self) -> bool:
        """Whether its process, if it has one, is dead."""
        return hasattr(self, "process") and self.process.poll() is not None

    def bury(self) -> float:
        """Its process is dead: let go of it. Returns how long to wait before the next."""
        self._hang_up()
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None
        wait = _FIRST_WAIT_SECONDS if time.monotonic() - self._started > _WELL_SECONDS else self._wait
        self._wait = min(2 * wait, _LONGEST_WAIT_SECONDS)
        return wait

    def call(self) -> bool:
        """Have a line to it; False if it does not answer."""
        if self.line is None:
            try:
                self.line = Channel(connect(self._settings.socket(self.number)))
            except OSError:
                return False
            self.said = self.heard = 0
        return True

    def tell(self, *message: Any) -> None:
        """Tell it something, if it is there, and ask for a sign that it has heard it."""
        if self.line is None:
            return
        if self.said == self.heard:
            self.asked_at = time.monotonic()
        self.said += 1
        try:
            for each in (message, ("ping", self.said)) if message else (("ping", self.said),):
                self.line.send(each)
        except OSError:
            self._hang_up()

    def listen(self) -> None:
        """Take the signs that it gives."""
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
        for _, number in messages or ():
            self.heard = number
            self.asked_at = time.monotonic()

    def silent_seconds(self, now: float) -> float:
        """For how long it has owed a sign."""
        return now - self.asked_at if self.line is not None and self.heard < self.said else 0.0

    def last_line(self) -> str:
        """The last that it wrote in its log."""
        with suppress(OSError, IndexError):
            return self._log.read_text(errors="replace").strip().splitlines()[-1]
        return "it said nothing"

    def terminate(self) -> None:
        """Ask its process to end."""
        if hasattr(self, "process"):
            self.process.terminate()

    def wait_or_kill(self, seconds: float) -> None:
        """Wait until its process has ended; one that does not is made to."""
        if hasattr(self, "process"):
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.bury()

    def _hang_up(self) -> None:
        if self.line is not None:
            self.line.close()
            self.line = None
        self.said = self.heard = 0
