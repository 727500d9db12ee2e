"""Reads an application from YAML: the same stages and workflows as in Python, with classes named by import path.

    models:
      detector: {memory: 40MB}
    workflows:
      read-document:
        inputs: {image: bytes}
        slo: 2s
        stages:
          - {name: decode, class: "documents:Decode", takes: [image]}
          - {name: detect, class: "documents:Detect", model: detector, with: {side: 736}, takes: [decode]}
          - {name: join, class: "documents:Join", takes: [decode, detect]}
        returns: join

`takes` names inputs and stages, in the order of the class's parameters or by their names. Where it is left out, a stage
takes what comes to it by `edges`, or else all inputs. Whatever is wrong becomes one line.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from fairway.documents import about, shown
from fairway.errors import InputError
from fairway.import_path import imported
from fairway.live.serving.application.application_form import FORM, INPUT_TYPES, StageFields, WorkflowFields
from fairway.options import nearest
from fairway.quantities import bytes_of, seconds_of
from fairway.workflows import Call, Input, Recording, Stage, StageClass, StageFunction, StageUse, Workflow
from fairway.workflows.compose import unknowns_in
from fairway.workflows.decorators import stage as make_stage


def read_application(path: Path) -> tuple[str, list[Recording], dict[str, int]]:
    """The name of the application, its workflows, and the bytes of memory of the models that it declares."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}; name an application") from None
    return parse_application(content, str(path))


def parse_application(text: str | bytes, source: str) -> tuple[str, list[Recording], dict[str, int]]:
    """Read the text of an application file; `source` is its name in errors. Imports what it names."""
    file = FORM.read(text, source)
    try:
        if not file.workflows:
            raise InputError("workflows: none given, expected at least one")
        memory = {
            name: _at(f"models.{name}.memory", bytes_of, fields.memory) for name, fields in (file.models or {}).items()
        }
        recordings = [
            _at(f"workflows.{name}", _Reader(name, fields).recording) for name, fields in file.workflows.items()
        ]
        used = [name for recording in recordings for name in recording.uses]
        for name in memory:
            if name not in used:
                raise InputError(f"models.{name}: no stage has this model{nearest(name, used)}; take it out")
    except InputError as error:
        raise about(source, error) from error
    return file.name or Path(source).stem, recordings, memory


class _Reader:
    """Makes the recording of one workflow: as if a function had called its stages."""

    def __init__(self, name: str, fields: WorkflowFields) -> None:
        self._name, self._fields = name, fields
        self._types, self._defaults, self._inputs = _inputs(fields.inputs)
        self._stages = {stage.name: stage for stage in fields.stages}
        self._calls: dict[str, Call] = {}

    def recording(self) -> Recording:
        fields = self._fields
        names = [stage.name for stage in fields.stages]
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"stages: '{name}' is also the name of another stage; give each its own")
        for name in self._inputs:
            if name in self._stages:
                raise InputError(f"inputs: '{name}' is also the name of a stage; give each its own")
        taken = {stage.name: self._taken(stage) for stage in fields.stages}
        edges = {
            (name, stage): None for stage, names in taken.items() for name in _names(names) if name in self._stages
        }
        # The graph says what is wrong with names and edges, before anything is imported.
        graph = Workflow(tuple(Stage.of(stage.name, 0.0) for stage in fields.stages), tuple(edges), name=self._name)
        for number in graph.topological_order:
            stage = fields.stages[number]
            where = f"stages[{number}] ('{stage.name}')"
            call = _at(where, _use, stage)
            arguments = taken[stage.name]
            if isinstance(arguments, dict):
                named = {name: self._value(value, where) for name, value in arguments.items()}
                self._calls[stage.name] = call(**named)
            else:
                self._calls[stage.name] = call(*(self._value(value, where) for value in arguments))
        return Recording(
            name=self._name,
            inputs=self._inputs,
            returned=self._returned(graph),
            slo_seconds=None if fields.slo is None else _at("slo", seconds_of, fields.slo),
            input_types=self._types,
            defaults=self._defaults,
            samples=None if fields.samples is None else _at("samples", imported, fields.samples),
        )

    def _taken(self, stage: StageFields) -> list[Any] | dict[str, Any]:
        """What a stage takes: as it says, or what comes to it by edges, or all inputs."""
        for source, target in self._fields.edges or ():
            for end in (source, target):
                if end not in self._stages:
                    raise InputError(f"edges: there is no stage '{end}'{nearest(end, self._stages)}; add it")
        sources = [source for source, target in self._fields.edges or () if target == stage.name]
        if stage.takes is None:
            return sources or list(self._inputs)
        taken = stage.takes if isinstance(stage.takes, list | dict) else [stage.takes]
        for name in _names(taken):
            if name not in self._stages and name not in self._inputs:
                known = [*self._inputs, *self._stages]
                raise InputError(
                    f"stage '{stage.name}': takes '{name}', which is neither an input nor a stage"
                    f"{nearest(name, known)}; known: {', '.join(known)}"
                )
        for source in sources:
            if source not in _names(taken):
                raise InputError(
                    f"edges: '{source}' -> '{stage.name}' given, but the stage does not take '{source}'; add it to "
                    "takes, or take the edge out"
                )
        return taken

    def _value(self, given: Any, where: str) -> Any:
        """What an entry of takes or returns stands for."""
        if isinstance(given, str):
            return self._calls[given] if given in self._calls else Input(given)
        if isinstance(given, list):
            return [self._value(each, where) for each in given]
        if isinstance(given, dict) and list(given) == ["value"]:
            return given["value"]
        raise InputError(
            f"{where}: {shown(given)} given in takes, expected the name of an input or a stage, a list of such, or "
            "{value: ...} for a value"
        )

    def _returned(self, graph: Workflow) -> Any:
        returns = self._fields.returns
        if returns is None:
            last = [graph.stages[number].name for number, after in enumerate(graph.successors) if not after]
            return self._calls[last[0]] if len(last) == 1 else {name: self._calls[name] for name in last}
        for name in _names(returns):
            if name not in self._stages:
                raise InputError(f"returns: there is no stage '{name}'{nearest(name, self._stages)}; name one")
        found = (
            {key: self._value(value, "returns") for key, value in returns.items()}
            if isinstance(returns, dict)
            else self._value(returns, "returns")
        )
        if next(unknowns_in(found), None) is None:
            raise InputError(f"returns: {shown(returns)} given, expected the name of a stage, or several")
        return found


