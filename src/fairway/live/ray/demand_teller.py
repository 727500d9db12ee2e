"""When Ray's autoscaler hears what the queue asks for: when that changes, once a minute, and never without need.

What Ray is asked for stays until it is asked for something else, also when Fairway has ended; and what others have
asked it for is gone then. So nothing is asked for as long as the queue is empty, and what was asked for is withdrawn
when it becomes so, by a controller of later if need be: a file says that there is something to withdraw. It is told
anew once a minute, since a head may have come back without what it knew.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fairway.live.backend.demand import Demand, JobDemand
from fairway.live.ray.bridge_client import BridgeGoneError

_AGAIN_SECONDS = 60.0
_LOG = logging.getLogger(__name__)


class DemandTeller:
    """Tells it through a bridge, by `ask`; `mark` is the file that says that something was asked for."""

    def __init__(
        self, mark: Path, ask: Callable[..., Awaitable[Any]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._mark, self._ask, self._clock = mark, ask, clock
        self._told: tuple[JobDemand, ...] | None = None
        self._told_at = 0.0
        self._is_telling = False
        self._problem = ""

    def forget(self) -> None:
        """Another bridge: whatever it is that Ray knows has to be told anew."""
        self._told = None

    async def hear(self, demand: Demand) -> None:
        """The queue asks for this now."""
        wanted = tuple(demand)
        if self._is_telling or (wanted == self._told and (not wanted or not self._is_due())):
            return
        if not wanted and not self._mark.exists():
            self._told = wanted
            return
        self._is_telling = True
        try:
            await self._tell(wanted)
        except (BridgeGoneError, OSError) as error:
            if str(error) != self._problem:
                self._problem = str(error)
                _LOG.warning("Ray's autoscaler does not hear what the queue needs: %s", error)
        finally:
            self._is_telling = False

    def _is_due(self) -> bool:
        return self._clock() >= self._told_at + _AGAIN_SECONDS

    async def _tell(self, wanted: tuple[JobDemand, ...]) -> None:
        if wanted:
            self._mark.touch()
        await self._ask("need", demand=[asdict(one) for one in wanted])
        if not wanted:
            with suppress(FileNotFoundError):
                self._mark.unlink()
        self._told, self._told_at, self._problem = wanted, self._clock(), ""
