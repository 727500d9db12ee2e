"""What every process of a served application does about its own life: when it ends, and what it leaves behind."""

from __future__ import annotations

import gc
import logging
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from fairway.live.serving.parent import allow_many_files, end_with_parent, has_ended
from fairway.live.serving.settings import ServingSettings

_PATIENCE_SECONDS = 2.0


class Serves(Protocol):
    """Something that a process is there for."""

    def serve(self) -> None:
        """Until the process is told to end."""
        ...

    def close(self) -> None:
        """Send what is left to be sent."""
        ...


def serve_until_told(make: Callable[[ServingSettings, int, int], Serves], path: str, *numbers: str) -> None:
    """Be what `make` makes until told to stop, or until the supervisor is gone.

    It is made of the settings in the file, its number and its epoch. The last number is that of the parent process.
    """
    settings = ServingSettings.read(Path(path))
    number, epoch, parent = map(int, numbers)
    name = settings.name_of(number)
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s {name} %(levelname)s %(message)s")
    made: Serves | None = None

    def end(*_: Any) -> None:
        if made is not None:
            made.close()
        os._exit(0)  # there is nothing to be saved, and a stage may be running

    def abandoned(*_: Any) -> None:
        if has_ended(parent, _PATIENCE_SECONDS):  # then nobody else is left to do it
            shutil.rmtree(settings.memory_directory, ignore_errors=True)
        end()

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the supervisor, which stops its processes in order
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGHUP, abandoned)
    end_with_parent(parent)
    allow_many_files()
    made = make(settings, number, epoch)
    gc.freeze()  # what was imported stays: looking through all of it would take 45 ms each time that a model goes
    made.serve()
