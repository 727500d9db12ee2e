"""Durable state of the live system: jobs, leases, workers, the journal and tokens, on SQLite or PostgreSQL.

`open_store` opens it. Operations are functions that take a connection first; `Store.write` and `Store.read` run them.
"""

from __future__ import annotations

from fairway.store.database.opening import open_store
from fairway.store.store import Store

__all__ = ["Store", "open_store"]