def _use(fields: StageFields) -> StageUse | StageFunction:
    """The stage that a class or a function makes; decorated or not."""
    path = fields.class_ or fields.function
    if path is None or (fields.class_ and fields.function):
        raise InputError("expected either a class or a function; give one of them, as in {class: 'documents:Detect'}")
    found = imported(path)
    kind = StageClass if fields.class_ else StageFunction
    if not isinstance(found, StageClass | StageFunction) and callable(found):
        found = make_stage(found)
    if not isinstance(found, kind):
        raise InputError(f"{path}: {type(found).__name__} given, expected a {'class' if fields.class_ else 'function'}")
    given = {"input_bytes": fields.input_bytes, "output_bytes": fields.output_bytes, "seconds": fields.seconds}
    chosen: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if isinstance(found, StageFunction):
        if fields.with_ or fields.model:
            raise InputError("a function has neither 'with' nor 'model'; make it a class, or take them out")
        return replace(found, stage=replace(found.stage, name=fields.name, **chosen))
    use = replace(found, **chosen)(**(fields.with_ or {}))
    if fields.model is not None and not found.loads:
        raise InputError(f"model: '{fields.model}' given, but {path} has no load; add it, or take model out")
    return StageUse(use.of, use.instance, use.made_with, fields.name, fields.model)


def _inputs(given: object) -> tuple[dict[str, type], dict[str, Any], tuple[str, ...]]:
    """The types, the defaults and the names of the inputs."""
    if given is None:
        return {}, {}, ()
    members = (
        dict.fromkeys(given) if isinstance(given, list) and all(isinstance(each, str) for each in given) else given
    )
    if not isinstance(members, dict):
        raise InputError(f"inputs: {shown(given)} given, expected a list of names, or types by name: {{image: bytes}}")
    types: dict[str, type] = {}
    defaults: dict[str, Any] = {}
    for name, kind in members.items():
        asked = kind if isinstance(kind, dict) else {"type": kind}
        if set(asked) - {"type", "default"} or not (asked.get("type") is None or asked["type"] in INPUT_TYPES):
            raise InputError(
                f"inputs.{name}: {shown(kind)} given, expected a type ({', '.join(INPUT_TYPES)}) or "
                "{type: str, default: en}"
            )
        if asked.get("type") is not None:
            types[name] = INPUT_TYPES[asked["type"]]
        if "default" in asked:
            defaults[name] = asked["default"]
    return types, defaults, tuple(members)


def _names(value: Any) -> list[str]:
    """The names of inputs and stages in takes or returns, in order."""
    match value:
        case str():
            return [value]
        case list() | tuple():
            return [name for each in value for name in _names(each)]
        case dict():
            return [] if list(value) == ["value"] else [name for each in value.values() for name in _names(each)]
    return []


def _at(where: str, read: Any, *given: Any) -> Any:
    """What `read` gives; an error gets the name of the field in front."""
    try:
        return read(*given)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
