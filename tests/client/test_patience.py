"""Clients do not notice that a server is away for a moment, and do nothing twice that must not be."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fairway.client import ServiceError, UnreachableError
from fairway.client.patience import Pauses
from tests.client.both import Both
from tests.client.server import TOKEN, Made, problem, serving


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_nobody_there_is_one_clear_line(connect: Callable[..., Both]) -> None:
    address = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(UnreachableError) as caught:
        connect(address, patience=0).status()
    assert str(caught.value) == (
        f"no Fairway answers at {address} (connection refused); start one with 'fairway up' or give --address"
    )
    assert caught.value.status is None


def test_a_server_that_comes_back_in_time_is_waited_for(connect: Callable[..., Both]) -> None:
    port, made, told = free_port(), Made(), list[str]()
    client = connect(f"http://127.0.0.1:{port}", patience=30, waiting=told.append)

    def later() -> None:
        while not told:  # the client has met nobody
            time.sleep(0.01)
        with serving(made, port):
            answered.wait(30)

    answered = threading.Event()
    thread = threading.Thread(target=later)
    thread.start()
    try:
        assert client.submit({"run": "x"}).id == "job-3"
    finally:
        answered.set()
        thread.join(30)
    assert "connection refused" in told[0]


def test_503_is_tried_again_and_the_submission_is_made_once(client: Both, made: Made) -> None:
    made.failures = [problem(503, "the store fails"), None]
    assert client.submit({"run": "x"}).id == "job-3"
    keys = {request.headers["idempotency-key"] for request in made.seen}
    assert (len(made.seen), len(keys), len(made.jobs)) == (3, 1, 3)


def test_in_the_end_503_is_an_error_with_the_servers_line(made: Made, connect: Callable[..., Both]) -> None:
    made.failures = [problem(503, "the store fails")] * 100
    with pytest.raises(ServiceError, match=r"^the store fails$") as caught:
        connect(made.address, patience=0.3).status()
    assert caught.value.status == 503
    assert 1 < len(made.seen) < 20


def test_what_must_not_be_done_twice_is_sent_once(client: Both, made: Made) -> None:
    made.failures = [None]
    with pytest.raises(UnreachableError, match="look whether it was done before you try again"):
        client.create_token("reader")
    made.failures = [problem(503, "the store fails")]
    with pytest.raises(ServiceError, match="the store fails"):
        client.create_token("reader")
    assert len(made.seen) == 2


def test_an_address_that_does_not_exist_is_not_tried_again(connect: Callable[..., Both]) -> None:
    begun = time.monotonic()
    with pytest.raises(UnreachableError, match=r"no such host: .*; correct the address"):
        connect("http://fairway.invalid", patience=60).status()
    assert time.monotonic() - begun < 30


def test_a_certificate_that_nobody_vouches_for_is_not_trusted(connect: Callable[..., Both], tmp_path: Path) -> None:
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1",
         "-keyout", key, "-out", certificate, "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_refused_handshake, args=(listener, context))
        thread.start()
        with pytest.raises(UnreachableError, match="its certificate cannot be trusted: self-signed certificate"):
            connect(f"https://127.0.0.1:{listener.getsockname()[1]}", TOKEN, patience=60).status()
        thread.join(30)


def _refused_handshake(listener: socket.socket, context: ssl.SSLContext) -> None:
    connection, _ = listener.accept()
    with pytest.raises(ssl.SSLError), connection:
        context.wrap_socket(connection, server_side=True)


def test_pauses_grow_and_come_to_an_end() -> None:
    pauses = Pauses(100.0)
    lengths = [pauses.next() or 0.0 for _ in range(12)]
    assert lengths[0] < 0.2
    assert max(lengths) <= 1.3
    assert min(lengths[5:]) >= 0.7
    assert Pauses(0.0).next() is None
