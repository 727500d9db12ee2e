"""Tokens: found by what they are, never kept as they are."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from fairway.errors import InputError
from fairway.store import Store
from fairway.store.database import schema
from fairway.store.errors import UnknownError
from fairway.store.tokens import Role, all_tokens, create_token, find_token, note_token_used, revoke_token, rotate_token


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


def test_an_expired_token_is_worth_nothing(store: Store) -> None:
    secret, token = store.write(create_token, Role.ADMIN, at=10.0, expires_at=20.0)
    assert store.read(find_token, secret, 19.9) == token
    assert store.read(find_token, secret, 20.0) is None
    assert store.read(find_token, secret) is None, "it is later than that"


def test_a_token_that_replaces_another_may_do_the_same_as_long(store: Store) -> None:
    old_secret, old = store.write(create_token, Role.MEMBER, at=10.0, team="vision", name="ann", expires_at=110.0)
    secret, new = store.write(rotate_token, old.id, at=60.0, grace_seconds=30.0)
    assert (new.role, new.team, new.name, new.created_at, new.expires_at) == (old.role, "vision", "ann", 60.0, 160.0)
    assert store.read(find_token, secret, 159.0) == new
    kept = store.read(find_token, old_secret, 89.0)
    assert kept is not None
    assert kept.id == old.id
    assert store.read(find_token, old_secret, 90.0) is None
    with pytest.raises(InputError, match="is worth nothing any more"):
        store.write(rotate_token, old.id, at=91.0)
    with pytest.raises(UnknownError, match="no token 'x'"):
        store.write(rotate_token, "x", at=91.0)


def test_a_grace_prolongs_no_token_and_without_one_the_old_token_is_revoked(store: Store) -> None:
    _, old = store.write(create_token, Role.ADMIN, at=10.0, expires_at=20.0)
    store.write(rotate_token, old.id, at=11.0, grace_seconds=1e6)
    assert store.read(all_tokens)[0].expires_at == 20.0
    secret, old = store.write(create_token, Role.READER, at=30.0)
    store.write(rotate_token, old.id, at=31.0)
    assert store.read(find_token, secret, 31.0) is None


def test_when_a_token_was_last_used_is_known(store: Store) -> None:
    _, token = store.write(create_token, Role.ADMIN, at=1.0)
    assert token.used_at is None
    store.write(note_token_used, token.id, at=5.0)
    assert [each.used_at for each in store.read(all_tokens)] == [5.0]
