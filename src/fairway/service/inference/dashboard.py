"""The page for an application that is served, and logging in with its one token."""

from __future__ import annotations

import hmac

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from fairway.service.http.documents_in import read_form
from fairway.service.http.problems import ProblemError
from fairway.service.routes.dashboard import LOGIN, asset_response, page_response
from fairway.service.session import forget, keep, split

_WHO = {"role": "client", "team": None, "expires_at": None}


def dashboard_routes(token: str | None) -> APIRouter:
    """The page, its files and the session; without a token, whoever comes is logged in."""
    router = APIRouter(include_in_schema=False)

    @router.get("/")
    @router.get("/docs")
    async def get_page() -> Response:
        """The page."""
        return page_response("serve", needs_token=token is not None)

    @router.get("/dashboard/{name}")
    async def get_asset(name: str) -> Response:
        """Its script or style."""
        return asset_response(name)

    @router.get("/session")
    async def get_session() -> Response:
        """Who is logged in; a request without the token does not come here."""
        return JSONResponse({"name": "no token needed" if token is None else "the token of this server", **_WHO})

    @router.post("/session")
    async def post_session(request: Request) -> Response:
        """Log in."""
        secret = (await read_form(request, LOGIN)).token.strip()
        if token is None or not hmac.compare_digest(secret.encode("utf-8", "surrogatepass"), token.encode()):
            raise ProblemError(401, "wrong-token", "this is not the token of this server; it is in its directory")
        cookie, key = split(secret)
        response = JSONResponse({"name": "the token of this server", **_WHO, "key": key})
        keep(response, request, cookie)
        return response

    @router.delete("/session")
    async def delete_session(request: Request) -> Response:
        """Log out."""
        response = Response(status_code=204)
        forget(response, request)
        return response

    return router
