"""Flags of policies, placers and configurators: a name by itself is the thing as it is meant, a flag changes that."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from fairway import BATCH_PLACERS, CONFIGURATORS, PLACERS, POLICIES

PARTS = {**POLICIES, **PLACERS, **BATCH_PLACERS, **CONFIGURATORS}


@pytest.mark.parametrize("name", PARTS)
def test_no_flag_is_set_by_itself(name: str) -> None:
    """Else a flag that is written after the name would change nothing."""
    part: Any = PARTS[name]
    assert [option.name for option in fields(part) if option.default is True] == []
