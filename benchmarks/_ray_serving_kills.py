"""A node of a Ray cluster is killed under load, again and again, while an application is served on it.

Clients ask the nodes that stay; each of their requests has to have its one right answer. Another node than the head,
where Ray keeps what it knows, is killed with all that runs on it, and joins again when its worker has come to life on
one of the others. How long that takes is measured: an actor that Ray would keep waiting for a node would show in it.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx

from benchmarks._ray_cluster import NumberedCluster, free_port, host_of
from benchmarks._report import Result
from benchmarks._serving_live_settings import say

_NODES = 3
_TARGET = "tests.live.serving.ray.application"
_PATIENCE_SECONDS, _MOST_SECONDS = 150.0, 60.0


class _Clients:
    """Clients of the nodes that stay; `wrong` is what is no right answer."""

    def __init__(self, port: int, token: str, staying: list[int]) -> None:
        self._port, self._headers, self._staying = port, {"Authorization": f"Bearer {token}"}, staying
        self._over = Event()
        self.asked, self.slowest = 0, 0.0
        self.wrong: list[str] = []
        self._threads = [Thread(target=self._ask, args=(number,)) for number in range(6)]

    def __enter__(self) -> _Clients:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def client(self, node: int) -> httpx.Client:
        url = f"http://{host_of(node)}:{self._port}"
        return httpx.Client(base_url=url, headers=self._headers, timeout=60.0)

    def _ask(self, number: int) -> None:
        with self.client(self._staying[number % len(self._staying)]) as client:
            count = 0
            while not self._over.is_set():
                count += 1
                began = time.monotonic()
                try:
                    answer = client.post("/workflows/sums", json={"x": count})
                    if answer.status_code != 200 or answer.json() != 2 * (count + 1) + 1:
                        self.wrong.append(f"{answer.status_code} {answer.text[:200]}")
                except httpx.HTTPError as error:
                    self.wrong.append(f"{type(error).__name__} {error}")
                self.asked += 1
                self.slowest = max(self.slowest, time.monotonic() - began)

    def present(self) -> int:
        """How many workers are there."""
        with suppress(httpx.HTTPError, ValueError, KeyError), self.client(0) as client:
            return sum(worker["present"] for worker in client.get("/status").json()["workers"])
        return 0


def kills(count: int, seed: int) -> Iterator[Result]:
    """Kill one of two nodes so often."""
    draws, away = random.Random(seed), []
    began = time.monotonic()
    with NumberedCluster(_NODES) as cluster, tempfile.TemporaryDirectory(prefix="fairway-") as name:
        directory = Path(name) / "served"
        with _served(cluster, directory) as (port, token), _Clients(port, token, [0]) as clients:
            while clients.asked < 20:
                time.sleep(0.1)
            for number in range(count):
                time.sleep(draws.uniform(0.5, 2.0))
                node = draws.choice([1, 2])
                began_waiting = time.monotonic()
                cluster.kill_node(node)
                cluster.start_node(node)
                while clients.present() < _NODES:
                    if time.monotonic() - began_waiting > _PATIENCE_SECONDS:
                        break
                    time.sleep(0.1)
                away.append(time.monotonic() - began_waiting)
                say(
                    f"kill {number + 1} of {count}: node {node}; all are there after {away[-1]:.1f} s; {clients.asked} "
                    f"requests, {len(clients.wrong)} without a right answer"
                )
    for wrong in clients.wrong[:10]:
        say(f"no right answer: {wrong}")
    extra: dict[str, Any] = {
        "requests": clients.asked, "slowest_seconds": clients.slowest, "seconds": time.monotonic() - began
    }  # fmt: skip
    what = f"{count} kills of a Ray node under load"
    yield Result(f"accepted requests without a right answer, {what}", "", len(clients.wrong), target=0.0, extra=extra)
    yield Result(f"longest until all workers and the node are there, {what}", "s", max(away), target=_MOST_SECONDS)


class _served:  # noqa: N801 - it is used as a function
    """`fairway serve` on the cluster, in a process of its own: its port and its token."""

    def __init__(self, cluster: NumberedCluster, directory: Path) -> None:
        self._directory, self._port = directory, free_port(host_of(0))
        command = [str(Path(sys.executable).parent / "fairway"), "serve", _TARGET, "--no-profile"]
        command += ["--backend", "ray", "--address", cluster.address, "--workers", str(_NODES)]
        command += ["--directory", str(directory), "--port", str(self._port)]
        self._log = tempfile.TemporaryFile(prefix="fairway-")  # noqa: SIM115 - lives as long as the process
        self._process = subprocess.Popen(
            command, env=cluster.environment, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log
        )

    def __enter__(self) -> tuple[int, str]:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            self._log.seek(0)
            said = self._log.read().decode(errors="replace")
            if "Ctrl-C" in said:
                return self._port, (self._directory / "token").read_text().strip()
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.__exit__()
                raise SystemExit(f"fairway serve does not start:\n{said}")
            time.sleep(0.2)

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(60.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()
