"""What is served: workflows whose stages are real code, and the models that they need.

An application is found by a name that any process can look up for itself (`load_application`), so that workers need
nothing but that name: classes and functions are never sent anywhere. What a profile has measured (`fairway profile`)
goes into the workflows: how long stages take, how many bytes models need and how long they take to load.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from fairway.errors import InputError
from fairway.import_path import imported
from fairway.live.serving.application.application_file import read_application
from fairway.live.serving.application.profile_file import MeasuredProfile, read_profile
from fairway.workflows import Arguments, Model, Recording, StageFunction, Workflow, WorkflowFunction
from fairway.workflows.execution import Execution
from fairway.workflows.stage_class import StageUse


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model that workers load and let go.

    `model` is what schedulers know of it: its name, its bytes and, if measured, how long it takes to load. `loader`
    makes it, in the process that calls it; `unloader` gets what the loader returned before it is dropped, so that the
    author can close what it holds.
    """

    model: Model
    loader: Callable[[], object]
    unloader: Callable[[object], None] | None = None

    @property
    def name(self) -> str:
        """Its name, unique in the application."""
        return self.model.name

    @property
    def bytes(self) -> int:
        """What it needs of a worker's memory."""
        return self.model.bytes

    @property
    def load_seconds(self) -> float | None:
        """How long it takes to load; None if it was not measured."""
        return self.model.load_seconds


class ServedWorkflow:
    """One workflow of an application: its graph as schedulers know it, and how to run its stages.

    Stages go by their number in `workflow`. All of this is plain and repeatable: nothing is kept between calls.
    """

    def __init__(self, recording: Recording, workflow: Workflow, slo_seconds: float | None) -> None:
        self.recording = recording
        self.workflow = workflow
        self.slo_seconds = slo_seconds
        self._execution = Execution(recording)

    @property
    def name(self) -> str:
        """Its name in the application."""
        return self.recording.name

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of what a request brings."""
        return self.recording.inputs

    @property
    def input_types(self) -> Mapping[str, type]:
        """The types of inputs that the author has given a plain one: bytes, str, int, float, bool, list, dict."""
        return self.recording.input_types

    @property
    def defaults(self) -> Mapping[str, Any]:
        """The values of inputs that a request may leave out."""
        return self.recording.defaults

    @property
    def exits(self) -> tuple[int, ...]:
        """The stages whose output the reply needs: all that no stage takes from, and others that are returned too."""
        return self._execution.exits

    @property
    def streaming(self) -> bool:
        """Whether the last stage yields its result in pieces: the reply is then an iterator of them."""
        return self._execution.streaming

    def is_streaming(self, stage: int) -> bool:
        """Whether this stage yields: `run` then takes a batch of one and returns a list with one iterator."""
        return self._execution.is_streaming(stage)

    def payload(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What a request brings, with defaults filled in; refuses missing and unknown inputs and wrong types."""
        return self.recording.payload(given)

    def model_of(self, stage: int) -> str | None:
        """The name of the model that a stage runs, if any."""
        return self.recording.calls[stage].of.model_name

    def takes_input(self, stage: int) -> bool:
        """Whether a stage needs what the request brought."""
        return self._execution.takes_input(stage)

    def arguments(self, stage: int, payload: Mapping[str, Any], outputs: Mapping[int, Any]) -> Arguments:
        """What a stage is called with, for one request.

        `payload` may be empty where `takes_input` is False; `outputs` need hold the stage's predecessors only.
        """
        return self._execution.arguments(stage, payload, outputs)

    def run(self, stage: int, model: object | None, batch: Sequence[Arguments]) -> list[Any]:
        """Run a stage on a batch of requests: a result for each, in order.

        `model` is what its model's loader returned. Whatever the stage raises comes through; a `StageError` says that
        it returned something other than one result for each request.
        """
        return self._execution.run(stage, model, batch)

    def reply(self, outputs: Mapping[int, Any]) -> Any:
        """What the workflow returns, with the results of `exits` filled in."""
        return self._execution.reply(outputs)


@dataclass(frozen=True, slots=True)
class Application:
    """Workflows by name, and all of their models by name."""

    name: str
    workflows: Mapping[str, ServedWorkflow]
    models: Mapping[str, ServedModel]


