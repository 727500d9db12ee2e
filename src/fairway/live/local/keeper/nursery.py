"""Starts keepers by forking: an interpreter that has all they need loaded already, so that a keeper costs milliseconds.

    python -m fairway.live.local.keeper.nursery AGENT_DIRECTORY

The agent has one. It has a single thread, holds no lock and no state. Its standard input is a socket, over which come
the directories of runs that want a keeper, and over which go back those whose keeper has ended. Killed, it costs
nothing: keepers are in sessions of their own and go on, and the agent starts another. It ends when the agent does. What
a killed keeper leaves behind becomes a child of the nursery, by which it is known, and is killed.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

from fairway.live.local.keeper import process as keeper
from fairway.live.local.keeper.process import CHILD_SUBREAPER, children_of, prctl

MOST_BYTES = 8192
"""How long the name of a directory may be."""

_LAST_SECONDS = 2.0
"""How long it may still have to do with orphans after the agent has gone."""


def main() -> int:
    """Start keepers until the agent is gone."""
    agent = socket.socket(fileno=os.dup(0))
    prctl(CHILD_SUBREAPER, 1)
    reader, writer = os.pipe()
    for end in (reader, writer):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: None)  # it ends with the agent, which has its own way to end
    gc.collect()
    gc.freeze()  # what keepers share with it stays shared
    keepers: dict[int, str] = {}
    while True:
        ready, _, _ = select.select([agent.fileno(), reader], [], [])
        if reader in ready:
            with suppress(BlockingIOError):
                while os.read(reader, 4096):
                    pass
            _reap(agent, keepers)
        if agent.fileno() in ready:
            directory = agent.recv(MOST_BYTES).decode()
            if not directory:
                _end_orphans(agent, keepers)
                return 0
            pid = os.fork()
            if pid == 0:
                _keep(directory, [agent.fileno(), reader, writer])
            keepers[pid] = directory


def _keep(directory: str, closing: list[int]) -> None:
    """Be the keeper of a run; never returns."""
    code = 1
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        for descriptor in closing:
            os.close(descriptor)
        os.chdir("/")
        nothing = os.open(os.devnull, os.O_RDONLY)
        log = os.open(Path(directory) / "keeper.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        for descriptor, standard in ((nothing, 0), (log, 1), (log, 2)):
            os.dup2(descriptor, standard)
        os.close(nothing)
        os.close(log)
        prctl(CHILD_SUBREAPER, 0)
        code = keeper.main(directory)
    except BaseException:  # as at the top of any program: it is told in the log of the keeper
        sys.excepthook(*sys.exc_info())
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _end_orphans(agent: socket.socket, keepers: dict[int, str]) -> None:
    """Kill what killed keepers have left behind, each process with those that come to this one by its death."""
    deadline = time.monotonic() + _LAST_SECONDS
    _reap(agent, keepers)
    while children_of(os.getpid()) - keepers.keys() and time.monotonic() < deadline:
        time.sleep(0.005)
        _reap(agent, keepers)


def _reap(agent: socket.socket, keepers: dict[int, str]) -> None:
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            break
        if pid == 0:
            break
        if pid in keepers:
            with suppress(OSError):  # the agent finds out by itself, a moment later
                agent.send(keepers.pop(pid).encode(), socket.MSG_DONTWAIT)
    for pid in children_of(os.getpid()) - keepers.keys():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
