"""The backend of many machines on a real Ray, with token authentication; every gang of the checks spans two nodes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks._ray_cluster import RayCluster, free_port
from fairway.live.backend.check import check_backend
from fairway.live.ray.backend import RayBackend
from tests.cli.installation import Installation

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


def refused(directory: Path, address: str) -> str:
    """What `fairway up` says of a cluster that it cannot use."""
    done = Installation(directory).in_a_process("up", "--backend", "ray", "--address", address, "--port", "0")
    assert (done.returncode, done.stdout) == (2, ""), done.stdout + done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


@pytest.mark.usefixtures("let_in")
def test_a_token_that_the_cluster_refuses_is_one_line_and_nothing_is_started(
    cluster: RayCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_AUTH_TOKEN_PATH")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "f" * 64)
    monkeypatch.setenv("RAY_NUM_REDIS_GET_RETRIES", "2")
    said = refused(tmp_path, cluster.address)
    assert f"Ray at {cluster.address} refuses this client (its token is that of RAY_AUTH_TOKEN)" in said
    assert "f" * 64 not in said
    assert not [pid for node in "ab" for pid in cluster.processes(node) if "NodeAgent" in command_of(pid)]


@pytest.mark.usefixtures("let_in")
def test_no_ray_at_the_address_is_one_line(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    assert f"address: no Ray at {address}" in refused(tmp_path, address)


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""
