"""How the SLO is spread over a graph: the worked example, chains, nested regions, tangles."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway import Application, Configuration, Profile, Stage, Workflow
from fairway.configure.budgets.regions import Region, Tangle, chain_of
from fairway.configure.budgets.shares import Shares, normalised_lengths


def workflow_of(names: str, *edges: str) -> Workflow:
    return Workflow(tuple(Stage.of(name, 1.0) for name in names), tuple((edge[0], edge[1]) for edge in edges))


def quotas(shares: Shares, slo: float) -> list[float]:
    return [shares.quota(stage, slo) for stage in range(len(shares.workflow))]


def test_the_worked_example_of_a_region() -> None:
    shares = Shares(workflow_of("ABCDE", "AB", "AC", "CD", "BE", "DE"), (0.10, 0.30, 0.20, 0.25, 0.15))
    assert shares.chain == (0, Region(((1,), (2, 3))), 4)
    assert shares.total == pytest.approx(0.70)
    assert quotas(shares, 700.0) == pytest.approx([100, 450, 200, 250, 150])
    assert shares.groups == ((0,), (1,), (2, 3), (4,))
    assert shares.group_quota(2, 700.0) == pytest.approx(450)


def test_a_chain_is_shared_out_whole_and_grouped_in_threes() -> None:
    shares = Shares(workflow_of("abcde", "ab", "bc", "cd", "de"), (0.1, 0.2, 0.3, 0.25, 0.15))
    assert sum(quotas(shares, 2.0)) == pytest.approx(2.0)
    assert shares.groups == ((0, 1, 2), (3, 4))
    assert shares.share(0) == pytest.approx(0.6)
    assert shares.share(1) == pytest.approx(0.5 / 0.9)
    assert shares.share(3) == 1.0
    assert Shares(shares.workflow, shares.lengths, 1).groups == ((0,), (1,), (2,), (3,), (4,))
    assert Shares(shares.workflow, shares.lengths, 5).share(0) == 1.0


def test_regions_may_lie_inside_branches() -> None:
    nested = workflow_of("abcdefg", "ab", "bc", "bd", "ce", "de", "af", "eg", "fg")
    assert chain_of(nested) == (0, Region(((1, Region(((2,), (3,))), 4), (5,))), 6)
    shares = Shares(nested, (1.0, 2.0, 3.0, 1.0, 1.0, 3.0, 2.0))
    assert shares.weights == pytest.approx((1.0, 2.0, 3.0, 3.0, 1.0, 6.0, 2.0))
    assert shares.rests[1] == pytest.approx(shares.rests[5])


def test_what_is_not_series_parallel_is_a_tangle_with_room_for_every_way() -> None:
    tangled = workflow_of("abcdef", "ab", "ac", "bd", "be", "ce", "df", "ef")
    assert chain_of(tangled) == (0, Tangle((1, 2, 3, 4)), 5)
    shares = Shares(tangled, (1.0, 2.0, 1.0, 3.0, 1.0, 1.0))
    assert shares.groups == ((0,), (1,), (2,), (3,), (4,), (5,))
    assert shares.total == pytest.approx(7.0)
    for way in ((0, 1, 3, 5), (0, 1, 4, 5), (0, 2, 4, 5)):
        assert sum(shares.weights[stage] for stage in way) <= 7.0 + 1e-12
    assert shares.weights[2] == pytest.approx(2.5 / 1.0 * 1.0)  # half of the longest way, as its own way has 1 of 2


def test_edges_that_follow_from_others_change_nothing() -> None:
    assert chain_of(workflow_of("abc", "ab", "bc", "ac")) == (0, 1, 2)


def test_several_entries_and_ends_are_branches_from_nothing_to_nothing() -> None:
    assert chain_of(workflow_of("ab")) == (Region(((0,), (1,))),)
    assert chain_of(workflow_of("abc", "ac", "bc")) == (Region(((0,), (1,))), 2)
    assert chain_of(workflow_of("abc", "ab", "ac")) == (0, Region(((1,), (2,))))


def test_lengths_are_means_of_shares_over_common_configurations() -> None:
    one, two = Configuration(1, 1, 1), Configuration(2, 1, 1)
    profiles = [Profile.of({one: 1.0, two: 3.0}), Profile.of({two: 1.0, one: 1.0, Configuration(4, 1, 1): 9.0})]
    assert normalised_lengths(profiles) == pytest.approx(((0.5 + 0.75) / 2, (0.5 + 0.25) / 2))
    apart = [Profile.of({one: 1.0, Configuration(1, 2, 1): 2.0}), Profile.of({two: 4.5})]
    assert normalised_lengths(apart) == pytest.approx((0.25, 0.75))
    assert normalised_lengths([Profile.of({one: 0.0}), Profile.of({one: 0.0})]) == (0.5, 0.5)


@given(st.integers(2, 9), st.integers(0, 2**36 - 1), st.integers(1, 4), st.integers(0, 1000))
def test_no_way_through_a_graph_gets_more_than_the_whole(stages: int, edges: int, group: int, seed: int) -> None:
    pairs = [(source, target) for target in range(stages) for source in range(target)]
    chosen = [pair for number, pair in enumerate(pairs) if edges >> number & 1]
    names = [f"s{number}" for number in range(stages)]
    profiles = {
        name: Profile.of({Configuration(1, 1, 1): float(time)})
        for name, time in zip(names, np.random.default_rng(seed).uniform(0.1, 1, stages), strict=True)
    }
    application = Application.of(profiles, [(names[source], names[target]) for source, target in chosen], 1.0)
    shares = Shares.of(application, group)
    assert sorted(stage for each in shares.groups for stage in each) == list(range(stages))
    longest = application.workflow.critical_path(list(shares.lengths)).seconds
    assert shares.total == pytest.approx(longest)
    assert all(weight >= length - 1e-12 for weight, length in zip(shares.weights, shares.lengths, strict=True))
    for each in shares.groups:
        assert len(each) <= group
        for source, target in pairwise(each):
            assert target in application.workflow.successors[source]
    assert all(0 < shares.share(stage) <= 1 + 1e-12 for stage in range(stages))
