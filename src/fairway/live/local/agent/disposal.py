"""Removes the directories of runs that are forgotten, on a thread of its own.

A job may leave a million files in its channel, directories that no user may enter, or that are nested ten thousand
deep. None of it may hold up the agent: a directory is first renamed, so that its name is free at once, and removed as
fast as the disk can.
"""

from __future__ import annotations

import itertools
import logging
import os
from collections import deque
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread

_GONE = ".gone-"
_LOG = logging.getLogger(__name__)


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
            try:
                remove_tree(directory)
            except Exception:  # a thread that ends here would leave all that follows where it is
                _LOG.exception("%s cannot be removed", directory)


def remove_tree(directory: Path) -> None:
    """Remove a directory, or whatever has its name, also where a job has closed it; what cannot be removed stays.

    A job can nest directories deeper than a path can name or a function can call itself. So what is inside an inner
    directory is moved up to the outermost, which then is a flat one; no link is followed.
    """
    with suppress(OSError):
        if directory.is_symlink() or not directory.is_dir():
            return directory.unlink()
        directory.chmod(0o700)
        top = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            _empty(top)
        finally:
            os.close(top)
        directory.rmdir()
    return None


def _empty(top: int) -> None:
    inside = deque(_files_removed(top))
    numbers = itertools.count()
    while inside:
        name = inside.popleft()
        with suppress(OSError):
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=top)
            try:
                for each in _files_removed(inner):
                    moved = f"{_GONE}{os.getpid()}-{next(numbers)}"
                    with suppress(OSError):
                        os.rename(each, moved, src_dir_fd=inner, dst_dir_fd=top)
                        inside.append(moved)
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=top)


def _files_removed(directory: int) -> list[str]:
    """The directories in a directory, with the right to enter them; all else in it is removed."""
    inner = []
    with os.scandir(directory) as entries:
        for entry in entries:
            with suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    inner.append(entry.name)
                    os.chmod(entry.name, 0o700, dir_fd=directory)
                else:
                    os.unlink(entry.name, dir_fd=directory)
    return inner
