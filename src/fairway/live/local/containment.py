"""Puts all processes of a run into a control group of the kernel, so that the end of the run is the end of all of them.

A process can leave its session and empty its environment, and when its keeper is killed nothing in the process table
says to which run it belonged. Out of its control group it comes only with the rights of the agent's user on the groups.
There are two kinds of hierarchies. In that of version 2 a group can be killed with one write; in those of version 1,
whose `pids` also bounds how many processes a run may have, each process is killed until there is none. Where no group
can be made, because the system does not have them or does not let this user, `CAVEAT` says what that means.
"""

from __future__ import annotations

import hashlib
import logging
import os
import signal
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

CAVEAT = (
    "no control group can be made here: a process that a job detaches, and that empties its environment, outlives the "
    "job if keeper and agent are killed at once"
)

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunGroup:
    """The group of one run, once in each hierarchy that is used; nothing at all where there are none."""

    paths: tuple[Path, ...] = ()

    def make(self) -> None:
        """Make it, with a bound on how many processes it may have; one that cannot be made is not used."""
        for path in self.paths:
            with suppress(OSError):
                path.mkdir(parents=True, exist_ok=True)
                with suppress(OSError):
                    (path / "pids.max").write_text(str(most_processes()))

    def enter(self) -> None:
        """Move this process into it; for a process that was just forked, before it becomes the job's."""
        for path in self.paths:
            with suppress(OSError):
                descriptor = os.open(path / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)
                os.write(descriptor, b"0")
                os.close(descriptor)

    def is_empty(self) -> bool:
        """Whether it exists and no process is in it; one that has ended is not, also before it was waited for."""
        if not any(path.is_dir() for path in self.paths):
            return False
        return not any(True for path in self.paths for _ in _members(path))

    def kill(self, patience: float = 1.0) -> bool:
        """Kill all that is in it; whether nothing is left."""
        deadline = time.monotonic() + patience
        while True:
            left = [pid for path in self.paths for pid in _members(path)]
            if not left:
                return True
            if time.monotonic() > deadline:
                return False
            for path in self.paths:
                with suppress(OSError):
                    (path / "cgroup.kill").write_text("1")
            for pid in left:  # a member cannot be a stranger: numbers are given away only after a process has left
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.002)

    def remove(self) -> None:
        """Remove it, if it is empty."""
        for path in self.paths:
            for directory in _nested(path):
                with suppress(OSError):
                    directory.rmdir()


@dataclass(frozen=True, slots=True)
class Containment:
    """Where the groups of an agent's runs are made: `parents`, one in each hierarchy that can be used."""

    parents: tuple[Path, ...] = ()

    @classmethod
    def found(cls, directory: Path) -> Containment:
        """What this process may use, for the agent of a directory."""
        name = f"fairway-{hashlib.sha256(str(directory).encode()).hexdigest()[:12]}"
        return cls(tuple(path for own in _own_groups() if _is_usable(path := own / name)))

    @property
    def caveats(self) -> tuple[str, ...]:
        """What a user has to know of what the kernel does not offer here."""
        return () if self.parents else (CAVEAT,)

    def group_of(self, run: str) -> RunGroup:
        """The group of a run, by the name of its directory."""
        return RunGroup(tuple(parent / run for parent in self.parents))

    def clear(self, known: Collection[str]) -> None:
        """Kill and remove the groups of runs of which the agent has no record."""
        names = {path.name for parent in self.parents for path in parent.glob("*") if path.is_dir()}
        for name in names - set(known):
            group = self.group_of(name)
            if not group.kill():
                _LOG.error("processes of the control group %s cannot be killed", name)
            group.remove()

    def discard(self) -> None:
        """Remove what the groups were made in, unless runs still have some there."""
        for parent in self.parents:
            with suppress(OSError):
                parent.rmdir()


def group_at(paths: Sequence[str]) -> RunGroup:
    """A group by the paths that were written down."""
    return RunGroup(tuple(Path(path) for path in paths))


def _own_groups() -> Iterator[Path]:
    """The groups of this process in the hierarchy of version 2 and in that of `pids`, if there are such."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
        groups = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    except OSError:
        return
    for mount in mounts:
        before, _, after = mount.partition(" - ")
        kind, _, options = after.split(" ", 2)
        root, point = before.split(" ")[3:5]
        for number, controllers, path in groups:
            second = kind == "cgroup2" and number == "0" and not controllers
            bounding = kind == "cgroup" and "pids" in controllers.split(",") and "pids" in options.split(",")
            if second or bounding:
                inside = path if root == "/" else path.removeprefix(root)  # a container sees a part of the hierarchy
                yield Path(point, inside.lstrip("/"))


def _is_usable(path: Path) -> bool:
    try:
        path.mkdir(exist_ok=True)
        trial = path / f".trial-{os.getpid()}"
        trial.mkdir()
    except OSError:
        return False
    try:
        return os.access(trial / "cgroup.procs", os.W_OK) and os.access(path.parent / "cgroup.procs", os.W_OK)
    finally:
        trial.rmdir()


def _nested(path: Path) -> Iterator[Path]:
    """A group and those that a job has made in it, the innermost first; a job may have nested them a thousand deep."""
    found, unseen = list[str](), [str(path)]
    while unseen:
        group = unseen.pop()
        try:
            unseen += [entry.path for entry in os.scandir(group) if entry.is_dir(follow_symlinks=False)]
        except OSError:
            continue
        found.append(group)
    yield from map(Path, reversed(found))


def _members(path: Path) -> Iterator[int]:
    for directory in _nested(path):
        with suppress(OSError, ValueError):
            yield from [int(pid) for pid in (directory / "cgroup.procs").read_text().split()]


def most_processes() -> int:
    """A quarter of what the whole machine can have, so that a job that forks without end leaves room for others."""
    try:
        most = int(Path("/proc/sys/kernel/pid_max").read_text())
    except (OSError, ValueError):
        most = 32768
    return max(min(most // 4, 32768), 1024)
