"""The program of a process that decides: takes problems one after the other, and answers each with an allocation.

It keeps nothing between two of them, so that it can be killed at any moment and another started. It ends by itself when
the controller is gone, or when a decision takes much more of a processor than its budget, should the controller have
been killed in the middle of it.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
import time
from multiprocessing.connection import Connection
from typing import Any

from fairway.allocate.policy import Policy
from fairway.errors import FairwayError
from fairway.live.training.decision.messages import allocation_message, problem_of

READY = "ready"
DECIDED, REFUSED, FAILED = "decided", "refused", "failed"

_SPARE_SECONDS = 10
_WATCH_SECONDS = 1.0


def main(descriptor: int) -> None:
    """Answer until the other side is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the controller
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    connection: Connection[Any, Any] = Connection(descriptor)
    try:
        connection.send(READY)
        while True:
            policy, message, seconds = connection.recv()
            _limit_processor_time(seconds)
            connection.send(_answer(policy, message))
    except (EOFError, ConnectionError):
        return


def _answer(policy: Policy, message: dict[str, Any]) -> tuple[str, Any]:
    try:
        return DECIDED, allocation_message(policy.allocate(problem_of(message)))
    except FairwayError as error:
        return REFUSED, str(error)
    except Exception as error:
        return FAILED, f"{type(error).__name__}: {error}"


def _limit_processor_time(seconds: float) -> None:
    """Let the kernel end this process should it never end by itself: compiled code may not even notice a signal."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = int(used.ru_utime + used.ru_stime + seconds) + _SPARE_SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (most, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_WATCH_SECONDS)
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
