"""Asking for workflows over HTTP: what goes in, what comes out, and what is refused."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from fairway.live.serving.supervise.supervisor import tallies
from tests.service.inference.conftest import MOST_OPEN, TOKEN, Serving


def _until(condition: Callable[[], Any], patience: float = 60.0) -> Any:
    deadline = time.monotonic() + patience
    while not (value := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
    return value


def test_inputs_are_json_or_the_body(serving: Serving) -> None:
    client = serving.client
    assert client.post("/workflows/measure", content=b"12345").json() == 5
    assert client.post("/workflows/measure", json={"blob": "MTIzNDU=", "times": 3}).json() == 15
    reversed_ = client.post("/workflows/reverse", content=b"abc", headers={"content-type": "image/png"})
    assert (reversed_.content, reversed_.headers["content-type"]) == (b"cba", "application/octet-stream")
    large = os.urandom(3_000_000)
    assert client.post("/workflows/reverse", content=large).content == large[::-1]
    described = client.post("/workflows/describe", json={"text": "ü"})
    assert described.json() == {"text": "ü", "array": [0, 1, 2], "none": None, "raw": "aGk=", "set": [1]}
    memory = serving.supervisor.settings.memory_directory
    _until(lambda: {path.name for path in memory.iterdir()} == {"table", "running"})


@pytest.mark.parametrize(
    ("workflow", "body", "status", "detail"),
    [
        ("nothing", {"json": {}}, 404, "no workflow 'nothing'; there is measure, "),
        ("describe", {"json": {"text": 7}}, 422, "input 'text': 7 given, expected str"),
        ("describe", {"json": {"txt": "x"}}, 422, "no input 'txt'"),
        ("describe", {"json": {}}, 422, "input 'text' is missing"),
        ("describe", {"json": [1]}, 422, "body: expected an object with text"),
        ("describe", {"content": b"{", "headers": {"content-type": "application/json"}}, 422, "not valid JSON"),
        ("describe", {"content": b"[" * 100_000, "headers": {"content-type": "application/json"}}, 422, "not valid"),
        ("describe", {"content": b"raw", "headers": {"content-type": "image/png"}}, 422, "send JSON, bytes as base64"),
        ("measure", {"json": {"blob": "?"}}, 422, "blob: not valid base64"),
        ("measure", {"json": {"blob": 3}}, 422, "input 'blob': 3 given, expected bytes"),
        ("sleep", {"json": {"seconds": True}}, 422, "input 'seconds'"),
        ("sleep", {"json": {"seconds": 0}, "headers": {"fairway-deadline-seconds": "-1"}}, 422, "seconds above 0"),
        ("sleep", {"json": {"seconds": 0}, "headers": {"fairway-deadline-seconds": "soon"}}, 422, "seconds above 0"),
        (
            "sleep",
            {"json": {"seconds": 0}, "headers": {"fairway-deadline-seconds": "inf"}},
            422,
            'Fairway-Deadline-Seconds: "inf" given, expected seconds above 0 from now',
        ),
        ("endless", {"json": {"text": ""}, "headers": {"fairway-deadline-seconds": "30"}}, 422, "it would take 100 s"),
        ("sleep", {"json": {"seconds": 1}, "headers": {"fairway-deadline-seconds": "0.4"}}, 504, "its time was over"),
        ("fail", {"json": {"text": "it"}}, 500, "stage 'Fail' raised RuntimeError: no luck with it (trace "),
        ("odd", {"json": {"kind": "object"}}, 500, "the result cannot be JSON: it holds a object"),
        ("odd", {"json": {"kind": "function"}}, 500, "cannot be sent: pickling raised AttributeError"),
    ],
)
def test_what_cannot_be_done_is_a_problem(
    serving: Serving, workflow: str, body: dict[str, Any], status: int, detail: str
) -> None:
    pids = serving.supervisor.pids()
    answer = serving.client.post(f"/workflows/{workflow}", **body)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert detail in answer.json()["detail"]
    assert serving.supervisor.pids() == pids


def test_the_trace_of_a_failure_is_in_a_worker_s_log(serving: Serving) -> None:
    detail = serving.client.post("/workflows/fail", json={"text": "this"}).json()["detail"]
    trace = detail.split("(trace ")[1].split(",")[0]
    logs = "".join(path.read_text() for path in serving.supervisor.settings.directory.glob("worker-*.log"))
    assert f"trace {trace}\nTraceback" in logs


def test_nobody_without_the_token_gets_anything(serving: Serving) -> None:
    for shown in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": TOKEN}, {"Authorization": "Bearer \xff"}):
        headers = {name: value.encode("latin-1") for name, value in shown.items()}
        with httpx.Client(base_url=serving.address, trust_env=False, timeout=60) as client:
            for method, path in (("GET", "/status"), ("GET", "/metrics"), ("POST", "/workflows/fail"), ("GET", "/no")):
                assert client.request(method, path, headers=headers).status_code == 401


@pytest.mark.parametrize("said", [True, False])
def test_a_payload_of_200_mb_is_refused_without_being_held(serving: Serving, said: bool) -> None:
    sent = 0

    def pieces() -> Any:
        nonlocal sent
        for _ in range(200):
            sent += 1
            yield b"x" * 1_000_000

    headers = {"content-length": str(200_000_000)} if said else {}
    before = _high_water()
    answer = serving.client.post("/workflows/measure", content=pieces(), headers=headers)
    assert answer.status_code == 413
    assert _high_water() - before < 150_000_000
    assert serving.client.post("/workflows/measure", content=b"1").json() == 1


def _high_water() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def test_pieces_come_as_lines_and_what_goes_wrong_is_the_last(serving: Serving, tmp_path: Path) -> None:
    client, mark = serving.client, str(tmp_path / "mark")
    with client.stream("POST", "/workflows/count", json={"end": 5, "mark": mark}) as answer:
        assert answer.headers["content-type"] == "application/x-ndjson"
        lines = answer.iter_lines()
        assert next(lines) == "0"
        assert int(Path(mark).read_text()) < 4
        assert list(lines) == ["1", "2", "3", "4"]
    with client.stream("POST", "/workflows/count", json={"end": -2, "mark": mark}) as answer:
        *pieces, last = answer.iter_lines()
    assert pieces == ["0", "1"]
    assert '"code":"failed"' in last
    assert "stage 'Count' raised ValueError: no more" in last


def test_whoever_goes_away_cancels_the_request(serving: Serving, tmp_path: Path) -> None:
    settings, client = serving.supervisor.settings, serving.client

    def of_all(fact: str) -> int:
        return sum(tally[fact] for tally in tallies(settings).values())

    cancelled = of_all("cancelled")
    host, port = serving.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as connection:
        body = b'{"seconds":2}'
        connection.sendall(
            b"POST /workflows/sleep HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            + f"Authorization: Bearer {TOKEN}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        _until(lambda: of_all("open") == 1)
    _until(lambda: of_all("open") == 0)
    assert of_all("cancelled") == cancelled + 1
    mark = tmp_path / "mark"
    with client.stream("POST", "/workflows/count", json={"end": 10_000, "mark": str(mark)}) as answer:
        assert next(answer.iter_lines()) == "0"
    _until(lambda: of_all("open") == 0)
    assert of_all("cancelled") == cancelled + 2

    def rests() -> bool:
        before = mark.read_text()
        time.sleep(0.3)
        return mark.read_text() == before

    assert _until(rests)


def test_more_than_workers_take_is_refused_and_the_rest_is_served(serving: Serving) -> None:
    answers: list[int] = []

    def ask() -> None:
        answer = serving.client.post("/workflows/sleep", json={"seconds": 0.5})
        if answer.status_code == 429:
            assert answer.headers["retry-after"] == "1"
        answers.append(answer.status_code)

    threads = [threading.Thread(target=ask) for _ in range(2 * MOST_OPEN + 6)]  # fewer than connections in the pool
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(answers) == {200, 429}
    assert answers.count(200) >= 2 * MOST_OPEN


def test_a_worker_that_dies_is_not_noticed(serving: Serving) -> None:
    supervisor = serving.supervisor
    before, restarts = supervisor.pids(), supervisor.restarts
    answers: list[tuple[int, Any]] = []

    def ask() -> None:
        answer = serving.client.post("/workflows/sleep", json={"seconds": 0.4})
        answers.append((answer.status_code, answer.json()))

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    _until(lambda: sum(tally["open"] for tally in tallies(supervisor.settings).values()) == 6)
    os.kill(before[0], signal.SIGKILL)
    for thread in threads:
        thread.join()
    assert [status for status, _ in answers] == [200] * 6
    _until(lambda: supervisor.restarts == restarts + 1)
    _until(lambda: len(tallies(supervisor.settings)) == 2)
    assert supervisor.pids()[1] == before[1]
