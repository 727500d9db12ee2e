"""The transport between nodes: that it is one, who gets in, and what a stranger can do."""

from __future__ import annotations

import itertools
import pickle
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.errors import InputError
from fairway.live.serving.nodes.address_book import Place
from fairway.live.serving.nodes.guarded_channel import Credentials, GuardedChannel, tls_context
from fairway.live.serving.nodes.handshake import NONCE_BYTES, Handshake
from fairway.live.serving.nodes.node_place import NodePlace, address_book
from fairway.live.serving.nodes.node_transport import NodeTransport
from fairway.live.serving.seams.check_transport import check_transport
from fairway.live.serving.seams.check_values import check_values
from fairway.live.serving.seams.run_record import mark_of
from fairway.live.serving.seams.transport import WireError
from fairway.live.serving.seams.values import Parcel
from fairway.live.serving.sockets.channel import encoded
from tests.live.serving.nodes.several import SECRET, SeveralNodes, host_of


@pytest.fixture
def several(tmp_path: Path) -> Callable[..., SeveralNodes]:
    places = itertools.count()
    return lambda **options: SeveralNodes(tmp_path / str(next(places)), **options)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return _certificate(tmp_path_factory.mktemp("certificate"))


def _certificate(place: Path) -> tuple[Path, Path]:
    certificate, key = place / "certificate.pem", place / "key.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
    ]
    files = ["-keyout", str(key), "-out", str(certificate), "-subj", "/CN=fairway"]
    subprocess.run([*command, *files], check=True, capture_output=True)
    return certificate, key


def test_tcp_is_a_transport(several: Callable[..., SeveralNodes]) -> None:
    check_transport(several)


def test_tcp_with_tls_is_a_transport(several: Callable[..., SeveralNodes], certificate: tuple[Path, Path]) -> None:
    check_transport(lambda: several(credentials=Credentials(SECRET.secret, *certificate)))


def test_unix_sockets_within_a_node_and_lines_from_another_are_a_transport(
    several: Callable[..., SeveralNodes],
) -> None:
    check_transport(lambda: several(node_of=lambda _: 0))


_ECHO = """
import sys
from pathlib import Path
from fairway.live.serving.nodes.backend import NodesBackend
from fairway.live.serving.supervise.settings import ServingSettings
directory = Path(sys.argv[1])
settings = ServingSettings("app", directory, directory / "memory", workers=3, has_planner=False)
transport = NodesBackend(settings).transport(1)
transport.announce_to(lambda port: print(port, flush=True))
transport.listen()
while True:
    for sender, message in transport.receive(None):
        if message is not None:
            transport.send(sender, ("echo", *message))
"""


def test_two_processes_talk_over_tcp(several: Callable[..., SeveralNodes]) -> None:
    """The other one is a process of its own, on another node; its end is noticed as that of a connection."""
    nodes = several()
    other = subprocess.Popen([sys.executable, "-c", _ECHO, nodes.directories[1]], stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout is not None
        port = int(other.stdout.readline())
        address_book(nodes.directories[0]).write({1: Place(host_of(1), port, 0)})
        here = nodes.transport(0)
        assert here.send(1, ("hello", 7))
        assert _received(here) == (1, ("echo", "hello", 7))
        other.kill()
        assert _received(here) == (1, None)
        here.close()
    finally:
        other.kill()
        other.communicate()


def _received(transport: NodeTransport) -> Any:
    end = time.monotonic() + 20.0
    while time.monotonic() < end:
        for arrival in transport.receive(0.5):
            return tuple(arrival)
    raise AssertionError("nothing came")


# Who gets in


@pytest.fixture
def worker(several: Callable[..., SeveralNodes]) -> Iterator[tuple[NodeTransport, SeveralNodes, Place]]:
    nodes = several()
    transport = nodes.transport(0)
    transport.listen()
    yield transport, nodes, address_book(nodes.directories[-1]).find(0)
    transport.close()


Worker = tuple[NodeTransport, SeveralNodes, Place]


class _Evil:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self._path,)


