"""Who is held to account for the deaths of workers, and for how long."""

from __future__ import annotations

import math

import pytest

from fairway.live.serving.seams.run_record import Lane, LaneKind, Running, RunRecord, mark_of, workflow_of
from fairway.live.serving.seams.transport import WireError
from fairway.live.serving.seams.values import Parcel
from fairway.live.serving.seams.worker_pool import MACHINE_LOST
from fairway.live.serving.supervise.blame import HELD, SET_ASIDE, TRIED, Blame, Death, Notice

_WORKFLOW = ("workflow", 0)


def _mark(number: int, workflow: int = 0) -> bytes:
    return mark_of(workflow, Parcel(b"%d" % number))


def _ran(*marks: bytes, workflow: int = 0, ended: float | None = None) -> Running:
    active = ended is None
    return Running(LaneKind.STAGE, active, workflow, 0, 0.0, 100.0, 0.0 if ended is None else ended, marks)


def _load(model: int = 0) -> Running:
    return Running(LaneKind.LOAD, True, model, -1, 0.0, 60.0, 0.0, ())


def _blame() -> Blame:
    return Blame(["poison", "good"], ["model"])


def test_a_request_that_ends_two_workers_is_refused_with_the_reason() -> None:
    blame = _blame()
    blame.died(1.0, Death([_ran(_mark(1))], "7"))
    notice = blame.notice(0)
    assert notice.suspects == {_mark(1)} == notice.again
    assert not notice.suspects_run
    assert notice.refused == {}
    blame.told()
    blame.time_passed(2.0, all_there=True, several_there=True)
    assert blame.notice(0).suspects_run
    assert blame.notice(0).again == frozenset()
    blame.died(3.0, Death([_ran(_mark(1))], "7"))
    assert "ended workers (status 7) each time" in blame.notice(0).refused[_mark(1)]
    blame.time_passed(4.0, all_there=True, several_there=True)
    blame.time_passed(10.0, all_there=True, several_there=True)
    assert blame.notice(0).culprits == {}, "one request says nothing of the others of its workflow"
    blame.time_passed(400.0, all_there=True, several_there=True)
    assert blame.notice(0).refused == {}, "not for ever"


def test_nothing_is_held_against_what_ran_on_a_machine_that_is_lost() -> None:
    """Eight workers end at once, in the middle of requests of one workflow and of a load."""
    blame = _blame()
    for number in range(8):
        blame.died(1.0, Death([_ran(_mark(number)), _load()], MACHINE_LOST))
    notice = blame.notice(0)
    assert (notice.culprits, notice.refused, notice.again) == ({}, {}, frozenset())
    assert notice.suspects_run, "they are tried again at once"


def test_a_request_that_is_lost_with_machine_after_machine_is_refused_after_the_third() -> None:
    blame = _blame()
    for now in (1.0, 100.0):
        blame.died(now, Death([_ran(_mark(1), _mark(2))], MACHINE_LOST))
        blame.told()
    blame.cleared(_mark(2))
    assert blame.notice(0).refused == {}
    blame.died(200.0, Death([_ran(_mark(1), _mark(2))], MACHINE_LOST))
    assert blame.is_new
    assert list(blame.notice(0).refused) == [_mark(1)]
    assert "its machine was lost each time" in blame.notice(0).refused[_mark(1)]
    assert blame.notice(0).culprits == {}


def test_what_had_ended_before_a_machine_was_lost_is_no_suspect() -> None:
    blame = _blame()
    blame.told()
    blame.died(1.0, Death([_ran(_mark(1), ended=0.9)], MACHINE_LOST))
    assert blame.notice(0).suspects == frozenset()
    assert not blame.is_new


def test_others_of_the_workflow_wait_while_there_is_one_worker_only() -> None:
    for status, longest in (("7", 15.0), ("-9", 3.0)):
        blame = _blame()
        blame.died(0.0, Death([_ran(_mark(1))], status))
        blame.time_passed(longest - 0.1, all_there=False, several_there=False)
        assert blame.notice(0).culprits[_WORKFLOW][0] == HELD
        blame.time_passed(longest, all_there=False, several_there=False)
        assert (_WORKFLOW in blame.notice(0).culprits) == (status == "7")
        blame.time_passed(longest + 6.0, all_there=True, several_there=True)
        blame.time_passed(longest + 12.0, all_there=True, several_there=True)
        assert blame.notice(0).culprits == {}


