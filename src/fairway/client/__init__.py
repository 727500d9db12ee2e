"""The Python client of a running Fairway: `Client`, and `AsyncClient` with the same methods for asyncio.

Both send the requests of `calls` and read the answers of `records`. What a request is, what happens when the server
does not answer and how an answer is read stands there once; the two clients only differ in how they wait.
"""

from fairway.client.async_client import AsyncClient
from fairway.client.errors import (
    ConflictError,
    NotAllowedError,
    NotFoundError,
    RefusedError,
    ServiceError,
    TimedOutError,
    UnreachableError,
)
from fairway.client.records import (
    Attempt,
    DryRun,
    Event,
    Explanation,
    Job,
    JournalEntry,
    Lease,
    Prediction,
    Rate,
    Reservation,
    Status,
    Token,
    Usage,
    Worker,
)
from fairway.client.sync_client import Client

__all__ = [
    "AsyncClient",
    "Attempt",
    "Client",
    "ConflictError",
    "DryRun",
    "Event",
    "Explanation",
    "Job",
    "JournalEntry",
    "Lease",
    "NotAllowedError",
    "NotFoundError",
    "Prediction",
    "Rate",
    "RefusedError",
    "Reservation",
    "ServiceError",
    "Status",
    "TimedOutError",
    "Token",
    "UnreachableError",
    "Usage",
    "Worker",
]
