"""The training engine's messages as plain JSON and back: `{"type": "JobFinished", "time": 12.0, "job": "a"}`.

Numbers that JSON does not know are written as text, "inf" and the like. What is read back equals what was written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from numbers import Integral, Real
from typing import Any, cast, get_args

import numpy as np
from pydantic import TypeAdapter, ValidationError

from fairway.engine.training_messages import Command, Event
from fairway.errors import InputError

EVENTS: Mapping[str, type] = {kind.__name__: kind for kind in get_args(Event)}
COMMANDS: Mapping[str, type] = {kind.__name__: kind for kind in get_args(Command)}

_AS_IT_IS = frozenset((str, bool, int))


def document_of(message: Event | Command) -> dict[str, Any]:
    """A message as a JSON object."""
    return {"type": type(message).__name__} | _members(message)


def event_of(document: Mapping[str, Any]) -> Event:
    """The event that a JSON object says."""
    return cast("Event", _read(document, EVENTS, "an event"))


def command_of(document: Mapping[str, Any]) -> Command:
    """The command that a JSON object says."""
    return cast("Command", _read(document, COMMANDS, "a command"))


def _read(document: Mapping[str, Any], kinds: Mapping[str, type], expected: str) -> object:
    members = dict(document)
    name = members.pop("type", None)
    kind = kinds.get(name) if isinstance(name, str) else None
    if kind is None:
        raise InputError(f"type: {name!r} given, expected {expected}: {', '.join(kinds)}")
    try:
        return _adapter(kind).validate_python(members)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        where = ".".join(map(str, (name, *problem["loc"])))
        raise InputError(f"{where}: {problem['msg']}") from None


@cache
def _adapter(kind: type) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _members(value: Any) -> dict[str, Any]:
    return {member.name: _plain(getattr(value, member.name)) for member in fields(value)}


def _plain(value: object) -> object:
    kind = type(value)
    if value is None or kind in _AS_IT_IS:  # which most values are, and asking what else they are takes longer
        return value
    if isinstance(value, float) and kind is float:
        return value if math.isfinite(value) else str(value)
    match value:
        case None | bool() | str():
            return value
        case np.bool_():
            return bool(value)
        case Integral():
            return int(value)
        case Real():
            number = float(value)
            return number if math.isfinite(number) else str(number)
        case Mapping():
            return {str(name): _plain(member) for name, member in value.items()}
        case tuple() | list():
            return [_plain(member) for member in value]
    if is_dataclass(value):
        return _members(value)
    raise TypeError(f"{type(value).__name__} cannot stand in a message")
