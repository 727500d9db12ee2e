"""A work directory that is sent to nodes which do not have it: packed once for a job, the same for all of its nodes.

The package is an archive of the directory as it was when the job first started, without what is ignored
(`ignored_files`). It is known by the hash of its bytes. A node unpacks it into a directory of the job, whole or not at
all; the job finds there what an attempt of before has left on that node.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path

from fairway.errors import InputError
from fairway.live.ray.ignored_files import NAMES, IgnoredFiles

MOST_BYTES = 500 * 2**20
_MOST_FILES = 100_000
_WHAT_TO_DO = f"name what is not needed in {NAMES[0]}, or use a directory that the nodes share"


def pack(workdir: Path, path: Path) -> None:
    """Write the package of a directory to a file; the same files have the same bytes."""
    files = packed_files(workdir)
    with (
        path.open("wb") as file,
        gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=1, mtime=0) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name in files:
            archive.add(workdir / name, name, recursive=False, filter=_without_owner)


def packed_files(workdir: Path) -> list[str]:
    """What a package of a directory holds; refuses what is too large, or leads out of it."""
    found, size = [], 0
    largest = ("", 0)
    for name, status in _walk(workdir, IgnoredFiles.of(workdir), ""):
        if stat.S_ISLNK(status.st_mode):
            target = os.path.normpath(Path(name).parent / (workdir / name).readlink())
            if target.startswith(("/", "../")) or target == "..":
                raise InputError(f"workdir: '{workdir / name}' is a link that leads out of it; {_WHAT_TO_DO}")
        found.append(name)
        size += status.st_size
        largest = max(largest, (name, status.st_size), key=lambda one: one[1])
        if size > MOST_BYTES or len(found) > _MOST_FILES:
            what = f"more than {MOST_BYTES // 2**20} MB" if size > MOST_BYTES else f"more than {_MOST_FILES} files"
            raise InputError(
                f"workdir: '{workdir}' is not on every node and has {what} to be sent there, of which '{largest[0]}' "
                f"is the largest so far; {_WHAT_TO_DO}"
            )
    return found


def _walk(workdir: Path, ignored: IgnoredFiles, below: str) -> Iterator[tuple[str, os.stat_result]]:
    try:
        entries = sorted(os.scandir(workdir / below), key=lambda entry: entry.name)
    except OSError as error:
        raise InputError(f"workdir: '{workdir / below}' cannot be read: {error.strerror}") from None
    for entry in entries:
        name, status = below + entry.name, entry.stat(follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            if f"{name}/" not in ignored:
                yield name, status
                yield from _walk(workdir, ignored, f"{name}/")
        elif name not in ignored and (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
            yield name, status


def _without_owner(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = int(member.mtime)
    return member


class ReceivedPackages:
    """The node's side: work directories of jobs, below a directory of the node."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def find(self, job: str, digest: str) -> str | None:
        """Where the package of a job was unpacked."""
        path = self._place(job, digest)
        return str(path) if path.is_dir() else None

    def receive(self, job: str, digest: str, position: int, content: bytes, *, last: bool) -> str | None:
        """Take a part of a package in; with the last, where it was unpacked. Raises if it is not what was packed."""
        place = self._place(job, digest)
        incoming = place.with_suffix(".tar.gz")
        incoming.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with incoming.open("r+b" if position else "wb") as file:
            file.seek(position)
            file.write(content)
            file.truncate()
        if not last:
            return None
        with incoming.open("rb") as file:
            arrived = hashlib.file_digest(file, "sha256").hexdigest()
        if arrived != digest:
            incoming.unlink()
            raise ValueError("the package of the work directory did not arrive as it was sent")
        new = place.with_suffix(".new")
        shutil.rmtree(new, ignore_errors=True)
        with tarfile.open(incoming, "r:gz") as archive:
            archive.extractall(new, filter="data")
        incoming.unlink()
        new.replace(place)
        return str(place)

    def drop(self, job: str) -> None:
        """A job never comes back."""
        shutil.rmtree(self._directory / job, ignore_errors=True)

    def _place(self, job: str, digest: str) -> Path:
        return self._directory / job / digest[:16]
