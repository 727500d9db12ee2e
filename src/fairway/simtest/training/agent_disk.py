"""The disk of the agent: its small files are real ones in memory, of which it is known what was synced.

When the power fails, a file whose content was not synced may be there, be empty, be what it was when it was last
synced, or be gone. A killed process writes nothing any more, and on a full disk no file can be replaced.
"""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from random import Random


class AgentDisk:
    """The files below a directory; `sync` takes the place of the system's."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._synced_parts: dict[Path, set[bytes]] = {}
        self._platter: dict[Path, bytes] = {}
        self.full = False

    def refuse_if_full(self) -> None:
        """Raise as a write to a full disk does."""
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def sync(self, path: Path) -> None:
        """A file's content is on the platter, or the names in a directory are."""
        if not path.is_dir():
            self._synced_parts.setdefault(path.parent, set()).add(path.read_bytes())
            return
        contents = self._synced_parts.pop(path, set())
        for file in path.iterdir():
            if file.is_file() and not file.is_symlink() and (content := file.read_bytes()) in contents:
                self._platter[file] = content

    def lose_power(self, draw: Random) -> int:
        """Let what was not synced be lost, or not; returns how many files have lost something."""
        lost = 0
        for part in ("runs", "channels"):
            for run in sorted((self._directory / part).glob("*")):
                if draw.random() < 0.2 and not any(file.parent == run for file in self._platter):
                    shutil.rmtree(run, ignore_errors=True)
                    lost += 1
        for file in sorted(path for path in self._directory.rglob("*") if path.is_file() and not path.is_symlink()):
            synced = self._platter.get(file)
            if file.read_bytes() == synced or draw.random() < 0.5:
                continue
            lost += 1
            if draw.random() < 0.5:
                file.write_bytes(b"")
            elif synced is not None:
                file.write_bytes(synced)
            else:
                file.unlink()
        return lost
