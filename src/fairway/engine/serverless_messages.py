"""What the serverless engine is told and what it asks for.

The time comes with the events, as the driver hands them over. Tasks and containers go by numbers that are never used
again. Events and commands are tuples: a simulated hour has millions of them.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from fairway.configure.queues import Dispatch

NO_CONTAINER = -1
"""In place of a container's number, where all functions are taken to be warm."""


class RequestArrived(NamedTuple):
    """A client asks for an application; `key` tells the request from all others. Its answer is due at `deadline`."""

    key: int
    application: int
    deadline: float


class TaskDone(NamedTuple):
    """The task that `StartTask` asked for has ended, after it ran for so many seconds (without fetch or cold start)."""

    task: int
    run_seconds: float


class ContainerReady(NamedTuple):
    """The container that `StartContainer` asked for can take tasks."""

    container: int


class TimeReached(NamedTuple):
    """A time that `Wake` asked for has come."""


class StartTask(NamedTuple):
    """Run a batch of jobs: fetch their inputs, which takes so long, then run the stage for these requests.

    By the profile, the run takes `profile_seconds`. `local` of them find their inputs on the invoker. With `cold`, the
    container has to be created first, while the task holds its CPUs and slices.
    """

    task: int
    application: int
    stage: int
    requests: tuple[int, ...]
    dispatch: Dispatch
    fetch_seconds: float
    profile_seconds: float
    local: int
    container: int = NO_CONTAINER
    cold: bool = False


class StartContainer(NamedTuple):
    """Create a container of a function there; `ahead` of any task that needs it."""

    container: int
    function: int
    invoker: int
    ahead: bool


class StopContainer(NamedTuple):
    """Remove an idle container."""

    container: int
    function: int
    invoker: int


class Reply(NamedTuple):
    """The last stage of a request has ended."""

    key: int


class Wake(NamedTuple):
    """Say so when this time has come."""

    at: float


Event: TypeAlias = RequestArrived | TaskDone | ContainerReady | TimeReached
Command: TypeAlias = StartTask | StartContainer | StopContainer | Reply | Wake
