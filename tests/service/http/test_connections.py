"""Connections that say nothing, too much or too slowly: a client that asks something is served all the same."""

from __future__ import annotations

import json
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from urllib.parse import urlsplit

import httpx
import pytest

from fairway.live.serving.supervise.open_files import allow_many_files
from fairway.service.http.connections import ConnectionLimits
from fairway.store import open_store
from tests.service.running import PATIENCE, Served, running_server, until
from tests.service.standing_in import StandIn

LIMITS = ConnectionLimits(
    most=60, most_per_client=40, head_seconds=1.0, head_bytes=8192, rest_seconds=1.0, unread_seconds=2.0
)


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    directory = tmp_path_factory.mktemp("limited")
    with open_store(str(directory / "store")) as store:
        scheduler = StandIn(directory, store, idle=True)
        with running_server(scheduler, limits=LIMITS) as server:
            yield Served(scheduler, server)


@contextmanager
def connected(served: Served, count: int = 1) -> Iterator[list[socket.socket]]:
    address = urlsplit(served.address)
    with ExitStack() as stack:
        sockets = []
        for _ in range(count):
            one = socket.create_connection((address.hostname, address.port), PATIENCE)
            sockets.append(stack.enter_context(closing(one)))
        yield sockets


def ended(one: socket.socket) -> bytes:
    """All that the server says until it ends the connection."""
    one.settimeout(PATIENCE)
    said = b""
    try:
        while part := one.recv(65536):
            said += part
    except ConnectionError:
        pass
    return said


def send_until_it_ends(one: socket.socket, piece: bytes) -> None:
    """Send the same again and again until the server ends the connection."""
    one.settimeout(PATIENCE)
    deadline = time.monotonic() + PATIENCE
    try:
        while time.monotonic() < deadline:
            one.sendall(piece)
    except ConnectionError:
        return
    pytest.fail("the server takes it for ever")


def is_served(served: Served) -> None:
    with served.client() as client:
        assert client.get("/status").status_code == 200


def test_a_client_is_served_however_many_connections_say_nothing(limited: Served) -> None:
    with connected(limited, 200):
        began = time.monotonic()
        is_served(limited)
        assert time.monotonic() - began < 10  # far less on a machine that has nothing else to do


def test_a_client_that_keeps_its_connection_is_served_again_after_a_flood(limited: Served) -> None:
    with limited.client() as client:
        assert client.get("/status").status_code == 200
        with connected(limited, 200):
            assert client.get("/status").status_code == 200


def test_a_connection_that_says_nothing_ends(limited: Served) -> None:
    with connected(limited) as (one,):
        assert ended(one) == b""


def test_a_request_whose_head_comes_drop_by_drop_is_refused(limited: Served) -> None:
    with connected(limited) as (one,):
        one.sendall(b"GET /status HTTP/1.1\r\n")
        one.settimeout(0.05)
        said = b""
        deadline = time.monotonic() + PATIENCE
        while not said:
            assert time.monotonic() < deadline, "it goes on for ever"
            try:
                one.sendall(b"X-Slow: 1\r\n")
                said = one.recv(65536)
            except TimeoutError:
                continue
        assert said.startswith(b"HTTP/1.1 408 ")
        assert b'"code": "too-slow"' in said
    is_served(limited)


@pytest.mark.parametrize("endless", [b"GET /status HTTP/1.1\r\nX-Long: ", b"GET /", b"GET /status HTTP/1.1\r\n"])
def test_a_head_without_an_end_is_refused(limited: Served, endless: bytes) -> None:
    piece = b"X-More: 1\r\n" * 100 if endless.endswith(b"\r\n") else b"a" * 1000
    with connected(limited) as (one,):
        one.sendall(endless)
        send_until_it_ends(one, piece)
    is_served(limited)


def test_a_head_that_is_a_little_too_long_is_answered(limited: Served) -> None:
    with connected(limited) as (one,):
        one.sendall(b"GET /status HTTP/1.1\r\nX-Long: " + b"a" * LIMITS.head_bytes)
        said = ended(one)
    assert said.startswith(b"HTTP/1.1 431 ")
    problem = json.loads(said.partition(b"\r\n\r\n")[2])
    assert (problem["status"], problem["code"]) == (431, "too-large")


@pytest.mark.parametrize("token", [False, True])
def test_a_body_without_an_end_ends(limited: Served, token: bool) -> None:
    authorization = f"Authorization: Bearer {limited.secret}\r\n" if token else ""
    head = f"POST /jobs HTTP/1.1\r\nHost: localhost\r\n{authorization}Transfer-Encoding: chunked\r\n\r\n"
    chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
    with connected(limited) as (one,):
        one.sendall(head.encode())
        send_until_it_ends(one, chunk)
    is_served(limited)


def test_headers_after_a_body_have_a_limit(limited: Served) -> None:
    head = b"POST /jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
    with connected(limited) as (one,):
        one.sendall(head)
        send_until_it_ends(one, b"X-More: 1\r\n" * 1000)


def test_a_client_that_never_reads_its_answers_is_let_go(limited: Served) -> None:
    ask = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %b\r\n\r\n" % limited.secret.encode()
    with connected(limited) as (one,):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        send_until_it_ends(one, ask)
    is_served(limited)


def test_requests_under_way_are_not_ended_for_new_ones(limited: Served) -> None:
    """Connections that listen to events keep their places; the rest is refused with a reason while all are busy."""
    ask = b"GET /events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %b\r\n\r\n" % limited.secret.encode()
    with connected(limited, LIMITS.most_per_client) as listeners:
        for one in listeners:
            one.sendall(ask)
        for one in listeners:
            assert one.recv(65536).startswith(b"HTTP/1.1 200 ")
        with connected(limited) as (one,):
            said = ended(one)
        assert said.startswith(b"HTTP/1.1 503 ")
        assert b"too-many-connections" in said
        assert not any(is_over(one) for one in listeners)
    until(lambda: _can_connect(limited), "for the places of those that have gone")


def is_over(one: socket.socket) -> bool:
    """Whether the server has ended a connection on which nothing more is to be read."""
    one.setblocking(False)
    try:
        while one.recv(65536):
            pass
    except BlockingIOError:
        return False
    return True


def _can_connect(served: Served) -> bool:
    with served.client() as client:
        try:
            return client.get("/status").status_code == 200
        except httpx.TransportError:
            return False


def test_there_are_never_more_connections_than_descriptors() -> None:
    limits = ConnectionLimits.of_this_process()
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert limits.most < files
    assert limits.most_per_client < limits.most


def test_more_files_are_asked_for_up_to_what_the_system_permits() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(before[0], 512), before[1]))
        allow_many_files()
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == before[1]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
