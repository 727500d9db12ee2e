"""The server itself: addresses, TLS, signals."""

from __future__ import annotations

import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from fairway.errors import InputError
from fairway.hosts import is_this_machine
from fairway.service.http.server import ServiceServer, serve
from fairway.store import open_store
from tests.service.running import PATIENCE, Served, running_server
from tests.service.standing_in import StandIn


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[StandIn]:
    with open_store(str(tmp_path / "store")) as store:
        yield StandIn(tmp_path, store, idle=True)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    directory = tmp_path_factory.mktemp("certificate")
    certificate, key = directory / "certificate.pem", directory / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:*.fairway.example"],
        check=True, capture_output=True,
    )  # fmt: skip
    return certificate, key


def test_a_port_in_use_is_said_before_anything_else(scheduler: StandIn) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"^port {port} is in use; give another with --port$"):
            serve(scheduler, "127.0.0.1", port)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.invalid"])
def test_others_are_not_served_in_plain_text_unless_somebody_insists(scheduler: StandIn, host: str) -> None:
    with pytest.raises(
        InputError, match=r"without TLS, tokens could be read on the way; give --tls-certificate and --tls-key"
    ):
        serve(scheduler, host, 0)


def test_whoever_insists_is_served(scheduler: StandIn) -> None:
    with running_server(scheduler, host="0.0.0.0", plain_text=True) as server:
        assert server.address.startswith("http://0.0.0.0:")


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("a.localhost", True),
        ("0.0.0.0", False),
        ("::", False), ("10.0.0.1", False), ("localhost.example", False),
    ],
)  # fmt: skip
def test_what_only_this_machine_can_reach(host: str, loopback: bool) -> None:
    assert is_this_machine(host) is loopback


@pytest.mark.parametrize("host", ["192.0.2.1", "no such host"])
def test_an_address_of_another_machine_is_refused(scheduler: StandIn, host: str) -> None:
    with pytest.raises(InputError, match="is not an address of this machine"):
        serve(scheduler, host, 0, plain_text=True)


def test_a_port_that_is_none_is_refused(scheduler: StandIn) -> None:
    with pytest.raises(InputError, match="port: 70000 given, expected 0 to 65535"):
        serve(scheduler, "127.0.0.1", 70000)


def test_tls_is_used_if_there_is_a_certificate(scheduler: StandIn, certificate: tuple[Path, Path]) -> None:
    with running_server(scheduler, certificate=certificate[0], key=certificate[1]) as server:
        assert server.address.startswith("https://127.0.0.1:")
        secret = Served(scheduler, server).secret
        context = ssl.create_default_context(cafile=str(certificate[0]))
        headers = {"Authorization": f"Bearer {secret}"}
        with httpx.Client(verify=context, trust_env=False, headers=headers, timeout=PATIENCE) as client:
            assert client.get(f"{server.address}/status").status_code == 200
            for name, status in (("a.fairway.example", 200), ("fairway.example", 421), ("a.b.fairway.example", 421)):
                answer = client.get(f"{server.address}/status", headers={"Host": name})
                assert answer.status_code == status, "the names in the certificate are those of the server"


def test_a_certificate_that_cannot_be_used_is_refused(
    scheduler: StandIn, certificate: tuple[Path, Path], tmp_path: Path
) -> None:
    certificate_file, key = certificate
    nonsense = tmp_path / "nonsense.pem"
    nonsense.write_text("nonsense")
    for given, message in (
        ((certificate_file, None), "--tls-key is missing"),
        ((None, key), "--tls-certificate is missing"),
        ((certificate_file, nonsense), "cannot be used"),
        ((nonsense, key), "cannot be used"),
        ((tmp_path / "none", key), r"cannot be used \(No such file or directory\)"),
    ):
        with pytest.raises(InputError, match=message):
            ServiceServer(scheduler, "127.0.0.1", 0, certificate=given[0], key=given[1])


PROGRAM = """
import sys
from pathlib import Path
from fairway.service.http.server import serve
from fairway.store import open_store
from tests.service.standing_in import StandIn

directory = Path(sys.argv[1])
with open_store(str(directory / "store")) as store:
    serve(StandIn(directory, store, idle=True), "127.0.0.1", 0, ready=lambda address: print(address, flush=True))
    print("stopped", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_it_gracefully_and_the_program_goes_on(tmp_path: Path, number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, tmp_path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as program:
        try:
            assert program.stdout is not None
            address = program.stdout.readline().strip()
            assert httpx.get(f"{address}/status", trust_env=False, timeout=PATIENCE).status_code == 401
            program.send_signal(number)
            out, err = program.communicate(timeout=PATIENCE)
        finally:
            program.kill()
    assert (program.returncode, out, err) == (0, "stopped\n", "")
