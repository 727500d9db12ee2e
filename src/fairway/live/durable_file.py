"""Writes small files that are there whole or not at all, and that stay there when the machine stops.

Nothing heavy is imported here: every job that is cooperative reads this file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fairway.fault_points import reached
from fairway.live.untrusted_file import UntrustedFileError, read_regular

_MOST_BYTES = 64 * 2**20


@contextmanager
def replacing(path: Path, *, durable: bool = True) -> Iterator[Path]:
    """Give the name of a file to write; on leaving, it takes the place of `path`, or is removed after an error.

    `durable` waits until the disk has the content and the name; without, only other processes see it whole.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        reached("file.begun")
        yield part
        reached("file.written")
        if durable:
            _sync(part)
        part.replace(path)
        reached("file.replaced")
        if durable:
            _sync(path.parent)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def write_json(path: Path, content: Mapping[str, Any], *, durable: bool = True) -> None:
    """Write an object, readable by its owner only, since environments hold secrets."""
    with replacing(path, durable=durable) as part:
        part.touch(mode=0o600)
        part.write_text(json.dumps(content), encoding="utf-8")


def create_json(path: Path, content: Mapping[str, Any], *, durable: bool = True) -> bool:
    """Write an object unless the file exists; of several processes that try, exactly one gets True."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        reached("file.begun")
        part.touch(mode=0o600)
        part.write_text(json.dumps(content), encoding="utf-8")
        if durable:
            _sync(part)
        reached("file.written")
        os.link(part, path)  # a link, unlike a rename, fails where there is something already
        if durable:
            _sync(path.parent)
    except FileExistsError:
        return False
    finally:
        part.unlink(missing_ok=True)
    return True


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in a file; None where there is none, or something that is not an object."""
    with suppress(UntrustedFileError, OSError, ValueError, RecursionError):
        content = json.loads(read_regular(path, _MOST_BYTES) or b"")
        if isinstance(content, dict):
            return content
    return None


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
