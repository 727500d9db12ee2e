"""Takes jobs in: says whether a job can run on this cluster at all, and writes its row of the job table.

Rates are those of a gang on one node, where it fits on one, and otherwise those of a gang that spans nodes. A job is
described again, as it stands, for another engine that is to go on with it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from fairway.allocate.arrays import FloatArray
from fairway.allocate.packing.packer import Rule
from fairway.allocate.packing.requests import WHOLE
from fairway.cluster import Cluster, resources_in_words
from fairway.engine.training.arrivals import Arrivals
from fairway.engine.training.job_table import NONE, JobTable
from fairway.engine.training.messages import JobArrived, JobResumed
from fairway.engine.training.pair_rates import PairRates
from fairway.engine.training.worker_pool import WorkerPool
from fairway.jobs import Entity, Job


@dataclass(slots=True)
class Admission:
    """The way of a job into the table and out of it. `entities` are the teams, those that only jobs named included."""

    cluster: Cluster
    jobs: JobTable
    workers: WorkerPool
    pair_rates: PairRates
    arrivals: Arrivals
    entities: dict[str, Entity]
    packing: Rule
    described: dict[str, Job] = field(default_factory=dict)
    _fits: dict[tuple[int, float, float, int], tuple[tuple[bool, bool], ...]] = field(default_factory=dict)

    def add(self, event: JobArrived | JobResumed, now: float) -> str | None:
        """Append the row of a job that waits; the reason, and nothing is changed, if the job can never run."""
        job, jobs = event.job, self.jobs
        rates, spread = self._rates_of(job)
        if not ((rates > 0) & (self.workers.present >= job.scale_factor)).any():
            return self._why_not(job)
        jobs.add(
            job.id,
            time=event.arrived if isinstance(event, JobResumed) else now,
            rates=rates,
            spread=spread,
            scale=job.scale_factor,
            weight=job.weight,
            steps=math.inf if job.steps_left is None else job.steps_left,
            deadline=math.nan if event.deadline is None else event.deadline,
            team=self._team(job.entity),
            kind=self.kind_of(job, job.scale_factor),
            group=self.arrivals.class_of(job.job_type if job.part == 1 else None, job.scale_factor, rates),
            fixed=not job.preemptible,
            bound=not job.resumes,
            known=np.array([name not in job.guessed for name in self.cluster.types], dtype=float)
            if job.guessed
            else 1.0,
            cpus=job.cpus,
            memory=job.memory_bytes,
            priority=job.priority,
            preempts=job.preempts,
            part=WHOLE if self.packing == "whole" else job.thousandths,
            nodes=job.nodes,
        )
        jobs.pooled[-1] = rates @ self.workers.present
        self.described[job.id] = job
        if isinstance(event, JobArrived):
            self.arrivals.learn(int(jobs.group[-1]), float(jobs.left[-1]), now)
            self.learn_length(len(jobs) - 1, float(jobs.left[-1]))
        else:
            types = self.cluster.types
            jobs.since[-1], jobs.isolated[-1] = now, event.isolated_seconds
            jobs.done[-1] = event.steps_done
            jobs.shares[-1] = [event.shares.get(name, 0.0) for name in types]
            jobs.owed[-1] = [event.owed.get(name, 0.0) for name in types]
        return None

    def learn_length(self, position: int, steps: float) -> None:
        """A job is so many steps long, as it says or as it turned out to be."""
        job = self.described[self.jobs.ids[position]]
        self.arrivals.lengths.learn(job.job_type, job.entity, steps / float(self.jobs.rates[position].max()))

    def likely_steps(self, quantile: FloatArray | float = 0.5) -> FloatArray | None:
        """How many steps jobs have left that do not say so, NaN for the others and while too few jobs were seen."""
        jobs = self.jobs
        unknown = np.flatnonzero(np.isinf(jobs.left))
        if not len(unknown):
            return None
        likely, fastest = np.full(len(jobs), np.nan), jobs.rates[unknown].max(axis=1)
        described = [self.described[jobs.ids[position]] for position in unknown.tolist()]
        groups = [(job.job_type, job.entity) for job in described]
        seconds = self.arrivals.lengths.left(groups, jobs.done[unknown] / fastest, quantile)
        if seconds is not None:
            likely[unknown] = seconds * fastest
        return likely

    def remove(self, position: int) -> None:
        """Take a job out of the table."""
        del self.described[self.jobs.ids[position]]
        self.jobs.remove(position)

    def resumed(self, job: str) -> JobResumed:
        """The event by which another engine takes a job in as it stands here, waiting."""
        jobs, position = self.jobs, self.jobs.position(job)
        left, deadline = float(jobs.left[position]), float(jobs.deadline[position])
        return JobResumed(
            replace(
                self.described[job],
                throughputs=self._by_type(jobs.rates[position]),
                spread_throughputs=self._by_type(jobs.spread[position]),
                steps_left=None if math.isinf(left) else left,
                guessed=tuple(name for name, known in self._by_type(jobs.known[position]).items() if not known),
                resumes=not jobs.bound[position],
            ),
            float(jobs.arrival[position]),
            None if math.isnan(deadline) else deadline,
            float(jobs.isolated[position]),
            self._by_type(jobs.shares[position]),
            self._by_type(jobs.owed[position]),
            float(jobs.done[position]),
        )

    def kind_of(self, job: Job, scale_factor: int) -> int:
        """The number of the kind by which a job of this size shares with others.

        A job that is not stopped does not, nor one that asks for CPUs or memory, since policies do not know which of
        them fit beside each other, nor one that has parts of its workers: the rest is for others anyway.
        """
        shares = job.preemptible and not (job.cpus or job.memory_bytes) and job.part == 1
        return self.pair_rates.kind(job.job_type if shares else None, scale_factor)

    def _team(self, entity: str | None) -> int:
        if entity is None:
            return NONE
        if entity not in self.entities:
            self.entities[entity] = Entity()
        return list(self.entities).index(entity)

    def _rates_of(self, job: Job) -> tuple[FloatArray, FloatArray]:
        """A job's rates by type, consolidated (spread where it fits on no node) and spread; 0 where it cannot run."""
        types = self.cluster.types
        spread = job.spread_throughputs or job.throughputs
        rates, apart = np.zeros(len(types)), np.zeros(len(types))
        for column, (name, (fits, together)) in enumerate(zip(types, self._where(job), strict=True)):
            apart[column] = spread.get(name, job.throughputs.get(name, 0.0))
            if fits:
                rates[column] = job.throughputs.get(name, 0.0) if together else apart[column]
            else:
                apart[column] = 0.0
        return rates, apart

    def _where(self, job: Job) -> tuple[tuple[bool, bool], ...]:
        """Whether what the job asks for fits on each type, and on one node of it; the same for all that ask alike."""
        asks = (job.scale_factor, job.cpus, job.memory_bytes, job.nodes)
        found = self._fits.get(asks)
        if found is None:
            cluster, size = self.cluster, job.scale_factor
            found = self._fits[asks] = tuple(
                (
                    cluster.has_room(name, size, job.cpus, job.memory_bytes)
                    and cluster.holds_within(name, size, job.nodes),
                    cluster.consolidates(name, size),
                )
                for name in cluster.types
            )
        return found

    def _why_not(self, job: Job) -> str:
        able = [column for column, name in enumerate(self.cluster.types) if job.throughputs.get(name, 0.0) > 0]
        if not able:
            return f"job '{job.id}' has no rate above 0 on any accelerator type of this cluster"
        names = [self.cluster.types[column] for column in able]
        if not any(self.cluster.has_room(name, job.scale_factor, job.cpus, job.memory_bytes) for name in names):
            asked = resources_in_words(job.cpus, job.memory_bytes)
            has = self.cluster.largest_machine(names)
            return f"job '{job.id}' asks for {asked}, but the largest machine of this cluster has {has}"
        if not any(self.cluster.holds_within(name, job.scale_factor, job.nodes) for name in names):
            most = max(self.cluster.largest_node(name) for name in names)
            return f"job '{job.id}' asks for {job.scale_factor} workers of {job.nodes} nodes, which have {most} each"
        most = max(int(self.workers.present[column]) for column in able)
        return f"job '{job.id}' asks for {job.scale_factor} workers of one type, but there are at most {most}"

    def _by_type(self, values: FloatArray) -> Mapping[str, float]:
        return dict(zip(self.cluster.types, values.tolist(), strict=True))
