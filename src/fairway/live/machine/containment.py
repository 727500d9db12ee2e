"""Puts all processes of a run into a control group of the kernel, so that the end of the run is the end of all of them.

A process can leave its session and empty its environment, and when its keeper is killed nothing in the process table
says to which run it belonged. Out of its control group it comes only with the rights of the agent's user on the groups.
There are two kinds of hierarchies. In that of version 2 a group can be killed with one write; in those of version 1,
whose `pids` also bounds how many processes a run may have, each process is killed until there is none. Where no group
can be made, because the system does not have them or does not let this user, `CAVEAT` says what that means.

A group also bounds the CPUs and the memory of a run that asks for some: `cpu.max` and `memory.max` in version 2, where
these controllers can be handed down to the groups of runs, and in version 1 the quota and the limit of the hierarchies
of `cpu` and `memory`, which only such runs have groups in.
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

NAME = "fairway-"
"""How the names of the groups of agents begin."""

CAVEAT = (
    "no control group can be made here: a process that a job detaches, and that empties its environment, outlives the "
    "job if keeper and agent are killed at once"
)

NOT_ENFORCED = (
    "what jobs ask for of {} is counted, but not enforced: no control group can be bounded here, so that a job can "
    "take more than it asked for"
)

_PERIOD_SECONDS = 0.1
"""In which a quota of CPU time is counted, unless a shorter time is asked for."""

_SHORT_PERIOD_SECONDS = 0.005

_LEAST_QUOTA = 1000
"""Microseconds of CPU time in a period; less is refused by the kernel."""

_BOUNDS = {"cpu": ("cpu.max", "cpu.cfs_quota_us"), "memory": ("memory.max", "memory.limit_in_bytes")}
"""The file that bounds each resource, in version 2 and in version 1."""

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Bounds:
    """So many CPUs, in which stages of models run evenly: their time is counted in short periods."""

    cpus: float

    @property
    def period_seconds(self) -> float:
        """As short as the kernel's least quota allows."""
        return min(max(_SHORT_PERIOD_SECONDS, 1e-6 * _LEAST_QUOTA / self.cpus), 1.0)


