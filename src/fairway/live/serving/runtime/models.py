"""The models that a worker really has: loaded in the background, one after the other, and let go when evicted.

What the engine has decided counts for the engine at once; here it happens a little later, in the same order. A load
that fails is tried again, since files and memory may be there a moment later. Memory that is given up goes back to the
system before the next load begins, so that the two never need room at the same time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
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


class Models:
    """The models of an application on one worker, by number as the engine knows them."""

    def __init__(
        self, application: Application, background: Background, lane: Lane, limits: Limits, now: Callable[[], float]
    ) -> None:
        self._served = list(application.models.values())
        self.names = [model.name for model in self._served]
        self._background = background
        self._lane, self._limits, self._now = lane, limits, now
        self._number = {name: number for number, name in enumerate(self.names)}
        self._there: dict[int, Any] = {}
        self._wanted: dict[int, int] = {}
        self._loads = 0

    @property
    def there(self) -> tuple[int, ...]:
        """The numbers of the models that are here."""
        return tuple(self._there)

    def why_not(self, number: int, problem: BaseException) -> str:
        """Why a model could not be loaded, in a line, which the log has, too."""
        reason = f"model '{self.names[number]}' cannot be loaded: {kind_of(problem)}: {words_of(problem)}"
        _LOG.error("%s", reason)
        return reason

    def of(self, name: str | None) -> Any:
        """A model that is here; None for no model."""
        return None if name is None else self._there[self._number[name]]

    def load(self, number: int, done: Callable[[BaseException | None], None]) -> None:
        """Bring a model in; `done` is called in the loop when it is here, or with what went wrong."""
        self._loads += 1
        self._wanted[number] = self._loads
        seconds = self._served[number].load_seconds or 0.0
        self._background.run(partial(self._loaded, number), partial(self._take, number, self._loads, done), seconds)

    def evict(self, number: int) -> None:
        """Let a model go, or what is being loaded of it."""
        self._wanted.pop(number, None)
        model = self._there.pop(number, None)
        if model is not None:
            self._let_go(number, model)

    def _loaded(self, number: int) -> Any:
        for tried in range(1, _TRIES + 1):
            try:
                return self._recorded(number, self._served[number].loader)
            except BaseException as error:  # the author's code may raise anything
                if tried == _TRIES:
                    raise
                _LOG.warning("model '%s' cannot be loaded, tried again: %s", self.names[number], words_of(error))
                self._background.sleep(_WAIT_SECONDS * tried)
        raise AssertionError

    def _recorded(self, number: int, work: Callable[[], Any]) -> Any:
        """Let the supervisor see which model is loaded or closed, and until when it may take."""
        now = self._now()
        self._lane.begin(number, -1, now, now + self._limits.of_load(self._served[number].load_seconds), ())
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
        if self._wanted.get(number) != load:  # it was evicted meanwhile
            if problem is None:
                self._let_go(number, model)
            return
        if problem is None:
            self._there[number] = model
        done(problem)

    def _let_go(self, number: int, model: Any) -> None:
        unloader = self._served[number].unloader
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
