"""Stages that run in slices of a worker: each in the process of a copy of its model, and several at once.

Every copy has a thread of the worker, which waits for what the copy runs. A copy that dies is started anew, and what it
ran is tried once more there, alone: if that dies, too, its request fails with the reason. Other copies notice nothing,
nor does the worker. Where a machine cannot hold copies to slices (`SliceHost`), they live in the worker's own process.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from fairway.configure.slices.parts import Slice
from fairway.live.serving.application.definition import Application, ServedModel, ServedWorkflow
from fairway.live.serving.runtime.models import Loader, Unloader
from fairway.live.serving.seams.background import Background
from fairway.live.serving.seams.slices import SlicedModel, SliceEndedError, SliceHost
from fairway.workflows import Arguments, Workflow

_LOG = logging.getLogger(__name__)

MOST_TRIES = 2
"""A run whose process has died so often is not tried again: it may be what the process dies of."""


class Copy:
    """A copy of a model in its slice, and the thread that waits for it."""

    def __init__(self, model: SlicedModel, background: Background) -> None:
        self.model, self.background = model, background


class InSlice:
    """A workflow whose stages run in a copy of a model, for so many seconds at most."""

    def __init__(self, served: ServedWorkflow, copy: SlicedModel, seconds: float) -> None:
        self.workflow: Workflow = served.workflow
        self._name = served.name
        self._copy, self._seconds = copy, seconds

    def run(self, stage: int, model: object | None, batch: Sequence[Arguments]) -> list[Any]:  # noqa: ARG002
        """A result for each. What several requests together have killed runs one by one; one of them alone, again."""
        for tried in range(1, MOST_TRIES + 1):
            try:
                return self._copy.run(self._name, stage, batch, self._seconds)
            except SliceEndedError as error:
                if len(batch) > 1:
                    raise
                if tried == MOST_TRIES:
                    raise SliceEndedError(f"{error}; it was tried {tried} times") from None
                _LOG.warning("%s; its request is tried again", error)
        raise AssertionError


class Slices:
    """The models of a worker that have slices, and how each is loaded and let go."""

    def __init__(
        self,
        held: Mapping[str, Slice],
        application: Application,
        host: SliceHost | None,
        background: Callable[[str], Background],
    ) -> None:
        self.held, self._application, self._host = held, application, host
        self._background = background
        self._idle: list[Background] = []
        self.backgrounds: list[Background] = []

    def __contains__(self, model: str | None) -> bool:
        return model in self.held

    @property
    def not_enforced(self) -> tuple[str, ...]:
        """What holds no copy to its slice, a sentence each."""
        if not self.held:
            return ()
        if self._host is None:
            return ("slices are counted, but not enforced: copies of models share the process of their worker",)
        return self._host.not_enforced

    def ways(self) -> dict[str, tuple[Loader, Unloader]]:
        """By model, how a copy is loaded, in the background, and let go."""
        return {name: (partial(self._load, name), self._close) for name in self.held}

    def _load(self, name: str) -> Copy:
        if self._host is None:
            model: SlicedModel = _InProcess(self._application, self._application.models[name])
        else:
            model = self._host.load(name, self.held[name])
        if self._idle:
            return Copy(model, self._idle.pop())
        background = self._background(f"slice-{len(self.backgrounds)}")
        self.backgrounds.append(background)
        return Copy(model, background)

    def _close(self, copy: Copy) -> None:
        self._idle.append(copy.background)
        copy.model.close()


class _InProcess:
    """A copy of a model in the worker's own process, which nothing holds to its slice."""

    def __init__(self, application: Application, served: ServedModel) -> None:
        self._application, self._served = application, served
        self._model = served.loader()

    def run(self, workflow: str, stage: int, batch: Sequence[Arguments], seconds: float) -> list[Any]:  # noqa: ARG002
        return self._application.workflows[workflow].run(stage, self._model, batch)

    def close(self) -> None:
        if self._served.unloader is not None:
            self._served.unloader(self._model)
        del self._model
