"""What engines share: stories, and commands of which only some fields matter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import pytest

from fairway.engine.protocol import Story, TransitionError, like


class Arrived(NamedTuple):
    key: int
    size: int = 1

    @property
    def cause(self) -> str:
        return f"request {self.key}"


@dataclass(frozen=True, slots=True)
class Started:
    key: int
    worker: str = "w0"


def test_a_story_is_told_of_one_cause_oldest_first() -> None:
    story: Story[Arrived] = Story()
    for now, event in ((0.5, Arrived(1)), (1.0, Arrived(2)), (1.5, Arrived(1, 3))):
        story.remember((now, event))
    assert story.of("request 1").splitlines() == [
        "  0.500000 s: Arrived(key=1, size=1)",
        "  1.500000 s: Arrived(key=1, size=3)",
    ]
    assert story.of("request 9") == "  nothing is remembered of request 9"


def test_a_story_forgets_the_oldest_events() -> None:
    story: Story[Arrived] = Story(events=2)
    for key in (1, 2, 3):
        story.remember((0.0, Arrived(key)))
    assert "nothing" in story.of("request 1")
    assert "Arrived" in story.of("request 3")


def test_an_error_carries_the_story() -> None:
    story: Story[Arrived] = Story()
    story.remember((2.0, Arrived(7)))
    with pytest.raises(TransitionError, match=r"request 7 arrives twice:\n  2\.000000 s: Arrived\(key=7"):
        raise story.error("request 7", "request 7 arrives twice")


def test_like_compares_the_named_fields_only() -> None:
    assert [Arrived(1, 5), Started(2)] == [like(Arrived, key=1), like(Started)]
    assert Arrived(1) != like(Arrived, key=2)
    assert Started(1) != like(Arrived, key=1)
    assert [Started(1, "w3")] != [like(Started, worker="w4")]


def test_like_refuses_a_field_that_does_not_exist() -> None:
    with pytest.raises(TypeError, match="Arrived has no field 'kex', but key, size"):
        like(Arrived, kex=1)
