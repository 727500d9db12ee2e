"""Every placer, by its name: one small file each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from fairway.place.placer import BatchPlacer, Placer
from fairway.place.placers.best_fit import BestFit
from fairway.place.placers.compass import Compass
from fairway.place.placers.fairway import Fairway
from fairway.place.placers.hashing import Hash
from fairway.place.placers.heft import Heft
from fairway.place.placers.jit import Jit
from fairway.place.placers.near_data import NearData
from fairway.place.placers.tightest import Tightest

PLACERS: Mapping[str, Callable[..., Placer]] = MappingProxyType(
    {placer.name: placer for placer in (Compass, Jit, Heft, Hash, Fairway)}
)
"""The placers that can place requests ahead, by name."""

BATCH_PLACERS: Mapping[str, Callable[..., BatchPlacer]] = MappingProxyType(
    {**PLACERS, **{placer.name: placer for placer in (NearData, BestFit, Tightest)}}
)
"""All placers, by name: each can choose workers for the batches of a configurator."""

__all__ = ["BATCH_PLACERS", "PLACERS"]
