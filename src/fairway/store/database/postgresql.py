"""PostgreSQL as a store. Writers take turns by an advisory lock, as SQLite's do by themselves.

So an operation may look first and write then, and numbers become visible in their order: whoever reads the journal on
from the last number that it saw misses nothing.
"""

from __future__ import annotations

import psycopg
from sqlalchemy import URL, Connection, Engine, create_engine, event

_TURN = 0x666169727761
"""Which advisory lock: any number will do that no other program uses in the same database."""

_CONNECT_SECONDS = 5


def postgresql_engines(address: URL) -> tuple[Engine, Engine]:
    """One way in to read and one to write."""
    if "connect_timeout" not in address.query:
        address = address.update_query_dict({"connect_timeout": str(_CONNECT_SECONDS)})
    # pool_pre_ping: after a restart of the server, the first to ask gets a new connection and not an error.
    reading = create_engine(
        address, pool_pre_ping=True, pool_size=4, max_overflow=12, isolation_level="REPEATABLE READ"
    ).execution_options(postgresql_readonly=True)
    writing = create_engine(address, pool_pre_ping=True, pool_size=1, max_overflow=0)

    def insist_on_disk(connection: psycopg.Connection, _: object) -> None:
        (level,) = connection.execute("SHOW synchronous_commit").fetchone() or ("off",)
        if level == "off":  # other levels are a choice of the server's owner, and all of them wait for a disk
            connection.execute("SET synchronous_commit = on")
        connection.commit()

    def wait_for_turn(connection: Connection) -> None:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_TURN})")

    event.listen(writing, "connect", insist_on_disk)
    event.listen(writing, "begin", wait_for_turn)
    return reading, writing
