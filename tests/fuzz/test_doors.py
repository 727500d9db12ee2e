"""Bytes that come in through any door are taken or refused, and do nothing else: a share of what `make fuzz` tries."""

from __future__ import annotations

import pytest

from tests.fuzz.doors import DOORS
from tests.fuzz.mutations import mutated, try_door

COUNT = 150
"""Mixtures per door; `make fuzz` tries as many as a minute allows, guided by which code they reach."""


@pytest.mark.parametrize("name", DOORS)
def test_whatever_comes_is_taken_or_refused(name: str) -> None:
    door = DOORS[name]
    for data in mutated(door.beginnings, COUNT, seed=len(name)):
        try:
            try_door(door, data)
        except Exception as error:
            raise AssertionError(f"{name}: {data[:300]!r} ({len(data)} bytes): {error!r}") from error
