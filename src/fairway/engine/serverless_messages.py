"""What the serverless engine is told and what it asks for.

The time comes with the events, as the driver hands them over. Tasks and containers go by numbers that are never used
again. Events and commands are tuples: a simulated hour has millions of them.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

from fairway.configure.queues import Dispatch
from fairway.engine.serving_messages import Cancelled, Refuse

NO_CONTAINER = -1
"""In place of a container's number, where all functions are taken to be warm."""


class RequestArrived(NamedTuple):
    """A client asks for an application; `key` tells the request from all others. Its answer is due at `deadline`.

    After `expires` the client does not wait any more.
    """

    key: int
    application: int
    deadline: float
    expires: float = math.inf


class TaskDone(NamedTuple):
    """The task that `StartTask` asked for has ended, after it ran for so many seconds (without fetch or cold start).

    `failed` has those of its requests for which there is no result, and why.
    """

    task: int
    run_seconds: float
    failed: tuple[tuple[int, str], ...] = ()


class ContainerReady(NamedTuple):
    """The container that `StartContainer` asked for can take tasks."""

    container: int


class ContainerFailed(NamedTuple):
    """The container that `StartContainer` asked for could not be created, and will not be."""

    container: int
    reason: str


class InvokerLost(NamedTuple):
    """An invoker is gone, with its tasks, its containers, and all that tasks have put out there."""

    invoker: int


class InvokerJoined(NamedTuple):
    """An invoker that was gone is back: idle, with an idle container of each of these functions."""

    invoker: int
    functions: tuple[int, ...] = ()


class TimeReached(NamedTuple):
    """A time that `Wake` asked for has come."""


class StartTask(NamedTuple):
    """Run a batch of jobs: fetch their inputs, which takes so long, then run the stage for these requests.

    By the profile, the run takes `profile_seconds`. `local` of them find their inputs on the invoker. With `cold`, the
    container has to be created first, while the task holds its CPUs and slices. Each of the jobs has `waited` so long
    in its queue.
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
    waited: tuple[float, ...] = ()


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


class Restarted(NamedTuple):
    """A request begins again with its first stages: what was made for it so far, or is being made, is of no use."""

    key: int


class Wake(NamedTuple):
    """Say so when this time has come."""

    at: float


Event: TypeAlias = (
    RequestArrived | Cancelled | TaskDone | ContainerReady | ContainerFailed | InvokerLost | InvokerJoined | TimeReached
)
Command: TypeAlias = StartTask | StartContainer | StopContainer | Reply | Refuse | Restarted | Wake
