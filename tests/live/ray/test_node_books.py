"""What a controller writes down of the nodes of Ray: numbers of accelerators, and how the runs of a node stand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fairway.live.backend.accelerators import Accelerator
from fairway.live.backend.reports import CheckpointSaved, RunEnded, RunProgressed, RunReport, RunStarted
from fairway.live.backend.status import OutcomeKind, RunOutcome, RunState, RunStatus
from fairway.live.ray.node_link import NodeLink
from fairway.live.ray.numbering import Numbering

FINISHED = RunOutcome(OutcomeKind.FINISHED, code=0)


def run(lease: int, job: str = "job", state: RunState = RunState.RUNNING) -> RunStatus:
    return RunStatus(lease, job, "v100", (0,), state)


def link_of(*runs: RunStatus, former: tuple[str, ...] = ()) -> NodeLink:
    link = NodeLink("n1")
    link.status = replace(link.status, runs=runs, former=former)
    return link


# Numbers


def test_each_type_is_counted_by_itself_over_all_nodes() -> None:
    numbering = Numbering()
    found = [Accelerator("v100", 0), Accelerator("k80", 0), Accelerator("v100", 1)]
    first = numbering.accelerators("n1", found)
    second = numbering.accelerators("n2", found)
    assert [(one.type, one.number, one.node, one.slot) for one in first + second] == [
        ("v100", 0, "n1", 0), ("k80", 0, "n1", 0), ("v100", 1, "n1", 1),
        ("v100", 2, "n2", 0), ("k80", 1, "n2", 0), ("v100", 3, "n2", 1),
    ]  # fmt: skip
    assert numbering.accelerators("n1", found) == first, "a node that comes back has its numbers"


def test_a_number_leads_back_to_its_place_and_others_to_none() -> None:
    numbering = Numbering()
    assert [numbering.number("v100", "n1", local) for local in (3, 1)] == [0, 1]
    assert [numbering.place("v100", number) for number in (-1, 0, 1, 2)] == [None, ("n1", 3), ("n1", 1), None]
    assert numbering.place("k80", 0) is None


def test_a_run_of_a_node_has_the_numbers_of_the_cluster() -> None:
    numbering = Numbering()
    numbering.number("v100", "n0", 0)
    here = replace(run(1), workers=(2, 0))
    assert numbering.run("n1", here) == replace(here, workers=(1, 2))
    assert numbering.place("v100", 1) == ("n1", 2)


# Runs of a node


def test_a_run_is_found_by_its_lease_and_its_job() -> None:
    link = link_of(run(1, "a"), run(1, "b"), run(2, "a"))
    assert link.find(1, "b") is link.status.runs[1]
    assert link.find(2, "b") is None


def test_active_are_the_runs_that_have_not_ended_of_one_job_or_of_all() -> None:
    link = link_of(run(1, "a", RunState.ENDED), run(2, "a", RunState.WAITING), run(3, "b", RunState.ENDING))
    assert [one.lease for one in link.active()] == [2, 3]
    assert [one.lease for one in link.active("a")] == [2]
    assert link.active("c") == []


def test_a_run_that_is_put_takes_the_place_of_what_it_was() -> None:
    link = link_of(run(1, "a"), run(5, "b"))
    link.put(run(1, "a", RunState.ENDING))
    assert [(one.lease, one.state) for one in link.status.runs] == [(5, RunState.RUNNING), (1, RunState.ENDING)]
    link.put(run(7, "a"), instead_of=(1, "a"))
    assert [(one.lease, one.job) for one in link.status.runs] == [(5, "b"), (7, "a")]
    assert (link.status.last_lease, link.changes) == (7, 2)
    link.put(run(6, "c"))
    assert link.status.last_lease == 7


def test_what_was_handed_over_already_is_put_once() -> None:
    link = link_of(run(1, "a"), run(7, "a"))
    link.put(run(7, "a", RunState.ENDING), instead_of=(1, "a"))
    assert [(one.lease, one.state) for one in link.status.runs] == [(7, RunState.ENDING)]


def test_a_job_whose_run_is_forgotten_is_known_until_it_is_retired() -> None:
    link = link_of(run(1, "b"), run(2, "b"), run(1, "a"), former=("z",))
    link.forget(1, "b")
    assert [(one.lease, one.job) for one in link.status.runs] == [(2, "b"), (1, "a")]
    assert link.status.former == ("b", "z")
    link.forget(2, "b")
    assert link.status.former == ("b", "z")
    assert [link.knows(job) for job in ("a", "b", "c", "z")] == [True, True, False, True]
    link.retire("b")
    assert [link.knows(job) for job in ("a", "b", "z")] == [True, False, True]
    link.retire("a")
    assert link.status.runs == ()
    assert link.changes == 4


@pytest.mark.parametrize(
    ("state", "then"),
    [
        (RunState.WAITING, RunState.RUNNING),
        (RunState.STARTING, RunState.RUNNING),
        (RunState.RUNNING, RunState.RUNNING),
        (RunState.ENDING, RunState.ENDING),
        (RunState.ENDED, RunState.ENDED),
    ],
)
def test_a_run_that_has_started_runs_unless_it_is_ending(state: RunState, then: RunState) -> None:
    link = link_of(run(1, state=state))
    link.take_in(RunStarted(1, "job", 5.0, 4.0))
    (found,) = link.status.runs
    assert (found.state, found.started) == (then, 4.0)


def test_reports_are_taken_in() -> None:
    link = link_of(run(1))
    link.take_in(RunProgressed(1, "job", 5.0, 10, 2.0))
    assert link.status.runs == (replace(run(1), steps=10, steps_per_second=2.0),)
    link.take_in(CheckpointSaved(1, "job", 6.0, 8, 0.5))
    assert link.status.runs[0].checkpoint_step == 8
    link.take_in(RunProgressed(1, "job", 7.0, 12))
    assert link.status.runs == (replace(run(1), steps=12, checkpoint_step=8),), "what was saved stays saved"
    link.take_in(RunProgressed(1, "job", 8.0, 20, 1.0, 16))
    assert link.status.runs[0].checkpoint_step == 16
    link.take_in(RunEnded(1, "job", 9.0, FINISHED))
    assert (link.status.runs[0].state, link.status.runs[0].outcome) == (RunState.ENDED, FINISHED)


@pytest.mark.parametrize("report", [RunStarted(2, "job", 5.0, 4.0), RunEnded(1, "other", 9.0, FINISHED)])
def test_a_report_of_a_run_that_is_not_known_changes_nothing(report: RunReport) -> None:
    link = link_of(run(1))
    link.take_in(report)
    assert (link.status.runs, link.changes) == ((run(1),), 0)


def test_the_runs_of_a_lost_node_are_lost_as_far_as_they_were() -> None:
    going = replace(run(1, "a"), steps=10, checkpoint_step=8, started=4.0)
    link = link_of(going, run(2, "b", RunState.ENDED), run(3, "c", RunState.WAITING))
    first, second = link.lost(99.0)
    assert (first.lease, first.job, first.time, second.lease) == (1, "a", 99.0, 3)
    outcome = first.outcome
    assert (outcome.kind, outcome.steps, outcome.checkpoint_step) == (OutcomeKind.LOST, 10, 8)
    assert (outcome.started, outcome.ended) == (4.0, 99.0)
    assert "node n1 is gone" in outcome.reason