def test_signal_9_may_come_from_outside_so_a_third_death_is_needed() -> None:
    blame = _blame()
    for now in (1.0, 2.0):
        blame.died(now, Death([_ran(_mark(1))], "-9"))
    assert blame.notice(0).refused == {}
    blame.died(3.0, Death([_ran(_mark(1))], "-9"))
    assert _mark(1) in blame.notice(0).refused


def test_a_suspect_that_is_answered_is_cleared() -> None:
    blame = _blame()
    blame.died(1.0, Death([_ran(_mark(1), _mark(2))], "7"))
    for number in (1, 2):
        blame.cleared(_mark(number))
    assert blame.notice(0).suspects == frozenset()
    for number in (3, 4):  # as before: two requests that end workers, and none that did it twice
        blame.died(2.0, Death([_ran(_mark(number))], "7"))
        blame.cleared(_mark(number))
    blame.time_passed(3.0, all_there=True, several_there=True)
    blame.time_passed(3.1, all_there=True, several_there=True)
    assert blame.notice(0).culprits == {}


def test_one_that_takes_too_long_is_refused_at_once() -> None:
    blame = _blame()
    blame.died(101.0, Death([_ran(_mark(1)), _load()], "-9", LaneKind.STAGE))
    assert blame.notice(0).refused == {_mark(1): "it took longer than 100 s, so it is not tried again"}


def test_a_workflow_whose_requests_keep_ending_workers_is_set_aside_and_tried_again_after_a_while() -> None:
    blame = _blame()
    for now, number in ((1.0, 1), (2.0, 2)):
        blame.died(now, Death([_ran(_mark(number))], "7"))
    assert blame.notice(0).culprits[_WORKFLOW][0] == TRIED
    blame.died(3.0, Death([_ran(_mark(1))], "7"))
    assert blame.notice(0).culprits[_WORKFLOW][0] == TRIED, "one that is tried again is one request"
    blame.died(4.0, Death([_ran(_mark(3))], "7"))
    state, reason = blame.notice(0).culprits[_WORKFLOW]
    assert state == SET_ASIDE
    assert "workflow 'poison' ended workers (status 7) again and again, so it is set aside for 10 s" in reason
    blame.time_passed(13.0, all_there=True, several_there=True)
    assert blame.notice(0).culprits[_WORKFLOW][0] == SET_ASIDE
    blame.time_passed(14.5, all_there=True, several_there=True)
    assert blame.notice(0).culprits[_WORKFLOW][0] == TRIED
    blame.died(15.0, Death([_ran(_mark(4))], "7"))
    assert "for 20 s" in blame.notice(0).culprits[_WORKFLOW][1], "longer each time"
    blame.time_passed(36.0, all_there=True, several_there=True)
    blame.time_passed(42.0, all_there=True, several_there=True)
    assert blame.notice(0).culprits == {}, "it went well, so all is forgiven"


def test_a_model_whose_load_ends_workers_is_set_aside_and_is_free_once_it_was_loaded() -> None:
    blame = _blame()
    blame.died(1.0, Death([_load()], "7"))
    assert blame.notice(0).culprits["model", 0][0] == TRIED
    blame.died(2.0, Death([_load()], "7"))
    state, reason = blame.notice(0).culprits["model", 0]
    assert state == SET_ASIDE
    assert reason.startswith("model 'model' ended workers")
    blame.loaded(0)
    assert blame.notice(0).culprits == {}


def test_what_ran_just_before_is_suspected_less_and_a_worker_at_rest_accuses_no_one() -> None:
    blame = _blame()
    blame.died(1.0, Death([], "1"))
    blame.died(100.0, Death([_ran(_mark(1), ended=10.0)], "1"))
    assert blame.notice(0).suspects == frozenset()
    for now in (1.0, 2.0, 3.0):
        blame.died(now, Death([_ran(_mark(1), ended=now - 0.1)], "1"))
    assert blame.notice(0).refused == {}
    blame.died(4.0, Death([_ran(_mark(1), ended=3.9)], "1"))
    assert _mark(1) in blame.notice(0).refused


