"""What workers have to bear: slow ones among them, clients that talk nonsense, stages that kill, values that stay."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairway.errors import InputError
from fairway.live.serving.clients.client import ServingClient
from fairway.live.serving.clients.client_protocol import RequestFailedError
from fairway.live.serving.local.unix_socket import connect
from fairway.live.serving.sockets.channel import encoded
from fairway.live.serving.supervise.open_files import allow_many_files
from fairway.live.serving.supervise.supervisor import Supervisor, tallies

_ROOT = Path(__file__).parents[4]
_APP = "tests.live.serving.served"


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Any]:
    monkeypatch.setenv("PYTHONPATH", str(_ROOT), prepend=os.pathsep)

    @contextmanager
    def serve(name: str, **options: Any) -> Iterator[tuple[Supervisor, ServingClient]]:
        supervisor = Supervisor.of(f"{_APP}:{name}", directory=tmp_path / "served", **options)
        with supervisor, ServingClient(supervisor.settings.directory) as client:
            yield supervisor, client

    return serve


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Supervisor, ServingClient]]:
    """Several workflows on two workers, which stay where they are received."""
    yield from _shared(tmp_path_factory, "compass")


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Supervisor, ServingClient]]:
    """The same, but stages go anywhere."""
    yield from _shared(tmp_path_factory, "hash")


def _shared(factory: pytest.TempPathFactory, scheduler: str) -> Iterator[tuple[Supervisor, ServingClient]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(_ROOT), prepend=os.pathsep)
        directory = factory.mktemp(scheduler) / "served"
        supervisor = Supervisor.of(f"{_APP}:TOGETHER", directory=directory, workers=2, scheduler=scheduler)
        with supervisor, ServingClient(directory) as client:
            yield supervisor, client


def _until(condition: Callable[[], Any], patience: float = 60.0) -> Any:
    deadline = time.monotonic() + patience
    while not (value := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
    return value


def test_a_slow_worker_is_avoided(served: Callable[..., Any]) -> None:
    with served("uneven", workers=2) as (_, client):
        answers: list[str] = []

        def ask() -> None:
            answers.extend(client.ask(x=number) for number in range(20))

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        ran = Counter(answers)
        assert ran["1"] > 4 * ran["0"]
        assert ran["0"] > 0  # it is found out by trying, not by prejudice


def test_a_worker_that_is_stopped_is_replaced(together: tuple[Supervisor, ServingClient]) -> None:
    supervisor, client = together
    settings, first = supervisor.settings, supervisor.pids()[0]
    os.kill(first, signal.SIGSTOP)
    for number in range(10):
        assert _asked(settings.socket(1), number)
        assert client.ask("chain", x=number) == number + 3
    _until(lambda: supervisor.pids()[0] != first and len(tallies(settings)) == 2)
    assert _asked(settings.socket(0), number=1)


def _asked(path: Path, number: int) -> bool:
    """Ask a certain worker; it answers, without the help of others."""
    with connect(path) as connection:
        connection.sendall(encoded(("ask", number, 0, (pickle.dumps({"x": number}), ()), None, None)))
        connection.settimeout(30)
        return b"reply" in connection.recv(4096)


def test_nonsense_hurts_nobody(together: tuple[Supervisor, ServingClient]) -> None:
    supervisor, client = together
    before = supervisor.pids()
    path = supervisor.settings.socket(0)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert supervisor.settings.memory_directory.stat().st_mode & 0o777 == 0o700
    nonsense = [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff" * 100,
        struct.pack("=4sI", b"Fwy1", 5) + b"12345",
        struct.pack("=4sI", b"Fwy1", 4) + pickle.dumps(7)[:4],
        encoded(("no", "such", "thing")),
        encoded(("ask", 1)),
        encoded(("ask", 1, 99, (b"", ()), None, None)),
        encoded(("ask", 1, 0, "parcel", None, None)),
        encoded(("ask", 1, 0, (b"", ()), "soon", None)),
        encoded(("tally", 1)),
        encoded(({}, 1)),
    ]
    for said in nonsense:
        with connect(path) as connection:
            connection.sendall(said)
            connection.settimeout(30)
            assert connection.recv(1) == b""  # it is let go
    with connect(path) as connection:  # a parcel whose files are not there
        connection.sendall(encoded(("ask", 1, 0, (pickle.dumps(1), ("nothing",)), None, None)))
        connection.settimeout(30)
        assert b"its input is not there" in connection.recv(4096)
    with connect(path) as connection:  # one that begins and never ends
        connection.sendall(struct.pack("=4sI", b"Fwy1", 1000) + b"x")
        assert client.ask("chain", x=1) == 4
    assert supervisor.pids() == before


def test_a_thousand_connections_are_no_burden(together: tuple[Supervisor, ServingClient]) -> None:
    supervisor, client = together
    allow_many_files()
    with ExitStack() as stack:
        for _ in range(1000):
            stack.enter_context(connect(supervisor.settings.socket(0)))
        assert [client.ask("chain", x=number) for number in range(20)] == list(range(3, 23))


def test_workers_that_have_nothing_to_do_do_nothing(together: tuple[Supervisor, ServingClient]) -> None:
    supervisor, client = together
    assert client.ask("chain", x=2) == 5

    def used() -> float:
        total = 0
        for pid in supervisor.pids():
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            total += int(fields[11]) + int(fields[12])
        return total / os.sysconf("SC_CLK_TCK")

    before, began = used(), time.monotonic()
    time.sleep(2.0)
    assert used() - before < 0.02 * 2 * (time.monotonic() - began)


def test_a_request_that_kills_its_workers_is_given_up(
    together: tuple[Supervisor, ServingClient],
) -> None:
    supervisor, client = together
    assert client.ask("deadly", text="harmless") == "harmless"
    with pytest.raises(RequestFailedError, match=r"it ended workers \(status -9\) each time that it") as given_up:
        client.ask("deadly", text="poison")
    assert given_up.value.code == "failed"
    assert client.ask("deadly", text="harmless") == "harmless"
    _until(lambda: len(tallies(supervisor.settings)) == 2)


def test_what_cannot_be_sent_fails_its_request_alone(apart: tuple[Supervisor, ServingClient]) -> None:
    supervisor, client = apart
    before = supervisor.pids()
    outcomes = set()
    for number in range(40):
        try:
            outcomes.add(client.ask("unsendable", x=number) == number)
        except RequestFailedError as error:
            outcomes.add(str(error).split(" (")[0].replace(f"{number}", ""))
        if len(outcomes) == 2:
            break
    assert True in outcomes  # both stages were on one worker
    assert any("cannot be sent: pickling raised AttributeError" in str(outcome) for outcome in outcomes)
    assert supervisor.pids() == before


def test_one_thread_may_ask_while_pieces_come(together: tuple[Supervisor, ServingClient]) -> None:
    _, client = together
    pieces = client.stream("spelling", word="fairway")
    assert next(pieces) == "f"
    assert client.ask("chain", x=1) == 4
    assert "".join(pieces) == "airway"


def test_nothing_stays_of_requests_that_are_over(apart: tuple[Supervisor, ServingClient]) -> None:
    supervisor, client = apart
    settings = supervisor.settings
    for _ in range(10):
        client.ask("arrays", size=100_000)
    os.kill(supervisor.pids()[0], signal.SIGKILL)
    for _ in range(10):
        client.ask("arrays", size=100_000)
    _until(lambda: len(tallies(settings)) == 2)
    for _ in range(10):
        total, backwards = client.ask("arrays", size=100_000)
        assert total == np.sum(backwards)
    _until(lambda: all(tally["held"] == 0 for tally in tallies(settings).values()))
    left = f"w{0}-{0}-"  # these go a little later
    shared = {"table", "running"}
    _until(lambda: {p.name for p in settings.memory_directory.iterdir() if not p.name.startswith(left)} == shared)


def test_a_reply_that_nobody_takes_leaves_no_files(together: tuple[Supervisor, ServingClient]) -> None:
    supervisor, client = together
    settings = supervisor.settings
    replied = sum(tally["replied"] for tally in tallies(settings).values())
    parcel = client._site.values.pack({"size": 100_000})
    with connect(settings.socket(0)) as connection:
        connection.sendall(encoded(("ask", 1, 2, tuple(parcel), None, None)))
        _until(lambda: sum(tally["replied"] for tally in tallies(settings).values()) > replied)
    _until(lambda: {path.name for path in settings.memory_directory.iterdir()} == {"table", "running"})


def test_pinned_models_stay(served: Callable[..., Any]) -> None:
    with served("BOTH", workers=1, memory_bytes=130e6, pinned=("Heavy",)) as (supervisor, client):
        _until(lambda: tallies(supervisor.settings)[0]["resident"] == ["Heavy"])
        assert client.ask("also-heavy", x=1) == 3.0
        assert client.ask("heavy", x=1) == 2.0
        assert tallies(supervisor.settings)[0]["hits"] == 1
        assert tallies(supervisor.settings)[0]["evictions"] == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pinned": ("Heavi",)}, "pinned: no model 'Heavi'"),
        ({"pinned": ("Heavy",), "memory_bytes": 70e6}, "pinned: Heavy need 60 MB, which leaves too little of 70 MB"),
        ({"traces": "collector"}, "traces: 'collector' given, expected the address of an OTLP collector"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        Supervisor.of(f"{_APP}:BOTH", directory=tmp_path / "served", **options).start()
    assert not (tmp_path / "served").exists()


def test_a_directory_serves_once_at_a_time(together: tuple[Supervisor, ServingClient]) -> None:
    supervisor, client = together
    with pytest.raises(InputError, match="is in use by another 'fairway serve'"):
        Supervisor.of(f"{_APP}:chain", directory=supervisor.settings.directory).start()
    assert client.ask("chain", x=1) == 4


def test_a_path_that_is_too_long_for_sockets_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at most 107 are possible; give a shorter one"):
        Supervisor.of(f"{_APP}:chain", directory=tmp_path / ("x" * 120)).start()


def test_workers_live_on_when_the_thread_ends_that_started_them(served: Callable[..., Any], tmp_path: Path) -> None:
    supervisor = Supervisor.of(f"{_APP}:chain", directory=tmp_path / "served", workers=1)
    thread = threading.Thread(target=supervisor.start)
    thread.start()
    thread.join()
    try:
        with ServingClient(supervisor.settings.directory) as client:
            for _ in range(3):
                assert client.ask(x=1) == 4
        assert supervisor.restarts == 0
    finally:
        supervisor.stop()


def test_other_users_are_not_let_in(served: Callable[..., Any]) -> None:
    if os.geteuid() != 0:
        pytest.skip("only the administrator can act as somebody else")
    with served("chain", workers=1) as (supervisor, _):
        path = supervisor.settings.socket(0)
        path.chmod(0o666)
        path.parent.chmod(0o755)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.setuid(65534)
                with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                    connection.connect(str(path))
                    connection.settimeout(30)
                    connection.sendall(encoded(("tally",)))
                    os.write(writing, b"refused" if not connection.recv(1) else b"answered")
            except OSError as error:
                os.write(writing, f"refused {error}".encode())
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        os.close(writing)
        with os.fdopen(reading) as answer:
            assert answer.read().startswith("refused")


@pytest.mark.parametrize(
    ("workers", "scheduler", "searches"),
    [(1, "compass", "cheapest_worker"), (3, "compass", "cheapest_worker"), (3, "hash", "spread_tasks")],
)
def test_all_that_decides_is_there_before_the_first_request(workers: int, scheduler: str, searches: str) -> None:
    """Without a library of compiled loops, code takes most of a second to come from its cache, or many to be compiled,
    and no other message would be taken in meanwhile.
    """
    program = f"""
from fairway import Fleet, Stage, TaskGraph, Worker, Workflow
from fairway.live.serving.runtime.warm_up import warm_up
from fairway.place import kernels
from fairway.place.registry import placer_of

names = ("start", "left", "right", "end")
edges = (("start", "left"), ("start", "right"), ("left", "end"), ("right", "end"))
fleet = Fleet.of([Worker(f"w{{number}}", 1.0) for number in range({workers})])
graph = TaskGraph.of(Workflow(tuple(Stage.of(name, 1.0) for name in names), edges, {{}}), fleet)
warm_up(placer_of("{scheduler}"), fleet, [graph], me=0)
print([len(each.signatures) for each in (kernels.plan_tasks, kernels.{searches}, kernels.spread_task)])
"""
    loops = os.environ | {"FAIRWAY_COMPILED": "jit"}
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, env=loops)
    assert done.stdout.strip() == "[1, 1, 1]"
