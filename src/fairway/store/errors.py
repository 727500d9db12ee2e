"""What can go wrong in the store, as errors that say which job, lease or worker it is about.

All of them mean that nothing was changed. An address that cannot be opened is an `InputError` instead.
"""

from __future__ import annotations

from fairway.errors import FairwayError


class StoreError(FairwayError):
    """The store cannot do what was asked; nothing was changed."""


class ConflictError(StoreError):
    """An id or an idempotency key is taken by something else."""


class UnknownError(StoreError):
    """There is no such job, lease, worker, agent or token."""


class IllegalChangeError(StoreError):
    """A job cannot go from the state it is in to the one that was asked for."""


class HeldError(StoreError):
    """A worker, or a job, is held by another lease."""
