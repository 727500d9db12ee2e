"""What does not end by itself: the output of a job and the news about jobs, as flows that survive a lost connection.

A stream that breaks off, because the controller was restarted or the network went away, is opened again where it was:
events by the id of the last one, logs by the number of bytes that have come.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Mapping
from typing import Any

from fairway.client.calls import Calls, path_of
from fairway.client.errors import not_understood
from fairway.client.event_stream import EventReader, ServerEvent
from fairway.client.patience import unreachable
from fairway.client.records import Event, Job
from fairway.client.steps import Answer, Give, NoAnswer, Part, Pause, Read, Request, Steps

LOG_OFFSET = "fairway-log-offset"
"""The header in which the server says where in the log its answer begins."""

_SILENCE_SECONDS = 60.0
"""Longer than the server is ever silent on a stream of events; for logs, how often to see whether it is still there."""

_FAREWELLS = {"closing", "dropped", "revoked"}
"""What the server says before it ends a stream; whether it can be opened again will be seen."""

_PAUSE_SECONDS = 0.3
"""Before a stream is opened again; where no server answers at all, the pauses grow by themselves."""


def logs(calls: Calls, job: str | Job, rank: int, tail: int | None, follow: bool) -> Steps[str]:
    """The output of a job as it is, or until the job has ended."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    position: int | None = None  # in the log, in bytes; None before the first answer
    while True:
        request = _log_request(job, rank, follow, tail, position)
        answer: Answer = yield from calls.patience.opened(request)
        skipped = 0
        if position is None:
            position = _begin(answer, whole=tail is None)
        elif _begin(answer, whole=True) != position:  # it has begun at the beginning again
            skipped = position
        while isinstance(piece := (yield Read()), bytes):
            fresh = piece[skipped:]
            skipped -= len(piece) - len(fresh)
            position = None if position is None else position + len(fresh)
            if text := decoder.decode(fresh):
                yield Give(text)
        broken = piece if isinstance(piece, NoAnswer) else None
        if broken and (not follow or position is None):
            raise unreachable(calls.patience.address, broken)
        if broken is None and (not follow or (yield from _ended(calls, job))):
            break
        yield Pause(_PAUSE_SECONDS, "the log broke off")
    if text := decoder.decode(b"", final=True):
        yield Give(text)


def _log_request(job: str | Job, rank: int, follow: bool, tail: int | None, position: int | None) -> Request:
    query = [("rank", str(rank)), ("follow", "true" if follow else "false")]
    if position is not None:
        query.append(("offset", str(position)))
    elif tail is not None:
        query.append(("tail", str(tail)))
    return Request("GET", path_of(job, "logs"), tuple(query), silence_seconds=_SILENCE_SECONDS)


def _begin(answer: Answer, *, whole: bool) -> int | None:
    """Where in the log an answer begins: as it says, or at 0 if all of it was asked for."""
    offset = answer.headers.get(LOG_OFFSET, "")
    return int(offset) if offset.isdecimal() else 0 if whole else None


def events(calls: Calls, job: str | Job | None, after: str | None) -> Steps[Event]:
    """What happens to jobs, from now on or from an event on; for one job, until it has ended."""
    path = "/events" if job is None else path_of(job, "events")
    last = after
    while True:
        headers = {"Accept": "text/event-stream", **({"Last-Event-ID": last} if last is not None else {})}
        yield from calls.patience.opened(Request("GET", path, (), headers, silence_seconds=_SILENCE_SECONDS))
        reader = EventReader()
        while isinstance(piece := (yield Read()), bytes):
            for event in reader.feed(piece):
                last = event.id if event.id is not None else last
                if event.kind not in _FAREWELLS:
                    yield Give(_event(calls, event))
        if piece is None and job is not None and (yield from _ended(calls, job)):
            return
        yield Pause(_PAUSE_SECONDS, "the events broke off")


def _event(calls: Calls, event: ServerEvent) -> Event:
    try:
        document: Mapping[str, Any] = json.loads(event.data)
        whole = "id" in document and "state" in document
    except (ValueError, TypeError):
        raise not_understood(calls.patience.address, "an event without a JSON object") from None
    job = calls.read(document, Job.of) if whole else None
    return Event(id=event.id, kind=event.kind, job=job, document=document)


def _ended(calls: Calls, job: str | Job) -> Part[bool]:
    """Whether a job has come to its end; a stream may also end because the server does."""
    return (yield from calls.standing(job)).ended
