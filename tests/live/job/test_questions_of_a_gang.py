"""When a rank asks the others, and how many steps it proposes to do before it asks again."""

from __future__ import annotations

import pytest

from fairway.live.job import remote_gang as module
from fairway.live.job.remote_gang import ANSWER, DEEDS, QUESTION, SAVE, STOP, RemoteGang


class Rank(RemoteGang):
    """A rank whose questions are answered by the test."""

    def __init__(self) -> None:
        super().__init__("[::1]:80", "s", 3)
        self.questions: list[tuple[int, ...]] = []
        self.answers: list[tuple[int, int]] = []

    def _answer_to(self, question: bytes) -> bytes:
        self.questions.append(QUESTION.unpack(question))
        return ANSWER.pack(*self.answers.pop(0))


def test_it_asks_when_what_was_agreed_is_done_or_at_once_for_a_wish() -> None:
    rank = Rank()
    step = DEEDS.index("step")
    rank.answers = [(step, 10), (DEEDS.index("save"), 10), (step, 10), (DEEDS.index("stop"), 11)]
    assert rank.next(5, stop=False, save=False) == "step"
    assert [rank.next(done, stop=False, save=False) for done in (6, 9)] == ["step", "step"]
    assert len(rank.questions) == 1
    assert rank.next(9, stop=False, save=True) == "save"
    assert rank.next(9, stop=True, save=False) == "step"
    assert rank.next(10, stop=True, save=True) == "stop"
    assert [(done, wishes, number) for done, _, wishes, number in rank.questions] == [
        (5, 0, 3), (9, SAVE, 3), (9, STOP, 3), (10, STOP | SAVE, 3),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("seconds_each", "ahead"), [(0.1, 1), (0.02, 1), (0.01, 2), (0.004, 5), (1e-6, 1000), (0.0, 1000)]
)
def test_it_proposes_as_many_steps_as_are_done_until_one_would_notice(
    monkeypatch: pytest.MonkeyPatch, seconds_each: float, ahead: int
) -> None:
    rank = Rank()
    moments = iter([0.0, 8 * seconds_each])
    monkeypatch.setattr(module.time, "monotonic", lambda: next(moments))
    rank.answers = [(DEEDS.index("step"), 0)] * 2
    rank.next(10, stop=False, save=False)
    rank.next(18, stop=False, save=False)
    assert [question[1] for question in rank.questions] == [1, ahead]


def test_a_rank_that_has_not_come_further_proposes_one(monkeypatch: pytest.MonkeyPatch) -> None:
    rank = Rank()
    moments = iter([0.0, 1.0])
    monkeypatch.setattr(module.time, "monotonic", lambda: next(moments))
    rank.answers = [(DEEDS.index("step"), 0)] * 2
    for _ in range(2):
        rank.next(10, stop=False, save=False)
    assert [question[1] for question in rank.questions] == [1, 1]
