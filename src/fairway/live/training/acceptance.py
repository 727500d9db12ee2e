"""Finds out whether a policy can decide about a job at all, before the job gets near the engine that has all the jobs.

Some policies have to know how long a job is, or need it to run on a certain accelerator type. A policy that meets a job
which it cannot decide about refuses the whole decision, and would do so again in every round. So each kind of job is
tried once on an engine of its own.
"""

from __future__ import annotations

from threading import Lock

from fairway.allocate.policy import Policy
from fairway.cluster import Cluster
from fairway.engine.training.engine import EngineOptions, TrainingEngine
from fairway.engine.training.pair_rates import Partners
from fairway.engine.training.what_if import refusal
from fairway.errors import InputError
from fairway.jobs import Job

_MOST_KINDS = 10_000


class Acceptance:
    """What became of each kind of job that was tried. Any thread may ask."""

    def __init__(self, cluster: Cluster, policy: Policy, options: EngineOptions, partners: Partners | None) -> None:
        self._cluster, self._policy, self._options, self._partners = cluster, policy, options, partners
        self._tried: dict[object, str | None] = {}
        self._lock = Lock()

    def check(self, job: Job, deadline: float | None) -> None:
        """Refuse a job that the policy cannot decide about."""
        runs_on = tuple(name for name, rate in job.throughputs.items() if rate > 0)
        kind = (
            runs_on, job.scale_factor, job.job_type, job.preemptible, job.entity,
            job.steps_left is None, deadline is None,
        )  # fmt: skip
        with self._lock:
            if kind not in self._tried:
                if len(self._tried) >= _MOST_KINDS:
                    self._tried.clear()
                self._tried[kind] = self._problem(job, deadline)
            problem = self._tried[kind]
        if problem is not None:
            raise InputError(problem)

    def _problem(self, job: Job, deadline: float | None) -> str | None:
        engine = TrainingEngine(self._cluster, self._policy, self._options, partners=self._partners)
        why = refusal(engine, job, None if deadline is None else max(deadline, 0.0) + 1.0)
        return None if why is None else f"policy '{self._policy.name}' cannot decide about it: {why}"
