"""How many files a process may have open: every client and every worker that it is connected with takes one."""

from __future__ import annotations

import resource
from contextlib import suppress


def allow_many_files() -> None:
    """Let this process have as many connections as the system permits; often it is 1024 unless a process asks."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
