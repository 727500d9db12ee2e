"""`fairway serve --backend ray` on three nodes of a real Ray cluster, with tokens: it answers, and survives a node.

One cluster and one service for all tests, since both take a while to start. Ray is only ever imported by other
processes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from benchmarks._ray_cluster import NumberedCluster, free_port, host_of
from fairway.cli.main import app

PATIENCE = 150.0
ROOT = Path(__file__).parents[4]
FAIRWAY = str(Path(sys.executable).parent / "fairway")
TARGET = "tests.live.serving.ray.application"


class Service:
    """`fairway serve` on a cluster, in a process of its own."""

    def __init__(self, cluster: NumberedCluster, directory: Path, *more: str) -> None:
        self.directory = directory
        self.port = free_port(host_of(0))
        command = [FAIRWAY, "serve", TARGET, "--backend", "ray", "--address", cluster.address, "--workers", "3"]
        options = ["--no-profile", "--directory", str(directory), "--port", str(self.port), *more]
        self.process = subprocess.Popen(
            [*command, *options],
            cwd=ROOT,
            env=cluster.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self.process.stdout is not None
        self.said = ""
        while "Ctrl-C" not in self.said:
            line = self.process.stdout.readline()
            assert line, self.said
            self.said += line
        # What Ray says when a node is lost must not fill the pipe.
        self._drain = Thread(target=self.process.stdout.read, daemon=True)
        self._drain.start()
        self.token = (directory / "token").read_text().strip()

    def client(self, node: int) -> httpx.Client:
        """A client of one node."""
        return httpx.Client(
            base_url=f"http://{host_of(node)}:{self.port}",
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=60.0,
        )

    def driver(self) -> int:
        """The process by which it is a client of Ray; 0 for none."""
        mark = b"fairway.live.serving.ray.driver"
        found = (pid for pid in _pids() if mark in _command(pid) and _parent(pid) == self.process.pid)
        return next(found, 0)

    def is_worker(self, pid: int) -> bool:
        """Whether a process is one of its workers."""
        command = _command(pid)
        return b"worker_program" in command and os.fsencode(self.directory) in command

    def is_gone(self) -> bool:
        """Whether no process of it is left, on any node."""
        return not [pid for pid in _pids() if os.fsencode(self.directory) in _command(pid)]

    def status(self, node: int = 0) -> Any:
        with self.client(node) as client:
            return client.get("/status").json()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60.0)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self._drain.join()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture(scope="module")
def hidden(tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    """A directory that the last node does not have; only root can have that."""
    can_hide = subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True).returncode == 0
    return tmp_path_factory.mktemp("hidden") if can_hide else None


@pytest.fixture(scope="module")
def cluster(hidden: Path | None) -> Iterator[NumberedCluster]:
    with NumberedCluster(2) as made:
        made.start_node(2, without=hidden)
        yield made


@pytest.fixture(scope="module")
def service(cluster: NumberedCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    made = Service(cluster, tmp_path_factory.mktemp("served"))
    yield made
    made.close()


def until(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + PATIENCE
    while not (value := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)
    return value


def test_every_node_answers_for_all_workers(service: Service) -> None:
    assert re.findall(r"http://(\S+?):\d+", service.said) == [host_of(node) for node in range(3)]
    for node in range(3):
        with service.client(node) as client:
            for number in range(5):
                assert client.post("/workflows/sums", json={"x": number}).json() == 2 * (number + 1) + 1
            assert client.post("/workflows/totals", json={"x": 7}).json() == 500_000 * (8 + 9)
        assert [each["present"] for each in service.status(node)["workers"]] == [True] * 3


def test_no_one_without_the_token_is_answered(service: Service) -> None:
    for node in range(3):
        answer = httpx.post(f"http://{host_of(node)}:{service.port}/workflows/sums", json={"x": 1})
        assert answer.status_code == 401


def test_values_go_from_node_to_node_under_load(service: Service) -> None:
    """Many at a time through one node, so that others have to help; and nothing of them is left in its memory."""
    answers: list[Any] = []

    def ask(number: int) -> None:
        with service.client(0) as client:
            answers.append((number, client.post("/workflows/totals", json={"x": number}).json()))

    threads = [Thread(target=ask, args=(number,)) for number in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [(number, 500_000 * (2 * number + 3)) for number in range(24)]
    until(lambda: not any(_values_left(service)))


def _values_left(service: Service) -> list[str]:
    places = [memory for _, memory in _memories(service) if memory.exists()]
    return [path.name for place in places for path in place.iterdir() if path.name[0] in "wc"]


def _memories(service: Service) -> list[tuple[str, Path]]:
    """Where each node keeps what its processes share."""
    found = {path.parent.name: json.loads(path.read_text()) for path in _settings(service)}
    return [(node, Path(settings["memory_directory"])) for node, settings in found.items()]


def _settings(service: Service) -> list[Path]:
    return list(service.directory.glob("node-*/settings.json"))


def test_a_node_is_killed_under_load_and_no_request_is_lost(cluster: NumberedCluster, service: Service) -> None:
    """Its worker comes back on another node that has an accelerator to spare."""
    over = Event()
    wrong: list[Any] = []
    answered = [0, 0]

    def ask(node: int) -> None:
        number = 0
        with service.client(node) as client:
            while not over.is_set():
                number += 1
                try:
                    answer = client.post("/workflows/sums", json={"x": number})
                except httpx.HTTPError as error:
                    wrong.append(error)
                    continue
                if answer.status_code != 200 or answer.json() != 2 * (number + 1) + 1:
                    wrong.append((answer.status_code, answer.text))
                answered[node] += 1

    threads = [Thread(target=ask, args=(node % 2,)) for node in range(6)]
    for thread in threads:
        thread.start()
    until(lambda: min(answered) >= 5)
    (memory,) = [found for found in _memories(service) if found[0] == "node-2"]
    cluster.kill_node(2)
    shutil.rmtree(memory[1])  # which is gone with a machine
    before = list(answered)
    until(lambda: all(now > then + 10 for now, then in zip(answered, before, strict=True)))
    until(lambda: [each["present"] for each in service.status()["workers"]] == [True] * 3)
    over.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert service.status()["restarts"] >= 1


def test_a_node_that_comes_back_answers(cluster: NumberedCluster, service: Service, hidden: Path | None) -> None:
    cluster.start_node(2, without=hidden)

    def answer() -> Any:
        with suppress(httpx.HTTPError), service.client(2) as client:
            return client.post("/workflows/sums", json={"x": 1}).json()

    assert until(answer) == 5


def test_without_its_client_of_ray_workers_are_started_again_and_another_client_comes(service: Service) -> None:
    """Ray ends its clients when its head is away; what they have made goes on."""
    before = service.status()
    driver = service.driver()
    os.kill(driver, signal.SIGSTOP)  # so that none can take its place either
    victim = next(pid for pid in _pids() if service.is_worker(pid))
    os.kill(victim, signal.SIGKILL)
    with service.client(0) as client:
        for number in range(5):
            assert client.post("/workflows/sums", json={"x": number}).json() == 2 * (number + 1) + 1
    until(lambda: service.status()["restarts"] > before["restarts"])
    until(lambda: [each["present"] for each in service.status()["workers"]] == [True] * 3)
    os.kill(driver, signal.SIGKILL)
    until(lambda: service.driver() not in {0, driver})
    with service.client(2) as client:
        assert client.post("/workflows/sums", json={"x": 1}).json() == 5


_NAMED = """
import os, logging, ray, ray.util
ray.init(address=os.environ["ADDRESS"], log_to_driver=False, logging_level=logging.ERROR)
print(ray.util.list_named_actors(all_namespaces=True), ray.available_resources().get("GPU"))
"""


def test_it_stops_and_leaves_nothing(cluster: NumberedCluster, service: Service) -> None:
    memories = [memory for _, memory in _memories(service)]
    assert memories
    assert service.stop() == 0
    assert not [memory for memory in memories if memory.exists()]
    assert not list(service.directory.glob("**/*.json"))
    assert not (service.directory / "token").exists()
    until(service.is_gone)
    assert left_in(cluster) == "[] 6.0"


def left_in(cluster: NumberedCluster) -> str:
    """The actors with names, and the accelerators that no actor has."""
    done = subprocess.run(
        [sys.executable, "-c", _NAMED],
        env={**cluster.environment, "ADDRESS": cluster.address},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()[-1]


def _pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


# Bad input


def _refused(*options: str) -> str:
    """What is said without Ray being asked."""
    done = CliRunner().invoke(app, ["serve", TARGET, "--no-profile", *options])
    assert (done.exit_code, done.stdout) == (2, ""), done.output
    (line,) = done.stderr.strip().splitlines()
    return line


def _refused_by(cluster: NumberedCluster, *options: str, directory: Path = ROOT, **variables: str) -> str:
    """What is said in a process of its own, which asks Ray; nothing is left there."""
    done = subprocess.run(
        [FAIRWAY, "serve", TARGET, "--no-profile", "--backend", "ray", "--address", cluster.address, *options],
        cwd=directory,
        env={**cluster.environment, "PYTHONPATH": str(ROOT), **variables},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert (done.returncode, done.stdout) == (2, ""), done.stdout + done.stderr
    (line,) = done.stderr.strip().splitlines()
    return line


def test_an_address_without_a_backend_is_refused() -> None:
    assert "--address: auto given without --backend ray" in _refused("--address", "auto")


def test_a_backend_that_is_none_is_refused() -> None:
    assert "--backend: 'rai' given, expected local or ray" in _refused("--backend", "rai")


@pytest.mark.parametrize("address", ["127.0.0.2", "127.0.0.2:x", ":6379"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    assert f"address: '{address}' given, expected" in _refused("--backend", "ray", "--address", address)


def test_no_ray_at_the_address_is_refused() -> None:
    address = f"127.0.0.2:{free_port()}"
    assert f"address: no Ray at {address}" in _refused("--backend", "ray", "--address", address)


def test_a_wrong_token_is_refused(cluster: NumberedCluster) -> None:
    line = _refused_by(cluster, RAY_AUTH_TOKEN="0" * 64, RAY_NUM_REDIS_GET_RETRIES="2")
    assert f"Ray at {cluster.address} refuses this client (its token is that of RAY_AUTH_TOKEN)" in line


def test_more_workers_than_accelerators_are_refused(cluster: NumberedCluster) -> None:
    line = _refused_by(cluster, "--workers", "7")
    assert re.search("workers: 7 given, and the nodes .* have [46] accelerators", line)
    assert left_in(cluster) == "[] 6.0"


@pytest.mark.soak  # the agent, which refuses it, is tested by itself
def test_a_directory_that_a_node_does_not_have_is_refused(cluster: NumberedCluster, hidden: Path | None) -> None:
    if hidden is None:
        pytest.skip("only root can give a node other files than those of this machine")
    (hidden / "application").mkdir()
    line = _refused_by(cluster, "--workers", "3", directory=hidden / "application")
    assert f"node {host_of(2)} of the Ray cluster cannot be used" in line
    assert f"the directory {hidden / 'application'} is not there" in line
    assert left_in(cluster) == "[] 6.0"
