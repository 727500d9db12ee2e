"""The output of jobs over HTTP: as it stands, or as it grows until the job has ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response, StreamingResponse

from fairway.errors import InputError
from fairway.live.backend.logs import BLOCK_BYTES, LogBlock, start_of_tail
from fairway.service.authentication import Caller
from fairway.service.context import ServiceOf
from fairway.service.http.openapi import problems_for
from fairway.service.representation import request_of
from fairway.service.routes.events import ListenedStream, visible_job
from fairway.service.routes.jobs import JobId
from fairway.service.watch import Listener

router = APIRouter(tags=["logs"])

POLL_SECONDS = 0.2

LOG_OFFSET = "Fairway-Log-Offset"
"""The header that says at which byte of the log an answer begins, so that a reader can go on where it broke off."""

ReadLog = Callable[[int, int], LogBlock]
"""Reads a log from a byte on, up to so many bytes."""

_MEDIA_TYPE = "text/plain; charset=utf-8"
_TEXT = {"description": "What the job has written.", "content": {"text/plain": {"schema": {"type": "string"}}}}


class LogsQuery(BaseModel):
    """Which part of the output."""

    model_config = ConfigDict(extra="forbid")

    rank: int = Field(default=0, ge=0, le=9999, description="Of which process of the gang.")
    tail: int | None = Field(default=None, ge=0, le=1_000_000, description="Only so many of the last lines.")
    offset: int | None = Field(default=None, ge=0, le=2**63 - 1, description="From this byte on; goes before `tail`.")
    follow: bool = Field(default=False, description="Go on as it grows, until the job has ended.")


@router.get(
    "/jobs/{job}/logs",
    summary="Read what a job has written",
    response_class=StreamingResponse,
    responses={200: _TEXT, **problems_for(404, 422)},
)
async def get_logs(service: ServiceOf, token: Caller, job: JobId, query: Annotated[LogsQuery, Query()]) -> Response:
    """The output of one rank, of all attempts one after the other; empty while there is none."""
    record = await visible_job(service, token, job)
    ranks = request_of(record.spec).count
    if query.rank >= ranks:
        raise InputError(f"rank: {query.rank} given, but job '{job}' has {ranks}, counted from 0")
    # The id is that of the record, not what was asked for: ids in the store can be the name of a directory.
    read = partial(service.scheduler.read_log, record.id, query.rank)
    start = query.offset or 0
    if query.offset is None and query.tail is not None:
        start = await to_thread.run_sync(start_of_tail, read, query.tail)
    start += (await to_thread.run_sync(read, start, 0)).skipped
    if not query.follow:
        stream = StreamingResponse(_as_it_stands(read, start), media_type=_MEDIA_TYPE)
    else:
        listener = Listener(token, job=record.id, until_end=True)
        await service.watch.add(listener)
        stream = ListenedStream(_as_it_grows(read, start, listener), listener, service.watch, _MEDIA_TYPE)
    stream.headers[LOG_OFFSET] = str(start)
    return stream


async def _as_it_stands(read: ReadLog, position: int) -> AsyncIterator[bytes]:
    end = None
    while end is None or position < end:
        block = await to_thread.run_sync(read, position, BLOCK_BYTES)
        end = block.size if end is None else end  # what it grows by meanwhile is left for the next reader
        if not block.content:
            return
        position += block.skipped + len(block.content)
        yield block.content


async def _as_it_grows(read: ReadLog, position: int, listener: Listener) -> AsyncIterator[bytes]:
    while True:
        listener.events.clear()  # only that there will be no more is of interest here
        over = listener.ended  # noted before the last look, since a job writes nothing after its end
        while (block := await to_thread.run_sync(read, position, BLOCK_BYTES)).content:
            position += block.skipped + len(block.content)
            yield block.content
        if over:
            return
        await asyncio.sleep(POLL_SECONDS)
