"""What a placer is: parameters, a name, its verbs, and what it asks of the workers that it runs on.

`place_batch` is asked for each batch whose size floor 2 has decided, by the engine that plans. A placer that can place
requests ahead has two more verbs, for schedulers without a configurator: `plan` is asked once for each request, at the
worker that receives it; `next_worker` at every hop, by the worker that has finished a task, for each task that takes
its output. All of them see the cluster through a `View`, and depend on nothing else: no clock, no I/O, no memory of
earlier requests, no chance but the passed draws.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Protocol, runtime_checkable

from fairway.place.batch import Batch, Room
from fairway.place.memory import MemoryPolicy
from fairway.place.plan import Draws, Plan, Request
from fairway.place.state import RunningLoad, View


@dataclass(frozen=True, slots=True)
class WorkerRules:
    """How workers have to behave under a placer.

    `gathers_joins`: a task that takes several inputs has them gathered at its planned worker, which then asks
    `next_worker` once more, with `gathered`, and sends them on together. `centralised`: one place that sees every row
    exactly plans all requests, at the price of one more hop. `running_load`: how a running task counts as load.
    `keeps_plans`: a task goes to its planned worker as long as that is there, so that `next_worker` need not be asked.
    `batches`: tasks that wait for the same stage may run together, where floor 2 finds that it pays. `overtakes`: while
    a task waits for its models, one whose models are there may run, if that makes both of them end sooner in sum.
    `patience`: a task lets others pass that come within so many times its rank, if their own rank is less by as much.
    `settles`: models have homes (`homes`), which all workers work out beforehand; if it `separates`, such that short
    work does not wait behind long work (`kinds_of_worker`). `plans_stages`: floor 2 plans a batch
    for each stage (`stage_plan`), for which a request may wait `waits` times as long as it takes; workers then load the
    models that are at home when they start, and show each other what waits. `by_latest_start`: of the tasks that wait,
    the one that has to start soonest is next. `late`: one that cannot be in time runs `last`, is not run (`refuse`), or
    has its turn as others (`serve`). `mixes`: stages of several workflows may share a batch, if they are alike.
    A batch that is not full waits for more, `lingers` times as long as it would waste by starting at once.
    `moves`: what waits goes elsewhere if it would be done sooner there (`MovingPlacer`); if it `fetches`, a worker that
    is about to be free also asks for it; if it `asks`, a worker whose news of others is old has them tell their rows
    before it moves anything.
    """

    memory: MemoryPolicy = field(default_factory=MemoryPolicy)
    running_load: RunningLoad = "decays"
    gathers_joins: bool = False
    centralised: bool = False
    keeps_plans: bool = False
    batches: bool = True
    overtakes: bool = False
    patience: float = 0.0
    settles: bool = False
    separates: bool = False
    plans_stages: bool = False
    waits: float = 0.5
    by_latest_start: bool = False
    late: str = "serve"
    mixes: bool = False
    moves: bool = False
    fetches: bool = False
    lingers: float = 0.0
    asks: bool = False


COPIES_RULES = WorkerRules(memory=MemoryPolicy("least-recent", 0, 0))
"""How workers behave under the placers of serverless platforms: of idle models, the longest unused goes first."""

COMPAT_RULES = WorkerRules(memory=MemoryPolicy("fifo", 0, 0), running_load="ignored", batches=False)
"""How workers behave in the authors' simulator."""


@runtime_checkable
class BatchPlacer(Protocol):
    """Chooses the workers of batches."""

    name: ClassVar[str]

    @property
    def rules(self) -> WorkerRules:
        """What it asks of the workers."""
        ...

    def place_batch(self, batch: Batch, room: Room, view: View, now: float, draws: Draws) -> int:
        """The worker that runs a batch now, `NOWHERE` if none has room for it."""
        ...


@runtime_checkable
class Placer(BatchPlacer, Protocol):
    """Places the tasks of requests on workers, too; `check_scheduler` tests any class that claims to be one."""

    def plan(self, request: Request, view: View, now: float, draws: Draws) -> Plan:
        """A worker for each task of a request; raises `NoPlaceError` if there is none for one of them."""
        ...

    def next_worker(
        self,
        request: Request,
        stage: int,
        planned: int,
        view: View,
        now: float,
        draws: Draws,
        *,
        gathered: bool = False,
    ) -> int:
        """The worker that gets a task whose input is at `view.me`; `planned` is the one that the plan names.

        `gathered` says that all inputs of a task that takes several are there. Without it, the answer for such a task
        must be the same wherever it is asked.
        """
        ...


@runtime_checkable
class MovingPlacer(Placer, Protocol):
    """Says where tasks go that wait already, too; asked where its rules say that tasks move."""

    def place_again(self, request: Request, stage: int, together: int, view: View, now: float, draws: Draws) -> int:
        """The worker for so many tasks of a stage that wait at `view.me`, whose own row leaves them out."""
        ...
