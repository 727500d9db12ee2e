"""Every policy answers drawn problems as it did, shares included, where more than one answer has the same objective."""

from __future__ import annotations

import json

import pytest

from tests.allocate.drawn_allocations import STORED, answers, policies

EXPECTED = json.loads(STORED.read_text())


def test_every_policy_is_among_them() -> None:
    assert list(EXPECTED) == list(policies())


@pytest.mark.parametrize("policy", list(policies()))
def test_answers_are_what_they_were(policy: str) -> None:
    found, expected = answers(policy), EXPECTED[policy]
    assert [type(each) for each in found] == [type(each) for each in expected]
    for one, other in zip(found, expected, strict=True):
        assert one == (other if isinstance(other, str) else pytest.approx(other, rel=1e-5, abs=1e-7))
