"""Finds out whether a policy can decide about a job at all, before the job gets near the engine that has all the jobs.

Some policies have to know how long a job is, or need it to run on a certain accelerator type. A policy that meets a job
which it cannot decide about refuses the whole decision, and would do so again in every round. So each kind of job is
tried on an engine of its own until one of them is accepted. Trials are made side by side, each within the policy's own
budget of time, so that a job that takes long holds up no other.
"""

from __future__ import annotations

from fairway.allocate.policy import Policy
from fairway.cluster import Cluster
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.options import EngineOptions
from fairway.engine.training.pair_rates import Partners
from fairway.engine.training.what_if import refusal
from fairway.errors import InputError
from fairway.jobs import Job
from fairway.live.training.decision.process import BusyError, impatient

_MOST_KINDS = 10_000


class Acceptance:
    """Remembers the kinds of jobs that were accepted. Any thread may ask."""

    def __init__(self, cluster: Cluster, policy: Policy, options: EngineOptions, partners: Partners | None) -> None:
        self._cluster, self._options, self._partners = cluster, options, partners
        self._policy = impatient(policy)
        self._accepted: set[object] = set()

    def check(self, job: Job, deadline: float | None) -> None:
        """Refuse a job that the policy cannot decide about."""
        runs_on = tuple(name for name, rate in job.throughputs.items() if rate > 0)
        kind = (
            runs_on, job.scale_factor, job.job_type, job.preemptible, job.entity,
            job.steps_left is None, deadline is None,
        )  # fmt: skip
        if kind in self._accepted:
            return
        engine = TrainingEngine(self._cluster, self._policy, self._options, partners=self._partners)
        try:
            why = refusal(engine, job, None if deadline is None else max(deadline, 0.0) + 1.0)
        except BusyError:  # a trial is a courtesy: what stops a decision later is found and set aside there
            return
        if why is not None:
            raise InputError(f"policy '{self._policy.name}' cannot decide about it: {why}")
        if len(self._accepted) >= _MOST_KINDS:
            self._accepted.clear()
        self._accepted.add(kind)
