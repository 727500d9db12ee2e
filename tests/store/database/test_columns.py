"""How values are written into the columns that hold JSON."""

from __future__ import annotations

from types import MappingProxyType

import pytest

from fairway.errors import InputError
from fairway.store.database.columns import json_text


def test_objects_of_any_kind_are_written_as_objects() -> None:
    inside = MappingProxyType({"b": [1, 2.5, None, True, "ü"]})
    assert json_text(MappingProxyType({"a": inside})) == json_text({"a": dict(inside)})
    assert json_text({"b": 1, "a": 2}, in_order=True) == '{"a":2,"b":1}'


@pytest.mark.parametrize("value", [object(), float("nan"), float("inf"), {"a": {1, 2}}])
def test_what_is_no_json_is_refused_in_one_line(value: object) -> None:
    with pytest.raises(InputError, match=r"cannot be written as JSON: .*; use objects, lists, text and finite numbers"):
        json_text(value)
