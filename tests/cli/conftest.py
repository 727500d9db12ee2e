"""A server that answers what a test wants, which the commands of all tests of a file talk to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.server import TOKEN, Made, serving


@pytest.fixture(scope="module")
def running_server() -> Iterator[Made]:
    with serving(Made()) as server:
        yield server


@pytest.fixture
def made(running_server: Made, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Made:
    running_server.forget()
    monkeypatch.setenv("FAIRWAY_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("FAIRWAY_ADDRESS", running_server.address)
    monkeypatch.setenv("FAIRWAY_TOKEN", TOKEN)
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.chdir(tmp_path)
    return running_server
