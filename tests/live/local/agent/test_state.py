"""What an agent remembers: it is the same after it was written, and says which runs a lease has to wait for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairway.errors import InputError
from fairway.live.backend.commands import GangPart
from fairway.live.backend.status import OutcomeKind, RunOutcome, RunState
from fairway.live.local.agent.state import AgentState, RunRecord

FINISHED = RunOutcome(OutcomeKind.FINISHED)


def run(lease: int, job: str, workers: list[int], state: RunState = RunState.RUNNING, **fields: Any) -> RunRecord:
    return RunRecord(lease, job, fields.pop("accelerator", "v100"), workers, f"/runs/{lease}-{job}", state, **fields)


def waits_for(
    state: AgentState, workers: list[int], share: float = 1.0, *, job: str = "new", lease: int = 9
) -> list[int]:
    return [one.lease for one in state.holders(lease, job, "v100", workers, share)]


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    part = GangPart((2, 3), 4, 1, ("a", "b"))
    runs = [
        run(3, "a", [0, 1], RunState.ENDED, outcome=FINISHED, started=2.0, until=9.0, expires=True, attempt=2),
        run(4, "b", [2], RunState.WAITING, share=0.5, part=part),
    ]
    state = AgentState(7, True, {"old": 2}, runs)
    state.save(tmp_path / "state.json")
    assert AgentState.load(tmp_path / "state.json") == state
    assert AgentState.load(tmp_path / "none.json") == AgentState()


@pytest.mark.parametrize("torn", [b"", b"\0" * 512])
def test_a_torn_file_is_read_from_its_synced_copy(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "state.json"
    AgentState(1).save_synced(path)
    AgentState(2).save(path)
    assert AgentState.load(path).epoch == 2
    path.write_bytes(torn)
    assert AgentState.load(path).epoch == 1


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"version": 2, "runs": []}', b'{"runs": []}'])
def test_what_is_no_state_is_refused_with_its_path(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "state.json").write_bytes(content)
    with pytest.raises(InputError, match=r"state\.json: not the state of an agent of this version"):
        AgentState.load(tmp_path / "state.json")


def test_runs_are_found_by_lease_and_job() -> None:
    state = AgentState(runs=[run(1, "a", [0]), run(1, "b", [0]), run(2, "a", [1])])
    assert state.find(1, "b") is state.runs[1]
    assert state.find(2, "a") is state.runs[2]
    assert state.find(2, "b") is None


def test_the_last_lease_of_a_job_and_of_all_is_remembered_when_its_runs_are_forgotten() -> None:
    state = AgentState(floors={"a": 5, "b": 1}, runs=[run(2, "b", [0]), run(4, "c", [1])])
    assert [state.newest_lease(job) for job in "abcd"] == [5, 2, 4, 0]
    assert state.last_lease() == 5
    assert AgentState(runs=state.runs).last_lease() == 4
    assert AgentState().last_lease() == 0


def test_a_job_has_finished_if_one_of_its_runs_came_to_its_end_by_itself() -> None:
    stopped = RunOutcome(OutcomeKind.STOPPED)
    state = AgentState(runs=[
        run(1, "a", [0], RunState.ENDED, outcome=stopped), run(2, "a", [0], RunState.ENDED, outcome=FINISHED),
        run(3, "b", [0], RunState.ENDED, outcome=stopped), run(4, "c", [0]),
    ])  # fmt: skip
    assert [state.has_finished(job) for job in "abc"] == [True, False, False]


def test_a_lease_waits_for_the_runs_on_its_workers_and_those_of_its_job() -> None:
    state = AgentState(runs=[
        run(1, "a", [0]), run(2, "b", [1]), run(3, "c", [2], RunState.ENDED), run(4, "new", [7]),
        run(5, "d", [0], accelerator="k80"), run(9, "beside", [0]),
    ])  # fmt: skip
    assert waits_for(state, [0]) == [1, 4]
    assert waits_for(state, [0, 1]) == [1, 2, 4]
    assert waits_for(state, [2, 5]) == [4], "what has ended holds nothing"
    assert waits_for(state, [0], job="other") == [1]


@pytest.mark.parametrize(
    ("shares", "ending", "asked", "expected"),
    [
        ([0.5], [False], 0.5, []),
        ([0.5], [False], 0.6, [1]),
        ([0.5, 0.25], [False, False], 0.25, []),
        ([1 / 3, 1 / 3], [False, False], 1 / 3, []),
        ([0.5, 0.5], [True, False], 0.5, [1]),
        ([0.5, 0.5], [True, False], 0.6, [1, 2]),
        ([0.5, 0.5], [True, True], 0.5, [1, 2]),
        ([0.5, 0.5], [False, True], 1.0, [1, 2]),
    ],
)
def test_a_share_waits_only_where_others_leave_too_little_room(
    shares: list[float], ending: list[bool], asked: float, expected: list[int]
) -> None:
    """For those that end, if their end makes room enough; else for all."""
    states = [RunState.ENDING if ends else RunState.RUNNING for ends in ending]
    runs = [run(number + 1, f"j{number}", [0], states[number], share=share) for number, share in enumerate(shares)]
    assert waits_for(AgentState(runs=runs), [0], asked) == expected


def test_runs_under_one_lease_have_their_share_together() -> None:
    state = AgentState(runs=[run(1, "a", [0], share=0.5), run(1, "b", [0], share=0.5)])
    assert waits_for(state, [0], 0.5) == []
    assert waits_for(state, [0], 0.6) == [1, 1]


def test_ranks_are_those_of_its_part_of_a_gang_or_one_for_each_worker() -> None:
    assert run(1, "a", [4, 5, 6]).ranks == (0, 1, 2)
    assert run(1, "a", [4, 5], part=GangPart((2, 3), 4, 1, ("a", "b"))).ranks == (2, 3)
    assert run(1, "a", [0]).active
    assert not run(1, "a", [0], RunState.ENDED).active
