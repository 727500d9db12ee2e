"""What to do when no configuration is in time: the fastest ones, or the cheapest if even those are late for sure."""

from __future__ import annotations

import numpy as np

from fairway.configure.tables import Tables


def fastest_configurations(tables: Tables, stage: int, queue_length: int, k: int) -> list[int]:
    """The numbers of the k fastest configurations that the queue can fill, between equals the cheaper first."""
    layer = tables.first_layer(stage, (), queue_length)
    order: list[int] = layer.numbers[np.lexsort((layer.cost, layer.run_seconds))[:k]].tolist()
    return order


def cheapest_configurations(tables: Tables, stage: int, queue_length: int, k: int) -> list[int]:
    """The numbers of the k configurations with the least cost per job, between equals the faster first."""
    layer = tables.first_layer(stage, (), queue_length)
    order: list[int] = layer.numbers[np.lexsort((layer.run_seconds, layer.cost))[:k]].tolist()
    return order


def is_lost(tables: Tables, stage: int, queue_length: int, seconds_left: float, added: float) -> bool:
    """Whether the oldest job misses its deadline even if everything from here on runs as fast as it can."""
    layer = tables.first_layer(stage, (), queue_length)
    return bool(layer.run_seconds.min() + added + tables.fastest_rests[stage] > seconds_left)
