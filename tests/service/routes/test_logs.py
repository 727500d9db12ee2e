"""The output of jobs over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import httpx
import pytest

from fairway.live.bounded_log import trim_log
from tests.service.running import JOB, Served, until


def log_of(service: Served, job: str = "job-1", rank: int = 0) -> Path:
    path = service.scheduler.log_path(job, rank)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def test_a_log_is_read_as_it_stands(own: Served, client: httpx.Client) -> None:
    client.post("/jobs", json=JOB | {"resources": {"accelerators": "v100:2"}})
    answer = client.get("/jobs/job-1/logs")
    assert (answer.status_code, answer.content) == (200, b""), "nothing was written yet"
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"
    content = b"".join(b"line %d\n" % number for number in range(50_000)) + b"\xff no end"
    log_of(own).write_bytes(content)
    log_of(own, rank=1).write_bytes(b"of the second rank\n")
    assert client.get("/jobs/job-1/logs").content == content
    assert client.get("/jobs/job-1/logs", params={"tail": 2}).content == b"line 49999\n\xff no end"
    assert client.get("/jobs/job-1/logs", params={"tail": 0}).content == b""
    assert client.get("/jobs/job-1/logs", params={"rank": 1}).content == b"of the second rank\n"


def test_of_a_log_whose_beginning_was_dropped_the_rest_is_read_and_the_answer_says_where_it_begins(
    own: Served, client: httpx.Client
) -> None:
    client.post("/jobs", json=JOB)
    content = b"".join(b"line %d\n" % number for number in range(50_000))
    log_of(own).write_bytes(content)
    with log_of(own).open("r+b") as log:
        assert trim_log(log.fileno(), 131_072)
    answer = client.get("/jobs/job-1/logs")
    begin = int(answer.headers["fairway-log-offset"])
    assert begin + len(answer.content) == len(content)
    notice, _, rest = answer.content.partition(b"\n")
    assert b"were dropped, since the log grew too large" in notice
    assert content.endswith(rest)
    assert client.get("/jobs/job-1/logs", params={"offset": begin + 9}).content == answer.content[9:]
    own.scheduler.finish("job-1")
    with following(client) as parts:
        pass
    assert b"".join(parts) == answer.content


@pytest.mark.parametrize(
    ("query", "line"),
    [
        ({"rank": 1}, "rank: 1 given, but job 'job-1' has 1, counted from 0"),
        ({"rank": -1}, "rank: "),
        ({"rank": "../1"}, "rank: "),
        ({"tail": -1}, "tail: "),
        ({"follow": "perhaps"}, "follow: "),
        ({"lines": 3}, "lines: no such parameter"),
    ],
)  # fmt: skip
def test_what_no_log_has_is_refused(own: Served, client: httpx.Client, query: dict[str, object], line: str) -> None:
    client.post("/jobs", json=JOB)
    answer = client.get("/jobs/job-1/logs", params=query)  # type: ignore[arg-type]
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith(line)


@contextmanager
def following(client: httpx.Client, **query: object) -> Iterator[list[bytes]]:
    """What comes of a log that is followed; the stream has to be over at the end of the block."""
    parts: list[bytes] = []
    with client.stream("GET", "/jobs/job-1/logs", params={"follow": "true", **query}) as response:  # type: ignore[arg-type]
        thread = Thread(target=lambda: parts.extend(response.iter_raw()), daemon=True)
        thread.start()
        yield parts
        until(lambda: not thread.is_alive(), "for the end of the log")


def test_a_log_is_followed_until_the_job_has_ended(own: Served, client: httpx.Client) -> None:
    client.post("/jobs", json=JOB)
    with following(client) as parts:
        log = log_of(own)
        with log.open("ab", buffering=0) as file:
            for number in range(3):
                file.write(b"line %d\n" % number)
                until(lambda: b"".join(parts) == log.read_bytes(), f"for line {number}")
            file.write(b"the last words")
            own.scheduler.finish("job-1")
    assert b"".join(parts) == log.read_bytes()


def test_only_the_end_of_a_log_may_be_followed(own: Served, client: httpx.Client) -> None:
    client.post("/jobs", json=JOB)
    log_of(own).write_bytes(b"one\ntwo\nthree\n")
    with following(client, tail=1) as parts:
        until(lambda: b"".join(parts) == b"three\n")
        with log_of(own).open("ab") as file:
            file.write(b"four\n")
        until(lambda: b"".join(parts) == b"three\nfour\n")
        own.scheduler.finish("job-1")


def test_the_log_of_a_job_that_has_ended_is_not_waited_for(own: Served, client: httpx.Client) -> None:
    client.post("/jobs", json=JOB)
    own.scheduler.finish("job-1")
    with following(client) as parts:
        pass
    assert parts == []


def test_who_follows_a_log_and_loses_the_token_reads_no_more(own: Served, client: httpx.Client) -> None:
    client.post("/jobs", json=JOB)
    made = client.post("/tokens", json={"role": "reader"}).json()
    with own.client_with(made["token"]) as reader, following(reader):
        client.delete(f"/tokens/{made['id']}")