@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\r\nHost: somewhere\r\nAccept: everything\r\n\r\n",
        b"FwT1" + b"n" * 32,
        b"FwT1" + b"n" * 32 + b"c" * 32,
        b"\x16\x03\x01" + b"\0" * 500,
        b"",
    ],
)
def test_a_stranger_is_not_heard(worker: Worker, said: bytes, tmp_path: Path) -> None:
    """Whatever it says: no arrival, no unpickling, and the others are served as before."""
    transport, nodes, (host, port, _) = worker
    trace = tmp_path / "touched"
    with socket.create_connection((host, port)) as stranger:
        stranger.sendall(said + encoded(("evil", _Evil(trace))))
        line = nodes.connect(0)
        line.send(("hello",))
        heard = _messages(transport, line, 1)
        assert [message for _, message in heard] == [("hello",)]
        assert not trace.exists()
    assert all(message is None for _, message in transport.receive(0.05))
    assert not trace.exists()
    line.close()


def _messages(transport: NodeTransport, line: Any, count: int) -> list[Any]:
    found: list[Any] = []
    end = time.monotonic() + 20.0
    while len(found) < count and time.monotonic() < end:
        line.receive()
        found += transport.receive(0.01)
    return found


def test_one_with_another_secret_is_not_heard_and_learns_so(worker: Worker) -> None:
    transport, _, (host, port, _) = worker
    connection = socket.create_connection((host, port))
    line = GuardedChannel(connection, Credentials(b"x" * 32), is_caller=True)
    line.send(("hello",))
    with pytest.raises(WireError, match="does not know the secret"):
        _messages(transport, line, 1)
    line.close()
    assert transport.receive(0.1) == []


def test_one_without_the_certificate_is_not_heard(
    several: Callable[..., SeveralNodes], certificate: tuple[Path, Path], tmp_path: Path
) -> None:
    """Not even one that knows the secret."""
    nodes = several(credentials=Credentials(SECRET.secret, *certificate))
    transport = nodes.transport(0)
    transport.listen()
    host, port, _ = address_book(nodes.directories[0]).find(0)
    for credentials in (SECRET, Credentials(SECRET.secret, *_certificate(tmp_path))):
        line: Any = GuardedChannel(socket.create_connection((host, port)), credentials, is_caller=True)
        line.send(("hello",))
        end = time.monotonic() + 10.0
        while line is not None and time.monotonic() < end:
            assert transport.receive(0.01) == []
            if line.receive() is None:
                line.close()
                line = None
        assert line is None
    transport.close()


def test_strangers_that_stay_are_let_go(worker: Worker) -> None:
    """More of them than are let in at a time: the first ones lose their connection, and ours are served."""
    transport, nodes, (host, port, _) = worker
    strangers = [socket.create_connection((host, port)) for _ in range(80)]
    line = nodes.connect(0)
    line.send(("hello",))
    assert [message for _, message in _messages(transport, line, 1)] == [("hello",)]
    strangers[0].settimeout(10)
    assert strangers[0].recv(1) == b""
    for each in strangers:
        each.close()
    line.close()


def test_a_certificate_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "no.pem").write_text("no")
    with pytest.raises(InputError, match="cannot be used between nodes"):
        tls_context(tmp_path / "no.pem", tmp_path / "no.pem", is_caller=False)


@given(st.binary(min_size=32, max_size=32), st.binary(min_size=32, max_size=32), st.binary(), st.binary())
def test_two_ends_agree_if_and_only_if_they_have_the_same_secret(
    caller_nonce: bytes, listener_nonce: bytes, one: bytes, other: bytes
) -> None:
    caller = Handshake(one, caller_nonce, is_caller=True)
    listener = Handshake(other, listener_nonce, is_caller=False)
    challenge = listener.take(caller.first())
    if one != other and one.rstrip(b"\0") != other.rstrip(b"\0"):  # HMAC pads keys with zeros
        with pytest.raises(WireError):
            caller.take(challenge)
        with pytest.raises(WireError):
            listener.take(b"0" * listener.wanted)
        assert not (caller.is_done)
        assert not (listener.is_done)
    elif one == other:
        assert listener.take(caller.take(challenge)) == b""
        assert caller.is_done
        assert listener.is_done


