"""The training engine's messages as plain JSON and back: `{"type": "JobFinished", "time": 12.0, "job": "a"}`.

An event is written with the time at which the engine took it in. Numbers that JSON does not know are written as text,
"inf" and the like. What is read back equals what was written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from numbers import Integral, Real
from typing import Any, cast, get_args

import numpy as np
from pydantic import TypeAdapter, ValidationError

from fairway.engine.training.messages import Command, Event
from fairway.errors import InputError

EVENTS: Mapping[str, type] = {kind.__name__: kind for kind in get_args(Event)}
COMMANDS: Mapping[str, type] = {kind.__name__: kind for kind in get_args(Command)}

_AS_IT_IS = frozenset((str, bool, int))


@dataclass(frozen=True, slots=True)
class _Moment:
    time: float


def event_document(time: float, event: Event) -> dict[str, Any]:
    """An event as a JSON object, with its time."""
    return {"type": type(event).__name__, "time": _plain(time)} | _members(event)


def command_document(command: Command) -> dict[str, Any]:
    """A command as a JSON object."""
    return {"type": type(command).__name__} | _members(command)


def event_of(document: Mapping[str, Any]) -> tuple[float, Event]:
    """The event that a JSON object says, with its time."""
    name, kind = _kind(document, EVENTS, "an event")
    time: float = _read(name, _Moment, document).time
    return time, cast("Event", _read(name, kind, document))


def command_of(document: Mapping[str, Any]) -> Command:
    """The command that a JSON object says."""
    return cast("Command", _read(*_kind(document, COMMANDS, "a command"), document))


def _kind(document: Mapping[str, Any], kinds: Mapping[str, type], expected: str) -> tuple[str, type]:
    name = document.get("type")
    if not isinstance(name, str) or name not in kinds:
        raise InputError(f"type: {name!r} given, expected {expected}: {', '.join(kinds)}")
    return name, kinds[name]


def _read(name: str, kind: type, document: Mapping[str, Any]) -> Any:
    try:
        return _adapter(kind).validate_python(dict(document))
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
