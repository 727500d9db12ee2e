"""Which requests come in, wait, or are refused."""

from __future__ import annotations

from typing import Any

from fairway.live.serving.runtime.door import Door, Refusal
from fairway.live.serving.supervise.blame import HELD, SET_ASIDE, TRIED, Notice

_MARK, _OTHER = b"m" * 16, b"o" * 16


def _notice(**news: Any) -> Notice:
    nothing: dict[str, Any] = {
        "refused": {}, "suspects": frozenset(), "again": frozenset(), "suspects_run": True, "culprits": {},
        "tries_at": 0, "aside": (),
    }  # fmt: skip
    return Notice(**{**nothing, **news})


def _door(**news: Any) -> Door:
    door = Door(0, [[], [4]])
    door.heard(_notice(**news))
    return door


def test_requests_wait_until_the_supervisor_has_said_what_workers_die_of() -> None:
    door = Door(0, [[]])
    assert not door.lets_in(1, 0, _MARK)
    door.heard(_notice())
    assert door.lets_in(1, 0, _MARK)


def test_what_workers_die_of_is_refused() -> None:
    door = _door(refused={_MARK: "it ended workers"})
    assert door.refusal(0, _MARK) == Refusal("it ended workers", "failed")
    assert door.refusal(0, _OTHER) is None


def test_a_suspect_waits_until_it_cannot_take_the_last_worker_along() -> None:
    door = _door(suspects=frozenset([_MARK]), suspects_run=False)
    assert not door.lets_in(1, 0, _MARK)
    assert door.lets_in(2, 0, _OTHER)
    door.heard(_notice(culprits={("workflow", 0): (HELD, "")}))
    assert not door.lets_in(3, 0, _OTHER)
    assert door.lets_in(4, 1, _OTHER)
    door.heard(_notice(suspects=frozenset([_MARK])))
    assert door.lets_in(1, 0, _MARK)


def test_a_workflow_that_is_set_aside_or_needs_such_a_model_is_refused() -> None:
    aside = {("workflow", 0): (SET_ASIDE, "again and again")}
    assert _door(culprits=aside).refusal(0, _MARK) == Refusal("again and again", "unplaceable")
    assert _door(culprits=aside).refusal(1, _MARK) is None
    assert _door(culprits={("model", 4): (SET_ASIDE, "its load")}).refusal(1, _MARK) == Refusal(
        "its load", "unplaceable"
    )


def test_on_trial_one_comes_in_at_a_time_and_at_one_door() -> None:
    culprits = {("workflow", 0): (TRIED, "")}
    door = _door(culprits=culprits)
    assert door.lets_in(1, 0, _MARK)
    assert not door.lets_in(2, 0, _OTHER)
    assert door.lets_in(3, 1, _OTHER)
    door.is_over(2, 0)
    assert not door.lets_in(2, 0, _OTHER)
    door.is_over(1, 0)
    assert door.lets_in(2, 0, _OTHER)
    assert not _door(culprits=culprits, tries_at=1).lets_in(1, 0, _MARK)


def test_of_those_that_were_put_aside_one_comes_in_at_a_time_and_nothing_else_of_a_workflow_on_trial() -> None:
    first, second, other = (
        number.to_bytes(2) + bytes(13) + bytes([place]) for place, number in ((1, 0), (2, 0), (3, 1))
    )
    door = _door()
    door.heard(_notice(suspects=frozenset({first, second}), aside=(first, second)))
    assert door.may_hang(first)
    assert not door.may_hang(other)
    assert [door.lets_in(key, 0, mark) for key, mark in enumerate((first, second))] == [True, False]
    assert door.lets_in(3, 0, bytes(16)), "the workflow is not on trial"
    assert not door.calls_back(0, second)
    door.heard(_notice(aside=(first, second), culprits={("workflow", 0): ("tried", "")}))
    assert door.calls_back(0, second)
    assert not door.calls_back(0, first)
    assert not door.lets_in(4, 0, bytes(16))
    assert door.lets_in(5, 1, other)
