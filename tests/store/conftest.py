"""Stores to test with: every test of an operation runs on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import psycopg
import pytest

from fairway.store import Store, open_store
from tests.store.postgresql_server import programs, running_server

_NUMBERS = count(1)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    binaries = programs()
    if binaries is None:
        pytest.skip("no PostgreSQL server on this machine (Debian: apt-get install postgresql)")
    with running_server(binaries) as address:
        yield address


@pytest.fixture
def postgresql_url(postgresql: str) -> str:
    """A schema of its own, which is quicker to make than a database."""
    schema = f"test_{next(_NUMBERS)}"
    with psycopg.connect(f"{postgresql}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")  # type: ignore[call-overload]
    return f"{postgresql}/postgres?options=-csearch_path%3D{schema}"


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "store")
    address: str = request.getfixturevalue("postgresql_url")
    return address


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with open_store(url) as opened:
        yield opened
