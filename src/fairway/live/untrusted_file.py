"""Opens and reads files that a job can write, and believes nothing of them: neither their kind, nor their size or form.

A job may put a FIFO, a device, a link to a file of another user, a directory or a hundred megabytes of brackets where a
small file is expected. Each of these would hang, mislead or kill the process that looks, and with it all the other
jobs. So a file is opened without waiting and without following links, its kind is asked of the descriptor and not of
the name, no more than a stated number of bytes is read, and what can nest deeply is not parsed. What is wrong is an
`UntrustedFileError` whose message says so; it costs the job to which the file belongs, and no other.

Nothing heavy is imported here: every job that is cooperative reads this file.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

from fairway.errors import FairwayError

MOST_BYTES = 64 * 1024
"""How large a small file of a job may be."""

_MOST_OPENINGS = 64
"""Brackets that a small file may open, and so how deep it can nest at most."""

_KINDS = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_WRONG_KIND = {errno.ELOOP, errno.ENXIO, errno.EISDIR, errno.ENOTDIR, errno.ENODEV}


class UntrustedFileError(FairwayError):
    """A file is not what it should be: not a regular one, too large, or nested too deeply."""


def open_regular(path: Path, flags: int, mode: int = 0o600) -> int:
    """A descriptor of a regular file that no link leads to; raises `UntrustedFileError`, or `OSError` as `open` does.

    Neither the file nor its directory may be a link. Opening waits for nothing, and neither does the descriptor.
    """
    try:
        directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise _told(path.parent, error, "a directory") from None
    try:
        safely = os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY
        descriptor = os.open(path.name, flags | safely, mode, dir_fd=directory)
    except OSError as error:
        raise _told(path, error, "a regular file") from None
    finally:
        os.close(directory)
    kind = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(kind):
        os.close(descriptor)
        raise UntrustedFileError(f"{path} is {_kind(kind)}, expected a regular file")
    return descriptor


def read_regular(path: Path, most: int = MOST_BYTES) -> bytes | None:
    """All of a small file; None where there is none, or where it cannot be read."""
    try:
        descriptor = open_regular(path, os.O_RDONLY)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise UntrustedFileError(f"{path} is larger than {most} bytes, which is the most that is read of it")
    return content


def read_object(path: Path) -> dict[str, Any] | None:
    """The JSON object in a small file; None where there is no file, or what it holds is no object (yet)."""
    content = read_regular(path)
    if content is None:
        return None
    if content.count(b"[") + content.count(b"{") > _MOST_OPENINGS:
        raise UntrustedFileError(f"{path} opens more than {_MOST_OPENINGS} brackets, which is the most that is parsed")
    try:
        parsed = json.loads(content)
    except ValueError:
        return None
    return parsed if isinstance(parsed, dict) else None


def replace_regular(path: Path, content: bytes, *, owner: tuple[int, int] | None = None) -> None:
    """Put a small file into a directory of a job, whole or not at all, and give it to `owner`, a user and a group.

    Only names in that directory are touched, whatever the job has put there. Not synced to the disk.
    """
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    part = f".{path.name}.{os.getpid()}.part"
    try:
        with suppress(FileNotFoundError):
            os.unlink(part, dir_fd=directory)
        made = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(part, made, 0o600, dir_fd=directory), "wb") as file:
            file.write(content)
            if owner is not None:
                os.fchown(file.fileno(), *owner)
        os.replace(part, path.name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with suppress(OSError):
            os.unlink(part, dir_fd=directory)
        raise
    finally:
        os.close(directory)


def is_regular(path: Path) -> bool:
    """Whether there is a regular file of this name, and no link to one."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _told(path: Path, error: OSError, expected: str) -> Exception:
    """The error with which opening failed, in words where it failed because of what there is."""
    if error.errno not in _WRONG_KIND:
        return OSError(error.errno, error.strerror, str(path))
    try:
        found = _kind(path.lstat().st_mode)
    except OSError:
        found = "something else"
    return UntrustedFileError(f"{path} is {found}, expected {expected}")


def _kind(mode: int) -> str:
    return next((name for is_kind, name in _KINDS if is_kind(mode)), "a regular file")
