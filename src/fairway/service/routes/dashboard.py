"""The page and what it begins with: its files, which need no token, and logging in, by which it comes to have one."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, ConfigDict, Field
from pydantic.dataclasses import dataclass
from starlette.responses import Response

from fairway.dashboard.page import ASSETS, SERVED_POLICY, asset, served_page
from fairway.documents import Form
from fairway.service.authentication import Caller
from fairway.service.context import ServiceOf, json_answer
from fairway.service.http.documents_in import JSON, read_form
from fairway.service.http.openapi import body_of, problems_for
from fairway.service.http.problems import ProblemError
from fairway.service.session import forget, keep, split
from fairway.store.tokens import Role, Token

router = APIRouter(tags=["dashboard"])
pages = APIRouter(include_in_schema=False)

PUBLIC = frozenset({("GET", "/"), ("GET", "/docs"), ("POST", "/session"), ("DELETE", "/session")}) | {
    ("GET", f"/dashboard/{name}") for name in ASSETS
}
"""What is answered without a token: methods and paths."""


class SessionForm(BaseModel):
    """Who is logged in, and what they may do."""

    model_config = ConfigDict(title="Session")

    name: str
    role: Role
    team: str | None
    expires_at: float | None


class NewSession(SessionForm):
    """A session that has just begun."""

    model_config = ConfigDict(title="NewSession")

    key: str = Field(description="The page's half of the token, for the header `Fairway-Key`.")


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class LoginFields:
    """With which token to log in."""

    token: Annotated[str, Field(min_length=1, max_length=512)]


LOGIN: Form[LoginFields] = Form(
    LoginFields,
    {"": 'a token, as in {"token": "fairway_…"}', "token": "the token that an admin gave you, a text"},
    {"": LoginFields},
)
_LOGIN_SCHEMA = {
    "title": "Login",
    "type": "object",
    "properties": {"token": {"type": "string", "minLength": 1, "maxLength": 512}},
    "required": ["token"],
    "additionalProperties": False,
}


@router.post(
    "/session",
    summary="Log in",
    responses={200: {"model": NewSession}, **problems_for(401, 408, 413, 415, 422)},
    openapi_extra={"requestBody": body_of(_LOGIN_SCHEMA, JSON), "security": []},
)
async def post_session(request: Request, service: ServiceOf) -> Response:
    """For browsers: half of the token goes into a cookie that no script can read, half is answered for the page."""
    secret = (await read_form(request, LOGIN)).token.strip()
    token = await service.tokens.find(secret)
    if token is None:
        raise ProblemError(401, "wrong-token", "the token is not known here, was revoked, or has expired")
    cookie, key = split(secret)
    response = json_answer(NewSession(**_session(token).model_dump(), key=key))
    keep(response, request, cookie)
    return response


@router.get("/session", summary="See who is logged in", responses={200: {"model": SessionForm}})
async def get_session(token: Caller) -> Response:
    """Whose token a request comes with."""
    return json_answer(_session(token))


@router.delete(
    "/session",
    status_code=204,
    summary="Log out",
    responses={204: {"description": "The browser forgets its half of the token."}},
    openapi_extra={"security": []},
)
async def delete_session(request: Request) -> Response:
    """Let the browser forget; the token stays what it is."""
    response = Response(status_code=204)
    forget(response, request)
    return response


def _session(token: Token) -> SessionForm:
    return SessionForm(name=token.name, role=token.role, team=token.team, expires_at=token.expires_at)


@pages.get("/")
@pages.get("/docs")
async def get_page() -> Response:
    """The page, which shows a form to log in before anything else."""
    return page_response("up")


@pages.get("/dashboard/{name}")
async def get_asset(name: Annotated[str, Path(max_length=64)]) -> Response:
    """The script or the style of the page."""
    return asset_response(name)


def page_response(kind: str, *, needs_token: bool = True) -> Response:
    """The page of a server, under a policy by which it can load nothing but its own files."""
    page = served_page(kind, needs_token=needs_token)
    return Response(page, media_type="text/html", headers={"Content-Security-Policy": SERVED_POLICY})


def asset_response(name: str) -> Response:
    """A file beside the page; asked for again each time, as it may be of another version then."""
    if name not in ASSETS:
        raise ProblemError(404, "no-such-route", "no such file of the dashboard")
    return Response(asset(name), media_type=ASSETS[name], headers={"Cache-Control": "no-cache"})
