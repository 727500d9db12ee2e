"""The placement check, on accelerators of two types."""

from __future__ import annotations

import pytest

from fairway.errors import InputError
from fairway.live.backend.accelerators import Accelerator
from fairway.live.backend.answers import Refusal, RefusedError
from fairway.live.backend.commands import JobProgram, StartRun
from fairway.live.backend.placement import placed

THERE = {(one.type, one.number): one for one in (Accelerator("v100", 0), Accelerator("v100", 2), Accelerator("k80", 1))}


def start(*workers: int) -> StartRun:
    return StartRun(1, "job", JobProgram("true"), "v100", workers)


def test_each_rank_has_the_accelerator_of_its_number_and_type() -> None:
    assert [(one.type, one.number) for one in placed(start(2, 0), THERE)] == [("v100", 2), ("v100", 0)]


def test_what_is_not_there_is_named() -> None:
    with pytest.raises(RefusedError, match="there is no worker 'v100' 1 to place a rank on") as caught:
        placed(start(0, 1, 7), THERE)
    assert caught.value.code == Refusal.CANNOT_PLACE


def test_a_worker_has_one_rank() -> None:
    with pytest.raises(InputError, match=r"\[0, 2, 0\] given, expected each worker once"):
        placed(start(0, 2, 0), THERE)
