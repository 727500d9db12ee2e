"""What all policies keep that hand out whole gangs in some order: FIFO and shortest job first, with their options."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.allocate.policies.fifo import Fifo
from fairway.allocate.policies.shortest_job_first import ShortestJobFirst
from tests.allocate.policies.small_problems import NOWHERE, after, assert_whole, problems, same

POLICIES = [policy(*options) for policy in (Fifo, ShortestJobFirst) for options in product((False, True), repeat=2)]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("problem", NOWHERE)
def test_without_work_or_workers_nothing_is_given(policy, problem):
    decision = policy.allocate(problem)
    assert not decision.shares.any()
    assert decision.objective == 0.0


@given(st.sampled_from(POLICIES), problems(with_pairs=True), problems(with_pairs=True))
def test_gangs_are_whole_and_nothing_is_overbooked(policy, problem, later):
    first = policy.allocate(problem)
    assert_whole(first)
    assert_whole(policy.allocate(after(first, later)))


@given(st.sampled_from(POLICIES), problems(with_pairs=True))
def test_the_same_problem_has_the_same_answer(policy, problem):
    assert same(policy.allocate(problem), policy.allocate(replace(problem)))
