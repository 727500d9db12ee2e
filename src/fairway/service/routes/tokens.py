"""Tokens over HTTP, for admins: make, list, replace, revoke."""

from __future__ import annotations

import time
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, ConfigDict, Field
from pydantic.dataclasses import dataclass
from starlette.responses import Response

from fairway.documents import Duration, Form, Name
from fairway.service.authentication import Admin
from fairway.service.context import ServiceOf, json_answer
from fairway.service.first_token import token_in_file, write_token
from fairway.service.http.documents_in import JSON, read_form
from fairway.service.http.openapi import body_of, problems_for
from fairway.store.tokens import Role, Token, all_tokens, create_token, revoke_token, rotate_token

router = APIRouter(tags=["tokens"])

MOST_SECONDS = 1e9
Lifetime = Annotated[float, Field(gt=0, le=MOST_SECONDS, allow_inf_nan=False)]
TokenId = Annotated[str, Path(alias="id", description="The id of a token, not the token itself.", max_length=128)]


class TokenForm(BaseModel):
    """What is known of a token, which is not the token itself."""

    model_config = ConfigDict(title="Token", from_attributes=True)

    id: str
    name: str
    role: Role
    team: str | None
    created_at: float
    revoked_at: float | None
    expires_at: float | None = Field(description="When it is worth nothing any more; null for never.")
    used_at: float | None = Field(description="When it was last used, to about a minute.")


class NewToken(TokenForm):
    """A token, shown for the only time."""

    model_config = ConfigDict(title="NewToken")

    token: str = Field(description="The secret. It is kept nowhere; store it now.")


class TokensForm(BaseModel):
    """All tokens that were ever made, the oldest first."""

    model_config = ConfigDict(title="Tokens")

    tokens: list[TokenForm]


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class TokenFields:
    """A token to be made."""

    role: Literal["admin", "member", "reader"]
    team: Name | None = None
    name: Name | None = None
    expires_seconds: Lifetime | None = None


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class RotationFields:
    """How a token is to be replaced."""

    grace_seconds: Duration = 0.0


_FORM: Form[TokenFields] = Form(
    TokenFields,
    {
        "": 'a token to make, as in {"role": "member", "team": "vision", "name": "ann"}',
        "role": "'admin', 'member' or 'reader'",
        "team": "the name of a team, for a member only",
        "name": "whose it is, or what for",
        "expires_seconds": f"after how many seconds it is worth nothing, above 0 and at most {MOST_SECONDS:g}",
    },
    {"": TokenFields},
)
_ROTATION: Form[RotationFields] = Form(
    RotationFields,
    {
        "": 'how to replace it, as in {"grace_seconds": 3600}',
        "grace_seconds": f"for how many seconds the old one is still taken, from 0 to {MOST_SECONDS:g}",
    },
    {"": RotationFields},
)
_ROTATION_SCHEMA = {
    "title": "TokenRotation",
    "type": "object",
    "properties": {"grace_seconds": {"type": "number", "minimum": 0, "maximum": MOST_SECONDS}},
    "additionalProperties": False,
}
_SCHEMA = {
    "title": "TokenDescription",
    "type": "object",
    "properties": {
        "role": {"enum": ["admin", "member", "reader"]},
        "team": {"type": ["string", "null"], "minLength": 1, "maxLength": 256},
        "name": {"type": ["string", "null"], "minLength": 1, "maxLength": 256},
        "expires_seconds": {"type": ["number", "null"], "exclusiveMinimum": 0, "maximum": MOST_SECONDS},
    },
    "required": ["role"],
    "additionalProperties": False,
}


@router.get("/tokens", summary="List tokens", responses={200: {"model": TokensForm}, **problems_for(403)})
async def get_tokens(service: ServiceOf, _: Admin) -> Response:
    """What is known of every token, revoked ones too."""

    def listed() -> Response:
        found = service.store.read(all_tokens)
        return json_answer(TokensForm(tokens=[TokenForm.model_validate(token) for token in found]))

    return await service.run(listed)


@router.post(
    "/tokens",
    status_code=201,
    summary="Make a token",
    responses={201: {"model": NewToken}, **problems_for(403, 408, 413, 415, 422)},
    openapi_extra={"requestBody": body_of(_SCHEMA, JSON)},
)
async def post_token(request: Request, service: ServiceOf, _: Admin) -> Response:
    """Make a token of a role: `admin`, `member` with a team, or `reader`. The answer shows it for the only time."""
    asked = await read_form(request, _FORM)

    def made() -> tuple[str, Token]:
        now, name = time.time(), asked.name or asked.role
        end = None if asked.expires_seconds is None else now + asked.expires_seconds
        return service.store.write(create_token, Role(asked.role), at=now, team=asked.team, name=name, expires_at=end)

    return _shown_once(*await service.run(made))


def _shown_once(secret: str, token: Token) -> Response:
    response = json_answer(NewToken(**TokenForm.model_validate(token).model_dump(), token=secret), 201)
    response.headers["Cache-Control"] = "no-store"
    return response


@router.post(
    "/tokens/{id}/rotate",
    status_code=201,
    summary="Replace a token",
    responses={201: {"model": NewToken}, **problems_for(403, 404, 408, 413, 415, 422)},
    openapi_extra={"requestBody": body_of(_ROTATION_SCHEMA, JSON)},
)
async def rotate(request: Request, service: ServiceOf, _: Admin, token: TokenId) -> Response:
    """Make a token that may do what an old one may, as long; the old one is taken for the grace, or no more.

    If the old one is in the file of this installation, the new one takes its place there.
    """
    asked = await read_form(request, _ROTATION)

    def rotated() -> tuple[str, Token]:
        directory = service.scheduler.settings.directory
        held = token_in_file(service.store, directory)
        secret, made = service.store.write(rotate_token, token, at=time.time(), grace_seconds=asked.grace_seconds)
        if held is not None and held.id == token:
            write_token(directory, secret)
        return secret, made

    made = await service.run(rotated)
    service.tokens.forget()
    return _shown_once(*made)


@router.delete(
    "/tokens/{id}",
    summary="Revoke a token",
    status_code=204,
    responses={204: {"description": "It is worth nothing from now on."}, **problems_for(403, 404, 422)},
)
async def delete_token(service: ServiceOf, _: Admin, token: TokenId) -> None:
    """Let a token be worth nothing from now on; streams that it opened end."""
    await service.run(lambda: service.store.write(revoke_token, token, at=time.time()))
    service.tokens.forget()
