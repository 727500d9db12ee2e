"""The parts of a gang are told as one run: it ends when all have, and for what matters most."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.live.backend.commands import GangPart
from fairway.live.backend.status import OutcomeKind, RunOutcome, RunState, RunStatus
from fairway.live.ray.gang_runs import as_one, breaks_the_gang

NODES = ("a", "b", "c")
ENDS = {kind: RunOutcome(kind, steps=10, checkpoint_step=8, started=1.0, ended=2.0) for kind in OutcomeKind}


def part(node: int, state: RunState = RunState.RUNNING, outcome: RunOutcome | None = None) -> RunStatus:
    ranks = ((0, 1), (2,), (3,))[node]
    workers, gang = tuple(10 + rank for rank in ranks), GangPart(ranks, 4, node, NODES)
    return RunStatus(7, "job", "v100", workers, state, outcome=outcome, part=gang)


def ended(node: int, kind: OutcomeKind) -> RunStatus:
    return part(node, RunState.ENDED, ENDS[kind])


def test_workers_are_in_the_order_of_the_ranks_and_numbers_are_those_of_the_gang() -> None:
    one = replace(part(1), steps=5, checkpoint_step=4, steps_per_second=1.0, started=2.0)
    two = replace(part(0), steps=10, checkpoint_step=6, steps_per_second=2.0, started=1.0)
    run = as_one([replace(one, workers=(13,), part=part(2).part, started=3.0), two, one])
    assert (run.workers, run.part, run.state) == ((10, 11, 12, 13), None, RunState.RUNNING)
    assert (run.steps, run.steps_per_second, run.started) == (20, 4.0, 3.0)
    assert run.checkpoint_step == 12, "three steps of each of the four ranks, which the slowest has saved"


def test_nothing_is_said_of_what_not_all_parts_have_told() -> None:
    run = as_one([replace(part(0), steps=10, started=1.0), part(1), part(2, RunState.STARTING)])
    assert (run.steps, run.checkpoint_step, run.started, run.state) == (None, None, None, RunState.STARTING)


@given(st.lists(st.sampled_from(list(OutcomeKind)), min_size=3, max_size=3))
def test_it_is_finished_only_if_all_parts_are_and_a_lost_part_is_no_fault_of_the_job(kinds: list[OutcomeKind]) -> None:
    outcome = as_one([ended(node, kind) for node, kind in enumerate(kinds)]).outcome
    assert outcome is not None
    assert (outcome.kind is OutcomeKind.FINISHED) == (set(kinds) == {OutcomeKind.FINISHED})
    if OutcomeKind.LOST in kinds:
        assert outcome.kind is OutcomeKind.LOST
    elif OutcomeKind.FAILED in kinds:
        assert outcome.kind in {OutcomeKind.FAILED, OutcomeKind.FAILED_TO_START}
    assert outcome.steps == 30


def test_of_two_parts_that_failed_the_first_is_told() -> None:
    late = RunOutcome(OutcomeKind.FAILED, code=1, reason="late", ended=9.0)
    early = RunOutcome(OutcomeKind.FAILED, code=3, reason="early", ended=4.0)
    parts = [part(0, RunState.ENDED, late), part(1, RunState.ENDED, early), ended(2, OutcomeKind.STOPPED)]
    outcome = as_one(parts).outcome
    assert outcome is not None
    assert (outcome.reason, outcome.code, outcome.ended) == ("early", 3, 9.0)


@pytest.mark.parametrize(
    ("states", "missing", "state"),
    [
        (("running", "running", "ended"), False, "ending"),
        (("running", "running", "running"), True, "ending"),
        (("running", "waiting", "running"), False, "waiting"),
        (("ended", "ended", "ended"), True, "ended"),
    ],
)
def test_it_has_ended_when_all_parts_have(states: tuple[str, ...], missing: bool, state: str) -> None:
    finished = OutcomeKind.FINISHED
    parts = [ended(node, finished) if one == "ended" else part(node, RunState(one)) for node, one in enumerate(states)]
    run = as_one(parts, missing=missing)
    assert run.state == state
    if missing and run.outcome is not None:
        assert run.outcome.kind is OutcomeKind.LOST


def test_only_an_end_that_was_not_wanted_breaks_the_gang() -> None:
    broken = {kind for kind in OutcomeKind if breaks_the_gang(ENDS[kind])}
    assert broken >= {OutcomeKind.FAILED, OutcomeKind.FAILED_TO_START, OutcomeKind.LOST}
    assert not broken & {OutcomeKind.FINISHED, OutcomeKind.STOPPED}
