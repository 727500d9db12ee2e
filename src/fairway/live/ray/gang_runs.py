"""The runs of a gang that is on several nodes, told as the one run that a controller knows.

Each agent knows its part only. The run waits or starts while a part does, and has ended when all parts have. It is
finished if all of them are. If not, what matters most is told: a node that was lost with its part, since no job is to
blame for that; then the part that failed first. Steps and rates are summed, and a checkpoint is one that all have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from fairway.live.backend.status import OutcomeKind, RunOutcome, RunState, RunStatus

_LOST = RunOutcome(OutcomeKind.LOST, reason="a part of the gang is not there any more, and the job with it")
_WORST_FIRST = (OutcomeKind.LOST, OutcomeKind.FAILED_TO_START, OutcomeKind.FAILED)


def as_one(parts: Sequence[RunStatus], *, missing: bool = False) -> RunStatus:
    """The one run whose parts these are, with the numbers of the cluster; some are `missing` if an agent lost them."""
    parts = sorted(parts, key=lambda run: 0 if run.part is None else run.part.node_rank)
    first = parts[0]
    if first.part is None:
        return first
    state = _state_of([run.state for run in parts], missing=missing)
    ranks = [rank for run in parts if run.part for rank in run.part.ranks]
    worker_of = dict(zip(ranks, [worker for run in parts for worker in run.workers], strict=True))
    started = [run.started for run in parts if run.started is not None]
    return replace(
        first,
        workers=tuple(worker_of[rank] for rank in sorted(ranks)),
        state=state,
        started=max(started) if len(started) == len(parts) else None,
        accepted=min(run.accepted for run in parts),
        steps=_sum([run.steps for run in parts]),
        steps_per_second=_rate([run.steps_per_second for run in parts]),
        checkpoint_step=_checkpoint(parts, lambda run: run.checkpoint_step),
        outcome=_outcome_of(parts, missing=missing) if state is RunState.ENDED else None,
        part=None,
    )


def breaks_the_gang(outcome: RunOutcome) -> bool:
    """Whether the other parts have to end, too, when one has ended so."""
    return outcome.kind not in {OutcomeKind.FINISHED, OutcomeKind.STOPPED}


def _state_of(states: Sequence[RunState], *, missing: bool) -> RunState:
    if all(state is RunState.ENDED for state in states):
        return RunState.ENDED
    if missing or any(state in {RunState.ENDING, RunState.ENDED} for state in states):
        return RunState.ENDING
    if all(state is RunState.RUNNING for state in states):
        return RunState.RUNNING
    return RunState.WAITING if RunState.WAITING in states else RunState.STARTING


def _outcome_of(parts: Sequence[RunStatus], *, missing: bool) -> RunOutcome:
    outcomes = [run.outcome or _LOST for run in parts] + ([_LOST] if missing else [])
    told = min(outcomes, key=lambda one: (_badness(one), one.ended or 0.0))
    ended = [one.ended for one in outcomes if one.ended is not None]
    started = [one.started for one in outcomes if one.started is not None]
    return replace(
        told,
        killed=any(one.killed for one in outcomes),
        steps=_sum([one.steps for one in outcomes]),
        checkpoint_step=None if missing else _checkpoint(parts, _saved_at_the_end),
        started=min(started, default=None),
        ended=max(ended, default=None),
    )


def _saved_at_the_end(run: RunStatus) -> int | None:
    return None if run.outcome is None else run.outcome.checkpoint_step


def _badness(outcome: RunOutcome) -> int:
    """0 for what is told first; of a gang that is partly done, that it was stopped."""
    if outcome.kind in _WORST_FIRST:
        return _WORST_FIRST.index(outcome.kind)
    return len(_WORST_FIRST) + (outcome.kind is OutcomeKind.FINISHED)


def _sum(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _rate(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _checkpoint(parts: Sequence[RunStatus], saved: Callable[[RunStatus], int | None]) -> int | None:
    """The last step that every rank has saved, as the engine counts: each part tells it summed over its ranks."""
    each, ranks = [saved(run) for run in parts], [len(run.workers) for run in parts]
    known = [step // count for step, count in zip(each, ranks, strict=True) if step is not None]
    return min(known) * sum(ranks) if len(known) == len(parts) else None
