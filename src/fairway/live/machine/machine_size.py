"""How many CPUs and how much memory this machine has for jobs: what this process may use of them."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from fairway.live.backend.status import MachineSize

_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where a container finds how much of the machine's memory it may use, in version 2 and 1 of control groups."""


def machine_size() -> MachineSize:
    """What is found of this machine."""
    return MachineSize(cpus=float(len(os.sched_getaffinity(0))), memory_bytes=_memory_bytes())


def _memory_bytes() -> int:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in _LIMITS:
        with suppress(OSError, ValueError):  # there is none, or it says "max"
            memory = min(memory, int(Path(limit).read_text()))
    return memory
