"""The transport over Unix sockets, beyond what every transport must do."""

from __future__ import annotations

import pickle
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fairway.live.serving.local.unix_socket import connect
from fairway.live.serving.local.unix_transport import UnixTransport
from fairway.live.serving.sockets.channel import MOST, Channel, encoded


@pytest.fixture
def socket_of(tmp_path: Path) -> Callable[[int], Path]:
    return lambda number: tmp_path / f"{number}.sock"


@pytest.fixture
def worker(socket_of: Callable[[int], Path]) -> Iterator[UnixTransport]:
    transport = UnixTransport(0, socket_of)
    transport.listen()
    yield transport
    transport.close()


def test_a_signal_that_another_thread_gets_ends_a_wait() -> None:
    """As one that comes just before the wait begins: the thread that waits is not interrupted."""
    program = """
import os, signal, threading, time
from pathlib import Path
from fairway.live.serving.local.unix_transport import UnixTransport

def end(*_):
    print("heard")
    os._exit(0)

signal.signal(signal.SIGHUP, end)
transport = UnixTransport(0, Path)
transport.heed_signals()

def send():
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGHUP)

threading.Thread(target=send, daemon=True).start()
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])
transport.receive(None)
time.sleep(0.1)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "heard\n"


def test_another_thread_can_end_a_wait(worker: UnixTransport) -> None:
    threading.Timer(0.1, worker.wake).start()
    began = time.monotonic()
    assert worker.receive(60.0) == []
    assert time.monotonic() - began < 30.0


@pytest.mark.parametrize(
    "nonsense",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        struct.pack("=4sI", b"Fwy1", MOST + 1),
        struct.pack("=4sI", b"Fwy1", 5) + b"12345",
        struct.pack("=4sI", b"Fwy1", len(pickle.dumps(7))) + pickle.dumps(7),
        encoded(("well", "formed")) + b"and then not" + b"\xff" * 100,
    ],
)
def test_bytes_that_are_no_message_end_their_connection(
    worker: UnixTransport, socket_of: Callable[[int], Path], nonsense: bytes
) -> None:
    with connect(socket_of(0)) as connection:
        connection.sendall(nonsense)
        arrived = worker.receive(10.0)
        while not arrived:
            arrived = worker.receive(10.0)
        assert arrived[-1].message is None
        connection.settimeout(10)
        assert connection.recv(1) == b""


def test_a_message_may_come_in_many_pieces(worker: UnixTransport, socket_of: Callable[[int], Path]) -> None:
    content = encoded(("one", b"x" * 100)) + encoded(("two",))
    with connect(socket_of(0)) as connection:
        arrived = []
        for start in range(0, len(content), 7):
            connection.sendall(content[start : start + 7])
            arrived += worker.receive(0.0)
        while len(arrived) < 2:
            arrived += worker.receive(10.0)
    assert [arrival.message for arrival in arrived] == [("one", b"x" * 100), ("two",)]


def test_a_socket_is_never_open_to_other_users(worker: UnixTransport, socket_of: Callable[[int], Path]) -> None:
    assert worker is not None
    assert socket_of(0).stat().st_mode & 0o777 == 0o600


def test_a_line_sends_what_is_kept_while_it_waits(worker: UnixTransport, socket_of: Callable[[int], Path]) -> None:
    line = Channel(connect(socket_of(0)))
    assert line.send(("large", b"x" * (8 << 20)))
    assert line.unwritten
    arrived: list[object] = []

    def serve() -> None:
        while not arrived:
            for sender, message in worker.receive(10.0):
                assert message is not None
                arrived.append(len(message[1]))
                worker.send(sender, ("answer",))

    thread = threading.Thread(target=serve)
    thread.start()
    heard: list[object] = []
    while not heard:
        heard += line.receive(10.0) or []
    thread.join()
    line.close()
    assert (arrived, heard) == ([8 << 20], [("answer",)])
