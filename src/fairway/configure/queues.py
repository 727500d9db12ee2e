"""What a decision is about and what it says: one queue in; sizes to start a batch in, a batch to start in place of one
that runs, a time to wait, or jobs to give up, out.

There is a queue for each stage of each application; a batch never mixes queues. Jobs are in order of arrival. Which
worker runs the batch is for floor 3: the first of the sizes runs for which that finds one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from fairway.configure.arrays import BoolArray
from fairway.configure.configuration import Configuration
from fairway.configure.fleet_plan import StagePlan

Kind = Literal["planned", "best-effort", "shed", "forced"]

KINDS: tuple[Kind, ...] = ("planned", "best-effort", "shed", "forced")
"""Why a batch starts: the search found its size; nothing is in time; the request is lost; nothing fitted for too long.
"""


class Running(NamedTuple):
    """A batch that has a worker to itself: its number, its jobs, and the seconds until it should have ended."""

    number: int
    jobs: int
    seconds_left: float


class Queue(NamedTuple):
    """The queue of a stage at the moment of a decision; times are seconds from now.

    `seconds_left` is the time to the deadline of the oldest job, negative if it has passed; `waited` how long that job
    has been in the queue, and `in_group` how long in this stage's group. `sources` has, for each job from the oldest
    on, the workers on which its predecessors ran; only as many as the largest batch are looked at. `rate` is the
    number of jobs per second that arrived of late, `failures` how often in a row nothing fitted. `warm` marks workers
    with an idle copy of the stage's model; None if all have one. `noise` is that of the platform as measured so far, if
    known. For a configurator with `fleet`, jobs are in order of their deadlines, `deadlines` has the time that each of
    them has left, of no more than twice the largest batch, and `plan` is that of the stage, if there is one. For one
    that preempts, `running` has, by worker, the batch that runs there, None if there is none or several.
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
    deadlines: Sequence[float] = ()
    plan: StagePlan | None = None
    running: Sequence[Running | None] = ()

    def left(self, later: float) -> list[float]:
        """The time that each job has left for this stage, if those after it take so long; else that of the oldest."""
        return [seconds - later for seconds in self.deadlines or (self.seconds_left,)]


class Choice(NamedTuple):
    """A size in which a batch of the oldest jobs may start, and why it would.

    A batch holds the CPUs and slices of the configuration, and takes the time of the jobs that it really has.
    """

    configuration: Configuration
    kind: Kind = "planned"


Value = Callable[[int, int, int], float]
"""What one of the choices, by its position, is worth on a worker that it leaves so many CPUs and slices free on."""


class Candidates(NamedTuple):
    """Start a batch in the first of these sizes that a worker has room for.

    With `value`, in the one that is worth most on the worker that it would get. With `among`, only on these workers.
    The first `skip` jobs of the queue stay where they are, and the batch is of those after them.
    """

    choices: tuple[Choice, ...]
    value: Value | None = None
    among: BoolArray | None = None
    skip: int = 0


class Wait(NamedTuple):
    """Start nothing for so many seconds, unless another job arrives: the batch is worth waiting for."""

    seconds: float


class Drop(NamedTuple):
    """Give up the requests of the first so many jobs: they cannot be in time, and would hold up others."""

    jobs: int


class Preempt(NamedTuple):
    """Start a batch in this size in place of the one that runs on this worker, whose jobs go back to their queue.

    What that has done so far is lost. `skip` is as for `Candidates`.
    """

    choice: Choice
    worker: int
    skip: int = 0


Decision = Candidates | Wait | Drop | Preempt