def test_a_record_says_what_runs_until_it_has_ended() -> None:
    record = RunRecord(bytearray(RunRecord.size(2)))
    (stage, *_), (other, *_) = record.lanes(0), record.lanes(1)
    for lane in (stage, other):
        lane.clear()
    assert stage.read() is None
    marks = [_mark(number, workflow=3) for number in range(500)]
    stage.begin(3, 1, 10.0, 20.0, marks[:2], holder=7)
    assert stage.read() == Running(LaneKind.STAGE, True, 3, 1, 10.0, 20.0, float("inf"), tuple(marks[:2]))
    assert other.read() is None
    stage.end(11.0, holder=6)
    assert _read(stage).is_active, "another run has ended"
    stage.end(11.0, holder=7)
    assert not _read(stage).is_active
    assert _read(stage).ended == 11.0
    stage.begin(3, 1, 10.0, 20.0, marks)
    assert 100 < len(_read(stage).marks) < 500, "as many as there is room for"
    assert other.read() is None
    assert workflow_of(marks[0]) == 3


def _read(lane: Lane) -> Running:
    found = lane.read()
    assert found is not None
    return found


def test_kills_from_outside_set_no_workflow_aside_as_long_as_its_requests_are_answered_in_the_end() -> None:
    blame = _blame()
    for number in range(5):
        blame.died(float(number), Death([_ran(_mark(number))], "-9"))
        assert blame.notice(0).culprits[_WORKFLOW][0] in {HELD, TRIED}
    for number in range(5):
        blame.cleared(_mark(number))
    blame.time_passed(6.0, all_there=True, several_there=True)
    assert blame.notice(0).culprits == {}


def test_nothing_is_held_against_anyone_in_the_beginning_which_the_doors_have_yet_to_hear() -> None:
    blame = _blame()
    assert blame.is_new
    notice = blame.notice(2)
    assert notice.suspects_run
    assert (notice.refused, notice.suspects, notice.again, notice.culprits, notice.tries_at) == (
        {}, frozenset(), frozenset(), {}, 2,
    )  # fmt: skip
    blame.told()
    assert not blame.is_new
    blame.cleared(_mark(1))
    blame.loaded(0)
    blame.time_passed(1.0, all_there=True, several_there=True)
    assert not blame.is_new, "nothing was held against them"


def test_a_notice_goes_over_a_line_and_nothing_else_is_taken_for_one() -> None:
    notice = _blame().notice(1)
    assert Notice.checked(tuple(notice)) == notice
    for nonsense in (None, list(notice), tuple(notice)[:-1], (*notice[:-1], "1"), ({}, [], *notice[2:]), "notice"):
        with pytest.raises(WireError):
            Notice.checked(nonsense)


def test_a_death_counts_for_a_minute() -> None:
    for seconds, state in ((59.75, TRIED), (60.0, HELD)):
        blame = _blame()
        blame.died(0.0, Death([_ran(_mark(1))], "-9"))
        blame.time_passed(seconds, all_there=False, several_there=False)
        blame.died(seconds, Death([_ran(_mark(2))], "-9"))
        assert blame.notice(0).culprits[_WORKFLOW][0] == state


def test_six_requests_that_were_killed_by_signal_9_are_too_many() -> None:
    blame = _blame()
    for number in range(5):
        blame.died(float(number), Death([_ran(_mark(number))], "-9"))
    assert blame.notice(0).culprits[_WORKFLOW][0] == TRIED
    blame.died(5.0, Death([_ran(_mark(5))], "-9"))
    assert blame.notice(0).culprits[_WORKFLOW][0] == SET_ASIDE


def test_it_is_set_aside_for_five_minutes_at_most() -> None:
    blame, now = _blame(), 0.0
    for number in range(3):
        blame.died(now, Death([_ran(_mark(number))], "7"))
    spans = []
    for number in range(3, 12):
        told = blame.notice(0).culprits[_WORKFLOW][1]
        spans.append(float(told.rpartition(" for ")[2].removesuffix(" s")))
        now += spans[-1]
        blame.time_passed(now - 0.25, all_there=True, several_there=True)
        assert blame.notice(0).culprits[_WORKFLOW][0] == SET_ASIDE
        blame.time_passed(now, all_there=True, several_there=True)
        assert blame.notice(0).culprits[_WORKFLOW][0] == TRIED
        blame.died(now, Death([_ran(_mark(number))], "7"))
    assert spans == [10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0, 300.0, 300.0]