@dataclass(frozen=True, slots=True)
class RunGroup:
    """The group of one run, once in each hierarchy that is used; nothing at all where there are none."""

    paths: tuple[Path, ...] = ()

    def make(
        self,
        cpus: float | None = None,
        memory_bytes: int | None = None,
        *,
        period_seconds: float = _PERIOD_SECONDS,
    ) -> None:
        """Make it, or change its bounds on what it may have; one that cannot be made is not used.

        What it has of CPUs is counted in periods: within one, it may run at full speed until its quota is used up.
        """
        bounds = [("pids.max", str(most_processes()))]
        if cpus is not None:
            period = round(1e6 * period_seconds)
            quota = max(round(cpus * period), _LEAST_QUOTA)
            bounds += [("cpu.max", f"{quota} {period}")]
            # Of a group that has bounds, the kernel would refuse a period that the old quota does not fit.
            bounds += [("cpu.cfs_quota_us", "-1")]
            bounds += [("cpu.cfs_period_us", str(period)), ("cpu.cfs_quota_us", str(quota))]
        if memory_bytes is not None:  # what is swapped out counts, too, or the bound would be none
            bounds += [("memory.max", str(memory_bytes)), ("memory.swap.max", "0"), ("memory.oom.group", "1")]
            bounds += [(f"memory.{kind}limit_in_bytes", str(memory_bytes)) for kind in ("", "memsw.")]
        for path in self.paths:
            with suppress(OSError):
                path.mkdir(parents=True, exist_ok=True)
                for name, bound in bounds:
                    with suppress(OSError):
                        _write(path / name, bound)

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel has killed processes in it that needed more memory than it may have."""
        for path in self.paths:
            for name in ("memory.events", "memory.oom_control"):
                with suppress(OSError):
                    counts = dict(line.split(" ", 1) for line in (path / name).read_text().splitlines())
                    if int(counts.get("oom_kill", "0")):
                        return True
        return False

    def memory_used_bytes(self) -> int:
        """What its processes have of memory, with what the kernel keeps for them; 0 where that is not counted."""
        for path in self.paths:
            for name in ("memory.current", "memory.usage_in_bytes"):
                with suppress(OSError, ValueError):
                    return int((path / name).read_text())
        return 0

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
    """Where the groups of an agent's runs are made: `parents`, one in each hierarchy that can be used.

    `bounding` are those of further hierarchies, for runs that ask for CPUs or memory; `enforced` says which of the two
    can be bounded.
    """

    parents: tuple[Path, ...] = ()
    bounding: tuple[Path, ...] = ()
    enforced: frozenset[str] = frozenset(_BOUNDS)

    @classmethod
    def found(cls, directory: Path) -> Containment:
        """What this process may use, for the agent of a directory."""
        name = f"{NAME}{hashlib.sha256(str(directory).encode()).hexdigest()[:12]}"
        parents = tuple(path for own in _own_groups() if _is_usable(path := own / name))
        for parent in parents:
            _hand_down(parent)
        own = dict.fromkeys(group for kind in _BOUNDS for group in _own_groups(kind, second=False))
        bounding = tuple(
            path for group in own if (path := group / name) not in parents and _is_usable(path)
        )  # fmt: skip
        enforced = frozenset(kind for kind in _BOUNDS if any(_is_bounded(path, kind) for path in (*parents, *bounding)))
        return cls(parents, bounding, enforced)

    @staticmethod
    def places() -> tuple[Path, ...]:
        """Where agents may make groups, as far as this process can."""
        return tuple(dict.fromkeys(group for kind in ("pids", *_BOUNDS) for group in _own_groups(kind)))

    @classmethod
    def enforced_here(cls) -> frozenset[str]:
        """What could be bounded here; nothing of it stays."""
        trial = cls.found(Path(f"/trial/{os.getpid()}"))
        trial.discard()
        return trial.enforced

    @property
    def caveats(self) -> tuple[str, ...]:
        """What a user has to know of what the kernel does not offer here."""
        free = [words for kind, words in (("cpu", "CPUs"), ("memory", "memory")) if kind not in self.enforced]
        not_enforced = (NOT_ENFORCED.format(" and ".join(free)),) if free else ()
        return (*(() if self.parents else (CAVEAT,)), *not_enforced)

    def group_of(self, run: str, *, limited: bool = True) -> RunGroup:
        """The group of a run, by the name of its directory; one that is not `limited` asks for no CPUs or memory."""
        return RunGroup(tuple(parent / run for parent in (*self.parents, *(self.bounding if limited else ()))))

    def clear(self, known: Collection[str]) -> None:
        """Kill and remove the groups of runs of which the agent has no record."""
        there = (*self.parents, *self.bounding)
        names = {path.name for parent in there for path in parent.glob("*") if path.is_dir()}
        for name in names - set(known):
            group = self.group_of(name)
            if not group.kill():
                _LOG.error("processes of the control group %s cannot be killed", name)
            group.remove()

    def discard(self) -> None:
        """Remove what the groups were made in, unless runs still have some there."""
        for parent in (*self.parents, *self.bounding):
            with suppress(OSError):
                parent.rmdir()


def group_at(paths: Sequence[str]) -> RunGroup:
    """A group by the paths that were written down."""
    return RunGroup(tuple(Path(path) for path in paths))


def _own_groups(controller: str = "pids", *, second: bool = True) -> Iterator[Path]:
    """The groups of this process in the hierarchy of version 2, if wanted, and in that of a controller of version 1."""
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
            is_second = second and kind == "cgroup2" and number == "0" and not controllers
            named = kind == "cgroup" and controller in controllers.split(",") and controller in options.split(",")
            if is_second or named:
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


def _hand_down(parent: Path) -> None:
    """Let groups in a group of version 2 have bounds of their own, where the kernel lets this user."""
    for group in (parent.parent, parent):
        for controller in _BOUNDS:
            with suppress(OSError):
                _write(group / "cgroup.subtree_control", f"+{controller}")


def _is_bounded(parent: Path, kind: str) -> bool:
    """Whether a group in this one has a file that bounds a resource, and this user may write it."""
    trial = parent / f".trial-{os.getpid()}"
    try:
        trial.mkdir()
    except OSError:
        return False
    try:
        return any(os.access(trial / name, os.W_OK) for name in _BOUNDS[kind])
    finally:
        trial.rmdir()


def _write(path: Path, text: str) -> None:
    """Write to a file of the kernel, which must be there: a group has no files of another kind."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


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
