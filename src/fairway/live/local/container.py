"""Containers of jobs: the words by which podman runs a rank in an image, and clears up after it.

A container is what a rank finds, not what holds it: it runs as the job's user, in the control group of its run, with
the network of the machine, and sees the directories of the job under the paths that they have outside. podman gets the
variables of the job by name only, since all users of a machine see the arguments of commands.
"""

from __future__ import annotations

import csv
import io
import re
import resource
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairway.live.local.job_user import JobUser
from fairway.live.local.run_files import RunOrder

_OF_PODMAN = re.compile(
    r"(PATH|HOME|USER|LOGNAME|SHELL|TMPDIR|NOTIFY_SOCKET)|"
    r"(XDG|LD|DBUS|LISTEN|CONTAINERS?|PODMAN|STORAGE|BUILDAH|REGISTRY|REGISTRIES|DOCKER|GO[A-Z]*)_\w*|GO[A-Z]+"
)
"""Variables that podman reads itself, so that what a job sets them to must not be in its environment."""

_PIPES = "CUDA_MPS_PIPE_DIRECTORY"
_REMOVAL_SECONDS = 60.0
_AGAIN_SECONDS = (0.5, 2.0, 0.0)
_QUEUES = Path("/dev/mqueue")
"""Without it, podman cannot let a container of a user other than root have the shared memory of the machine."""


@dataclass(frozen=True, slots=True)
class Container:
    """What the ranks of a run are put into: an image, with `mounts` of directories, under names that begin with `name`.

    `devices` has what each rank sees of the machine's devices, `surroundings` is the environment of podman itself.
    """

    image: str
    name: str
    mounts: Sequence[str] = ()
    devices: Sequence[Sequence[str]] = ()
    surroundings: Mapping[str, str] = field(default_factory=dict)

    def fetching(self) -> list[str]:
        """The command that has the image on this machine, and fetches it only if it is not there."""
        return ["/bin/sh", "-c", 'podman image exists "$1" || podman pull --quiet "$1"', "sh", self.image]

    def name_of(self, index: int) -> str:
        """The name of the container of a rank, by its place among those of this machine."""
        return f"{self.name}-{index}"

    def running(
        self, index: int, run: str | Sequence[str], variables: Mapping[str, str], workdir: str | None
    ) -> tuple[list[str], dict[str, str]]:
        """The command of podman that runs a rank with these variables, and its environment."""
        mine = {name: value for name, value in variables.items() if _OF_PODMAN.fullmatch(name)}
        passed = {name: value for name, value in variables.items() if name not in mine}
        mounts = dict.fromkeys([*self.mounts, *([variables[_PIPES]] if _PIPES in variables else [])])
        words = [
            *("podman", "run", "--rm", "--replace", f"--name={self.name_of(index)}", "--pull=never", "--init"),
            *("--entrypoint=", "--user=0:0", "--cgroups=disabled", "--network=host"),
            *(("--ipc=host",) if _QUEUES.is_dir() else ()),
            *("--log-driver=passthrough", "--security-opt=label=disable"),
            *(f"--ulimit={kind}={soft}:{hard}" for kind, soft, hard in _limits()),
            *(f"--mount={_bind(directory)}" for directory in mounts),
            *(f"--device={device}" for device in (self.devices[index] if self.devices else ())),
            *(f"--env={name}" for name in passed),
            *(f"--env={name}={value}" for name, value in mine.items()),
            f"--workdir={workdir or '/'}",
            self.image,
            *(("sh", "-c", run) if isinstance(run, str) else run),
        ]
        return words, {**self.surroundings, **passed}

    def removing(self, ranks: int) -> list[str]:
        """The command that removes what is left of the containers of so many ranks, and kills what still runs."""
        names = [self.name_of(index) for index in range(ranks)]
        return ["podman", "rm", "--force", "--ignore", "--time=0", *names]


def _limits() -> list[tuple[str, int, int]]:
    """Limits of processes as they are here; podman would raise them, which only root of the machine may."""
    most = int(Path("/proc/sys/kernel/pid_max").read_text())  # podman bounds itself by this one
    found = []
    for kind, number, bound in (("nofile", resource.RLIMIT_NOFILE, None), ("nproc", resource.RLIMIT_NPROC, most)):
        soft, hard = (value if bound is None or 0 <= value < bound else bound for value in resource.getrlimit(number))
        found.append((kind, soft, hard))
    return found


def _bind(directory: str) -> str:
    """A mount of a directory under its own path, in the commas and quotes that podman reads."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(["type=bind", f"source={directory}", f"destination={directory}"])
    return text.getvalue()


def devices_of(device: str | None) -> list[str]:
    """What podman passes on: nothing of an emulated accelerator, NVIDIA's by its name in CDI, AMD's by its files."""
    if device is None:
        return []
    if device.startswith(("GPU-", "MIG-")):
        return [f"nvidia.com/gpu={device}"]
    return ["/dev/kfd", "/dev/dri"]


def rights_of(user: JobUser | None) -> dict[str, Any]:
    """How a program is started as the user of a job."""
    return {} if user is None else {"user": user.uid, "group": user.gid, "extra_groups": user.groups}


def remove_containers(order: RunOrder) -> None:
    """Have podman forget the containers of a run; where that fails, the next run of the name replaces them."""
    if order.container is None:
        return
    container = Container(**order.container)
    with suppress(OSError, subprocess.SubprocessError):
        for again_after in _AGAIN_SECONDS:  # podman may not have seen yet that the processes were killed
            done = subprocess.run(
                container.removing(len(order.ranks)), env=container.surroundings, cwd="/", check=False,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=_REMOVAL_SECONDS,
                **rights_of(None if order.user is None else JobUser(**order.user)),
            )  # fmt: skip
            if done.returncode == 0:
                return
            time.sleep(again_after)
