"""One application with two real workers behind real HTTP, which all tests of this directory share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import NamedTuple

import httpx
import pytest

from fairway.live.serving.supervise.supervisor import Supervisor
from fairway.service.http.server import HttpServer
from fairway.service.inference.app import create_inference_app

_ROOT = Path(__file__).parents[3]
TOKEN = "a-token-for-tests"
MOST_OPEN = 12


class Serving(NamedTuple):
    """An application that is served."""

    supervisor: Supervisor
    address: str
    client: httpx.Client


@pytest.fixture(scope="session")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(_ROOT))
        supervisor = Supervisor.of(
            "tests.service.inference.offered:ALL",
            directory=tmp_path_factory.mktemp("serving"),
            workers=2,
            memory_bytes=10e6,
            most_open=MOST_OPEN,
            pinned=("Measure",),
        )
        with supervisor:
            server = HttpServer(create_inference_app(supervisor, token=TOKEN), "127.0.0.1", 0)
            thread = Thread(target=server.run)
            thread.start()
            headers = {"Authorization": f"Bearer {TOKEN}"}
            try:
                with httpx.Client(base_url=server.address, headers=headers, trust_env=False, timeout=60) as client:
                    yield Serving(supervisor, server.address, client)
            finally:
                server.stop()
                thread.join()
