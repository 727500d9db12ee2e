"""Writes a file that is there whole or not at all: readers, and a full disk, never leave half of one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from fairway.errors import InputError


def write_whole(target: str | Path, text: str) -> None:
    """Write text to a file beside it, then put that in its place; what UTF-8 has no code for becomes a `?`."""
    write_whole_bytes(target, text.encode("utf-8", "replace"))


def write_whole_bytes(target: str | Path, content: bytes) -> None:
    """Write bytes to a file beside it, then put that in its place."""
    path = Path(os.path.realpath(target))
    try:
        if path.exists() and not path.is_file() and not path.is_dir():  # a device or a pipe cannot be replaced
            path.write_bytes(content)
            return
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            with part.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            if path.exists():
                shutil.copymode(path, part)
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise InputError(f"{target}: cannot be written: {error.strerror or error}; name a file that can") from None