def load_application(
    target: str, *, profile: Path | None = None, threads: int = 1, memory_needed: bool = True
) -> Application:
    """The application that a name stands for.

    `target` is `module:workflow`, `module:list_of_workflows`, `module` for all workflows in it, or a YAML file.
    `profile` is a file that `fairway profile` wrote; what it says goes before what the author has declared. `threads`
    is how many threads a stage may use: a `load` that takes a parameter `threads` gets it. Without a profile, the
    memory of each model must be declared, unless `memory_needed` is False, as for running in this process.
    """
    name, recordings, declared = _recordings(target)
    measured = None if profile is None else read_profile(profile)
    uses = _uses(recordings)
    models = _models(target, recordings, uses, declared, measured, memory_needed=memory_needed)
    workflows = {}
    for recording in recordings:
        own = {model: models[model] for model in recording.uses}
        graph = recording.workflow(own)
        slo = recording.slo_seconds
        if measured is not None:
            graph = measured.applied(graph, own)
            slo = measured.slo_seconds.get(recording.name) if slo is None else slo
        workflows[recording.name] = ServedWorkflow(recording, graph, slo)
    served = {model: ServedModel(models[model], partial(use.load, threads), use.unload) for model, use in uses.items()}
    return Application(name, workflows, served)


def accelerator_of(threads: int) -> str:
    """The accelerator type, in profiles, of a worker whose stages may use so many threads: 'cpu', 'cpu-2', ..."""
    return "cpu" if threads == 1 else f"cpu-{threads}"


def _recordings(target: str) -> tuple[str, list[Recording], Mapping[str, int]]:
    """The name, the workflows and the declared memory of the application."""
    if target.lower().endswith((".yaml", ".yml", ".json")):
        return read_application(Path(target))
    found = imported(target)
    if ":" not in target:
        members = dict.fromkeys(each for each in vars(found).values() if isinstance(each, WorkflowFunction))
        if not members:
            raise InputError(f"{target}: has no workflow; decorate a function with @fairway.workflow")
    else:
        members = dict.fromkeys(found if isinstance(found, list | tuple) else [found])
    for each in members:
        if not isinstance(each, WorkflowFunction):
            raise InputError(
                f"{target}: {type(each).__name__} given, expected a function decorated with @fairway.workflow, or a "
                "list of such"
            )
    if not members:
        raise InputError(f"{target}: an empty list given, expected at least one workflow")
    recordings = []
    for each in members:
        try:
            recordings.append(each.recorded)
        except InputError as error:
            raise InputError(f"{target}: {error}") from error
    names = [recording.name for recording in recordings]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"{target}: two workflows are called '{twice}'; give each a name of its own")
    return target.partition(":")[0].rpartition(".")[2], recordings, {}


def _uses(recordings: Sequence[Recording]) -> dict[str, StageUse]:
    """By model, a stage that loads it; refuses a name that means two things, and functions that name models."""
    uses: dict[str, StageUse] = {}
    for recording in recordings:
        for call in recording.calls:
            if isinstance(call.of, StageFunction) and call.of.stage.models:
                raise InputError(
                    f"workflow '{recording.name}': stage '{call.of.stage.name}' is a function, which loads no model, "
                    f"but names '{call.of.stage.models[0]}'; make it a class with load"
                )
        for name, use in recording.uses.items():
            if not use.same_model_as(uses.setdefault(name, use)):
                raise InputError(
                    f"workflow '{recording.name}': stage '{use.stage.name}' calls its model '{name}', as another "
                    "workflow does, but loads it differently; give each model a name of its own"
                )
    return uses


def _models(
    target: str,
    recordings: Sequence[Recording],
    uses: Mapping[str, StageUse],
    declared: Mapping[str, int],
    measured: MeasuredProfile | None,
    *,
    memory_needed: bool,
) -> dict[str, Model]:
    known = {name: Model(name, size) for name, size in declared.items()}
    for recording in recordings:
        for name, model in recording.declared.items():
            if known.setdefault(name, model).bytes != model.bytes:
                raise InputError(
                    f"model '{name}': {model.bytes} and {known[name].bytes} bytes of memory given; choose one"
                )
    models = {}
    for name, use in uses.items():
        found = None if measured is None else measured.models.get(name)
        found = known.get(name) if found is None else found
        if found is None and memory_needed:
            raise InputError(
                f"{target}: how much memory does model '{name}' of stage '{use.stage.name}' need? Declare it, as in "
                "@fairway.stage(memory='40MB'), or measure it with 'fairway profile' and give the profile"
            )
        models[name] = Model(name, 0) if found is None else replace(found, name=name)
    return models
