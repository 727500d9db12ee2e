"""The journal over HTTP, for admins: what the engine was told, what it answered and how it decided."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection
from starlette.responses import Response

from fairway.service.authentication import Admin
from fairway.service.context import ServiceOf, json_answer
from fairway.service.http.openapi import problems_for
from fairway.store.database.columns import json_text
from fairway.store.journal import Entry, Kind, read_journal

router = APIRouter(tags=["journal"])

_LARGEST = 2**63 - 1
_MOST_BYTES = 8 * 1024 * 1024
"""Decisions about many jobs are long; a page ends early rather than to fill the memory."""

_AT_ONCE = 20


class JournalQuery(BaseModel):
    """Which entries."""

    model_config = ConfigDict(extra="forbid")

    after: int = Field(default=0, ge=0, le=_LARGEST, description="The `next` of the page before.")
    limit: int = Field(default=100, ge=1, le=1000)
    kind: list[Literal["start", "event", "command", "decision"]] = Field(default=[], description="Only of these kinds.")


class EntryForm(BaseModel):
    """One entry: `cause` is the event behind a command or a decision."""

    model_config = ConfigDict(title="Entry", from_attributes=True)

    sequence: int
    at: float
    kind: Literal["start", "event", "command", "decision"]
    name: str
    cause: int | None
    body: dict[str, Any]


class JournalPage(BaseModel):
    """Some entries; `next` is the `after` of the next page, null at the end of the journal."""

    model_config = ConfigDict(title="JournalPage")

    entries: list[EntryForm]
    next: int | None


@router.get("/journal", summary="Read the journal", responses={200: {"model": JournalPage}, **problems_for(403, 422)})
async def get_journal(service: ServiceOf, _: Admin, query: Annotated[JournalQuery, Query()]) -> Response:
    """Entries in their order. A page may be shorter than `limit` where entries are long."""

    def answered() -> Response:
        found, more = service.store.read(_page, query.after, query.limit, query.kind or None)
        entries = [EntryForm.model_validate(entry) for entry in found]
        return json_answer(JournalPage(entries=entries, next=found[-1].sequence if more else None))

    return await service.run_slowly(answered)


def _page(connection: Connection, after: int, limit: int, kinds: list[Kind] | None) -> tuple[list[Entry], bool]:
    """Entries up to the limit, or until they are long enough; and whether more follow."""
    entries: list[Entry] = []
    size = 0
    while len(entries) < limit and size < _MOST_BYTES:
        wanted = min(_AT_ONCE, limit - len(entries))
        found = read_journal(connection, after=after, limit=wanted, kinds=kinds)
        entries += found
        if len(found) < wanted:
            return entries, False
        size += sum(len(json_text(entry.body)) for entry in found)
        after = found[-1].sequence
    return entries, bool(read_journal(connection, after=after, limit=1, kinds=kinds))