def test_a_listener_cannot_be_answered_with_what_it_has_said() -> None:
    """One that sends a challenge back, to have it answered by the other side, gets no further."""
    listener = Handshake(b"secret", b"l" * NONCE_BYTES, is_caller=False)
    said = listener.take(b"FwT1" + b"l" * NONCE_BYTES)
    with pytest.raises(WireError):
        listener.take(said[NONCE_BYTES:])


# Values


def test_the_memory_of_a_node_keeps_values(several: Callable[..., SeveralNodes]) -> None:
    check_values(several)


def test_a_request_has_one_mark_whichever_way_it_comes(several: Callable[..., SeveralNodes]) -> None:
    """Or a request that workers die of would be tried more often than it may."""
    backend = several().backends[0]
    parcel = backend.values("c1-a-").pack({"image": np.zeros(100_000)})
    came = Parcel(*pickle.loads(backend._pickled(("event", tuple(parcel))))[1])
    assert parcel.names
    assert not came.names
    assert mark_of(0, came) == mark_of(0, parcel)
    assert mark_of(0, Parcel(*pickle.loads(encoded(("event", tuple(came)))[8:])[1])) == mark_of(0, parcel)


def test_large_values_travel_with_messages(several: Callable[..., SeveralNodes]) -> None:
    """Within a node they go by name, to another node with their bytes; and once more from there."""
    nodes = several()
    one, two = nodes.transport(0), nodes.transport(1)
    two.listen()
    makers = [nodes.backends[node].values(f"w{node}-0-") for node in range(2)]
    array = np.arange(100_000.0)
    parcel = makers[0].pack({"array": array, "bytes": b"y" * 50_000})
    assert len(parcel.names) == 2
    one.send(1, ("event", tuple(parcel)))
    end = time.monotonic() + 20.0
    arrived: list[Any] = []
    while not arrived and time.monotonic() < end:
        one.receive(0.0)
        arrived += two.receive(0.01)
    came = type(parcel)(*arrived[0].message[1])
    assert came.names == ()
    assert makers[1].is_there(came)
    makers[0].discard(parcel)
    value = makers[1].open(came).value()
    assert np.array_equal(value["array"], array)
    assert value["bytes"] == b"y" * 50_000
    assert not value["array"].flags.writeable
    one.close()
    two.close()


def test_what_is_handed_over_is_let_go_when_it_has_left(several: Callable[..., SeveralNodes]) -> None:
    nodes = several()
    worker, values = nodes.transport(0), nodes.backends[0].values("w0-0-")
    worker.listen()
    line = nodes.connect(0)
    line.send(("call",))
    ((sender, _),) = _messages(worker, line, 1)
    kept, handed_over = values.pack(np.zeros(100_000)), values.pack(np.ones(100_000))
    worker.send(sender, ("event", tuple(kept)))
    worker.send(sender, ("reply", 1, tuple(handed_over)))
    assert values.is_there(kept)
    assert not values.is_there(handed_over)
    line.close()
    worker.close()


def test_a_value_that_is_gone_is_not_found_at_the_other_end_either(several: Callable[..., SeveralNodes]) -> None:
    nodes = several()
    maker = nodes.backends[0].values("w0-0-")
    parcel = maker.pack(np.zeros(100_000))
    maker.discard(parcel)
    came = type(parcel)(*pickle.loads(nodes.backends[0]._pickled(("event", tuple(parcel))))[1])
    with pytest.raises(OSError, match="w0-0-"):
        nodes.backends[1].values("w1-0-").open(came)


def test_a_place_is_read_as_it_was_written(tmp_path: Path) -> None:
    place = NodePlace("a", "127.0.0.9", Credentials(b"\0\1", tmp_path / "c", tmp_path / "k"), -2.5)
    place.write(tmp_path)
    assert NodePlace.read(tmp_path) == place
    assert (tmp_path / "node.json").stat().st_mode & 0o077 == 0
    with pytest.raises(InputError, match="nothing is served"):
        NodePlace.read(tmp_path / "elsewhere")
