"""Runs the stages of a recorded workflow: what each is called with, its results, and the reply.

Everything goes by the number of a stage. Where a value comes from is worked out once, so that putting the arguments of
a stage together is a few look-ups. Nothing here has a clock or knows of processes: drivers decide where and when.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from fairway.errors import InputError
from fairway.workflows.arguments import Arguments, StageError
from fairway.workflows.compose import Call, Input, StageFunction, Unknown, calls_in, unknowns_in
from fairway.workflows.recording import Recording

Fill = Callable[[Mapping[str, Any], Mapping[int, Any]], Any]
"""Gives a value from what the request brought and what stages have put out."""


class Execution:
    """How to run each stage of a workflow, by number."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._calls = recording.calls
        numbers = {call: number for number, call in enumerate(self._calls)}
        self._positional = [[_fill(value, numbers) for value in call.arguments] for call in self._calls]
        self._named = [
            {name: _fill(value, numbers) for name, value in call.named_arguments.items()} for call in self._calls
        ]
        self._takes_input = [bool(call.request_inputs) for call in self._calls]
        self._reply = _fill(recording.returned, numbers)
        self.exits = tuple(sorted({numbers[call] for call in calls_in(recording.returned)}))
        self.streaming = any(call.of.streaming for call in self._calls)

    def takes_input(self, stage: int) -> bool:
        """Whether a stage needs what the request brought."""
        return self._takes_input[stage]

    def is_streaming(self, stage: int) -> bool:
        """Whether a stage yields its result in pieces."""
        return self._calls[stage].of.streaming

    def arguments(self, stage: int, payload: Mapping[str, Any], outputs: Mapping[int, Any]) -> Arguments:
        """What a stage is called with for one request; `outputs` are by the number of the stage that put them out."""
        return Arguments(
            tuple([fill(payload, outputs) for fill in self._positional[stage]]),
            {name: fill(payload, outputs) for name, fill in self._named[stage].items()},
        )

    def run(self, stage: int, model: object, batch: Sequence[Arguments]) -> list[Any]:
        """The results of a stage for a batch of requests, in order; one iterator of pieces where it yields."""
        of = self._calls[stage].of
        if of.streaming and len(batch) != 1:
            raise StageError(f"stage '{of.stage.name}' yields its result, so it takes one request at a time")
        return of.run(model, batch)

    def reply(self, outputs: Mapping[int, Any]) -> Any:
        """What the workflow returns, from the outputs of `exits`; inputs that it returns as they came are not in it."""
        return self._reply({}, outputs)


def run_alone(recording: Recording, inputs: Mapping[str, Any]) -> Any:
    """Run one request here: load the models, run every stage, let the models go; pieces keep them until the last."""
    payload = recording.payload(inputs)
    execution = Execution(recording)
    models: dict[str, object] = {}
    try:
        outputs = run_stages(execution, payload, models)
    except BaseException:
        unload(recording, models)
        raise
    reply = execution.reply(outputs)
    if execution.streaming:
        return _pieces(reply, recording, models)
    unload(recording, models)
    return reply


def run_stages(
    execution: Execution, payload: Mapping[str, Any], models: dict[str, object], threads: int = 1
) -> dict[int, Any]:
    """The outputs of all stages for one request; models that are not in `models` yet are loaded into it."""
    outputs: dict[int, Any] = {}
    for stage, call in enumerate(execution.recording.calls):
        name = call.of.model_name
        if name is not None and name not in models and not isinstance(call.of, StageFunction):
            models[name] = call.of.load(threads)
        model = None if name is None else models[name]
        arguments = execution.arguments(stage, payload, outputs)
        (outputs[stage],) = execution.run(stage, model, [arguments])
    return outputs


def unload(recording: Recording, models: dict[str, object]) -> None:
    """Let go of all models."""
    while models:
        name, model = models.popitem()
        recording.uses[name].unload(model)


def _pieces(pieces: Iterator[Any], recording: Recording, models: dict[str, object]) -> Iterator[Any]:
    try:
        yield from pieces
    finally:
        unload(recording, models)


def _fill(value: Any, numbers: Mapping[Call, int]) -> Fill:
    """How to get a value: from an output, from the request, put together from several, or as it is."""
    match value:
        case Call():
            number = numbers[value]
            return lambda _, outputs: outputs[number]
        case Input():
            name = value.name
            return lambda payload, _: payload[name]
        case Unknown():
            raise InputError(f"{value!r} given, expected a result of a stage or an input")
    if next(unknowns_in(value), None) is None:
        return lambda _payload, _outputs: value
    if isinstance(value, dict):
        fills = {key: _fill(member, numbers) for key, member in value.items()}
        return lambda payload, outputs: {key: fill(payload, outputs) for key, fill in fills.items()}
    members = [_fill(member, numbers) for member in value]
    if isinstance(value, list):
        return lambda payload, outputs: [fill(payload, outputs) for fill in members]
    make = type(value)._make if hasattr(value, "_make") else tuple  # a named tuple stays one
    return lambda payload, outputs: make(fill(payload, outputs) for fill in members)
