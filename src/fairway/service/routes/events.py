"""Server-sent events: what happens to jobs, as it happens."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header, Query
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from fairway.service.authentication import Caller, require_visible, team_of
from fairway.service.context import Service, ServiceOf
from fairway.service.http.openapi import problems_for
from fairway.service.routes.history import STEP_SECONDS, history_text
from fairway.service.routes.jobs import JobId
from fairway.service.watch import Listener, Watch, event_text
from fairway.store.job_changes import job_named
from fairway.store.records import JobRecord
from fairway.store.tokens import Token

router = APIRouter(tags=["events"])

KEEP_ALIVE_SECONDS = 15.0

_LARGEST = 2**63 - 1
_STREAM = {
    "description": "Events as they happen.",
    "content": {
        "text/event-stream": {
            "schema": {
                "type": "object",
                "properties": {
                    "id": {"type": "string", "description": "Grows from event to event."},
                    "event": {"enum": ["job", "progress", "status", "history", "closing", "dropped", "revoked"]},
                    "data": {"type": "string", "contentMediaType": "application/json"},
                },
                "required": ["event", "data"],
            }
        }
    },
}


class EventsQuery(BaseModel):
    """What to listen to."""

    model_config = ConfigDict(extra="forbid")

    job: str | None = Field(default=None, max_length=128, description="Only this job.")
    after: int | None = Field(
        default=None, ge=0, le=_LARGEST, description="The id of the last event seen: first comes what changed since."
    )
    pages: bool = Field(
        default=False,
        description="Also `status` and `history` every few seconds, where they changed; `after` is then about history.",
    )


class ListenedStream(StreamingResponse):
    """A stream that belongs to a listener, who is let go whatever becomes of the stream."""

    def __init__(self, content: AsyncIterator[bytes], listener: Listener, watch: Watch, media_type: str) -> None:
        super().__init__(content, media_type=media_type)
        self.headers["Cache-Control"] = "no-store"
        self.headers["X-Accel-Buffering"] = "no"
        self._listener, self._watch = listener, watch

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._watch.remove(self._listener)


@router.get(
    "/events",
    summary="Listen to all jobs",
    response_class=StreamingResponse,
    responses={200: _STREAM, **problems_for(404, 422)},
)
async def get_events(
    service: ServiceOf,
    token: Caller,
    query: Annotated[EventsQuery, Query()],
    last_event_id: Annotated[str | None, Header(max_length=32, description="The same as `after`.")] = None,
) -> Response:
    """An event `job` with a job as data on every change of its state, and a comment every 15 s.

    Several changes within a quarter of a second may come as one. The last event before the service ends a stream is
    `closing`, `dropped` (you were too slow) or `revoked` (your token was).
    """
    if query.pages:
        listener = Listener(token, team_of(token), query.job, pages=True)
        return await _stream(service, listener, None, query.after)
    after = query.after
    if after is None and last_event_id is not None and last_event_id.isascii() and last_event_id.isdecimal():
        after = int(last_event_id)
    if query.job is not None:
        await visible_job(service, token, query.job)
    return await _stream(service, Listener(token, team_of(token), query.job), None if query.job else after)


@router.get(
    "/jobs/{job}/events",
    summary="Listen to one job",
    response_class=StreamingResponse,
    responses={200: _STREAM, **problems_for(404, 422)},
)
async def get_job_events(service: ServiceOf, token: Caller, job: JobId) -> Response:
    """First the job as it stands, then an event `job` on every change and `progress` on every step forward.

    The stream ends after the job's final state.
    """
    await visible_job(service, token, job)
    return await _stream(service, Listener(token, job=job, progress=True, until_end=True), None)


async def visible_job(service: Service, token: Token, job: str) -> JobRecord:
    """A job that the holder of a token may see."""

    def found(connection: Connection) -> JobRecord:
        return require_visible(token, job_named(connection, job))

    return await service.run(lambda: service.store.read(found))


async def _stream(service: Service, listener: Listener, after: int | None, history: int | None = None) -> Response:
    await service.watch.add(listener)
    first = b""
    if history is not None:  # what changed until the listener was there; the rest it is told
        since = history / 1e6 // STEP_SECONDS * STEP_SECONDS
        text = await service.run_slowly(lambda: history_text(service, listener.team, since))
        first = event_text("history", text.decode())
    return ListenedStream(_events(service.watch, listener, after, first), listener, service.watch, "text/event-stream")


async def _events(watch: Watch, listener: Listener, after: int | None, first: bytes = b"") -> AsyncIterator[bytes]:
    yield b": fairway\n\n" + first
    if after is not None:
        async for event in watch.replay(after, listener.team):
            yield event
    while (events := await listener.take(KEEP_ALIVE_SECONDS)) is not None:
        yield b"".join(events) if events else b": keep-alive\n\n"
