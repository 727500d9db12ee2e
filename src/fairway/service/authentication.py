"""Who asks: every request needs a token, whatever it asks for, before anything else of it is looked at.

Only the files of the dashboard, which are the same for all, and logging in are answered without one.

Tokens that were found are remembered for half a second, so that a busy client does not cost a question to the store per
request and a revoked token is worth nothing within a second. When a token was last used is written down about once a
minute, beside the request.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Collection
from contextlib import suppress
from hashlib import sha256
from typing import Annotated

from anyio import to_thread
from fastapi import Depends, Request
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from fairway.errors import FairwayError
from fairway.service.http.problems import ProblemError, answer_to
from fairway.service.session import secret_in
from fairway.store import Store
from fairway.store.errors import StoreError, UnknownError
from fairway.store.records import JobRecord
from fairway.store.tokens import Role, Token, find_token, note_token_used

REMEMBERED_SECONDS = 0.5

_NOTED_SECONDS = 60.0
_MOST_REMEMBERED = 1024
_EXPECTED = "send one as 'Authorization: Bearer TOKEN'"


class KnownTokens:
    """The tokens of the store, some of them remembered for a moment. Used on the event loop only."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._found: dict[bytes, tuple[float, Token]] = {}
        self._noted: dict[str, float] = {}
        self._noting: set[asyncio.Task[None]] = set()

    async def find(self, secret: str) -> Token | None:
        """Whose token this is; None if it is unknown, or was revoked."""
        digest = sha256(secret.encode("utf-8", "surrogatepass")).digest()
        until, token = self._found.get(digest, (0.0, None))
        if token is not None and time.monotonic() < until:
            return token
        asked = time.monotonic()
        token = await to_thread.run_sync(self._store.read, find_token, secret)
        if token is None:
            self._found.pop(digest, None)
        else:
            if len(self._found) >= _MOST_REMEMBERED:
                self._found.clear()
            self._found[digest] = asked + REMEMBERED_SECONDS, token
            self._note_use(token)
        return token

    def _note_use(self, token: Token) -> None:
        """Have the store know that a token is used, if it was not told so lately; no request waits for that."""
        now = time.monotonic()
        if now < self._noted.get(token.id, -math.inf) + _NOTED_SECONDS:
            return
        if len(self._noted) >= _MOST_REMEMBERED:
            self._noted.clear()
        self._noted[token.id] = now
        task = asyncio.create_task(self._noted_in_store(token.id))
        self._noting.add(task)
        task.add_done_callback(self._noting.discard)

    async def _noted_in_store(self, token: str) -> None:
        with suppress(StoreError):  # a store that cannot be written has worse to tell
            await to_thread.run_sync(lambda: self._store.write(note_token_used, token, at=time.time()))

    def forget(self) -> None:
        """Ask the store again, since a token was revoked."""
        self._found.clear()


class Authentication:
    """Lets requests with a valid token through, and writes down whose it is; an ASGI middleware."""

    def __init__(self, app: ASGIApp, tokens: KnownTokens, public: Collection[tuple[str, str]] = ()) -> None:
        """`public` are methods and paths that need no token."""
        self._app = app
        self._tokens = tokens
        self._public = frozenset(public)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "http" and (scope["method"], scope["path"]) not in self._public:
            try:
                scope.setdefault("state", {})["caller"] = await self._caller(scope)
            except FairwayError as error:
                return await answer_to(error)(scope, receive, send)
        return await self._app(scope, receive, send)

    async def _caller(self, scope: Scope) -> Token:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if not given:
            of_browser = secret_in(Headers(scope=scope))
            if of_browser is None:
                raise ProblemError(401, "no-token", f"no token given; {_EXPECTED}")
            secret = of_browser
        else:
            scheme, _, secret = given[0].decode("latin-1").partition(" ")
            if len(given) > 1 or scheme.lower() != "bearer" or not secret.strip():
                raise ProblemError(
                    401, "no-token", f"no token can be read from the header 'Authorization'; {_EXPECTED}"
                )
        token = await self._tokens.find(secret.strip())
        if token is None:
            raise ProblemError(
                401, "wrong-token", "the token is not known here, was revoked, or has expired; ask an admin for one"
            )
        return token


async def caller(request: Request) -> Token:
    """Whose token a request came with."""
    token: Token = request.scope["state"]["caller"]
    return token


async def admin(request: Request) -> Token:
    """The same, if it is an admin's."""
    token = await caller(request)
    if token.role is not Role.ADMIN:
        raise ProblemError(403, "admins-only", f"only an admin may do this; this token is a {token.role}'s")
    return token


async def changer(request: Request) -> Token:
    """The same, if its holder may change anything at all."""
    token = await caller(request)
    if token.role is Role.READER:
        raise ProblemError(
            403, "readers-only-look", "a reader's token changes nothing; use one of a member or an admin"
        )
    return token


Caller = Annotated[Token, Depends(caller)]
Admin = Annotated[Token, Depends(admin)]
Changer = Annotated[Token, Depends(changer)]


def team_of(token: Token) -> str | None:
    """The team whose jobs its holder sees; None for all of them."""
    return token.team if token.role is Role.MEMBER else None


def require_own_team(token: Token, team: str | None) -> None:
    """Refuse a member who names another team."""
    if token.role is Role.MEMBER and team not in {None, token.team}:
        raise ProblemError(403, "other-team", f"team: '{team}' given, but this token is of team '{token.team}'")


def require_visible(token: Token, job: JobRecord) -> JobRecord:
    """The job itself; to a member, one of another team does not exist."""
    if token.role is Role.MEMBER and job.team != token.team:
        raise UnknownError(f"no job '{job.id}'")
    return job
