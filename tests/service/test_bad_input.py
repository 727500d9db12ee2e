"""What is refused at the door: with the right status, one clear line, and nothing stored."""

from __future__ import annotations

import json
import logging
import os
import socket
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairway.jobs.description import JobDescription
from fairway.service.http import documents_in
from fairway.service.http.documents_in import MOST_BYTES, MOST_YAML_BYTES
from tests.jobs.test_hostile_descriptions import values
from tests.service.running import JOB, PATIENCE, Served, until

YAML = "application/yaml"
JSON = "application/json"


def refused(
    service: Served, client: httpx.Client, content: Any, kind: str | None = JSON, status: int = 422
) -> dict[str, Any]:
    before = service.stored()
    headers = {} if kind is None else {"Content-Type": kind}
    answer = client.post("/jobs", content=content, headers=headers)
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    problem: dict[str, Any] = answer.json()
    assert set(problem) == {"type", "title", "status", "detail", "code"}
    assert problem["status"] == answer.status_code == status, problem
    assert "\n" not in problem["detail"]
    assert service.stored() == before
    return problem


def refused_job(service: Served, client: httpx.Client, **fields: object) -> str:
    detail: str = refused(service, client, json.dumps(JOB | fields))["detail"]
    return detail


@pytest.mark.parametrize(
    ("kind", "text", "line"),
    [
        (YAML, "run: [a\nname: b\n", "job.yaml: not valid YAML: expected ',' or ']', but got ':' at line 2 column 5"),
        (YAML, "run: sleep\n  steps: 5\n", "job.yaml: not valid YAML: mapping values are not allowed here at line 2"),
        (YAML, "run: sleep\nrun: other\n", "job.yaml: line 1: 'run' given twice; keep one of them"),
        (YAML, "run: sleep\nsteps: many\n", "job.yaml: steps: \"many\" given, expected a whole number from 1 to"),
        (YAML, "run: sleep\nstep: 5\n", "job.yaml: step: no such field, did you mean 'steps'?"),
        (YAML, "steps: 5\n", "job.yaml: run: missing, expected the command to run"),
        (YAML, "- run: sleep\n", "job.yaml: the document: a list of 1 given, expected a job"),
        (YAML, "", "job.yaml: empty, expected a job, as in 'run: python train.py'"),
        (YAML, "run: \x07", "job.yaml: not valid YAML: "),
        (YAML, "run: &a sleep\nname: *a\n", "job.yaml: line 2: an alias (*) given"),
        (JSON, "{\"run\": \"sleep\",\n \"steps\": }", "job: not valid JSON: Expecting value at line 2 column 11"),
        (JSON, "{\"run\": \"sleep\", \"run\": \"x\"}", "job: run: given twice; keep one of them"),
        (JSON, "run: sleep", "job: not valid JSON: an object {…} expected; send YAML as application/yaml"),
        (JSON, "", "job: empty, expected a job, as in 'run: python train.py'"),
        (JSON, "{\"run\": \"sleep\", \"envs\": {\"A\": NaN}}", "job: envs.A: nan given, expected text or a finite"),
        (JSON, "{\"run\": \"sleep\", \"envs\": {\"A\": 1e999}}", "job: envs.A: inf given, expected text or a"),
        (JSON, "{\"run\": \"sleep\", \"envs\": {\"A\": " + "1" * 5000 + "}}", "job: not valid JSON: number out of"),
        (JSON, "{\"run\": \"\\ud800\"}", "job: not valid JSON: "),
        (JSON, "[" * 20_000, "job: nested too deeply"),
        (JSON, "\"sleep\"", "job: not valid JSON: an object {…} expected"),
        (None, "{\"run\": 5}", "job: run: 5 given, expected a command"),
    ],
)  # fmt: skip
def test_what_is_no_job_is_refused_with_the_line_and_the_field(
    shared: Served, admin: httpx.Client, kind: str, text: str, line: str
) -> None:
    assert line in refused(shared, admin, text.encode(), kind)["detail"]


