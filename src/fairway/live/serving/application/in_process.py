"""Runs a workflow in this process, without any server: for tests, notebooks and measurements.

    with LocalWorkflow("documents:read_document") as documents:
        print(documents.run(image=page))

Models are loaded when a stage first needs them, and kept until the end of the block.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

from fairway.errors import InputError
from fairway.live.serving.application.definition import Application, ServedWorkflow, load_application
from fairway.workflows import Recording, WorkflowFunction
from fairway.workflows.execution import Execution, run_alone, run_stages, unload

Given = WorkflowFunction | ServedWorkflow | Recording | str
"""A workflow: what `@fairway.workflow` made, one of an application, or where to find it."""


def run_locally(workflow: Given, /, **inputs: Any) -> Any:
    """Run one request in this process: loads the models, runs the stages, lets the models go.

    The result of a workflow that yields is an iterator of its pieces, which keeps the models until it ends.
    """
    return run_alone(_recording(workflow), inputs)


class LocalWorkflow:
    """A workflow in this process that keeps its models between requests; one request at a time."""

    def __init__(self, workflow: Given, *, threads: int = 1) -> None:
        self._recording = _recording(workflow)
        self._execution = Execution(self._recording)
        self._threads = threads
        self._models: dict[str, object] = {}
        self._turn = threading.Lock()

    def run(self, **inputs: Any) -> Any:
        """The answer to one request."""
        payload = self._recording.payload(inputs)
        with self._turn:
            outputs = run_stages(self._execution, payload, self._models, self._threads)
        reply = self._execution.reply(outputs)
        return self._pieces(reply) if self._execution.streaming else reply

    async def run_async(self, **inputs: Any) -> Any:
        """The same for programs with an event loop, which goes on meanwhile."""
        return await asyncio.to_thread(self.run, **inputs)

    def close(self) -> None:
        """Let the models go."""
        with self._turn:
            unload(self._recording, self._models)

    def _pieces(self, pieces: Iterator[Any]) -> Iterator[Any]:
        while True:
            with self._turn:
                try:
                    piece = next(pieces)
                except StopIteration:
                    return
            yield piece

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _recording(workflow: Given) -> Recording:
    match workflow:
        case Recording():
            return workflow
        case WorkflowFunction():
            return workflow.recorded
        case ServedWorkflow():
            return workflow.recording
        case str():
            return only_workflow(load_application(workflow, memory_needed=False), workflow).recording
    raise InputError(f"{workflow!r} given, expected a workflow or where to find one, as in 'module:workflow'")


def only_workflow(application: Application, target: str) -> ServedWorkflow:
    """The one workflow of an application; refuses several, which would leave open which is meant."""
    if len(application.workflows) > 1:
        raise InputError(f"{target}: has several workflows ({', '.join(application.workflows)}); name one of them")
    return next(iter(application.workflows.values()))
