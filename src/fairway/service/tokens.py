"""Tokens over HTTP, for admins: make, list, revoke."""

from __future__ import annotations

import time
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, ConfigDict, Field
from pydantic.dataclasses import dataclass
from starlette.responses import Response

from fairway.documents import Form, Name
from fairway.service.authentication import Admin
from fairway.service.context import ServiceOf, json_answer
from fairway.service.documents_in import JSON, read_form
from fairway.service.openapi import body_of, problems_for
from fairway.store.tokens import Role, Token, all_tokens, create_token, revoke_token

router = APIRouter(tags=["tokens"])


class TokenForm(BaseModel):
    """What is known of a token, which is not the token itself."""

    model_config = ConfigDict(title="Token", from_attributes=True)

    id: str
    name: str
    role: Role
    team: str | None
    created_at: float
    revoked_at: float | None


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


_FORM: Form[TokenFields] = Form(
    TokenFields,
    {
        "": 'a token to make, as in {"role": "member", "team": "vision", "name": "ann"}',
        "role": "'admin', 'member' or 'reader'",
        "team": "the name of a team, for a member only",
        "name": "whose it is, or what for",
    },
    {"": TokenFields},
)
_SCHEMA = {
    "title": "TokenDescription",
    "type": "object",
    "properties": {
        "role": {"enum": ["admin", "member", "reader"]},
        "team": {"type": ["string", "null"], "minLength": 1, "maxLength": 256},
        "name": {"type": ["string", "null"], "minLength": 1, "maxLength": 256},
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
        return service.store.write(
            create_token, Role(asked.role), at=time.time(), team=asked.team, name=asked.name or asked.role
        )

    secret, token = await service.run(made)
    response = json_answer(NewToken(**TokenForm.model_validate(token).model_dump(), token=secret), 201)
    response.headers["Cache-Control"] = "no-store"
    return response


@router.delete(
    "/tokens/{token}",
    summary="Revoke a token",
    status_code=204,
    responses={204: {"description": "It is worth nothing from now on."}, **problems_for(403, 404, 422)},
)
async def delete_token(
    service: ServiceOf,
    _: Admin,
    token: Annotated[str, Path(description="The id of a token, not the token itself.", max_length=128)],
) -> Response:
    """Let a token be worth nothing from now on; streams that it opened end."""
    await service.run(lambda: service.store.write(revoke_token, token, at=time.time()))
    service.tokens.forget()
    return Response(status_code=204)
