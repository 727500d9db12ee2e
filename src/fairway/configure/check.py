"""The conformance kit of configurators: what must hold for any of them, ours or a third party's.

`check_configurator` puts a configurator into many small situations (`check_situations`) and runs every check of
`CHECKS` in each. A failure names the check, the situation and the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn, get_args

import numpy as np

from fairway.configure import queues
from fairway.configure.capacity import Capacity
from fairway.configure.check_situations import KINDS, Situation, situation_of
from fairway.configure.configurator import Configurator, QueueConfigurator, TurnOrder
from fairway.configure.queues import Candidates, Choice, Decision, Drop, Preempt, Queue, Wait
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

    def decide(self, queue: Queue, capacity: Capacity, prepared: QueueConfigurator | None = None) -> Decision:
        """What the configurator decides."""
        try:
            decision = (prepared or self.prepared).decide(queue, capacity)
        except Exception as error:
            message = f"{self._place('answers')}: decide raises {type(error).__name__}: {error} for {queue}"
            raise ConfiguratorError(message) from error
        if not isinstance(decision, Candidates | Wait | Drop | Preempt):
            self.fail("answers", f"decides {decision!r}, expected Candidates, a Wait, a Drop or a Preempt")
        if isinstance(decision, Candidates) and not all(isinstance(each, Choice) for each in decision.choices):
            self.fail("answers", f"decides {decision!r}, expected that each of the choices is a Choice")
        return decision

    def decisions(self) -> Iterator[tuple[Queue, Decision]]:
        """What the configurator decides for each queue, on workers that are partly busy and on idle ones."""
        for capacity in (self.situation.capacity, self.situation.idle()):
            for queue in self.situation.queues:
                yield queue, self.decide(queue, capacity)

    def values(self, candidates: Candidates) -> list[float]:
        """What each choice is worth on an idle worker and on one that it fills; nothing without a value."""
        if candidates.value is None:
            return []
        platform, found = self.situation.platform, []
        for position, (_, cpu, gpu) in enumerate(each.configuration for each in candidates.choices):
            for left in ((0, 0), (platform.cpu - cpu, platform.gpu - gpu)):
                try:
                    found.append(candidates.value(position, *left))
                except Exception as error:
                    message = f"{self._place('answers')}: value raises {type(error).__name__}: {error}"
                    raise ConfiguratorError(message) from error
        return found

    def fail(self, check: str, numbers: str) -> NoReturn:
        """Report a failed check."""
        raise ConfiguratorError(f"{self._place(check)}: {numbers}")

    def _place(self, check: str) -> str:
        name = getattr(self.configurator, "name", type(self.configurator).__name__)
        situation = f"fairway.configure.check_situations.situation_of({self.kind!r}, seed={self.seed})"
        return f"configurator '{name}' fails check '{check}' in {situation}"


def says_how_it_runs(trial: Trial) -> None:
    """It has a name, the name of a placer for its batches, and an order in which queues take turns."""
    for field in ("name", "placer"):
        value = getattr(trial.configurator, field, None)
        if not (isinstance(value, str) and value):
            trial.fail("says_how_it_runs", f"{field} is {value!r}, expected a name")
    turns, known = getattr(trial.configurator, "turns", None), get_args(TurnOrder)
    if turns not in known:
        trial.fail("says_how_it_runs", f"turns is {turns!r}, expected one of {', '.join(known)}")


def choices_fit_on_a_worker(trial: Trial) -> None:
    """Every choice is a configuration that the stage has and that an idle worker has room for."""
    platform = trial.situation.platform
    for queue, decision in trial.decisions():
        if not isinstance(decision, Candidates):
            continue
        known = trial.situation.application.profiles[queue.stage].configurations()
        for configuration, kind in decision.choices:
            if configuration not in known:
                trial.fail("choices_fit_on_a_worker", f"{configuration} is not a configuration of stage {queue.stage}")
            if configuration.cpu > platform.cpu or configuration.gpu > platform.gpu:
                size = f"{platform.cpu} CPUs and {platform.gpu} slices"
                trial.fail("choices_fit_on_a_worker", f"{configuration} does not fit on a worker of {size}")
            if kind not in queues.KINDS:
                trial.fail("choices_fit_on_a_worker", f"{kind!r} is no reason, expected one of {queues.KINDS}")


def values_are_numbers(trial: Trial) -> None:
    """What a choice is worth on a worker is a number, and not infinite."""
    for _, decision in trial.decisions():
        if isinstance(decision, Candidates):
            values = trial.values(decision)
            if not all(math.isfinite(value) for value in values):
                trial.fail("values_are_numbers", f"{decision.choices} are worth {values}")


def idle_workers_get_work(trial: Trial) -> None:
    """With nothing running, a queue whose oldest job has waited for the whole SLO gets a choice, or loses jobs."""
    situation = trial.situation
    for queue in situation.queues:
        patient = queue._replace(waited=situation.application.slo_seconds + 1.0)
        decision = trial.decide(patient, situation.idle())
        if isinstance(decision, Drop | Preempt):
            continue
        if isinstance(decision, Wait) or not decision.choices:
            trial.fail("idle_workers_get_work", f"decides {decision} for {patient}")


def waits_have_an_end(trial: Trial) -> None:
    """A wait is for a time that is not negative and comes to an end."""
    for _, decision in trial.decisions():
        if isinstance(decision, Wait) and not 0 <= decision.seconds < math.inf:
            trial.fail("waits_have_an_end", f"waits for {decision.seconds} seconds")


def drops_what_waits(trial: Trial) -> None:
    """What is given up is at least one job, and none that is not there."""
    for queue, decision in trial.decisions():
        if isinstance(decision, Drop) and not 1 <= decision.jobs <= queue.length:
            trial.fail("drops_what_waits", f"gives up {decision.jobs} of {queue.length} jobs")


def repeats_itself(trial: Trial) -> None:
    """The same draws give the same decisions, whatever was decided in between."""
    asked, capacity = trial.situation.queues, trial.situation.capacity
    first = [trial.decide(queue, capacity) for queue in asked]
    again = trial.prepare()
    for queue, expected in reversed(list(zip(asked, first, strict=True))):
        found = trial.decide(queue, capacity, again)
        if _comparable(trial, found) != _comparable(trial, expected):
            trial.fail("repeats_itself", f"decides {expected} and then {found}")


def _comparable(trial: Trial, decision: Decision) -> object:
    """A decision with its values in place of the function that says them."""
    if isinstance(decision, Wait):
        return "waits", decision.seconds
    if isinstance(decision, Drop):
        return "drops", decision.jobs
    if isinstance(decision, Preempt):
        return "preempts", decision
    return "starts", decision.choices, trial.values(decision)


def leaves_the_capacity_alone(trial: Trial) -> None:
    """Deciding takes nothing from the workers."""
    for queue in trial.situation.queues:
        trial.decide(queue, trial.situation.capacity)
    before, after = situation_of(trial.kind, trial.seed).capacity, trial.situation.capacity
    for name in ("free_cpu", "free_gpu"):
        expected, found = getattr(before, name).tolist(), getattr(after, name).tolist()
        if expected != found:
            trial.fail("leaves_the_capacity_alone", f"{name} was {expected}, is {found}")


CHECKS: tuple[Callable[[Trial], None], ...] = (
    says_how_it_runs,
    choices_fit_on_a_worker,
    values_are_numbers,
    idle_workers_get_work,
    waits_have_an_end,
    drops_what_waits,
    repeats_itself,
    leaves_the_capacity_alone,
)
"""What every configurator has to keep."""
