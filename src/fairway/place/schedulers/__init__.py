"""Every scheduler, by its name: one small file each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from fairway.place.scheduler import Scheduler
from fairway.place.schedulers.compass import Compass
from fairway.place.schedulers.hashing import Hash
from fairway.place.schedulers.heft import Heft
from fairway.place.schedulers.jit import Jit

SCHEDULERS: Mapping[str, Callable[..., Scheduler]] = MappingProxyType(
    {scheduler.name: scheduler for scheduler in (Compass, Jit, Heft, Hash)}
)
"""All schedulers, by name."""

__all__ = ["SCHEDULERS"]
