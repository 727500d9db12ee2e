"""What `fairway serve --scheduler fairway` cannot answer in time: refused with when to try again, and counted."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread

import httpx
import pytest

from fairway.live.serving.clients.client import ServingClient
from fairway.live.serving.clients.client_protocol import RequestFailedError
from fairway.live.serving.supervise.supervisor import Supervisor
from fairway.service.http.server import HttpServer
from fairway.service.inference.app import create_inference_app

_ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module", params=["fairway", "clockwork"])
def crowded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(_ROOT))
        directory = tmp_path_factory.mktemp("crowded")
        supervisor = Supervisor.of(
            "tests.live.serving.crowded:slow", directory=directory, workers=1, scheduler=request.param
        )
        with supervisor:
            server = HttpServer(create_inference_app(supervisor, token=None), "127.0.0.1", 0)
            thread = Thread(target=server.run)
            thread.start()
            try:
                with httpx.Client(base_url=server.address, trust_env=False, timeout=60) as client:
                    client.headers["test-directory"] = str(directory)
                    yield client
            finally:
                server.stop()
                thread.join()


def _at_once(client: httpx.Client, number: int) -> list[httpx.Response]:
    with ThreadPoolExecutor(number) as pool:
        return list(pool.map(lambda x: client.post("/workflows/slow", json={"x": x}), range(number)))


def test_what_cannot_be_in_time_is_shed_with_when_to_try_again(crowded: httpx.Client) -> None:
    answers = _at_once(crowded, 30)
    codes = {answer.status_code for answer in answers}
    assert codes == {200, 503}, "some are served, and none waits in vain"
    for answer in answers:
        if answer.status_code == 503:
            assert answer.json()["code"] == "shed"
            assert answer.json()["detail"] == "it could not have been in time any more"
            # At most all of them wait, of a tenth of a second each.
            assert 1 <= int(answer.headers["Retry-After"]) <= 4
    shed = sum(answer.status_code == 503 for answer in answers)
    counted = [
        float(line.rpartition(" ")[2])
        for line in crowded.get("/metrics").text.splitlines()
        if line.startswith("fairway_serving_refusals_total") and 'code="shed"' in line
    ]
    assert sum(counted) >= shed
    assert crowded.post("/workflows/slow", json={"x": 1}).status_code == 200, "and then it is served again"


def test_the_python_client_says_so_too(crowded: httpx.Client) -> None:
    with ServingClient(Path(crowded.headers["test-directory"])) as client:

        def ask(x: int) -> RequestFailedError | None:
            try:
                client.ask("slow", x=x)
            except RequestFailedError as error:
                return error
            return None

        with ThreadPoolExecutor(30) as pool:
            errors = [error for error in pool.map(ask, range(30)) if error is not None]
    assert errors
    for error in errors:
        assert error.code == "shed"
        assert error.retry_seconds is not None
        assert 0 <= error.retry_seconds < 4


def test_a_deadline_that_no_configuration_can_meet_is_refused_at_the_door(crowded: httpx.Client) -> None:
    answer = crowded.post("/workflows/slow", json={"x": 1}, headers={"Fairway-Deadline-Seconds": "0.02"})
    assert answer.status_code == 422
    assert answer.json()["code"] == "impossible"
    assert answer.json()["detail"].startswith("it would take 0.1 s at least, but has 0.0")
    assert "Retry-After" not in answer.headers
