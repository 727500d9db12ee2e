"""What an engine would lose with its memory: what every job is owed, as of the last round.

One document, replaced as a whole, from which the next engine goes on. It may be a round old: that costs a job at most
the time of that round.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from fairway.store.database.schema import standing

_TRAINING = "training"


def save_standing(connection: Connection, body: Mapping[str, Any], *, at: float) -> None:
    """Replace what was saved before."""
    connection.execute(delete(standing).where(standing.c.name == _TRAINING))
    connection.execute(insert(standing).values(name=_TRAINING, at=at, body=body))


def load_standing(connection: Connection) -> Mapping[str, Any]:
    """What was saved last; empty before the first time."""
    body: Mapping[str, Any] | None = connection.execute(
        select(standing.c.body).where(standing.c.name == _TRAINING)
    ).scalar_one_or_none()
    return {} if body is None else body
