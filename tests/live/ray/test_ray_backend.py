"""The backend of many machines on a real Ray, with token authentication; every gang of the checks spans two nodes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks._ray_cluster import RayCluster
from fairway.live.backend.check import check_backend
from fairway.live.ray.backend import RayBackend

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc, as on Linux"),
    # A pipe whose reader was given up as a test ended is found open when Python next looks for garbage.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

TOKEN = "0123456789abcdef" * 4


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    # A short path: the sockets of Ray are in it, and an address of a socket has room for about a hundred bytes.
    with tempfile.TemporaryDirectory(prefix="fw-ray-") as directory, RayCluster(Path(directory), token=TOKEN) as ray:
        ray.start("a", "ray.io/accelerator-type=V100,fairway.io/accelerators=1,fairway.io/node=a", head=True)
        ray.start("b", "ray.io/accelerator-type=V100,fairway.io/accelerators=1,fairway.io/node=b")
        yield ray


@pytest.fixture
def let_in(cluster: RayCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("RAY_")]:
        monkeypatch.delenv(name)
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("let_in")
def test_the_backend_passes_the_checks_and_leaves_nothing_behind(cluster: RayCluster, tmp_path: Path) -> None:
    def make() -> RayBackend:
        return RayBackend(tmp_path / "c", address=cluster.address, node_directory=str(tmp_path / "n"))

    check_backend(make, patience=60)
    left = {node: [command_of(pid) for pid in cluster.processes(node)] for node in "ab"}
    assert not [line for lines in left.values() for line in lines if "NodeAgent" in line or "fairway.live" in line], (
        left
    )


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""
