"""The agent's side of its nursery: has keepers started by it, and replaces it when it is gone or does not answer."""

from __future__ import annotations

import asyncio
import logging
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from fairway.live.local.keeper.nursery import MOST_BYTES

_SILENT_SECONDS = 10.0
"""A keeper that has not begun after so long never will: the nursery was stopped, or hangs."""

_LOG = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Forked:
    """A keeper that the nursery was asked for; one that is `lost` may never have begun, and is asked for again."""

    since: float = field(default_factory=time.monotonic)
    code: int | None = None
    gone: bool = False

    def poll(self) -> int | None:
        """0 once it has ended; None before."""
        return self.code

    @property
    def lost(self) -> bool:
        """Whether the nursery is gone, or should have started it long ago; of two keepers, the claim decides."""
        return self.code is None and (self.gone or time.monotonic() - self.since > _SILENT_SECONDS)


class Nursery:
    """One nursery at a time, for as long as the agent lives. `look` is called when a keeper has ended."""

    def __init__(self, directory: Path, look: Callable[[], None]) -> None:
        self._directory, self._look = directory, look
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._forked: dict[str, Forked] = {}

    def start(self, directory: Path) -> Forked | None:
        """Have a keeper set on a run; None if that cannot be asked for now."""
        name = str(directory)
        known = self._forked.get(name)
        if known is not None and known.lost and not known.gone:
            _LOG.warning("the nursery of keepers does not answer, and is replaced")
            self.close()
        if len(name) >= MOST_BYTES:
            return None
        try:
            if self._socket is None:
                self._begin()
            assert self._socket is not None
            self._socket.send(name.encode())
        except OSError:  # it takes in nothing more, or cannot be started
            return None
        forked = self._forked[name] = Forked()
        return forked

    def close(self) -> None:
        """End it; keepers go on."""
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()
            self._socket = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        for forked in self._forked.values():
            forked.gone = True
        self._forked.clear()

    def _begin(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        with theirs, (self._directory / "agent.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "fairway.live.local.keeper.nursery", str(self._directory)],
                stdin=theirs.fileno(),
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd="/",
            )
        self._socket = ours
        asyncio.get_running_loop().add_reader(ours, self._heard)

    def _heard(self) -> None:
        """Keepers have ended, or the nursery has."""
        assert self._socket is not None
        with suppress(BlockingIOError):
            while True:
                try:
                    name = self._socket.recv(MOST_BYTES).decode()
                except ConnectionError:
                    name = ""
                if not name:
                    self.close()
                    break
                forked = self._forked.pop(name, None)
                if forked is not None:
                    forked.code = 0
        self._look()
