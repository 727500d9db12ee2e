"""What a decision is about and what it says: one queue in; start a task, wait, or nothing fits out.

There is a queue for each stage of each application; a batch never mixes queues. Jobs are in order of arrival.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from fairway.configure.arrays import BoolArray
from fairway.configure.configuration import Configuration

Kind = Literal["planned", "best-effort", "shed", "forced"]


class Queue(NamedTuple):
    """The queue of a stage at the moment of a decision; times are seconds from now.

    `seconds_left` is the time to the deadline of the oldest job, negative if it has passed; `waited` how long that job
    has been in the queue, and `in_group` how long in this stage's group. `sources` has, for each job from the oldest
    on, the invokers on which its predecessors ran; only as many as the largest batch are looked at. `rate` is the
    number of jobs per second that arrived of late, `failures` how often in a row nothing fitted. `warm` marks invokers
    with an idle container of the stage; None if all have one. `noise` is that of the platform as measured so far, if
    known.
    """

    stage: int
    length: int
    seconds_left: float
    sources: Sequence[tuple[int, ...]] = ()
    waited: float = 0.0
    in_group: float = 0.0
    rate: float = 0.0
    failures: int = 0
    warm: BoolArray | None = None
    noise: float | None = None


class Dispatch(NamedTuple):
    """Start a task of the oldest jobs there.

    A task holds the CPUs and slices of the configuration, and takes the time of the jobs that it really has. `kind`
    says why: the search found it; nothing is in time; the request is lost; or nothing fitted for too long.
    """

    configuration: Configuration
    jobs: int
    invoker: int
    kind: Kind = "planned"


class Wait(NamedTuple):
    """Start nothing for so many seconds, unless another job arrives: the batch is worth waiting for."""

    seconds: float


class NoFit(NamedTuple):
    """No invoker has room for any of these now."""

    tried: tuple[Configuration, ...] = ()


Decision = Dispatch | Wait | NoFit