def test_a_trial_of_five_seconds_with_all_workers_there_ends_it() -> None:
    blame = _blame()
    for number in range(2):
        blame.died(0.0, Death([_ran(_mark(number))], "7"))
    blame.time_passed(0.0, all_there=True, several_there=True)
    blame.time_passed(4.75, all_there=True, several_there=True)
    assert blame.notice(0).culprits[_WORKFLOW][0] == TRIED
    blame.time_passed(5.0, all_there=False, several_there=True)
    assert blame.notice(0).culprits[_WORKFLOW][0] == TRIED, "not all were there"
    blame.time_passed(5.0, all_there=True, several_there=True)
    assert blame.notice(0).culprits == {}


def test_suspects_wait_for_other_workers_for_a_quarter_of_a_minute_at_most() -> None:
    for there in ({"all_there": True, "several_there": False}, {"all_there": False, "several_there": True}):
        blame = _blame()
        blame.died(0.0, Death([_ran(_mark(1))], "7"))
        blame.time_passed(0.25, **there)
        assert blame.notice(0).suspects_run
    blame = _blame()
    blame.died(1.0, Death([_ran(_mark(1))], "7"))
    blame.died(9.0, Death([_ran(_mark(2))], "7"))
    blame.time_passed(16.0, all_there=False, several_there=False)
    assert not blame.notice(0).suspects_run
    blame.time_passed(16.25, all_there=False, several_there=False)
    assert blame.notice(0).suspects_run, "since the first of them waits"
    blame.died(17.0, Death([_ran(_mark(3))], "7"))
    blame.time_passed(32.0, all_there=False, several_there=False)
    assert not blame.notice(0).suspects_run, "it begins anew"


def test_a_request_is_refused_for_five_minutes_and_may_then_be_tried_as_if_nothing_had_been() -> None:
    blame = _blame()
    blame.died(101.0, Death([_ran(_mark(1))], "-9", LaneKind.STAGE))
    blame.time_passed(400.75, all_there=True, several_there=True)
    assert _mark(1) in blame.notice(0).refused
    assert _mark(1) in blame.notice(0).suspects
    blame.told()
    blame.time_passed(401.0, all_there=True, several_there=True)
    assert blame.notice(0).refused == {}
    assert blame.notice(0).suspects == frozenset()
    assert blame.is_new


def test_of_very_many_that_are_refused_the_oldest_is_forgotten() -> None:
    blame = _blame()
    marks = [_mark(number) for number in range(1025)]
    for mark in marks[:1024]:
        blame.died(101.0, Death([_ran(mark)], "-9", LaneKind.STAGE))
    assert set(blame.notice(0).refused) == set(marks[:1024]) == set(blame.notice(0).suspects)
    blame.died(101.0, Death([_ran(marks[1024])], "-9", LaneKind.STAGE))
    assert set(blame.notice(0).refused) == set(marks[1:])
    assert len(blame.notice(0).suspects) == 1024


def test_of_two_things_under_way_each_is_half_as_suspect() -> None:
    blame = _blame()
    for number in range(1, 5):
        assert blame.notice(0).refused == {}
        blame.died(float(number), Death([_ran(_mark(1)), _load()], "7"))
    assert set(blame.notice(0).refused) == {_mark(1)}
    assert blame.notice(0).culprits["model", 0][0] == SET_ASIDE


def test_what_ended_within_the_last_second_is_suspect_where_nothing_was_under_way_and_the_stage_alone() -> None:
    blame = _blame()
    idle_load = _load()._replace(is_active=False, ended=9.5)
    blame.died(10.0, Death([_ran(_mark(1), ended=9.25), idle_load], "1"))
    assert blame.notice(0).suspects == {_mark(1)}
    assert ("model", 0) not in blame.notice(0).culprits
    blame = _blame()
    blame.died(10.0, Death([_ran(_mark(1), ended=9.0)], "1"))
    assert blame.notice(0).suspects == frozenset()


def test_what_overran_is_named_and_what_ran_beside_it_is_not() -> None:
    blame = _blame()
    late = _load()
    for _ in range(2):
        blame.died(61.0, Death([_ran(_mark(1)), late], "-9", LaneKind.LOAD))
    assert blame.notice(0).suspects == frozenset()
    assert blame.notice(0).culprits == {
        ("model", 0): (SET_ASIDE, "model 'model' took longer than 60 s again and again, so it is set aside for 10 s")
    }


