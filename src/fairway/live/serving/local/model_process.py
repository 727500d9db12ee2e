"""A copy of a model in a process of its own, as its worker has it: started, bounded, asked to run stages, ended.

The process is in a control group (`machine.containment`) whose CPUs are its part of those of the worker, counted in
short periods, so that a stage runs evenly; and whose memory is what the process has when it has imported the
application, and what its slice has on top. The group has its bounds before any of the author's code runs, but for
memory, which is bounded before the model is loaded. A process that has ended is started again when it is needed.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from fairway.live.machine.containment import Bounds, RunGroup
from fairway.live.serving.seams.slices import SliceEndedError, StageRaisedError
from fairway.workflows import Arguments

_END_SECONDS = 1.0


@dataclass
class ModelProcess:
    """One copy; `command` has what the program is started with beside its descriptor."""

    name: str
    command: Callable[[int], Sequence[str]]
    environment: Mapping[str, str]
    group: RunGroup
    bounds: Bounds
    memory_bytes: int
    load_seconds: float
    _process: subprocess.Popen[bytes] | None = None
    _link: Connection | None = None

    def start(self) -> None:
        """Have the process, with the model loaded in it."""
        self.group.kill()
        self.group.remove()  # the kernel's count of what it has killed there begins anew with the group
        self.group.make()
        ours, theirs = socket.socketpair()
        try:
            self._process = subprocess.Popen(
                self.command(theirs.fileno()),
                stdin=subprocess.DEVNULL,
                env={**os.environ, **self.environment},
                pass_fds=(theirs.fileno(),),
            )
        finally:
            theirs.close()
        self._link = Connection(ours.detach())
        deadline = time.monotonic() + self.load_seconds
        self._expect("entered", deadline)
        self.group.make(self.bounds.cpus, period_seconds=self.bounds.period_seconds)
        self._go()
        self._expect("imported", deadline)
        memory = self.group.memory_used_bytes() + self.memory_bytes
        self.group.make(self.bounds.cpus, memory, period_seconds=self.bounds.period_seconds)
        self._go()
        self._expect("loaded", deadline)

    def run(self, workflow: str, stage: int, batch: Sequence[Arguments], seconds: float) -> list[Any]:
        """Run a stage: a result for each, or one iterator of pieces."""
        if self._link is None or self._process is None or self._process.poll() is not None:
            self._end()
            self.start()
        deadline = time.monotonic() + seconds
        self._send(pickle.dumps(("run", workflow, stage, pickle.dumps(list(batch), protocol=5)), protocol=5))
        word, content = self._heard(deadline)
        if word == "pieces":
            return [self._pieces(seconds)]
        results: list[Any] = content
        return results

    def close(self) -> None:
        """Let the model go, and end the process."""
        if self._link is not None and self._process is not None and self._process.poll() is None:
            with suppress(OSError):
                self._link.send_bytes(pickle.dumps(("close",)))
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_SECONDS)
        self._end()
        self.group.remove()

    def _pieces(self, seconds: float) -> Iterator[Any]:
        is_over = False
        try:
            while True:
                self._send(b"next")
                word, piece = self._heard(time.monotonic() + seconds)
                if word == "done":
                    is_over = True
                    return
                yield piece
        except (StageRaisedError, SliceEndedError):
            is_over = True
            raise
        finally:
            if not is_over:  # no more are wanted
                self._send(b"enough")

    def _go(self) -> None:
        self._send(b"go")

    def _expect(self, word: str, deadline: float) -> None:
        heard, _ = self._heard(deadline)
        if heard != word:
            self._end()
            raise SliceEndedError(f"the process of model '{self.name}' says '{heard}', expected '{word}'")

    def _send(self, content: bytes) -> None:
        assert self._link is not None
        try:
            self._link.send_bytes(content)
        except OSError:
            raise self._ended() from None

    def _heard(self, deadline: float) -> tuple[str, Any]:
        """The next word of the process; raises what it raised, or that it has ended, in time or too late."""
        assert self._link is not None
        try:
            if not self._link.poll(max(deadline - time.monotonic(), 0.0)):
                self._end()
                raise SliceEndedError(f"the process of model '{self.name}' took longer than it may, and was ended")
            word, content = pickle.loads(self._link.recv_bytes())
        except (EOFError, OSError):
            raise self._ended() from None
        if word == "problem":
            kind, words = content
            raise StageRaisedError(f"{kind}: {words}")
        return word, content

    def _ended(self) -> SliceEndedError:
        """What has ended the process."""
        assert self._process is not None
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)
        status = self._process.poll()
        needed_more = status == -signal.SIGKILL and self.group.ran_out_of_memory()
        self._end()
        if needed_more:
            return SliceEndedError(
                f"the process of model '{self.name}' needed more memory than the {self.memory_bytes / 1e6:.0f} MB "
                "of its slice, and was ended by the kernel"
            )
        how = "without a word" if status is None or status >= 0 else f"by signal {signal.Signals(-status).name}"
        return SliceEndedError(f"the process of model '{self.name}' was ended {how}")

    def _end(self) -> None:
        """End the process, with all that it has started."""
        process, self._process = self._process, None
        link, self._link = self._link, None
        if link is not None:
            link.close()
        if process is not None:
            process.kill()
            process.wait()
        self.group.kill()


def program(settings_path: str, model: str) -> Callable[[int], list[str]]:
    """The command of a copy of a model, by its descriptor; groups are added at its end."""
    words = (settings_path, model)
    module = "fairway.live.serving.local.model_program"
    return lambda descriptor: [sys.executable, "-m", module, *words, str(descriptor), str(os.getpid())]
