"""What each role may see and do, and how long a token is remembered, without a server."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fairway.service import authentication as module
from fairway.service.authentication import (
    KnownTokens,
    admin,
    changer,
    require_own_team,
    require_visible,
    team_of,
)
from fairway.service.http.problems import ProblemError
from fairway.store.errors import StoreError, UnknownError
from fairway.store.tokens import Role, Token, find_token, note_token_used

MEMBER = Token("1", "m", Role.MEMBER, "red", 0.0)
READER = Token("2", "r", Role.READER, None, 0.0)
ADMIN = Token("3", "a", Role.ADMIN, "red", 0.0)


def request_of(token: Token) -> Any:
    return SimpleNamespace(scope={"state": {"caller": token}})


def test_members_see_their_team_and_others_all() -> None:
    assert [team_of(token) for token in (MEMBER, READER, ADMIN)] == ["red", None, None]
    assert team_of(replace(MEMBER, team=None)) is None


def test_only_a_member_is_kept_to_its_own_team() -> None:
    for token, team in ((MEMBER, "red"), (MEMBER, None), (ADMIN, "blue"), (READER, "blue")):
        require_own_team(token, team)
    with pytest.raises(ProblemError) as caught:
        require_own_team(MEMBER, "blue")
    assert caught.value.status == 403


def test_jobs_of_other_teams_do_not_exist_for_a_member() -> None:
    red, blue = (cast(Any, SimpleNamespace(id=f"job-{team}", team=team)) for team in ("red", "blue"))
    assert require_visible(MEMBER, red) is red
    for token in (READER, ADMIN):
        assert require_visible(token, blue) is blue
    with pytest.raises(UnknownError, match="no job 'job-blue'"):
        require_visible(MEMBER, blue)


def test_readers_change_nothing_and_only_admins_do_what_admins_do() -> None:
    async def allowed(who: Any) -> list[bool]:
        found = []
        for token in (MEMBER, READER, ADMIN):
            try:
                assert await who(request_of(token)) is token
                found.append(True)
            except ProblemError as error:
                assert error.status == 403  # noqa: PT017 - of each role
                found.append(False)
        return found

    assert asyncio.run(allowed(changer)) == [True, False, True]
    assert asyncio.run(allowed(admin)) == [False, False, True]


def test_a_token_is_valid_until_it_expires_or_is_revoked() -> None:
    assert MEMBER.is_valid(1e12)
    until = replace(MEMBER, expires_at=10.0)
    assert [until.is_valid(at) for at in (9.9, 10.0, 10.1)] == [True, False, False]
    assert not replace(MEMBER, revoked_at=0.0).is_valid(0.0)


class Store:
    """Knows tokens by their secrets."""

    def __init__(self) -> None:
        self.tokens = {"s": MEMBER, "t": READER}
        self.asked: list[str] = []
        self.noted: list[str] = []
        self.is_broken = False

    def read(self, question: Any, secret: str) -> Token | None:
        assert question is find_token
        self.asked.append(secret)
        return self.tokens.get(secret)

    def write(self, operation: Any, token: str, *, at: float) -> None:
        assert operation is note_token_used
        assert at > 0
        self.noted.append(token)
        if self.is_broken:
            raise StoreError("full")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    found = SimpleNamespace(now=100.0)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: found.now, time=lambda: 1e9))
    return found


def looked_up(known: KnownTokens, *secrets: str) -> list[Token | None]:
    async def look() -> list[Token | None]:
        found = [await known.find(secret) for secret in secrets]
        while known._noting:
            await asyncio.sleep(0.001)
        return found

    return asyncio.run(look())


def test_a_token_is_remembered_for_half_a_second(clock: SimpleNamespace) -> None:
    store = Store()
    known = KnownTokens(cast(Any, store))
    assert looked_up(known, "s", "s", "t") == [MEMBER, MEMBER, READER]
    assert store.asked == ["s", "t"]
    clock.now = 100.4
    looked_up(known, "s")
    assert store.asked == ["s", "t"]
    clock.now = 100.5
    del store.tokens["s"]
    assert looked_up(known, "s", "s") == [None, None]
    assert store.asked == ["s", "t", "s", "s"], "what is not known is asked for each time"


def test_what_was_revoked_is_forgotten_at_once(clock: SimpleNamespace) -> None:
    store = Store()
    known = KnownTokens(cast(Any, store))
    looked_up(known, "s")
    del store.tokens["s"]
    known.forget()
    assert looked_up(known, "s") == [None]
    assert clock.now == 100.0


def test_the_use_of_a_token_is_noted_once_a_minute(clock: SimpleNamespace) -> None:
    store = Store()
    store.is_broken = True
    known = KnownTokens(cast(Any, store))
    for now in (100.0, 130.0, 159.9, 160.0, 161.0):
        clock.now = now
        looked_up(known, "s")
    looked_up(known, "t")
    assert sorted(store.noted) == ["1", "1", "2"]


def test_only_so_many_tokens_are_remembered(clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_REMEMBERED", 1)
    store = Store()
    known = KnownTokens(cast(Any, store))
    looked_up(known, "s", "t", "t", "s")
    assert store.asked == ["s", "t", "s"]
    assert sorted(store.noted) == ["1", "1", "2"], "it is noted once too often where that was forgotten"
    assert clock.now == 100.0
