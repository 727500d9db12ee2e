"""Removes the directories of runs that are forgotten, on a thread of its own.

A job may leave a million files in its channel, or directories that nobody may enter. Neither may hold up the agent: a
directory is first renamed, so that its name is free at once, and removed as fast as the disk can.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

_GONE = ".gone-"


class Disposal:
    """The directories that are to be removed; the thread lives for as long as there are any."""

    def __init__(self) -> None:
        self._waiting: SimpleQueue[Path] = SimpleQueue()
        self._lock = Lock()
        self._thread: Thread | None = None
        self._count = 0

    def remove(self, directory: Path) -> None:
        """Have a directory and all that is in it removed; it is not there any more when this returns."""
        if not directory.name.startswith(_GONE):
            self._count += 1
            renamed = directory.with_name(f"{_GONE}{os.getpid()}-{self._count}-{directory.name}"[:255])
            try:
                directory.rename(renamed)
            except FileNotFoundError:
                return
            except OSError:  # it is removed under its own name
                renamed = directory
            directory = renamed
        with self._lock:
            self._waiting.put(directory)
            if self._thread is None:
                self._thread = Thread(target=self._work, name="fairway-disposal", daemon=True)
                self._thread.start()

    def finish(self, seconds: float) -> None:
        """Wait for what is to be removed, but no longer than this; the next agent removes the rest."""
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join(seconds)

    def _work(self) -> None:
        while True:
            with self._lock:
                if self._waiting.empty():
                    self._thread = None
                    return
                directory = self._waiting.get()
            remove_tree(directory)


def remove_tree(directory: Path) -> None:
    """Remove a directory, or whatever has its name, also where a job has closed it; what cannot be removed stays."""
    if directory.is_dir() and not directory.is_symlink():
        shutil.rmtree(directory, onerror=_opened)
    else:
        with suppress(OSError):
            directory.unlink()


def _opened(function: Callable[..., Any], path: str, _: Any) -> None:
    """Let a directory be entered that its job has closed, and try again."""
    with suppress(OSError):
        for each in (path, os.path.dirname(path)):  # noqa: PTH120 - plain text, as rmtree gives it
            if stat.S_ISDIR(os.lstat(each).st_mode):
                os.chmod(each, 0o700, follow_symlinks=True)  # noqa: PTH101 - as above
        if function in {os.open, os.scandir, os.lstat}:
            shutil.rmtree(path, ignore_errors=True)
        else:
            function(path)
