"""Logs and events go on where they were when a connection is lost."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from fairway.client import UnreachableError
from tests.client.both import Both
from tests.client.server import Made, job, running

TEXT = "schön: ein Schritt\n" * 5


def test_logs_come_in_pieces_that_make_the_whole(client: Both, made: Made) -> None:
    made.log = TEXT.encode()
    pieces = client.logs("job-1")
    assert len(pieces) > 10
    assert "".join(pieces) == TEXT
    assert "".join(client.logs("job-1", rank=1, tail=2)) == "schön: ein Schritt\n" * 2
    query = made.seen[-1].query_params
    assert (query["rank"], query["tail"], query["follow"]) == ("1", "2", "false")


def test_what_is_no_text_is_shown_as_far_as_it_is(client: Both, made: Made) -> None:
    made.log = b"a\xffb\xc3"
    assert "".join(client.logs("job-1")) == "a\ufffdb\ufffd"


@pytest.mark.parametrize("resumable", [True, False])
@pytest.mark.parametrize("tail", [None, 3])
def test_a_followed_log_that_breaks_off_goes_on_without_a_gap(
    client: Both, made: Made, tail: int | None, resumable: bool
) -> None:
    made.log, made.breaks, made.resumable = TEXT.encode(), [7, 21, 0], resumable
    made.jobs = [job(1, "succeeded")]
    lines = "".join(client.logs("job-1", follow=True, tail=tail)).splitlines()
    assert lines == ["schön: ein Schritt"] * (tail or 5)


def test_a_server_that_says_nothing_for_long_is_asked_again(
    client: Both, made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairway.client.streams._SILENCE_SECONDS", 0.5)
    made.log, made.silences, made.jobs = TEXT.encode(), [3.0], [job(1, "succeeded")]
    assert "".join(client.logs("job-1", follow=True)) == TEXT
    opened = [request.query_params for request in made.seen if request.url.path.endswith("/logs")]
    assert [query.get("offset") for query in opened] == [None, "2"]


def test_a_log_that_is_not_followed_and_breaks_off_is_an_error(client: Both, made: Made) -> None:
    made.breaks = [3]
    with pytest.raises(UnreachableError, match="no Fairway answers"):
        client.logs("job-1")


def test_a_stream_that_ends_before_the_job_is_opened_again(client: Both, made: Made) -> None:
    made.jobs = [running(1)]
    opened = 0

    class Ends(list[int]):
        """Lets the job end when its log is read for the second time."""

        def __bool__(self) -> bool:
            nonlocal opened
            opened += 1
            if opened == 2:
                made.jobs = [job(1, "succeeded")]
            return False

    made.breaks = Ends()
    assert "".join(client.logs("job-1", follow=True)) == made.log.decode()
    assert opened == 2


def event(number: int, state: str, kind: str = "job") -> bytes:
    return f"id: {number}\nevent: {kind}\ndata: {json.dumps(job(1, state))}\n\n".encode()


def test_events_of_a_job_go_on_over_a_lost_connection_until_it_has_ended(client: Both, made: Made) -> None:
    made.jobs = [job(1, "running")]
    last = event(3, "succeeded")

    def pieces() -> list[bytes]:
        made.jobs = [job(1, "succeeded")]
        return [b": keep-alive\n\n", last[:5], last[5:]]

    class Streams(list[list[bytes]]):
        def pop(self, _: object = 0) -> list[bytes]:
            given.append(1)
            first = [event(1, "queued"), event(2, "running", "progress"), b"event: closing\ndata: {}\n\n"]
            return first if len(given) == 1 else pieces()

    given: list[int] = []
    made.events = Streams()
    events = client.events("job-1")
    assert [(one.id, one.kind, one.job.state) for one in events] == [
        ("1", "job", "queued"),
        ("2", "progress", "running"),
        ("3", "job", "succeeded"),
    ]
    opened = [request for request in made.seen if request.url.path == "/jobs/job-1/events"]
    assert [request.headers.get("last-event-id") for request in opened] == [None, "2"]


def test_events_of_all_jobs_can_begin_after_one(made: Made, connect: Callable[..., Both]) -> None:
    made.events = [[event(8, "running")]]
    client = connect(made.address)
    if hasattr(client.client, "__aenter__"):

        async def first() -> object:
            stream = client.client.events(after="7")
            try:
                return await anext(stream)
            finally:
                await stream.aclose()

        one = client._loop.run_until_complete(first())
    else:
        stream = client.client.events(after="7")
        one = next(stream)
        stream.close()
    assert (one.id, one.job.state) == ("8", "running")
    assert made.seen[0].headers["last-event-id"] == "7"
