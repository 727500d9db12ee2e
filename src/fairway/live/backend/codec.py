"""Commands and reports as JSON objects and back: one form each, for any backend that sends them over a wire.

A command is `{"command": "start-run", "lease": 7, …}`, a report `{"report": "run-ended", …}`: the name of its kind and
then its fields. What comes in is checked against the types; a command is refused with one line that names the field.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from fairway.errors import InputError
from fairway.live.backend.commands import EndRun, ExtendLeases, ForgetRun, HandOverRun, RetireJob, RunCommand, StartRun
from fairway.live.backend.reports import (
    AcceleratorsChanged,
    BackendReport,
    CheckpointSaved,
    Connected,
    Disconnected,
    RunEnded,
    RunProgressed,
    RunStarted,
    Superseded,
)

M = TypeVar("M")

Document = dict[str, Any]

COMMAND_KINDS: Mapping[str, type[RunCommand]] = {
    "start-run": StartRun,
    "end-run": EndRun,
    "extend-leases": ExtendLeases,
    "hand-over-run": HandOverRun,
    "forget-run": ForgetRun,
    "retire-job": RetireJob,
}
REPORT_KINDS: Mapping[str, type[BackendReport]] = {
    "connected": Connected,
    "disconnected": Disconnected,
    "superseded": Superseded,
    "accelerators-changed": AcceleratorsChanged,
    "run-started": RunStarted,
    "run-progressed": RunProgressed,
    "checkpoint-saved": CheckpointSaved,
    "run-ended": RunEnded,
}


class Codec(Generic[M]):
    """The JSON form of the messages of some kinds; `tag` is the field that names the kind."""

    def __init__(self, tag: str, kinds: Mapping[str, type[M]]) -> None:
        self.tag = tag
        self._names = {kind: name for name, kind in kinds.items()}
        self._adapters: dict[str, TypeAdapter[M]] = {name: TypeAdapter(kind) for name, kind in kinds.items()}

    def document_of(self, message: M) -> Document:
        """A message as an object for JSON."""
        name = self._names[type(message)]
        return {self.tag: name, **self._adapters[name].dump_python(message, mode="json")}

    def read(self, document: Mapping[str, Any]) -> M:
        """The message in an object; an `InputError` says what is wrong with it."""
        name = document.get(self.tag)
        if not isinstance(name, str) or name not in self._adapters:
            raise InputError(f"{self.tag}: {name!r} given, expected one of {', '.join(self._adapters)}")
        fields = {key: value for key, value in document.items() if key != self.tag}
        return read_as(self._adapters[name], fields, name)


COMMANDS: Codec[RunCommand] = Codec("command", COMMAND_KINDS)
REPORTS: Codec[BackendReport] = Codec("report", REPORT_KINDS)


def read_as(adapter: TypeAdapter[M], document: Any, where: str) -> M:
    """What an object of JSON holds, read as a type; an `InputError` says what is wrong with it."""
    try:
        return adapter.validate_json(json.dumps(document), strict=True)
    except ValidationError as failure:
        problem = failure.errors(include_url=False)[0]
        field = ".".join(str(part) for part in (where, *problem["loc"]))
        raise InputError(f"{field}: {problem['msg'][0].lower()}{problem['msg'][1:]}") from None
