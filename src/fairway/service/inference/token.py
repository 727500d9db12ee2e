"""Refuses every request that does not show the token, but for the files of the dashboard and logging in."""

from __future__ import annotations

import hmac

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from fairway.service.http.problems import answer
from fairway.service.routes.dashboard import PUBLIC
from fairway.service.session import secret_in


class TokenRequired:
    """An ASGI middleware: all requests over HTTP need `Authorization: Bearer TOKEN`."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or let the application answer."""
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            shown = headers.get("authorization", f"Bearer {secret_in(headers) or ''}").encode()
            if (scope["method"], scope["path"]) not in PUBLIC and not hmac.compare_digest(shown, self._expected):
                refused = answer(401, "no-token", "no valid token; send 'Authorization: Bearer TOKEN'")
                await refused(scope, receive, send)
                return
        await self._app(scope, receive, send)
