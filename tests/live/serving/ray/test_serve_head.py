"""The head of Ray is killed under a served application, and comes back with and without what it knew: takes minutes."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx
import pytest

from benchmarks._ray_cluster import NumberedCluster
from tests.live.serving.ray.test_serve_on_ray import Service, left_in, until

pytestmark = pytest.mark.soak


class Clients:
    """Clients of some nodes; `wrong` is what is no right answer, with the moment."""

    def __init__(self, service: Service, nodes: list[int]) -> None:
        self._service, self._over = service, Event()
        self.answered = dict.fromkeys(nodes, 0)
        self.wrong: list[Any] = []
        self._threads = [Thread(target=self._ask, args=(node,), daemon=True) for node in 2 * nodes]
        for thread in self._threads:
            thread.start()

    def _ask(self, node: int) -> None:
        number = 0
        with self._service.client(node) as client:
            while not self._over.is_set():
                number += 1
                try:
                    answer = client.post("/workflows/sums", json={"x": number})
                except httpx.HTTPError as error:
                    self.wrong.append((time.monotonic(), error))
                    time.sleep(0.1)
                    continue
                if answer.status_code != 200 or answer.json() != 2 * (number + 1) + 1:
                    self.wrong.append((time.monotonic(), answer.text))
                self.answered[node] += 1

    def go_on(self) -> None:
        before = dict(self.answered)
        until(lambda: all(self.answered[node] > before[node] + 10 for node in before))

    def end(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()


def is_complete(service: Service, node: int) -> bool:
    try:
        return [each["present"] for each in service.status(node)["workers"]] == [True] * 3
    except (httpx.HTTPError, ValueError, KeyError):
        return False


@pytest.mark.timeout(600)
def test_a_head_that_remembers_is_missed_by_no_request(tmp_path: Path) -> None:
    cluster = NumberedCluster(3)
    cluster.environment |= {"RAY_gcs_storage": "rocksdb", "RAY_gcs_storage_path": str(tmp_path / "gcs")}
    with cluster:
        service = Service(cluster, tmp_path / "served")
        try:
            driver = service.driver()
            clients = Clients(service, [1, 2])
            clients.go_on()
            cluster.kill_node(0)
            clients.go_on()
            time.sleep(5.0)
            clients.go_on()
            cluster.start_node(0)
            began = time.monotonic()
            until(lambda: is_complete(service, 1))
            until(lambda: is_complete(service, 0))
            print(f"complete, on all nodes, {time.monotonic() - began:.1f} s after the head was back")
            print("its client of Ray", "is the same" if service.driver() == driver else "is another one")
            clients.go_on()
            clients.end()
            assert clients.wrong == []
            service.process.kill()
            service.process.wait()
            until(service.is_gone)
            until(lambda: left_in(cluster) == "[] 6.0")
        finally:
            service.close()


@pytest.mark.timeout(600)
def test_a_service_comes_back_with_nodes_that_join_a_head_that_has_forgotten(tmp_path: Path) -> None:
    with NumberedCluster(3) as cluster:
        service = Service(cluster, tmp_path / "served")
        try:
            clients = Clients(service, [1, 2])
            clients.go_on()
            raylets = [cluster.raylet(str(node)) for node in (1, 2)]
            cluster.kill_node(0)
            clients.go_on()
            assert clients.wrong == [], "the other nodes go on while they live"
            cluster.start_node(0)
            began = time.monotonic()
            until(lambda: not [pid for pid in raylets if Path(f"/proc/{pid}").exists()])
            print(f"raylets that the head does not know have ended after {time.monotonic() - began:.1f} s")
            clients.end()
            for node in (1, 2):
                until(lambda node=node: not any(map(service.is_worker, cluster.processes(str(node)))))  # type: ignore[misc]
                cluster.kill_node(node)
                cluster.start_node(node)
            began = time.monotonic()
            for node in range(3):
                until(lambda node=node: is_complete(service, node))  # type: ignore[misc]
            print(f"complete, on all nodes, {time.monotonic() - began:.1f} s after they had joined")
            assert time.monotonic() - began < 60.0
            for node in range(3):
                with service.client(node) as client:
                    assert client.post("/workflows/sums", json={"x": 1}).json() == 5
            assert service.stop() == 0
            assert left_in(cluster) == "[] 6.0"
        finally:
            service.close()