def test_text_that_is_not_in_utf_8_is_refused(shared: Served, admin: httpx.Client) -> None:
    for kind in (JSON, YAML, "text/plain"):
        assert "not text in UTF-8" in refused(shared, admin, b"{\xff\xfe}", kind)["detail"]


def test_an_accelerator_that_the_cluster_lacks_is_refused(shared: Served, admin: httpx.Client) -> None:
    detail = refused_job(shared, admin, resources={"accelerators": "v10"})
    assert detail == (
        "job: resources.accelerators: 'v10' is not an accelerator of this cluster, did you mean 'v100'?; "
        "known: v100, k80"
    )


def test_a_gang_larger_than_the_cluster_is_refused(shared: Served, admin: httpx.Client) -> None:
    for asked in ("v100:3", "k80:2", "[v100, k80]:3"):
        assert "workers of one type asked for, but this cluster has at most" in refused_job(
            shared, admin, resources={"accelerators": asked}
        )


@pytest.mark.parametrize("name", ["../etc", "a/b", "..", "a\\b", "/", "x" * 64, "", "-a", "a b"])
def test_a_path_in_a_name_is_refused(shared: Served, admin: httpx.Client, name: str) -> None:
    assert refused_job(shared, admin, name=name).startswith("job: name: ")


@pytest.mark.parametrize(
    "run",
    [
        ["no-such-program", "--epochs", "3"],
        "no-such-program --epochs 3",
        "\n# first\nDATA=/data  no-such-program;",
        ["./train.sh"],
        "./train.sh --fast",
        ["/usr/bin/no-such-program"],
        ["/etc/passwd"],
        ["/etc"],
        ["a\nb"],
    ],
)
def test_a_command_that_does_not_exist_is_refused(
    shared: Served, admin: httpx.Client, run: object, tmp_path: Path
) -> None:
    assert refused_job(shared, admin, run=run, workdir=str(tmp_path)).startswith("job: run: ")


def test_a_command_is_looked_for_where_the_job_will_look(admin: httpx.Client, tmp_path: Path) -> None:
    program = tmp_path / "train.sh"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for job in (
        {"run": ["./train.sh"], "workdir": str(tmp_path)},
        {"run": "./train.sh --fast", "workdir": str(tmp_path)},
        {"run": ["train.sh"], "envs": {"PATH": str(tmp_path)}},
        {"run": "train.sh && echo", "envs": {"PATH": f"/usr/bin:{tmp_path}"}},
        {"run": [str(program)]},
    ):
        answer = admin.post("/jobs", json=job)
        assert answer.status_code == 201, answer.text


@pytest.mark.parametrize(
    "run",
    [
        "cd /tmp && no-such-program", "if true; then x; fi", "$TOOL --fast", "'quoted program'", "(no-such-program)",
        "train() { sleep 1; }; train", "for i in 1 2; do sleep $i; done", "export A=1; sleep 1",
        "PATH=/x no-such-program", "echo hi", "~/train.sh", "sleep 1 | cat",
    ],
)  # fmt: skip
def test_what_only_a_shell_can_tell_is_left_to_the_shell(admin: httpx.Client, run: str) -> None:
    answer = admin.post("/jobs", json={"run": run})
    assert answer.status_code == 201, answer.text


def test_what_a_setup_may_install_is_not_looked_for(shared: Served, admin: httpx.Client) -> None:
    assert admin.post("/jobs", json={"run": "no-such-program", "setup": "echo install"}).status_code == 201
    assert refused_job(shared, admin, setup="no-such-installer x").startswith("job: setup: the command")


