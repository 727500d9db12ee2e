"""A service that all tests of a file share, and one that a test has for itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.service.running import Served, served
from tests.store.conftest import postgresql, postgresql_url

__all__ = ["postgresql", "postgresql_url"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("service"), idle=True) as service:
        yield service


@pytest.fixture(scope="module")
def admin(shared: Served) -> Iterator[httpx.Client]:
    with shared.client() as client:
        yield client


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path) as service:
        yield service


@pytest.fixture
def client(own: Served) -> Iterator[httpx.Client]:
    with own.client() as client:
        yield client
