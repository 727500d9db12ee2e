"""The files that let people on this machine in."""

from __future__ import annotations

import os
import stat
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairway.service.first_token import ensure_first_token, write_address
from fairway.store import Store, open_store
from fairway.store.tokens import Role, all_tokens, create_token, find_token, revoke_token


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(str(tmp_path / "store")) as store:
        yield store


def test_the_first_start_makes_an_admins_token_for_the_owner_only(store: Store, tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert ensure_first_token(store, home)
    path = home / "token"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    token = store.read(find_token, path.read_text().strip())
    assert token is not None
    assert token.role is Role.ADMIN
    before = path.read_text()
    assert not ensure_first_token(store, home), "the second start makes none"
    assert path.read_text() == before
    assert len(store.read(all_tokens)) == 1
    assert [one.name for one in home.iterdir()] == ["token"]


def test_the_token_is_at_no_moment_readable_by_others(store: Store, tmp_path: Path) -> None:
    opened: list[int] = []

    def audit(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and threading.current_thread() is watched and str(arguments[0]).startswith(str(home)):
            opened.append(int(arguments[2]))  # type: ignore[call-overload]

    home = tmp_path / "home"
    watched = threading.current_thread()
    mask = os.umask(0)
    try:
        sys.addaudithook(audit)
        ensure_first_token(store, home)
    finally:
        os.umask(mask)
    assert stat.S_IMODE((home / "token").stat().st_mode) == 0o600
    made = [flags for flags in opened if flags & os.O_CREAT]
    assert made
    assert all(flags & os.O_EXCL for flags in made), "a file that somebody else has put there is not used"


@pytest.mark.parametrize("content", ["", "fairway_of_another_store\n", "\xff\n"])
def test_a_file_that_lets_nobody_in_is_replaced(store: Store, tmp_path: Path, content: str) -> None:
    (tmp_path / "token").write_text(content, encoding="latin-1")
    (tmp_path / "token").chmod(0o644)
    assert ensure_first_token(store, tmp_path)
    assert store.read(find_token, (tmp_path / "token").read_text().strip()) is not None
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600


def test_a_token_that_was_revoked_or_is_no_admins_is_replaced(store: Store, tmp_path: Path) -> None:
    ensure_first_token(store, tmp_path)
    store.write(revoke_token, store.read(all_tokens)[0].id, at=1.0)
    assert ensure_first_token(store, tmp_path)
    secret, _ = store.write(create_token, Role.READER, at=1.0)
    (tmp_path / "token").write_text(secret)
    assert ensure_first_token(store, tmp_path)


def test_a_file_that_others_could_read_is_closed(store: Store, tmp_path: Path) -> None:
    ensure_first_token(store, tmp_path)
    (tmp_path / "token").chmod(0o644)
    assert not ensure_first_token(store, tmp_path)
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600


def test_the_address_is_written_down(tmp_path: Path) -> None:
    for address in ("http://127.0.0.1:1", "http://127.0.0.1:8642"):
        write_address(tmp_path, address)
    assert (tmp_path / "address").read_text() == "http://127.0.0.1:8642\n"
