"""The made-up server and both kinds of clients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.client.both import Both
from tests.client.server import TOKEN, Made, serving


@pytest.fixture(scope="module")
def running_server() -> Iterator[Made]:
    with serving(Made()) as running:
        yield running


@pytest.fixture
def made(running_server: Made) -> Made:
    running_server.forget()
    return running_server


@pytest.fixture(params=["sync", "async"])
def connect(request: pytest.FixtureRequest) -> Iterator[Callable[..., Both]]:
    clients: list[Both] = []

    def connected(address: str, token: str | None = TOKEN, **options: Any) -> Both:
        clients.append(Both(request.param, address, token, **options))
        return clients[-1]

    yield connected
    for client in clients:
        client.close()


@pytest.fixture
def client(made: Made, connect: Callable[..., Both]) -> Both:
    return connect(made.address)
