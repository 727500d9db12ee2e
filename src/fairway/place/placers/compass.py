"""Compass: plan where each task would finish first, models and loads considered; adjust on the way (arXiv 2402.17652).

The whole of the paper's scheduler: job planning (`planner`), dynamic adjustment (`adjust`) and, on each worker, memory
that looks ahead (`memory`). Four rules are ours: tasks of requests with less work left go first, one that waits for its
models lets others pass, a model that is fetched ahead may replace one that is needed later, and models have homes
(`homes`), which they leave only for a higher price. Flags take parts of it away, for ablations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from fairway.place.adjust import adjusted_worker, first_to_end
from fairway.place.batch import Batch, Room
from fairway.place.memory import MemoryPolicy
from fairway.place.placer import COMPAT_RULES, WorkerRules
from fairway.place.plan import Draws, Plan, Request
from fairway.place.planner import plan_request
from fairway.place.state import View


@dataclass(frozen=True, slots=True)
class Compass:
    """Plan each task where it would finish first, and move it if too much waits there when its turn comes.

    A task moves if the load of its worker exceeds `theta` times its run time. `eviction_penalty` is what a fetch costs
    on top, as a part of itself, where other models have to go, `home_penalty` where these are at home. `patience` is
    how much longer a task waits for others, in parts of the work that is left of its request. With `count_running`, the
    running task counts as load in full until it ends, as in the authors' system. `as_published` takes away what is
    ours, as a `patience` of 0, `no_overtaking`, `no_replacing` and `no_homes` do one by one. `centralised` has all
    requests planned in one place from exact state. `compat` is the authors' simulator, with its mistakes; there nothing
    moves, unless `adjust` says so.
    """

    name: ClassVar[str] = "compass"
    theta: float = 1.5
    eviction_penalty: float = 1.0
    home_penalty: float = 8.0
    patience: float = 2.0
    no_adjust: bool = False
    as_published: bool = False
    no_prefetch: bool = False
    no_replacing: bool = False
    no_homes: bool = False
    no_overtaking: bool = False
    no_batching: bool = False
    count_running: bool = False
    fifo_eviction: bool = False
    ignore_load: bool = False
    ignore_cache: bool = False
    centralised: bool = False
    compat: bool = False
    adjust: bool = False

    @property
    def rules(self) -> WorkerRules:
        """Memory that looks ahead and prefetches, unless that was taken away."""
        if self.compat:
            return replace(COMPAT_RULES, centralised=self.centralised)
        taken_away = (self.no_replacing, self.no_overtaking, self.no_homes)
        replaces, overtakes, settles = (not (self.as_published or no) for no in taken_away)
        memory = (
            MemoryPolicy("fifo", 0, 0)
            if self.fifo_eviction
            else MemoryPolicy.looking_ahead(prefetches=not self.no_prefetch, replaces=replaces)
        )
        return WorkerRules(
            memory,
            running_load="counts" if self.count_running else "decays",
            centralised=self.centralised,
            batches=not self.no_batching,
            overtakes=overtakes,
            patience=0.0 if self.as_published else self.patience,
            settles=settles,
        )

    def plan(self, request: Request, view: View, now: float, draws: Draws) -> Plan:
        """Each task, by decreasing rank, where it would finish first."""
        return plan_request(
            request,
            view,
            now,
            0.0 if self.compat else draws.random(),
            eviction_penalty=self.eviction_penalty,
            home_penalty=self.home_penalty,
            counts_load=not self.ignore_load,
            counts_cache=not self.ignore_cache,
            compat=self.compat,
        )

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
        """The planned worker or, if too much waits there, the one where the task would end first."""
        return adjusted_worker(
            request,
            stage,
            planned,
            view,
            now,
            draws,
            theta=None if self.no_adjust else self.theta,
            gathered=gathered,
            eviction_penalty=self.eviction_penalty,
            home_penalty=self.home_penalty,
            counts_cache=not self.ignore_cache,
            compat=self.compat,
        )

    def place_batch(self, batch: Batch, room: Room, view: View, now: float, draws: Draws) -> int:
        """Of the workers with room, the one on which the batch would end first, models and loads considered."""
        return first_to_end(
            batch,
            room,
            view,
            now,
            draws,
            eviction_penalty=self.eviction_penalty,
            home_penalty=self.home_penalty,
            counts_load=not self.ignore_load,
            counts_cache=not self.ignore_cache,
        )
