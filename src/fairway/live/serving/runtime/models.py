"""The models that a worker really has: loaded in the background, one after the other, and let go when evicted.

What the engine has decided counts for the engine at once; here it happens a little later, in the same order. A load
that fails is tried again, since files and memory may be there a moment later. Memory that is given up goes back to the
system before the next load begins, so that the two never need room at the same time.

Where models have slices of the worker, there may be several copies of one. A run takes a copy that no other run has,
and gives it back; the engine has counted that there is one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from fairway.live.serving.application.definition import Application
from fairway.live.serving.runtime.explanation import kind_of, words_of
from fairway.live.serving.runtime.limits import Limits
from fairway.live.serving.seams.background import Background
from fairway.live.serving.seams.run_record import Lane

_LOG = logging.getLogger(__name__)
_TRIES = 3
_WAIT_SECONDS = 0.2

Loader = Callable[[], Any]
Unloader = Callable[[Any], None]


class Models:
    """The models of an application on one worker, by number as the engine knows them.

    `instead` has, by name, how a model is loaded and let go that does not live in this process.
    """

    def __init__(
        self,
        application: Application,
        background: Background,
        lane: Lane,
        limits: Limits,
        now: Callable[[], float],
        instead: Mapping[str, tuple[Loader, Unloader]] | None = None,
    ) -> None:
        self._served = list(application.models.values())
        self.names = [model.name for model in self._served]
        ways: Mapping[str, tuple[Loader, Unloader | None]] = {} if instead is None else instead
        self._ways = [ways.get(model.name, (model.loader, model.unloader)) for model in self._served]
        # A process for the model has to start, too, of which no measurement tells.
        self._expected = [None if model.name in ways else model.load_seconds for model in self._served]
        self._background = background
        self._lane, self._limits, self._now = lane, limits, now
        self._number = {name: number for number, name in enumerate(self.names)}
        self._there: dict[int, list[Any]] = {}
        self._taken: dict[int, list[Any]] = {}
        self._wanted: dict[int, list[int]] = {}
        self._loads = 0

    @property
    def there(self) -> tuple[int, ...]:
        """The numbers of the models that are here."""
        return tuple({**self._there, **self._taken})

    def why_not(self, number: int, problem: BaseException) -> str:
        """Why a model could not be loaded, in a line, which the log has, too."""
        reason = f"model '{self.names[number]}' cannot be loaded: {kind_of(problem)}: {words_of(problem)}"
        _LOG.error("%s", reason)
        return reason

    def of(self, name: str | None) -> Any:
        """A model that is here; None for no model."""
        return None if name is None else self._there[self._number[name]][0]

    def take(self, name: str) -> Any:
        """A copy of a model that no run has: the one used last."""
        number = self._number[name]
        copy = self._there[number].pop()
        if not self._there[number]:
            del self._there[number]
        self._taken.setdefault(number, []).append(copy)
        return copy

    def give_back(self, name: str, copy: Any) -> None:
        """The run of a copy has ended."""
        number = self._number[name]
        self._taken[number].remove(copy)
        if not self._taken[number]:
            del self._taken[number]
        self._there.setdefault(number, []).append(copy)

    def load(self, number: int, done: Callable[[BaseException | None], None]) -> None:
        """Bring a copy of a model in; `done` is called in the loop when it is here, or with what went wrong."""
        self._loads += 1
        self._wanted.setdefault(number, []).append(self._loads)
        seconds = self._served[number].load_seconds or 0.0
        self._background.run(partial(self._loaded, number), partial(self._take, number, self._loads, done), seconds)

    def evict(self, number: int) -> None:
        """Let a copy of a model go: of those that are here the longest unused, else the last that is being loaded."""
        copies = self._there.get(number)
        if copies:
            copy = copies.pop(0)
            if not copies:
                del self._there[number]
            self._let_go(number, copy)
        elif self._wanted.get(number):
            self._wanted[number].pop()

    def _loaded(self, number: int) -> Any:
        for tried in range(1, _TRIES + 1):
            try:
                return self._recorded(number, self._ways[number][0])
            except BaseException as error:  # the author's code may raise anything
                if tried == _TRIES:
                    raise
                _LOG.warning("model '%s' cannot be loaded, tried again: %s", self.names[number], words_of(error))
                self._background.sleep(_WAIT_SECONDS * tried)
        raise AssertionError

    def _recorded(self, number: int, work: Callable[[], Any]) -> Any:
        """Let the supervisor see which model is loaded or closed, and until when it may take."""
        now = self._now()
        self._lane.begin(number, -1, now, now + self._limits.of_load(self._expected[number]), ())
        try:
            return work()
        finally:
            self._lane.end(self._now())

    def _take(
        self,
        number: int,
        load: int,
        done: Callable[[BaseException | None], None],
        model: Any,
        problem: BaseException | None,
    ) -> None:
        wanted = self._wanted.get(number, [])
        if load not in wanted:  # it was evicted meanwhile
            if problem is None:
                self._let_go(number, model)
            return
        wanted.remove(load)
        if problem is None:
            self._there.setdefault(number, []).append(model)
        done(problem)

    def _let_go(self, number: int, model: Any) -> None:
        unloader = self._ways[number][1]
        holder = [model]

        def unload() -> None:
            if unloader is not None:
                self._recorded(number, partial(unloader, holder[0]))
            self._recorded(number, holder.clear)
            self._background.give_back_memory()

        def unloaded(_: Any, problem: BaseException | None) -> None:
            if problem is not None:
                _LOG.warning("model '%s' could not be closed: %s", self.names[number], words_of(problem))

        self._background.run(unload, unloaded, 0.0)
