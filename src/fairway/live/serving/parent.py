"""What a process asks of the system: to end with the one that started it, and to have many files open."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
import time
from contextlib import suppress

_PR_SET_PDEATHSIG = 1


def end_with_parent(parent: int) -> None:
    """Let this process get SIGHUP when the thread of its parent that started it ends, however that ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGHUP, 0, 0, 0)
    if os.getppid() != parent:  # it ended before the system knew of the wish
        sys.exit(0)


def has_ended(parent: int, patience_seconds: float) -> bool:
    """Whether the parent is gone, or will be in a moment: its threads do not end all at once."""
    deadline = time.monotonic() + patience_seconds
    while os.getppid() == parent:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def allow_many_files() -> None:
    """Let this process have as many connections as the system permits; often it is 1024 unless one asks."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
