"""Refuses every request that does not show the token."""

from __future__ import annotations

import hmac

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from fairway.service.http.problems import answer


class TokenRequired:
    """An ASGI middleware: all requests over HTTP need `Authorization: Bearer TOKEN`."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or let the application answer."""
        if scope["type"] == "http":
            shown = Headers(scope=scope).get("authorization", "").encode()
            if not hmac.compare_digest(shown, self._expected):
                refused = answer(401, "no-token", "no valid token; send 'Authorization: Bearer TOKEN'")
                await refused(scope, receive, send)
                return
        await self._app(scope, receive, send)
