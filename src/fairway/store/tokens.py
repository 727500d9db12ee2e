"""Tokens: who may do what. Only a digest of a token is kept, so that a copy of the store lets no one in.

A token is 256 random bits, which cannot be guessed; a plain SHA-256 is therefore enough, and a slow hash as for
passwords would only make every request slow. A token is looked for by its digest, so that how long the search takes
says nothing of any token. It may expire, and be replaced by another one while it is still worth something for a while.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

from sqlalchemy import Connection, bindparam, insert, select, update

from fairway.errors import InputError
from fairway.store.database.schema import tokens
from fairway.store.errors import UnknownError
from fairway.store.names import checked_name

_PREFIX = "fairway_"
"""Lets scanners for leaked secrets recognise one."""

_COLUMNS = [
    tokens.c[name] for name in ("id", "name", "role", "team", "created_at", "revoked_at", "expires_at", "used_at")
]
_VALID = select(*_COLUMNS).where(tokens.c.digest == bindparam("digest"), tokens.c.revoked_at.is_(None))


class Role(StrEnum):
    """What the holder of a token may do: everything, what concerns one team, or look."""

    ADMIN = "admin"
    MEMBER = "member"
    READER = "reader"


@dataclass(frozen=True, slots=True)
class Token:
    """What is known of a token, which is not the token itself; `used_at` is exact to about a minute."""

    id: str
    name: str
    role: Role
    team: str | None
    created_at: float
    revoked_at: float | None = None
    expires_at: float | None = None
    used_at: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "role", Role(self.role))

    def is_valid(self, at: float) -> bool:
        """Whether it is worth anything at a time."""
        return self.revoked_at is None and (self.expires_at is None or at < self.expires_at)


def create_token(
    connection: Connection,
    role: Role,
    *,
    at: float,
    team: str | None = None,
    name: str = "token",
    expires_at: float | None = None,
) -> tuple[str, Token]:
    """Make a token; returns it, for the only time, and what is kept of it."""
    if (team is not None) != (role is Role.MEMBER):
        raise InputError(f"team: {team!r} given for the role {role}; a member needs a team, others have none")
    checked_name(name, "name")
    if team is not None:
        checked_name(team, "team")
    secret = _PREFIX + secrets.token_urlsafe(32)
    token = Token(secrets.token_hex(6), name, role, team, at, expires_at=expires_at)
    row = {"id": token.id, "name": name, "role": role.value, "team": team, "created_at": at, "expires_at": expires_at}
    connection.execute(insert(tokens).values(digest=_digest(secret), **row))
    return secret, token


def rotate_token(connection: Connection, token: str, *, at: float, grace_seconds: float = 0.0) -> tuple[str, Token]:
    """Replace a valid token, by its id, with one that may do the same as long; the old one has the grace left."""
    row = connection.execute(select(*_COLUMNS).where(tokens.c.id == token)).one_or_none()
    if row is None:
        raise UnknownError(f"no token '{token}'")
    old = Token(*row)
    if not old.is_valid(at):
        raise InputError(f"token '{token}' is worth nothing any more; make a new one")
    left = None if old.expires_at is None else at + (old.expires_at - old.created_at)
    made = create_token(connection, old.role, at=at, team=old.team, name=old.name, expires_at=left)
    if grace_seconds > 0:
        until = at + grace_seconds if old.expires_at is None else min(at + grace_seconds, old.expires_at)
        connection.execute(update(tokens).where(tokens.c.id == token).values(expires_at=until))
    else:
        revoke_token(connection, token, at=at)
    return made


def find_token(connection: Connection, secret: str, at: float | None = None) -> Token | None:
    """Whose token this is; None if it is unknown, was revoked, or is expired at a time (now, if none is given)."""
    row = connection.execute(_VALID, {"digest": _digest(secret)}).one_or_none()
    token = None if row is None else Token(*row)
    return token if token is not None and token.is_valid(time.time() if at is None else at) else None


def note_token_used(connection: Connection, token: str, *, at: float) -> None:
    """Write down when a token was last used."""
    connection.execute(update(tokens).where(tokens.c.id == token).values(used_at=at))


def revoke_token(connection: Connection, token: str, *, at: float) -> bool:
    """Let a token, by its id, be worth nothing from now on; returns False if it was revoked before."""
    if connection.execute(select(tokens.c.id).where(tokens.c.id == token)).one_or_none() is None:
        raise UnknownError(f"no token '{token}'")
    revoke = update(tokens).where(tokens.c.id == token, tokens.c.revoked_at.is_(None)).values(revoked_at=at)
    return connection.execute(revoke).rowcount == 1


def all_tokens(connection: Connection) -> list[Token]:
    """Every token that was ever made, the oldest first."""
    statement = select(*_COLUMNS).order_by(tokens.c.created_at, tokens.c.id)
    return [Token(*row) for row in connection.execute(statement)]


def _digest(secret: str) -> str:
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
