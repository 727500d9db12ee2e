"""podman for tests: with a storage of its own, and an image that has a static busybox and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

IMAGE = "localhost/fairway-test:1"
_TOOLS = "sh sleep echo cat env id ps touch mkdir setsid sync true"
_UNIFIED = Path("/sys/fs/cgroup/unified")
_PROBE = (
    "run --rm --init --entrypoint= --cgroups=disabled --network=host --log-driver=passthrough "
    f"--ulimit=nofile=64:64 --ulimit=nproc=4096:4096 {IMAGE} true"
)


@contextmanager
def podman_of_tests() -> Iterator[Path]:
    """A directory with a `podman` for the search path; skips the test where podman cannot run a container.

    crun refuses machines with both versions of control groups, unless the second is out of sight: then a namespace of
    mounts is kept in which it is, and podman enters that.
    """
    busybox, podman = shutil.which("busybox"), shutil.which("podman")
    if busybox is None or podman is None or shutil.which("crun") is None:
        pytest.skip("needs podman, crun and busybox")
    directory = Path(tempfile.mkdtemp(prefix="fw-", dir="/tmp"))  # sockets lie in it, whose paths have to be short
    holder = None
    try:
        if _UNIFIED.is_dir() and (_UNIFIED / "cgroup.controllers").read_text().strip() and os.geteuid() == 0:
            script = f"umount {_UNIFIED} && echo ready && exec sleep 1000000"
            holder = subprocess.Popen(["unshare", "-m", "sh", "-c", script], stdout=subprocess.PIPE, text=True)
            assert holder.stdout is not None
            with holder.stdout as said:
                ready = said.readline() == "ready\n"
            if not ready:
                pytest.skip("crun does not run where both versions of control groups are mounted")
        enter = "" if holder is None else f"nsenter --target {holder.pid} --mount --wdns=/ "
        wrapper = directory / "bin" / "podman"
        wrapper.parent.mkdir()
        where = f"--root {directory}/root --runroot {directory}/run --storage-driver vfs"
        wrapper.write_text(f'#!/bin/sh\nexec {enter}{podman} {where} "$@"\n')
        wrapper.chmod(0o755)
        _make_image(wrapper, busybox, directory / "rootfs")
        probe = subprocess.run([wrapper, *_PROBE.split()], capture_output=True, text=True, check=False, timeout=60)
        if probe.returncode:
            pytest.skip(f"podman runs no container here: {probe.stderr.strip()[-200:]}")
        yield wrapper.parent
        left = subprocess.run([wrapper, "ps", "--all", "--quiet"], capture_output=True, text=True, check=True)
        assert left.stdout == ""
    finally:
        if holder is not None:
            holder.kill()
            holder.wait()
        shutil.rmtree(directory, ignore_errors=True)


def _make_image(podman: Path, busybox: str, root: Path) -> None:
    (root / "bin").mkdir(parents=True)
    (root / "tmp").mkdir()
    shutil.copy(busybox, root / "bin" / "busybox")
    for tool in _TOOLS.split():
        (root / "bin" / tool).symlink_to("busybox")
    archive = shutil.make_archive(str(root), "tar", root)
    subprocess.run([podman, "import", "--quiet", "--change", "ENTRYPOINT=/no/such/program", archive, IMAGE],
                   check=True, capture_output=True, timeout=60)  # fmt: skip