def test_a_working_directory_that_is_not_there_is_refused(shared: Served, admin: httpx.Client, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for workdir, why in (
        (str(tmp_path / "none"), "is not a directory of this machine"),
        (str(tmp_path / "file"), "is not a directory of this machine"),
        ("relative/path", "expected the whole path of a directory"),
        ("/a\0b", "is not a directory"),
    ):
        assert why in refused_job(shared, admin, workdir=workdir)


def test_a_checkpoint_directory_that_cannot_be_written_is_refused(
    shared: Served, admin: httpx.Client, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    places = [str(tmp_path / "file" / "x"), str(tmp_path / "file"), "/proc/none/x", "relative"]
    places += [str(closed / "x")] if os.geteuid() else []
    for place in places:
        assert refused_job(shared, admin, checkpoint={"directory": place}).startswith("job: checkpoint.directory: ")


def test_a_checkpoint_directory_that_can_be_made_is_taken_and_not_made_yet(admin: httpx.Client, tmp_path: Path) -> None:
    job = JOB | {"checkpoint": {"directory": str(tmp_path / "a" / "b")}}
    assert admin.post("/jobs", json=job).status_code == 201
    assert list(tmp_path.iterdir()) == []


def test_other_kinds_of_bodies_are_refused(shared: Served, admin: httpx.Client) -> None:
    for kind in ("application/x-www-form-urlencoded", "application/xml", "image/png", "nonsense"):
        problem = refused(shared, admin, json.dumps(JOB), kind, 415)
        assert "expected one of application/json" in problem["detail"]
    assert (
        "charset 'latin-1'"
        in refused(shared, admin, json.dumps(JOB), "application/json; charset=latin-1", 415)["detail"]
    )


def test_a_key_that_cannot_be_stored_is_refused(shared: Served, admin: httpx.Client) -> None:
    before = shared.stored()
    for key in ("x" * 257, "\x80", "a\tb"):
        assert admin.post("/jobs", json=JOB, headers={b"Idempotency-Key": key.encode("latin-1")}).status_code == 422
    assert shared.stored() == before


def test_a_body_of_just_the_most_that_is_taken_is_read(shared: Served, admin: httpx.Client) -> None:
    text = json.dumps(JOB | {"envs": {f"A{number}": "x" * 100_000 for number in range(MOST_BYTES // 110_000)}})
    text += " " * (MOST_BYTES - len(text))
    assert admin.post("/jobs", content=text, headers={"Content-Type": JSON}).status_code == 201
    assert refused(shared, admin, text + " ", JSON, 413)["code"] == "too-large"


def test_long_yaml_is_refused_before_it_is_read(shared: Served, admin: httpx.Client) -> None:
    text = "run: sleep 1\nenvs:\n" + "".join(f"  A{number}: x\n" for number in range(MOST_YAML_BYTES // 8))
    problem = refused(shared, admin, text, YAML, 413)
    assert problem["detail"].startswith("the body is larger than 128 KiB, the most that is taken in YAML; send JSON")


def test_a_body_of_100_mb_is_refused_and_never_held(shared: Served, admin: httpx.Client) -> None:
    block = b"x" * 100_000
    sent = 0

    def body() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(1000):
            sent += len(block)
            yield block

    before = shared.stored()
    tracemalloc.start()
    try:
        answer = admin.post("/jobs", content=body(), headers={"Content-Type": JSON})
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (answer.status_code, answer.json()["code"]) == (413, "too-large")
    assert peak < 10 * MOST_BYTES
    assert sent > 0
    assert shared.stored() == before
    assert admin.get("/status").status_code == 200


def test_a_body_that_says_that_it_is_too_long_is_refused_before_it_is_sent(shared: Served) -> None:
    host, port = shared.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
        head = f"POST /jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {shared.secret}\r\n"
        connection.sendall(f"{head}Content-Type: {JSON}\r\nContent-Length: 100000000\r\n\r\n".encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 413 ")


def test_a_body_that_does_not_come_is_not_waited_for_for_ever(shared: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents_in, "_PATIENCE_SECONDS", 0.2)
    host, port = shared.address.removeprefix("http://").split(":")
    before = shared.stored()
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
        head = f"POST /jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {shared.secret}\r\n"
        connection.sendall(f'{head}Content-Type: {JSON}\r\nContent-Length: 100\r\n\r\n{{"run":'.encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 408 ")
    assert shared.stored() == before


def test_a_client_that_goes_away_or_speaks_nonsense_leaves_nothing_in_the_log(
    own: Served, caplog: pytest.LogCaptureFixture
) -> None:
    """Otherwise a client that may do nothing else could fill the disk with the log of the service."""
    host, port = own.address.removeprefix("http://").split(":")
    logging.getLogger("uvicorn.error").addHandler(caplog.handler)
    for head in (
        f"POST /jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {own.secret}\r\nContent-Length: 9\r\n\r\n{{",
        "nonsense\r\n\r\n",
        "GET /status HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    ):
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
            connection.sendall(head.encode())
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(1000):
                pass
    with own.client() as client:
        until(lambda: 'route="/jobs",status="400"' in client.get("/metrics").text, "for the request to be over")
    logging.getLogger("uvicorn.error").removeHandler(caplog.handler)
    assert not [record.getMessage() for record in caplog.records]


def test_a_route_that_does_not_exist_is_a_problem_too(admin: httpx.Client) -> None:
    for method, path, status in (("GET", "/nothing", 404), ("GET", "/jobs/", 404), ("PUT", "/jobs", 405)):
        answer = admin.request(method, path)
        assert answer.status_code == status
        assert answer.headers["content-type"] == "application/problem+json"
    assert admin.put("/jobs").headers["allow"] in {"GET", "POST", "GET, POST", "POST, GET"}


@pytest.mark.parametrize("deadline", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00Z"])
def test_a_date_at_the_end_of_the_calendar_is_no_defect(admin: httpx.Client, deadline: str) -> None:
    for answer in (
        admin.post("/jobs", json=JOB | {"deadline": deadline}),
        admin.post("/jobs", params={"dry_run": "true"}, json=JOB | {"deadline": deadline}),
        admin.post("/jobs", content=f"run: sleep 1\ndeadline: {deadline}", headers={"Content-Type": YAML}),
    ):
        assert answer.status_code in {200, 201, 422}, answer.text


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("weight", 1e-309, "weight: 1e-309 given, expected a number above 0, from 1e-09 to 1e+12"),
        ("throughputs", {"v100": 1e-308}, "throughputs.v100: 1e-308 given, expected a size from 1e-09 to 1e+12"),
        ("throughputs", {"v100": 1e300}, "throughputs.v100: 1e+300 given, expected a number of at least 0"),
    ],
)
def test_a_number_that_no_cluster_yields_is_refused(
    shared: Served, admin: httpx.Client, field: str, value: object, said: str
) -> None:
    assert said in refused_job(shared, admin, steps=999_999_999_999_999, **{field: value})


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(field=st.sampled_from(sorted(JobDescription.model_fields)), value=values)
def test_no_description_is_answered_with_a_defect(admin: httpx.Client, field: str, value: object) -> None:
    body = json.dumps({**JOB, field: value})
    for kind in (JSON, YAML):
        answer = admin.post("/jobs", content=body, headers={"Content-Type": kind}, params={"dry_run": "true"})
        assert answer.status_code < 500, (body, answer.text)


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"run": f"true {'x' * 131_067}"}, "run"),
        ({"run": ["true", "é" * 65_536]}, "run"),
        ({"setup": f"true {'x' * 131_067}"}, "setup"),
        ({"envs": {"A": "x" * 131_070}}, "envs.A"),
    ],
)
def test_what_no_program_can_be_started_with_is_refused(
    shared: Served, admin: httpx.Client, fields: dict[str, Any], where: str
) -> None:
    given = JOB | {"run": "true"} | fields
    detail = refused(shared, admin, json.dumps(given))["detail"]
    assert detail == f"job: {where}: 131072 bytes given, at most 131071 can be passed on; put it into a file"


def test_the_longest_command_that_can_be_started_is_taken(shared: Served, admin: httpx.Client) -> None:
    given = JOB | {"run": f"true {'x' * 131_066}", "envs": {"A": "x" * 131_069}}
    assert admin.post("/jobs", json=given).status_code == 201
