"""What every worker process does about its own life: when it ends, and what it leaves behind.

It ends when its supervisor ends it, and also when its supervisor is gone, however that ended: then it removes what all
processes of the application have shared, since no other process is left to do so.
"""

from __future__ import annotations

import gc
import logging
import os
import resource
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from fairway.live.serving.supervise.open_files import allow_many_files
from fairway.live.serving.supervise.parent_process import end_with_parent
from fairway.live.serving.supervise.settings import ServingSettings

_PATIENCE_SECONDS = 2.0
_MOST_MEMORY = 0.9
_OOM_SCORE = "800"


class Program(Protocol):
    """What a worker process is there for."""

    def serve(self) -> None:
        """Until the process ends."""
        ...

    def close(self) -> None:
        """Send what is left to be sent."""
        ...


def serve_until_ended(make: Callable[[ServingSettings, int, int], Program], path: str, *numbers: str) -> None:
    """Run the program that `make` makes of the settings in a file, its number and its epoch.

    The last of the numbers is that of the parent process: the program ends with it.
    """
    settings = ServingSettings.read(Path(path))
    number, epoch, parent = map(int, numbers)
    name = settings.name_of(number)
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s {name} %(levelname)s %(message)s")
    program: Program | None = None

    def end(*_: Any) -> None:
        if program is not None:
            program.close()
        os._exit(0)  # there is nothing to be saved, and a stage may be running

    def abandoned(*_: Any) -> None:
        if _has_ended(parent, _PATIENCE_SECONDS) and settings.parent_owns_memory:
            shutil.rmtree(settings.memory_directory, ignore_errors=True)
        end()

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the supervisor, which stops its processes in order
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGHUP, abandoned)
    end_with_parent(parent)
    allow_many_files()
    _bound_memory()
    program = make(settings, number, epoch)
    gc.freeze()  # what was imported stays: looking through all of it would take 45 ms each time that a model goes
    program.serve()


def _bound_memory() -> None:
    """Let a stage that allocates without end get a `MemoryError`; if memory is short, this process goes first."""
    most = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        if hard == resource.RLIM_INFINITY or hard > most:
            resource.setrlimit(resource.RLIMIT_DATA, (int(_MOST_MEMORY * most), hard))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE)


def _has_ended(parent: int, patience_seconds: float) -> bool:
    """Whether the parent is gone, or will be in a moment: its threads do not end all at once."""
    deadline = time.monotonic() + patience_seconds
    while os.getppid() == parent:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True
