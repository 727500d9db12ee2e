"""Things by name with options: flags, words and numbers."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from fairway.errors import InputError
from fairway.options import named


@dataclass(frozen=True)
class Thing:
    fast: bool = False
    colour: str | None = None
    factor: float = 1.5
    count: int = 3


KNOWN = {"thing": Thing}


def test_options_are_fields_of_the_class() -> None:
    assert named("thing", " thing ", KNOWN) == Thing()
    assert named("thing", "thing:fast,colour=red,factor=2", KNOWN) == Thing(fast=True, colour="red", factor=2.0)
    assert named("thing", "thing:count=12", KNOWN) == Thing(count=12)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("thin", "thing 'thin' is not known, did you mean 'thing'?; known: thing"),
        (
            "thing:fats",
            "thing 'thing' has no option 'fats', did you mean 'fast'?; options: colour, count, factor, fast",
        ),
        ("thing:fast=1", "thing 'thing': 'fast=1' given, expected 'fast'"),
        ("thing:colour", "thing 'thing': 'colour' given, expected 'colour=VALUE'"),
        ("thing:factor=much", "thing 'thing': factor: 'much' given, expected a number >= 0, as in '1.5'"),
        ("thing:count=1.5", "thing 'thing': count: '1.5' given, expected a whole number >= 0, as in '3'"),
        ("thing:factor=-1", "thing 'thing': factor: '-1' given, expected a number >= 0, as in '1.5'"),
    ],
)
def test_what_is_not_known_is_refused_with_what_is(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        named("thing", text, KNOWN)
    assert str(caught.value) == message
