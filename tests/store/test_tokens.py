"""Tokens: found by what they are, never kept as they are."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from fairway.errors import InputError
from fairway.store import Store, schema
from fairway.store.errors import UnknownError
from fairway.store.tokens import Role, all_tokens, create_token, find_token, revoke_token


def test_a_token_is_found_until_it_is_revoked(store: Store) -> None:
    secret, token = store.write(create_token, Role.MEMBER, at=1.0, team="vision", name="ann's laptop")
    other, _ = store.write(create_token, Role.ADMIN, at=2.0)
    assert store.read(find_token, secret) == token
    assert token.role is Role.MEMBER
    assert secret != other
    for wrong in ("", secret[:-1], secret + "x", secret.upper(), "\0", "\ud800"):
        assert store.read(find_token, wrong) is None
    assert store.write(revoke_token, token.id, at=3.0)
    assert not store.write(revoke_token, token.id, at=4.0)
    assert store.read(find_token, secret) is None
    assert [(each.name, each.revoked_at) for each in store.read(all_tokens)] == [("ann's laptop", 3.0), ("token", None)]
    with pytest.raises(UnknownError, match="no token 'x'"):
        store.write(revoke_token, "x", at=4.0)


def test_the_store_does_not_hold_the_token_itself(store: Store) -> None:
    secret, _ = store.write(create_token, Role.READER, at=1.0)
    rows = store.read(lambda connection: connection.execute(select(schema.tokens)).all())
    assert secret.removeprefix("fairway_") not in repr(rows)


@pytest.mark.parametrize(("role", "team"), [(Role.MEMBER, None), (Role.ADMIN, "a"), (Role.READER, "a")])
def test_only_members_have_a_team(store: Store, role: Role, team: str | None) -> None:
    with pytest.raises(InputError, match="a member needs a team, others have none"):
        store.write(create_token, role, at=1.0, team=team)
    assert store.read(all_tokens) == []
