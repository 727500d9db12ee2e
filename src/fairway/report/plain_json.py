"""Values as JSON knows them, so that what a run was given can be written down whatever it is made of."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import Any


def plain(value: Any) -> Any:
    """The same value in terms of JSON: arrays as lists, null for what is not a finite number, text for the rest."""
    if hasattr(value, "tolist"):  # numpy's arrays and scalars
        value = value.tolist()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else None
        case Mapping():
            return {str(key): plain(member) for key, member in value.items()}
        case Iterable():
            return [plain(member) for member in value]
    return str(value)