def test_what_let_no_other_code_run_is_refused_with_that_reason() -> None:
    blame = _blame()
    blame.died(34.0, Death([_ran(_mark(1))], "-9", LaneKind.STAGE))
    told = blame.notice(0).refused[_mark(1)]
    assert told == "it let no other code of its worker run, so it is not tried again"


def test_one_request_that_overran_and_two_others_that_ended_workers_set_their_workflow_aside() -> None:
    blame = _blame()
    blame.died(101.0, Death([_ran(_mark(1))], "-9", LaneKind.STAGE))
    blame.died(102.0, Death([_ran(_mark(2))], "-9"))
    assert blame.notice(0).culprits[_WORKFLOW][0] == TRIED
    blame.died(103.0, Death([_ran(_mark(3))], "-9"))
    assert blame.notice(0).culprits[_WORKFLOW][0] == SET_ASIDE, "there is proof, so three are enough"


def test_a_workflow_with_a_number_that_no_name_belongs_to_is_called_by_its_number() -> None:
    blame = _blame()
    for number in range(3):
        blame.died(1.0, Death([_ran(_mark(number, 2), workflow=2)], "7"))
    assert blame.notice(0).culprits["workflow", 2][1].startswith("workflow '2' ended workers")


def test_a_model_that_is_killed_with_signal_9_is_on_trial_until_the_third_time() -> None:
    blame = _blame()
    for now in (1.0, 2.0):
        blame.died(now, Death([_load()], "-9"))
        assert blame.notice(0).culprits["model", 0][0] == TRIED
    blame.died(3.0, Death([_load()], "-9"))
    assert blame.notice(0).culprits["model", 0][0] == SET_ASIDE


def test_one_that_is_held_for_a_kill_is_let_in_and_for_its_own_end_is_tried_first() -> None:
    for status, state in (("-9", None), ("7", TRIED)):
        blame = _blame()
        blame.died(0.0, Death([_ran(_mark(1))], status))
        assert blame.notice(0).culprits[_WORKFLOW][0] == HELD
        blame.time_passed(1.0, all_there=False, several_there=True)
        assert (_WORKFLOW in blame.notice(0).culprits) == (state is not None)


def test_trials_last_from_when_suspects_may_run_again() -> None:
    blame = _blame()
    for number in range(2):
        blame.died(0.0, Death([_ran(_mark(number))], "7"))
    blame.time_passed(10.0, all_there=False, several_there=False)
    blame.time_passed(14.0, all_there=True, several_there=True)
    blame.time_passed(18.75, all_there=True, several_there=True)
    assert blame.notice(0).culprits[_WORKFLOW][0] == TRIED
    blame.time_passed(19.0, all_there=True, several_there=True)
    assert blame.notice(0).culprits == {}


def _aside(blame: Blame, now: float, *marks: bytes) -> None:
    for mark in marks:
        doing = Running(LaneKind.STAGE, True, 0, 0, now - 3.0, now + 60.0, math.inf, (mark,))
        blame.died(now, Death([doing], "-9", LaneKind.STAGE, put_aside=True))


def test_those_that_were_put_aside_take_turns_and_give_theirs_away_when_they_do_not_run() -> None:
    blame = Blame(["workflow"], [])
    first, second = bytes([0, 0, 1]) + bytes(13), bytes([0, 0, 2]) + bytes(13)
    _aside(blame, 10.0, first, second)
    assert blame.notice(0).aside == (first, second)
    assert blame.notice(0).refused == {}
    blame.time_passed(10.5, all_there=True, several_there=True)
    blame.time_passed(20.0, all_there=True, several_there=True, running=[first])
    assert blame.notice(0).aside == (first, second)
    blame.time_passed(22.5, all_there=True, several_there=True)
    assert blame.notice(0).aside == (second, first)
    blame.cleared(second)
    assert blame.notice(0).aside == (first,)
    blame.time_passed(80.0, all_there=True, several_there=True)
    assert blame.notice(0).aside == (), "its client has gone"
    assert blame.notice(0).suspects == frozenset()
