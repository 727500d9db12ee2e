"""What to do when no configuration is in time: the fastest ones, or the cheapest if even those are late for sure."""

from __future__ import annotations

from fairway.configure.tables import Tables


def fastest_configurations(tables: Tables, stage: int, queue_length: int, k: int) -> tuple[int, ...]:
    """The numbers of the k fastest configurations that the queue can fill, between equals the cheaper first."""
    return tables.first_layer(stage, (), queue_length).fastest[:k]


def cheapest_configurations(tables: Tables, stage: int, queue_length: int, k: int) -> tuple[int, ...]:
    """The numbers of the k configurations with the least cost per job, between equals the faster first."""
    return tables.first_layer(stage, (), queue_length).cheapest[:k]


def is_lost(tables: Tables, stage: int, queue_length: int, seconds_left: float, added: float) -> bool:
    """Whether the oldest job misses its deadline even if everything from here on runs as fast as it can."""
    layer = tables.first_layer(stage, (), queue_length)
    return layer.least_seconds + added + tables.fastest_rests[stage] > seconds_left
