"""The directory that an application is served from: one supervisor at a time has it, and leaves nothing in it but logs.

Beside it is a directory in memory, which the settings name, for what processes share.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import suppress
from pathlib import Path

from fairway.errors import InputError
from fairway.live.serving.supervise.settings import ServingSettings

_LONGEST_PATH = 107
"""Bytes in the path of a Unix socket."""


class ServingDirectory:
    """The directory of some settings, taken by a supervisor and released again."""

    def __init__(self, settings: ServingSettings) -> None:
        self._settings = settings
        self._lock: int | None = None

    def check(self) -> None:
        """Refuse a directory whose sockets would have names that are too long."""
        settings = self._settings
        longest = max(len(os.fsencode(settings.socket(number))) for number in settings.processes)
        if longest > _LONGEST_PATH:
            raise InputError(
                f"directory: {settings.directory} given, whose sockets would have names of {longest} bytes, at most "
                f"{_LONGEST_PATH} are possible; give a shorter one"
            )

    def take(self) -> None:
        """Make sure that no other supervisor serves from here, and clear up after one that was killed."""
        place = self._settings.directory
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        while True:
            lock = os.open(place / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(lock)
                raise InputError(f"directory: {place} is in use by another 'fairway serve'; give another one") from None
            with suppress(OSError):
                if os.fstat(lock).st_ino == (place / "lock").stat().st_ino:
                    break
            os.close(lock)  # its owner has just removed it
        self._lock = lock
        with suppress(OSError, ValueError, TypeError, KeyError):
            before = ServingSettings.read(place / "settings.json")
            if before.memory_directory.name.startswith("fairway-"):
                shutil.rmtree(before.memory_directory, ignore_errors=True)
        self._settings.memory_directory.mkdir(mode=0o700)

    def release(self) -> None:
        """Remove what was shared, and let another supervisor have the directory."""
        if self._lock is None:
            return
        shutil.rmtree(self._settings.memory_directory, ignore_errors=True)
        place: Path = self._settings.directory
        for path in (*place.glob("*.sock"), place / "settings.json", place / "workflows.json", place / "lock"):
            path.unlink(missing_ok=True)
        os.close(self._lock)
        self._lock = None
