"""The conformance kit of configurators: what must hold for any of them, ours or a third party's.

`check_configurator` puts a configurator into many small situations (`check_situations`) and runs every check of
`CHECKS` in each. A failure names the check, the situation and the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

import numpy as np

from fairway.configure.check_situations import KINDS, Situation, situation_of
from fairway.configure.configurator import Configurator, QueueConfigurator
from fairway.configure.invokers import Invokers
from fairway.configure.queues import Decision, Dispatch, NoFit, Queue, Wait
from fairway.errors import FairwayError

_SEED = 7


class ConfiguratorError(FairwayError):
    """A configurator breaks a rule that every configurator must keep."""


def check_configurator(configurator: Configurator, *, seeds: Iterable[int] = range(3)) -> None:
    """Raise `ConfiguratorError` unless the configurator passes every check in every kind of situation."""
    for seed in seeds:
        for kind in KINDS:
            trial = Trial(configurator, kind, seed)
            for check in CHECKS:
                check(trial)


@dataclass(frozen=True)
class Trial:
    """A configurator in one situation."""

    configurator: Configurator
    kind: str
    seed: int

    @cached_property
    def situation(self) -> Situation:
        """The situation."""
        return situation_of(self.kind, self.seed)

    @cached_property
    def prepared(self) -> QueueConfigurator:
        """What the configurator prepares for the application."""
        return self.prepare()

    def prepare(self) -> QueueConfigurator:
        """Prepare once more, with the same draws."""
        draws = np.random.default_rng(_SEED)
        try:
            return self.configurator.prepare(self.situation.application, self.situation.platform, draws)
        except Exception as error:
            message = f"{self._place('answers')}: prepare raises {type(error).__name__}: {error}"
            raise ConfiguratorError(message) from error

    def decide(self, queue: Queue, invokers: Invokers, prepared: QueueConfigurator | None = None) -> Decision:
        """What the configurator decides."""
        try:
            decision = (prepared or self.prepared).decide(queue, invokers)
        except Exception as error:
            message = f"{self._place('answers')}: decide raises {type(error).__name__}: {error} for {queue}"
            raise ConfiguratorError(message) from error
        if not isinstance(decision, Dispatch | Wait | NoFit):
            self.fail("answers", f"decides {decision!r}, expected a Dispatch, a Wait or a NoFit")
        return decision

    def fail(self, check: str, numbers: str) -> NoReturn:
        """Report a failed check."""
        raise ConfiguratorError(f"{self._place(check)}: {numbers}")

    def _place(self, check: str) -> str:
        name = getattr(self.configurator, "name", type(self.configurator).__name__)
        situation = f"fairway.configure.check_situations.situation_of({self.kind!r}, seed={self.seed})"
        return f"configurator '{name}' fails check '{check}' in {situation}"


def what_starts_fits(trial: Trial) -> None:
    """A task starts with jobs that wait, at most a batch of them, in sizes that the stage has, where there is room."""
    for queue in trial.situation.queues:
        decision = trial.decide(queue, trial.situation.invokers)
        if not isinstance(decision, Dispatch):
            continue
        batch, cpu, gpu = decision.configuration
        if not 1 <= decision.jobs <= min(batch, queue.length):
            trial.fail("what_starts_fits", f"{decision.jobs} jobs start of {queue.length} in a batch of {batch}")
        if decision.configuration not in trial.situation.application.profiles[queue.stage].configurations():
            trial.fail("what_starts_fits", f"{decision.configuration} is not a configuration of stage {queue.stage}")
        if not 0 <= decision.invoker < len(trial.situation.invokers):
            trial.fail("what_starts_fits", f"there is no invoker {decision.invoker}")
        if not trial.situation.invokers.fits(decision.invoker, cpu, gpu):
            trial.fail("what_starts_fits", f"{decision} starts where it has no room")


def idle_invokers_get_work(trial: Trial) -> None:
    """With nothing running, a queue whose oldest job has waited for the whole SLO starts a task."""
    situation = trial.situation
    idle = Invokers.idle(len(situation.invokers), situation.platform.cpu, situation.platform.gpu)
    for queue in situation.queues:
        patient = queue._replace(waited=situation.application.slo_seconds + 1.0)
        decision = trial.decide(patient, idle)
        if not isinstance(decision, Dispatch):
            trial.fail("idle_invokers_get_work", f"decides {decision} for {patient}")


def waits_have_an_end(trial: Trial) -> None:
    """A wait is for a time that is not negative and comes to an end."""
    for queue in trial.situation.queues:
        decision = trial.decide(queue, trial.situation.invokers)
        if isinstance(decision, Wait) and not 0 <= decision.seconds < np.inf:
            trial.fail("waits_have_an_end", f"waits for {decision.seconds} seconds")


def full_invokers_get_nothing(trial: Trial) -> None:
    """With nothing free anywhere, no task starts."""
    situation = trial.situation
    full = Invokers.idle(len(situation.invokers), situation.platform.cpu, situation.platform.gpu)
    for invoker in range(len(full)):
        full.take(invoker, full.cpu, full.gpu)
    for queue in situation.queues:
        decision = trial.decide(queue, full)
        if isinstance(decision, Dispatch):
            trial.fail("full_invokers_get_nothing", f"{decision} starts although nothing is free")


def repeats_itself(trial: Trial) -> None:
    """The same draws give the same decisions, whatever was decided in between."""
    first = [trial.decide(queue, trial.situation.invokers) for queue in trial.situation.queues]
    again = trial.prepare()
    for queue, expected in reversed(list(zip(trial.situation.queues, first, strict=True))):
        found = trial.decide(queue, trial.situation.invokers, again)
        if found != expected:
            trial.fail("repeats_itself", f"decides {expected} and then {found}")


def leaves_the_invokers_alone(trial: Trial) -> None:
    """Deciding takes nothing from the invokers."""
    for queue in trial.situation.queues:
        trial.decide(queue, trial.situation.invokers)
    before, after = situation_of(trial.kind, trial.seed).invokers, trial.situation.invokers
    for name in ("free_cpu", "free_gpu", "everywhere"):
        expected, found = getattr(before, name).tolist(), getattr(after, name).tolist()
        if expected != found:
            trial.fail("leaves_the_invokers_alone", f"{name} was {expected}, is {found}")


CHECKS: tuple[Callable[[Trial], None], ...] = (
    what_starts_fits,
    idle_invokers_get_work,
    waits_have_an_end,
    full_invokers_get_nothing,
    repeats_itself,
    leaves_the_invokers_alone,
)
"""What every configurator has to keep."""
