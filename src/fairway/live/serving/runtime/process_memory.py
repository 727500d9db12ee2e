"""How much memory this process holds, as the system counts it; and giving back what it does not need."""

from __future__ import annotations

import ctypes
import gc
import os
from contextlib import suppress
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")
_STATM, _STATUS, _CLEAR = Path("/proc/self/statm"), Path("/proc/self/status"), Path("/proc/self/clear_refs")


def resident_bytes() -> int:
    """The bytes of this process that are in memory (resident set size)."""
    return int(_STATM.read_text().split()[1]) * _PAGE


def peak_bytes() -> int:
    """The most bytes that were in memory since `forget_peak`."""
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def forget_peak() -> bool:
    """Count the peak from now on; False where the system does not allow that."""
    with suppress(OSError):
        _CLEAR.write_text("5")
        return True
    return False


def give_back() -> None:
    """Collect garbage, and give memory that is free inside this process back to the system."""
    gc.collect()
    with suppress(OSError, AttributeError):  # another C library than GNU's
        ctypes.CDLL("libc.so.6").malloc_trim(0)
