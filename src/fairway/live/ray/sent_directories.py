"""The controller's side of work directories that are sent to nodes: which are, and the package of each job.

A node that has a directory at the same path, such as one of a shared file system, uses that. Otherwise the directory of
the controller's machine is packed (`work_package`) and sent, once for each node and job.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any

from fairway.errors import InputError
from fairway.live.backend.answers import BackendGoneError, Refusal, RefusedError
from fairway.live.backend.commands import JobProgram, StartRun
from fairway.live.durable_file import replacing
from fairway.live.local.programs import refuse_what_cannot_run
from fairway.live.ray.bridge_client import BridgeGoneError
from fairway.live.ray.work_package import pack, packed_files

Ask = Callable[..., Awaitable[Any]]
"""Asks the bridge something; raises `BridgeGoneError`."""


@dataclass(frozen=True, slots=True)
class WorkPackage:
    """A file, and the hash of it."""

    path: Path
    digest: str


class WorkPackages:
    """The packages of all jobs, in a directory of the controller. Any thread may ask."""

    def __init__(self, directory: Path) -> None:
        self._directory, self._lock = directory, Lock()

    def of(self, job: str, workdir: Path) -> WorkPackage:
        """The package of a job, which is made if there is none; an `InputError` says what cannot be packed."""
        path = self._directory / f"{job}.tar.gz"
        with self._lock:
            if not path.exists():
                self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                with replacing(path) as part:
                    pack(workdir, part)
            with path.open("rb") as file:
                return WorkPackage(path, hashlib.file_digest(file, "sha256").hexdigest())

    def drop(self, job: str) -> None:
        """A job never comes back."""
        (self._directory / f"{job}.tar.gz").unlink(missing_ok=True)

    async def sent(self, part: StartRun, node: str, ask: Ask) -> StartRun:
        """A run with its work directory as its node has it, to which it is sent if it is not there."""
        program, workdir = part.program, str(part.program.workdir)
        try:
            if await ask("sees", node=node, path=workdir):
                return part
            package = await asyncio.to_thread(self.of, part.job, Path(workdir))
            there = await ask("deliver", node=node, job=part.job, path=str(package.path), digest=package.digest)
        except InputError as error:
            raise RefusedError(Refusal.CANNOT_START, str(error)) from None
        except BridgeGoneError as error:
            raise BackendGoneError(f"workdir: '{workdir}' cannot be sent to node {node}: {error}") from None
        return replace(part, program=replace(program, workdir=str(there)))


def can_be_sent(program: JobProgram) -> bool:
    """Whether a job's work directory is here, so that it can be sent to nodes that do not have it.

    That of a job which runs as another user is not: it would not be that user's.
    """
    return program.workdir is not None and program.user is None and Path(program.workdir).is_dir()


def without_files(program: JobProgram) -> JobProgram:
    """What nodes can be asked about before they have the work directory; refuses one that cannot be sent."""
    packed_files(Path(program.workdir or "/"))
    refuse_what_cannot_run(replace(program, checkpoint_directory=None))
    command = program.setup or program.run
    word = command.split(maxsplit=1)[0] if isinstance(command, str) else command[0]
    plain = replace(program, workdir=None, requirements=None)
    return replace(plain, run="true", setup=None) if "/" in word and not word.startswith("/") else plain
