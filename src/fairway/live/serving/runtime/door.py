"""Whether a request may come in: what a worker has learnt from its supervisor about requests that workers die of.

Most requests come in at once. One that workers have died of is refused, as are those of a workflow that is set aside.
A suspect waits until there are several workers, or all, and one that was put aside waits for its turn. So do the
requests of a workflow on trial, which come in one at a time through one door. A worker that has not heard from its
supervisor yet lets all requests wait.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fairway.engine.serving.messages import FAILED, UNPLACEABLE
from fairway.live.serving.seams.run_record import workflow_of
from fairway.live.serving.supervise.blame import HELD, SET_ASIDE, TRIED, Notice

_GRAVEST_FIRST = (SET_ASIDE, TRIED, HELD)


class Refusal(NamedTuple):
    """Why a request does not come in, and the code of that for programs."""

    reason: str
    code: str


class Door:
    """The door of one process; `models` are, by workflow, the numbers of the models that it needs."""

    def __init__(self, number: int, models: Sequence[Sequence[int]]) -> None:
        self._number = number
        self._notice: Notice | None = None
        self._needs = [
            [("workflow", each), *(("model", model) for model in needed)] for each, needed in enumerate(models)
        ]
        self._states: Mapping[int, tuple[str, str]] = {}
        self._on_trial: dict[int, int] = {}

    def heard(self, notice: Notice) -> None:
        """The supervisor has news."""
        self._notice = notice
        states: dict[int, tuple[str, str]] = {}
        for workflow, culprits in enumerate(self._needs):
            found = [notice.culprits[each] for each in culprits if each in notice.culprits]
            if found:
                states[workflow] = min(found, key=lambda each: _GRAVEST_FIRST.index(each[0]))
        self._states = states

    def is_suspect(self, mark: bytes) -> bool:
        """Whether workers have died while a request ran that is known by this mark."""
        return self._notice is not None and mark in self._notice.suspects

    def may_hang(self, mark: bytes) -> bool:
        """Whether a request that is known by this mark was put aside, since it took long while others waited."""
        return self._notice is not None and mark in self._notice.aside

    def is_on_trial(self, model: int) -> bool:
        """Whether a worker has died while this model was loaded."""
        return self._notice is not None and ("model", model) in self._notice.culprits

    def refusal(self, workflow: int, mark: bytes) -> Refusal | None:
        """Why a request does not come in, now or later; None if it does."""
        if self._notice is None:
            return None
        reason = self._notice.refused.get(mark)
        if reason is not None:
            return Refusal(reason, FAILED)
        state, reason = self._states.get(workflow, ("", ""))
        return Refusal(reason, UNPLACEABLE) if state == SET_ASIDE else None

    def lets_in(self, key: int, workflow: int, mark: bytes) -> bool:
        """Whether a request comes in now; else it waits."""
        notice = self._notice
        if notice is None:
            return False
        if mark in notice.suspects and not notice.suspects_run:
            return False
        if mark in notice.aside:
            return mark == notice.aside[0]
        state = self._states.get(workflow, ("",))[0]
        if state == HELD:
            return False
        if state == TRIED:
            if not notice.suspects_run or notice.tries_at != self._number or workflow in self._on_trial:
                return False
            if self._is_isolated(workflow):
                return False
            self._on_trial[workflow] = key
        return True

    def calls_back(self, workflow: int, mark: bytes) -> bool:
        """Whether a request that came in has to wait after all: another of its workflow may hang, and runs alone."""
        notice = self._notice
        return notice is not None and self._is_isolated(workflow) and mark != notice.aside[0]

    def _is_isolated(self, workflow: int) -> bool:
        is_tried = self._states.get(workflow, ("",))[0] == TRIED
        return (
            is_tried and self._notice is not None and any(workflow_of(mark) == workflow for mark in self._notice.aside)
        )

    def is_over(self, key: int, workflow: int) -> None:
        """A request that came in is over; the next one on trial may come in."""
        if self._on_trial.get(workflow) == key:
            del self._on_trial[workflow]
