"""A small file system for tests of full disks, where this user may mount one."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest


@contextmanager
def small_disk(path: Path, mebibytes: int) -> Iterator[Path]:
    """A file system of this size, mounted in a directory; skips the test where that is not permitted."""
    path.mkdir()
    try:
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs", str(path)], capture_output=True, check=False
        )
    except FileNotFoundError:
        pytest.skip("there is no 'mount' on this machine")
    if mounted.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield path
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def fill(path: Path) -> None:
    """Write a file until its disk has no room left."""
    with path.open("ab", buffering=0) as file, suppress(OSError):
        for size in (2**20, 2**12, 1):
            with suppress(OSError):
                while True:
                    file.write(b"\0" * size)


def free_bytes(path: Path) -> int:
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize
