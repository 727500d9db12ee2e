"""The scheduler `fairway` on several nodes, which tell each other what waits at their workers; joins are gathered."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from benchmarks._ray_cluster import NumberedCluster
from tests.live.serving.ray.test_serve_on_ray import Service


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with NumberedCluster(2) as cluster:
        made = Service(cluster, tmp_path_factory.mktemp("served"), "--scheduler", "fairway", "--slo", "20s")
        yield made
        made.close()


def test_requests_are_answered_from_every_node_and_work_is_shared(service: Service) -> None:
    def ask(number: int) -> tuple[int, object, int, object]:
        with service.client(number % 2) as client:
            one = client.post("/workflows/sums", json={"x": number})
            both = client.post("/workflows/totals", json={"x": number})
            return one.status_code, one.json(), both.status_code, both.json()

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(ask, range(18)))
    assert answers == [(200, 2 * (x + 1) + 1, 200, 500_000 * (2 * x + 3)) for x in range(18)]
    status = service.status()
    assert status["scheduler"] == "fairway"
    assert all(worker["present"] for worker in status["workers"])


def test_it_ends_when_it_is_asked_to(service: Service) -> None:
    assert service.stop() == 0
