"""A workflow as it was recorded, from Python or from a file: its inputs, the calls of stages, and what is returned.

It is checked once, when it is made: something is returned, every input is known, a model's name means one thing, and a
stage that yields its result in pieces comes last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from fairway.documents import shown
from fairway.errors import InputError
from fairway.options import nearest
from fairway.workflows.compose import (
    Call,
    Input,
    StageFunction,
    calls_in,
    declared_models,
    in_order,
    own_names,
    unknowns_in,
    workflow_of,
)
from fairway.workflows.graph import Workflow
from fairway.workflows.model import Model
from fairway.workflows.stage_class import StageUse

Samples = Callable[[], Iterable[Mapping[str, Any]]]
"""Makes inputs like those of real requests, to measure a workflow with."""

PLAIN_TYPES = (bytes, str, int, float, bool, list, dict)
"""Types that an input can be checked for."""


@dataclass(frozen=True, eq=False)
class Recording:
    """A workflow as it was recorded: inputs, the calls of stages in order, and what is returned."""

    name: str
    inputs: tuple[str, ...]
    returned: Any
    slo_seconds: float | None = None
    input_types: Mapping[str, type] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    samples: Samples | None = None

    def __post_init__(self) -> None:
        where = f"workflow '{self.name}'"
        if not self.calls:
            raise InputError(f"{where}: returns no result of a stage; return what at least one stage gives")
        if any(isinstance(each, Input) for each in unknowns_in(self.returned)):
            raise InputError(f"{where}: returns an input as it came; return results of stages only")
        for each in (each for call in self.calls for each in unknowns_in((call.arguments, call.named_arguments))):
            if isinstance(each, Input) and each.name not in self.inputs:
                raise InputError(f"{where}: takes '{each.name}', which is not one of its inputs")
        self._check_models()
        for number, call in enumerate(self.calls):
            if call.of.streaming and (self.returned is not call or number != len(self.calls) - 1):
                raise InputError(
                    f"{where}: stage '{call.of.stage.name}' yields its result in pieces, so it must be the last one, "
                    "and its result all that is returned"
                )

    def _check_models(self) -> None:
        users: dict[str, StageUse] = {}
        for call in self.calls:
            use, name = call.of, call.of.model_name
            if name is None or isinstance(use, StageFunction):
                continue
            other = users.setdefault(name, use)
            if not use.same_model_as(other):
                raise InputError(
                    f"workflow '{self.name}': stages '{other.stage.name}' and '{use.stage.name}' both call their model "
                    f"'{name}', but load it differently; give each model a name of its own"
                )

    @cached_property
    def calls(self) -> tuple[Call, ...]:
        """The stages in use, each after those that it takes from."""
        return tuple(in_order(list(dict.fromkeys(calls_in(self.returned)))))

    @cached_property
    def stage_names(self) -> tuple[str, ...]:
        """By stage, its name in this workflow."""
        names = own_names(self.calls)
        return tuple(names[call] for call in self.calls)

    @cached_property
    def uses(self) -> Mapping[str, StageUse]:
        """By model, a stage that loads it."""
        found: dict[str, StageUse] = {}
        for call in self.calls:
            if isinstance(call.of, StageUse) and call.of.model_name is not None:
                found.setdefault(call.of.model_name, call.of)
        return found

    @property
    def declared(self) -> Mapping[str, Model]:
        """The models whose memory the author has declared."""
        return declared_models(self.calls)

    def workflow(self, models: Mapping[str, Model | int] | None = None) -> Workflow:
        """The graph as schedulers know it; `models` gives the bytes of those that are not declared."""
        return workflow_of(*calls_in(self.returned), models=models, name=self.name)

    def payload(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What a request brings, with defaults filled in; refuses missing and unknown inputs and wrong types."""
        where = f"workflow '{self.name}'"
        for name in given:
            if name not in self.inputs:
                known = ", ".join(self.inputs) or "none"
                raise InputError(f"{where}: no input '{name}'{nearest(name, self.inputs)}; inputs: {known}")
        payload = {**self.defaults, **given}
        for name in self.inputs:
            if name not in payload:
                raise InputError(f"{where}: input '{name}' is missing; give it")
            kind, value = self.input_types.get(name), payload[name]
            if kind is not None and name in given and not _is(value, kind):
                raise InputError(f"{where}: input '{name}': {_described(value)} given, expected {kind.__name__}")
        return payload


def _is(value: object, kind: type) -> bool:
    if kind is bytes:
        return isinstance(value, bytes | bytearray | memoryview)
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _described(value: object) -> str:
    short = shown(value) if isinstance(value, str | int | float | bool | list | dict | None) else ""
    return short or type(value).__name__
