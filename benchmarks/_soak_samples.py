"""What a running system holds at one moment: memory, descriptors and threads of its lasting processes, and files.

A thing is flat if it is no more at the end than it was when all had warmed up. A median over a quarter of the time says
how much it was: single moments differ by what happens to run.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from fairway.live.local.identity import process_table

Sample = Mapping[str, float]

_PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 1e6


def process_sample(name: str, pid: int) -> dict[str, float]:
    """What one process holds, and how many of its children are dead and not waited for."""
    proc = Path("/proc") / str(pid)
    threads = next(line for line in (proc / "status").read_text().splitlines() if line.startswith("Threads:"))
    return {
        f"{name}: memory, MB": int((proc / "statm").read_text().split()[1]) * _PAGE_MB,
        f"{name}: descriptors": float(len(list((proc / "fd").iterdir()))),
        f"{name}: threads": float(threads.split()[1]),
        f"{name}: dead children": float(sum(_is_dead(row.pid) for row in process_table() if row.parent == pid)),
    }


def files_in(*directories: Path) -> float:
    """How many files and directories there are in all."""
    return float(sum(len(names) + len(files) for each in directories for _, names, files in os.walk(each)))


def growth(samples: Sequence[Sample]) -> dict[str, tuple[float, float]]:
    """Of each thing how much there was in the second quarter of the time, and how much in the last."""
    quarter = len(samples) // 4
    early, late = samples[quarter : 2 * quarter], samples[-quarter:]
    return {what: (median(one[what] for one in early), median(one[what] for one in late)) for what in samples[0]}


def _is_dead(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return False
