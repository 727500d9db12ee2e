"""Every engine of these tests checks itself after each event."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.engine.training.validated import validated_engines


@pytest.fixture(autouse=True, scope="module")
def _validated() -> Iterator[None]:
    with validated_engines():
        yield
