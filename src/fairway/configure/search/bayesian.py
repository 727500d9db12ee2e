"""Bayesian optimisation of a plan: learn what plans cost and how long they take from trials, and try the most
promising.

Each trial runs a plan for a few simulated requests and sees their 95th percentile and cost. Two Gaussian processes,
over the logarithms of all sizes, predict both for plans not tried; the next trials are those with the largest

    expected saving over the best plan in time so far  ·  probability of being in time

among random plans and small changes of the best. The answer is the cheapest trial that was in time (the fastest if none
was).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fairway.configure.application import Application
from fairway.configure.arrays import FloatArray, IntArray
from fairway.configure.platform import Platform
from fairway.configure.search.static_plan import Plan, Samples
from fairway.errors import InputError

REQUESTS_PER_TRIAL = 20
TRIALS_PER_ROUND = 3
POOL = 2000
_ROUNDS_PER_FIT = 5


def trained_plan(
    application: Application, platform: Platform, draws: np.random.Generator, bootstrap: int = 100, rounds: int = 20
) -> Plan:
    """The plan that so many random trials and rounds of chosen ones find."""
    trials = _Trials(application, platform, draws)
    for plan in trials.random_plans(max(2, bootstrap)):
        trials.run(plan)
    cost_model, latency_model = _gaussian_process(draws), _gaussian_process(draws)
    for number in range(rounds):
        pool = np.concatenate([trials.random_plans(POOL), trials.neighbours(trials.best(), POOL // 4)])
        pool = np.unique(pool[~trials.known(pool)], axis=0)
        if not len(pool):
            break
        tried = trials.features(np.stack(trials.plans))
        for model, target in ((cost_model, trials.costs), (latency_model, trials.latencies)):
            _fit(model, tried, np.log(target), again=number % _ROUNDS_PER_FIT == 0)
        gain = _expected_gain(trials, trials.features(pool), cost_model, latency_model)
        for plan in pool[np.argsort(-gain, kind="stable")[:TRIALS_PER_ROUND]]:
            trials.run(plan)
    return trials.named(trials.best())


@dataclass(eq=False)
class _Trials:
    """What has been tried: a plan is the number of each stage's configuration."""

    application: Application
    platform: Platform
    draws: np.random.Generator
    plans: list[IntArray] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)

    def named(self, plan: IntArray) -> Plan:
        return tuple(
            profile.configuration(number)
            for profile, number in zip(self.application.profiles, plan.tolist(), strict=True)
        )

    def run(self, plan: IntArray) -> None:
        samples = Samples.drawn(self.application, self.platform, self.draws, REQUESTS_PER_TRIAL)
        self.plans.append(plan)
        self.costs.append(max(samples.cost(self.named(plan)), 1e-12))
        self.latencies.append(max(samples.latency(self.named(plan)), 1e-9))

    def random_plans(self, count: int) -> IntArray:
        sizes = [len(profile) for profile in self.application.profiles]
        return np.stack([self.draws.integers(size, size=count) for size in sizes], axis=1)

    def neighbours(self, plan: IntArray, count: int) -> IntArray:
        """Plans that differ from one in a single stage."""
        changed = np.tile(plan, (count, 1))
        stages = self.draws.integers(len(plan), size=count)
        changed[np.arange(count), stages] = self.random_plans(count)[np.arange(count), stages]
        return changed

    def known(self, plans: IntArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
        seen = {tuple(plan.tolist()) for plan in self.plans}
        return np.array([tuple(plan) in seen for plan in plans.tolist()], np.bool_)

    def features(self, plans: IntArray) -> FloatArray:
        """The logarithm of every size, from 0 to 1."""
        columns = []
        for stage, profile in enumerate(self.application.profiles):
            for sizes in (profile.batch, profile.cpu, profile.gpu):
                logs = np.log1p(sizes)
                width = float(np.ptp(logs))
                columns.append((logs[plans[:, stage]] - logs.min()) / (width if width > 0 else 1.0))
        return np.stack(columns, axis=1)

    def best(self) -> IntArray:
        late = np.asarray(self.latencies) > self.application.slo_seconds
        order = np.lexsort((np.asarray(self.costs), np.where(late, self.latencies, 0.0)))
        return self.plans[int(order[0])]

    def least_cost(self) -> float | None:
        costs = [
            cost
            for cost, latency in zip(self.costs, self.latencies, strict=True)
            if latency <= self.application.slo_seconds
        ]
        return min(costs, default=None)


def _expected_gain(trials: _Trials, features: FloatArray, cost_model: Any, latency_model: Any) -> FloatArray:
    from scipy.stats import norm  # noqa: PLC0415 - takes a second to import

    mean, deviation = latency_model.predict(features, return_std=True)
    in_time: FloatArray = norm.cdf((np.log(trials.application.slo_seconds) - mean) / np.maximum(deviation, 1e-9))
    least = trials.least_cost()
    if least is None:
        return in_time
    mean, deviation = cost_model.predict(features, return_std=True)
    deviation = np.maximum(deviation, 1e-9)
    saving = (np.log(least) - mean) / deviation
    gain: FloatArray = in_time * deviation * (saving * norm.cdf(saving) + norm.pdf(saving))
    return gain


def _gaussian_process(draws: np.random.Generator) -> Any:
    try:
        from sklearn.gaussian_process import GaussianProcessRegressor  # noqa: PLC0415
        from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel  # noqa: PLC0415
    except ImportError:
        raise InputError(
            "aquatope: needs scikit-learn, which is not installed; install Fairway with its extra 'aquatope', "
            "or use 'aquatope:exact'"
        ) from None
    kernel = ConstantKernel(1.0) * Matern(length_scale=1.0, nu=2.5) + WhiteKernel(1e-2)
    return GaussianProcessRegressor(kernel, normalize_y=True, random_state=int(draws.integers(2**31)))


def _fit(model: Any, features: FloatArray, target: FloatArray, *, again: bool) -> None:
    """Learn from the trials; the kernel's own parameters only now and then, as they change little."""
    if not again and hasattr(model, "kernel_"):
        model.set_params(kernel=model.kernel_, optimizer=None)
    else:
        model.set_params(optimizer="fmin_l_bfgs_b")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a parameter is at its bound
        model.fit(features, target)
