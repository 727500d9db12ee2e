"""Database engines that share what they have compiled: a history opens a store several times, a run of histories often.

SQLAlchemy compiles each statement once per engine, which takes longer than all that a short history does with it.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Engine, create_engine
from sqlalchemy.engine import Dialect

_first: list[tuple[Dialect, Any]] = []


def sharing_engine(*arguments: Any, **options: Any) -> Engine:
    """As `create_engine`, for SQLite; engines after the first use its dialect and its compiled statements."""
    if not _first:
        engine = create_engine(*arguments, **options)
        engine.connect().close()
        _first.append((engine.dialect, engine._compiled_cache))
        return engine
    engine = create_engine(*arguments, **options, _initialize=False)
    engine.dialect, engine._compiled_cache = _first[0]
    engine.pool._dialect = engine.dialect
    return engine
