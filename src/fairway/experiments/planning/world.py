"""Where a plan begins: the present state of a live cluster, or a trace on a cluster that is empty at first.

A world can be had with a change, and simulated forward under a seed, on the engine that the live system runs. Of the
present state, the first seed (0) takes jobs to be as long as they are known or assumed to be, every other one draws
their lengths (`sim.lengths`); of a trace, the seed is that of the jobs that are generated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from fairway.allocate.registry import policy_of
from fairway.cluster import Cluster
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.messages import Event, JobResumed, LeaseResumed, Refuse, WorkersJoined, WorkersLeft
from fairway.engine.training.options import EngineOptions
from fairway.errors import InputError
from fairway.experiments.planning.change import AS_IT_IS, Change
from fairway.experiments.planning.outlook import Outlook, outlook_of
from fairway.experiments.planning.present import Present
from fairway.experiments.planning.workers import with_workers, without_leases
from fairway.jobs import Entity, Job
from fairway.options import nearest
from fairway.sim.lengths import Lengths
from fairway.sim.replay import table_named
from fairway.sim.submissions import Progress, Submission, TrainingOptions
from fairway.sim.training import TrainingRun
from fairway.sim.workload import Workload

_ROUNDS_BETWEEN_LOOKS = 50
_MOST_ROUNDS = 1_000_000


class World(Protocol):
    """What a plan begins with."""

    @property
    def files(self) -> tuple[str, ...]:
        """The files that a run of it reads."""
        ...

    @property
    def cluster(self) -> Cluster:
        """The workers that are there, without those that have left."""
        ...

    def changed(self, change: Change, prices: Mapping[str, float]) -> World:
        """The same with a change; `prices` are dollars per worker and hour for types that it adds."""
        ...

    def run(self, seed: int, progress: Progress | None = None) -> Outlook:
        """Simulate it forward, until no job is left that can still run."""
        ...


@dataclass(frozen=True, slots=True)
class LiveQueue:
    """The jobs of a live cluster, as they stand."""

    present: Present

    @property
    def files(self) -> tuple[str, ...]:
        """None: the state is all there is."""
        return ()

    @property
    def cluster(self) -> Cluster:
        """What is there, less what has left, with what has joined."""
        start = self.present.start
        counts = dict(start.cluster.workers)
        for _, event in start.events:
            if isinstance(event, WorkersJoined):
                counts[event.accelerator] += event.count
            elif isinstance(event, WorkersLeft):
                counts[event.accelerator] -= len(event.workers)
        return Cluster(counts, start.cluster.prices)

    def changed(self, change: Change, prices: Mapping[str, float]) -> LiveQueue:
        """With the change made at this moment: jobs on workers that are removed save, and wait for others."""
        start = self.present.start
        moment = start.events[0][0] if start.events else 0.0
        events = [event for _, event in start.events]
        new = {name: count for name, count in change.add.items() if name not in start.cluster.workers}
        cluster = with_workers(start.cluster, new, prices)
        joined: list[Event] = [WorkersJoined(name, count) for name, count in change.add.items() if name not in new]
        left = {name: self._chosen(name, count) for name, count in change.remove.items()}
        if left:
            events = without_leases(events, left)
        joined += [WorkersLeft(name, numbers) for name, numbers in left.items()]
        # Workers come and go before all jobs, and jobs that can run nowhere are refused as they come.
        first = next((at for at, event in enumerate(events) if isinstance(event, JobResumed)), len(events))
        events = [*events[:first], *joined, *(self._job(event, change, new) for event in events[first:])]
        entities = _weighed(start.options.entities, change, self._names())
        return LiveQueue(
            replace(
                self.present,
                start=replace(
                    start,
                    cluster=cluster,
                    policy=_policy(change, start.policy),
                    options=replace(start.options, entities=entities),
                    events=tuple((moment, event) for event in events),
                ),
            )
        )

    def run(self, seed: int, progress: Progress | None = None) -> Outlook:
        """Simulate it forward."""
        start = self.present.start
        table = table_named(start.profiles) if start.asked().space_sharing else None
        engine, said = start.engine(table)
        lengths = Lengths(engine)
        left = lengths.left(np.random.default_rng(seed) if seed else None)
        if seed:
            engine.handle(engine.now, lengths.news(left))
        options = TrainingOptions(engine.options.round_seconds, engine.options.restart_seconds)
        run = TrainingRun(engine, [], engine.cluster, options, table=table, steps_left=left, progress=progress)
        begin = run.loop.now
        _to_the_end(run)
        refused = [command.job for command in said if isinstance(command, Refuse)]
        return outlook_of(run.recorder.jobs, begin, self.present.time_scale, refused)

    def _chosen(self, name: str, count: int) -> tuple[int, ...]:
        """The workers of a type to take away: those that are free first, then those with the highest numbers."""
        cluster, events = self.present.start.cluster, [event for _, event in self.present.start.events]
        there = self.cluster.workers.get(name, 0)
        if count > there:
            known = ", ".join(f"{each}={number}" for each, number in self.cluster.workers.items())
            raise InputError(f"remove {name}={count}: there are {there}; the cluster has {known}")
        joined = sum(event.count for event in events if isinstance(event, WorkersJoined) and event.accelerator == name)
        gone = {
            worker
            for event in events
            if isinstance(event, WorkersLeft) and event.accelerator == name
            for worker in event.workers
        }
        held = {
            worker
            for event in events
            if isinstance(event, LeaseResumed) and event.accelerator == name
            for worker in event.workers
        }
        present = [number for number in range(cluster.workers[name] + joined) if number not in gone]
        return tuple(sorted(present, key=lambda number: (number in held, -number))[:count])

    def _job(self, event: Event, change: Change, new: Mapping[str, int]) -> Event:
        if not isinstance(event, JobResumed):
            return event
        job, deadline = event.job, event.deadline
        if new:
            job = replace(job, throughputs={**job.throughputs, **self.present.rates_on(job.id, new)})
        if change.slo_scale != 1.0 and deadline is not None:
            deadline = event.arrived + change.slo_scale * (deadline - event.arrived)
        return replace(event, job=_reweighed(job, change), deadline=deadline)

    def _names(self) -> set[str]:
        """What a weight can be given to, beside the declared teams: jobs, and teams that only jobs name."""
        jobs = [event.job for _, event in self.present.start.events if isinstance(event, JobResumed)]
        return {job.id for job in jobs} | {job.entity for job in jobs if job.entity is not None}


@dataclass(frozen=True, slots=True)
class TraceWorld:
    """The jobs of a trace, or of the generator, on a cluster that is empty at first."""

    workload: Workload
    on: Cluster
    policy: str
    options: TrainingOptions
    weights: Mapping[str, float] | None = None
    slo_scale: float = 1.0

    @property
    def files(self) -> tuple[str, ...]:
        """The trace, if there is one."""
        return () if self.workload.trace is None else (self.workload.trace,)

    @property
    def cluster(self) -> Cluster:
        """The cluster."""
        return self.on

    def changed(self, change: Change, prices: Mapping[str, float]) -> TraceWorld:
        """With the change made before the first job comes."""
        counts = dict(self.on.workers)
        for name, count in change.remove.items():
            if count > counts.get(name, 0):
                known = ", ".join(f"{each}={number}" for each, number in counts.items())
                raise InputError(f"remove {name}={count}: there are {counts.get(name, 0)}; the cluster has {known}")
            counts[name] -= count
        fewer = replace(self.on, workers=counts, machines=(), machine_of={})
        entities = dict(self.options.entities)
        for name in change.weights:
            if name not in entities:
                raise InputError(f"weight: '{name}' is no team here{nearest(name, entities)}; declare it by --team")
        return replace(
            self,
            on=with_workers(fewer, change.add, prices),
            policy=_policy(change, self.policy),
            options=replace(self.options, entities=_weighed(entities, change, set(entities))),
            slo_scale=self.slo_scale * change.slo_scale,
        )

    def run(self, seed: int, progress: Progress | None = None) -> Outlook:
        """Simulate it."""
        workload, options = self.workload, self.options
        if workload.generator is not None:
            workload = replace(workload, generator=replace(workload.generator, seed=seed))
        table = workload.table()
        engine = TrainingEngine(
            self.on,
            policy_of(self.policy),
            EngineOptions(options.round_seconds, options.restart_seconds, options.entities, seed),
            partners=table,
        )
        submissions = map(self._scaled, workload.submissions(self.on))
        run = TrainingRun(engine, submissions, self.on, options, table=table, progress=progress)
        _to_the_end(run)
        return outlook_of(run.recorder.jobs, 0.0, 1.0)

    def _scaled(self, submission: Submission) -> Submission:
        if submission.deadline is None or self.slo_scale == 1.0:
            return submission
        due = submission.arrival + self.slo_scale * (submission.deadline - submission.arrival)
        return replace(submission, deadline=due)


def _to_the_end(run: TrainingRun) -> None:
    """Simulate until all jobs have ended, or those that are left wait for workers that will not come."""
    loop, engine = run.loop, run.engine
    for _ in range(_MOST_ROUNDS // _ROUNDS_BETWEEN_LOOKS):
        before = loop.events
        loop.run(until=loop.now + _ROUNDS_BETWEEN_LOOKS * engine.options.round_seconds)
        if run.jobs_come or any(one.ends > loop.now for one in engine.reservations.known.values()):
            continue
        if loop.events == before or not (engine.jobs.on >= 0).any():
            return


def _policy(change: Change, present: str) -> str:
    if change.policy is None:
        return present
    policy_of(change.policy)
    return change.policy


def _weighed(entities: Mapping[str, Entity], change: Change, known: set[str]) -> dict[str, Entity]:
    """The teams with their new weights; a team that only jobs have named is declared by its weight."""
    weighed = dict(entities)
    for name, weight in change.weights.items():
        if name in weighed:
            weighed[name] = replace(weighed[name], weight=weight)
        elif name not in known:
            names = known | set(entities)
            raise InputError(f"weight: '{name}' is no team and no job here{nearest(name, names)}")
    return weighed


def _reweighed(job: Job, change: Change) -> Job:
    return replace(job, weight=change.weights[job.id]) if job.id in change.weights else job


def changed(world: World, change: Change, prices: Mapping[str, float]) -> World:
    """A world with a change, or itself where nothing changes."""
    return world if change == AS_IT_IS else world.changed(change, prices)


def counted(cluster: Cluster) -> Sequence[str]:
    """The types of a cluster that has any of them."""
    return [name for name, count in cluster.workers.items() if count]
