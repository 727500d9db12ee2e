"""What an allocation policy decides from: the workers of each type, the jobs with their rates, who may share with whom.

Objects come in at the edge (`Problem.of`), arrays are what policies see. Everything that several policies need to know
about a problem is computed here, once: where a job can run at all, its rate on a proportional and on an isolated share
(Gavel §4.1 and §4.2), and the same problem as a policy sees it that ignores heterogeneity.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from fairway.allocate.allocation import Allocation
from fairway.allocate.arrays import BoolArray, FloatArray, IntArray, row_maxima
from fairway.allocate.demand import Demand
from fairway.allocate.packing.requests import WHOLE
from fairway.allocate.pairs import Pairs, pairs_by_position
from fairway.cluster import Cluster
from fairway.errors import InputError
from fairway.jobs import Entity, Job, Pair


@dataclass(frozen=True, eq=False)
class Problem:
    """One allocation decision: n jobs, in order of arrival, and the workers of J accelerator types.

    `scale_factors` are the workers that each job asks for; one that asks for parts of workers has less than 1 of each.

    `steps_left` and `slo_seconds` are NaN where unknown or absent. `team[i]` is the position of job i's entity in
    `entities`, -1 for none. `previous` is the decision that this one follows: policies that keep running jobs where
    they are read it, and its prices are where the search for the new ones starts. `seed` is for policies that draw.

    For policies that look further: `demand` is the work that keeps coming, `classes[i]` the class of it that job i is
    of (-1: none), `done` the steps that each job has done, and `likely` those that jobs which do not say have left in
    the median of jobs like them, NaN where that is not known; `on` and `beside` are the type that each job runs on now
    and the job that it shares with (-1: none), and `restart_seconds` what it costs to change that.
    """

    types: tuple[str, ...]
    workers: FloatArray
    ids: tuple[str, ...]
    throughputs: FloatArray
    scale_factors: FloatArray
    weights: FloatArray
    steps_left: FloatArray
    elapsed: FloatArray
    isolated_elapsed: FloatArray
    slo_seconds: FloatArray
    team: IntArray
    entities: Mapping[str, Entity] = field(default_factory=dict)
    dollars_per_hour: FloatArray | None = None
    pairs: Pairs | None = None
    previous: Allocation | None = None
    seed: int = 0
    homogeneous: bool = False
    demand: Demand | None = None
    classes: IntArray | None = None
    done: FloatArray | None = None
    likely: FloatArray | None = None
    on: IntArray | None = None
    beside: IntArray | None = None
    restart_seconds: float = 0.0

    @classmethod
    def of(
        cls,
        cluster: Cluster,
        jobs: Sequence[Job],
        pairs: Iterable[Pair] = (),
        entities: Mapping[str, Entity] | None = None,
        *,
        previous: Allocation | None = None,
        seed: int = 0,
    ) -> Problem:
        """Build the problem of these jobs on this cluster; refuses ids that are not unique or not known."""
        types = cluster.types
        ids = tuple(job.id for job in jobs)
        index = {name: position for position, name in enumerate(ids)}
        if len(index) < len(ids):
            first = next(position for position, name in enumerate(ids) if index[name] != position)
            again = ids.index(ids[first], first + 1)
            raise InputError(f"jobs[{again}].id: '{ids[first]}' is also the id of jobs[{first}]; give each job its own")
        teams = _teams(jobs, entities)
        position_of_team = {name: position for position, name in enumerate(teams)}
        return cls(
            types=types,
            workers=np.array([cluster.workers[name] for name in types], dtype=float),
            ids=ids,
            throughputs=np.array([_rates(job, cluster) for job in jobs], dtype=float).reshape(len(jobs), len(types)),
            scale_factors=np.array([job.scale_factor * job.thousandths / WHOLE for job in jobs], dtype=float),
            weights=np.array([job.weight for job in jobs], dtype=float),
            steps_left=_optional(job.steps_left for job in jobs),
            elapsed=np.array([job.elapsed for job in jobs], dtype=float),
            isolated_elapsed=np.array([job.isolated_elapsed for job in jobs], dtype=float),
            slo_seconds=_optional(job.slo_seconds for job in jobs),
            team=np.array([-1 if job.entity is None else position_of_team[job.entity] for job in jobs], dtype=np.int64),
            entities=teams,
            dollars_per_hour=np.array([cluster.prices[name] for name in types]) if cluster.prices else None,
            pairs=pairs_by_position(pairs, index, types),
            previous=previous,
            seed=seed,
        )

    @classmethod
    def of_arrays(
        cls,
        workers: Mapping[str, int],
        throughputs: npt.ArrayLike,
        *,
        scale_factors: npt.ArrayLike | None = None,
        weights: npt.ArrayLike | None = None,
        steps_left: npt.ArrayLike | None = None,
        elapsed: npt.ArrayLike | None = None,
        isolated_elapsed: npt.ArrayLike | None = None,
        slo_seconds: npt.ArrayLike | None = None,
        ids: Sequence[str] | None = None,
        prices: Mapping[str, float] | None = None,
        pairs: Pairs | None = None,
        seed: int = 0,
    ) -> Problem:
        """Build a problem of many jobs straight from arrays (rows: jobs, columns: types in the order of `workers`)."""
        rates = np.ascontiguousarray(throughputs, dtype=float)
        jobs = len(rates)
        rates = rates.reshape(jobs, len(workers))

        def column(values: npt.ArrayLike | None, default: float) -> FloatArray:
            return np.full(jobs, default) if values is None else np.asarray(values, dtype=float).reshape(jobs)

        problem = cls(
            types=tuple(workers),
            workers=np.array(list(workers.values()), dtype=float),
            ids=tuple(ids) if ids is not None else _numbers(jobs),
            throughputs=rates,
            scale_factors=column(scale_factors, 1.0),
            weights=column(weights, 1.0),
            steps_left=column(steps_left, np.nan),
            elapsed=column(elapsed, 0.0),
            isolated_elapsed=column(isolated_elapsed, 0.0),
            slo_seconds=column(slo_seconds, np.nan),
            team=np.full(jobs, -1, dtype=np.int64),
            dollars_per_hour=np.array([prices[name] for name in workers]) if prices else None,
            pairs=pairs,
            seed=seed,
        )
        if not (np.isfinite(rates).all() and (rates >= 0).all()):
            row, _ = np.argwhere(~(np.isfinite(rates) & (rates >= 0)))[0]
            raise InputError(
                f"throughputs: {rates[row].tolist()} given for job '{problem.ids[row]}', expected rates >= 0"
            )
        return problem

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def running(self) -> tuple[IntArray, IntArray]:
        """The type that each job runs on now, and the job that it shares with; -1 for none or not known."""
        none = np.full(len(self), -1, dtype=np.int64)
        return none if self.on is None else self.on, none if self.beside is None else self.beside

    @property
    def steps_done(self) -> FloatArray:
        """The steps that each job has done, 0 where that is unknown."""
        return np.zeros(len(self)) if self.done is None else self.done

    def without_previous(self) -> Problem:
        """The same problem with no decision before it; what was worked out about it is kept."""
        alone = copy(self)
        alone.__dict__["previous"] = None
        return alone

    @cached_property
    def runnable(self) -> BoolArray:
        """Where each job can run: it makes progress there and its gang fits."""
        return (self.throughputs > 0) & (self.scale_factors[:, None] <= self.workers)

    @cached_property
    def rates(self) -> FloatArray:
        """Steps per second of each job on each type, 0 where it cannot run."""
        return np.where(self.runnable, self.throughputs, 0.0)

    @cached_property
    def can_run(self) -> BoolArray:
        """Which jobs can run anywhere in this cluster; the others take part in no objective and get no time."""
        return self.fastest > 0

    @cached_property
    def fastest(self) -> FloatArray:
        """The highest rate that each job can have alone."""
        return row_maxima(self.rates)

    @cached_property
    def proportional_throughputs(self) -> FloatArray:
        """Rate on a full unit of time, spread over the types in proportion to their counts: sum_j T_ij N_j / sum_j N_j.

        It depends neither on the number of jobs nor on the scale factor. Where the problem is homogeneous, the one rate
        of the job.
        """
        if self.homogeneous:
            return self.fastest
        rates: FloatArray = np.einsum("ij,j->i", self.rates, self.workers / max(self.workers.sum(), 1.0))
        return rates

    @cached_property
    def _equal_shares(self) -> FloatArray:
        asked = np.maximum(np.count_nonzero(self.can_run) * self.scale_factors, 1.0)
        shares: FloatArray = self.workers / np.maximum(asked, self.workers.sum())[:, None]
        return shares

    @cached_property
    def isolated_shares(self) -> FloatArray:
        """An equal split: each of n jobs gets N_j / n workers of each type, at most a full unit of time."""
        return np.where(self.runnable, self._equal_shares, 0.0)

    @cached_property
    def isolated_throughputs(self) -> FloatArray:
        """The rate of each job on its isolated share; where the problem is homogeneous, at its one rate throughout."""
        rates: FloatArray
        if self.homogeneous:
            rates = self.fastest * self._equal_shares.sum(axis=1)
        else:
            rates = np.einsum("ij,ij->i", self.rates, self.isolated_shares)
        return rates

    def in_whole_numbers(self) -> tuple[IntArray, IntArray]:
        """What each job asks for and what there is of each type; in thousandths where jobs ask for parts."""
        unit = 1 if (self.scale_factors == np.floor(self.scale_factors)).all() else WHOLE
        return np.rint(self.scale_factors * unit).astype(np.int64), (self.workers * unit).astype(np.int64)

    @property
    def dollars_or_one(self) -> FloatArray:
        """The price of each type, 1 where nothing has a price."""
        return np.ones_like(self.workers) if self.dollars_per_hour is None else self.dollars_per_hour

    @cached_property
    def shareable(self) -> Pairs | None:
        """The pairs that can really share: equal gangs, both runnable; None if there are none."""
        if self.pairs is None:
            return None
        first, second = self.pairs.first, self.pairs.second
        together = self.pairs.together & self.runnable[first] & self.runnable[second]
        together &= (self.scale_factors[first] == self.scale_factors[second])[:, None]
        if not together.any():
            return None
        usable = Pairs(first, second, np.where(together[:, :, None], self.pairs.rates, 0.0))
        return usable.where(np.logical_or.reduce(together, axis=1))

    def agnostic(self, reference: str | None = None) -> Problem:
        """The problem as a policy sees it that ignores heterogeneity: one rate per job, wherever it can run.

        That rate is the mean over the workers that can run the job, so that no single type stands for the others.
        With `reference`, it is the rate on that type, as in the original implementation.
        """
        if reference is None:
            usable = np.where(self.runnable, self.workers, 0.0)
            mean = (usable * self.throughputs).sum(axis=1) / np.maximum(usable.sum(axis=1), 1.0)
        elif reference in self.types:
            mean = self.throughputs[:, self.types.index(reference)]
            unknown = (mean <= 0) & self.can_run
            if unknown.any():
                raise InputError(
                    f"reference={reference}: job '{self.ids[int(unknown.argmax())]}' does not run on it; choose another"
                )
        else:
            raise InputError(f"reference={reference}: no such accelerator type; known: {', '.join(self.types)}")
        return replace(
            self,
            throughputs=np.where(self.runnable, mean[:, None], 0.0),
            pairs=self._agnostic_pairs(mean),
            homogeneous=True,
        )

    def _agnostic_pairs(self, mean: FloatArray) -> Pairs | None:
        """Each member keeps, on every type, the mean fraction of its own rate that sharing leaves it."""
        pairs = self.shareable
        if pairs is None:
            return None
        members = np.stack([pairs.first, pairs.second], axis=1)
        together = pairs.together
        workers = np.where(together, self.workers, 0.0)[:, :, None]
        alone = self.throughputs[members].transpose(0, 2, 1)
        kept = np.divide(pairs.rates, alone, out=np.zeros_like(alone), where=together[:, :, None])
        fraction = (kept * workers).sum(axis=1) / workers.sum(axis=1)
        rates = np.where(together[:, :, None], (fraction * mean[members])[:, None, :], 0.0)
        return Pairs(pairs.first, pairs.second, rates)

    def needs_steps(self, policy: str) -> FloatArray:
        """Steps left of every job; refuses a problem where a job does not say."""
        unknown = np.isnan(self.steps_left)
        if unknown.any():
            name = self.ids[int(unknown.argmax())]
            raise InputError(f"jobs: '{name}' has no steps_left, which policy '{policy}' needs; add it to every job")
        return self.steps_left


@lru_cache(maxsize=4)
def _numbers(count: int) -> tuple[str, ...]:
    return tuple(map(str, range(count)))


def _rates(job: Job, cluster: Cluster) -> list[float]:
    spread = job.spread_throughputs or {}
    return [
        job.throughputs.get(name, 0.0)
        if cluster.consolidates(name, job.scale_factor)
        else spread.get(name, job.throughputs.get(name, 0.0))
        for name in cluster.types
    ]


def _optional(values: Iterable[float | None]) -> FloatArray:
    return np.array([np.nan if value is None else value for value in values], dtype=float)


def _teams(jobs: Sequence[Job], entities: Mapping[str, Entity] | None) -> dict[str, Entity]:
    """The entities that were given; without any, one of weight 1 for each name that a job mentions."""
    if not entities:
        return {job.entity: Entity() for job in jobs if job.entity is not None}
    for position, job in enumerate(jobs):
        if job.entity is not None and job.entity not in entities:
            raise InputError(f"jobs[{position}].entity: '{job.entity}' is not one of the entities; add it to them")
    for name, entity in entities.items():
        seen, parent = {name}, entity.parent
        while parent is not None:
            if parent not in entities:
                raise InputError(f"entities.{name}.parent: '{parent}' is not one of the entities; add it to them")
            if parent in seen:
                raise InputError(f"entities.{name}.parent: '{parent}' is its own ancestor; entities must form a tree")
            seen.add(parent)
            parent = entities[parent].parent
    return dict(entities)
