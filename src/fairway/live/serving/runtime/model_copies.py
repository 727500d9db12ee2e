"""Carries out what the engine of a worker says of models, and lets it know what came of each copy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from fairway.engine.serving.messages import Event, Evict, Load, ModelFailed, ModelLoaded
from fairway.live.serving.runtime.models import Models
from fairway.live.serving.runtime.tally import Tally


class ModelCopies:
    """The copies that an engine has asked for. `happened` is for its events; `came` hears which model is there."""

    def __init__(
        self,
        models: Models,
        tally: Tally,
        now: Callable[[], float],
        *,
        happened: Callable[[Event], None],
        came: Callable[[int], None],
    ) -> None:
        self._models, self._tally, self._now = models, tally, now
        self._happened, self._came = happened, came

    def load(self, load: Load) -> None:
        """Bring a model in, in the background."""
        self._tally.load_began(self._models.names[load.model], self._now())
        self._models.load(load.model, partial(self._loaded, load))

    def evict(self, evict: Evict) -> None:
        """Let a model go, or what is being loaded of it."""
        self._tally.evicted(self._models.names[evict.model], self._now())
        self._models.evict(evict.model)

    def _loaded(self, load: Load, problem: BaseException | None) -> None:
        self._tally.recent.load_ended(self._models.names[load.model], self._now())
        if problem is None:
            self._came(load.model)
            self._happened(ModelLoaded(load.copy, load.model))
        else:
            self._happened(ModelFailed(load.copy, load.model, self._models.why_not(load.model, problem)))
