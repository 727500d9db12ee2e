"""What flags of ESG leave of a profile, what time a group gets, and plans of Orion and of query splitting, by hand."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from fairway import Application, Configuration, Platform, Profile, Queue, Stage, Workflow
from fairway.configure.budgets.query_split import split_slo
from fairway.configure.configurators.esg import Esg, EsgQueues
from fairway.configure.configurators.orion import Orion
from fairway.configure.platform import BARE
from fairway.configure.search.brute_force import search_everything
from fairway.configure.tables import Tables
from fairway.links import NO_TRANSFERS

PROFILE = Profile.of(
    {
        Configuration(b, c, g): 0.1 * b**0.8 / max(g, 1) ** 0.5 + 0.02 / c
        for b, c, g in product((1, 2), (1, 2), range(8))
    }
)
DRAWS = np.random.default_rng(0)


def queues(slo: float = 0.4, **options: object) -> EsgQueues:
    application = Application.of({"a": PROFILE, "b": PROFILE}, [("a", "b")], slo)
    return Esg(**options).prepare(application, BARE, DRAWS)  # type: ignore[arg-type]


@pytest.mark.parametrize("no_batching", [False, True])
@pytest.mark.parametrize("no_gpu_sharing", [False, True])
@pytest.mark.parametrize("mig_legal", [False, True])
def test_flags_leave_what_fits_all_of_them(no_batching: bool, no_gpu_sharing: bool, mig_legal: bool) -> None:
    rule = Esg(no_batching=no_batching, no_gpu_sharing=no_gpu_sharing, mig_legal=mig_legal)
    kept = rule.allowed(PROFILE, Platform(gpu=7))
    for configuration, is_kept in zip(PROFILE.configurations(), kept.tolist(), strict=True):
        fits = (
            (configuration.batch == 1 or not no_batching)
            and (configuration.gpu == 7 or not no_gpu_sharing)
            and (configuration.gpu in {0, 1, 2, 3, 4, 7} or not mig_legal)
        )
        assert is_kept == fits


def test_a_group_of_one_stage_gets_its_share_of_the_time_left() -> None:
    """Two stages that are alike: the first of them gets half of what is left, the last all of it."""
    parts = queues(group_size=1)
    assert parts.budget(Queue(0, 1, 0.3)) == pytest.approx(0.15)
    assert parts.budget(Queue(1, 1, 0.3)) == pytest.approx(0.3)
    kept_back = queues(group_size=1, margin=0.2)
    assert kept_back.budget(Queue(0, 1, 0.3)) == pytest.approx(0.12)
    assert queues().budget(Queue(0, 1, 0.3)) == pytest.approx(0.3), "both are one group"


def test_a_fixed_quota_is_of_the_slo_less_what_the_group_has_taken() -> None:
    parts = queues(group_size=1, fixed_quota=True)
    assert parts.budget(Queue(0, 1, 9.0, in_group=0.05)) == pytest.approx(0.2 - 0.05)
    assert queues(group_size=1, fixed_quota=True, margin=0.5).budget(Queue(1, 1, 9.0)) == pytest.approx(0.1)


def test_the_margin_of_the_noise_is_at_least_the_one_that_is_given() -> None:
    assert queues(margin=0.3).margin(0, 9.0) == 0.3
    noisy = queues(margin=0.01, noise_margin=True)
    assert noisy.margin(0, 0.0) == 0.01
    assert noisy.margin(0, 0.5) > 0.1


def test_what_is_forced_out_is_the_smallest_that_there_is() -> None:
    odd = Profile.of({Configuration(b, c, g): 0.1 for b, c, g in [(2, 1, 1), (1, 4, 2), (1, 2, 2), (1, 1, 3)]})
    parts = Esg().prepare(Application.of({"a": odd}, [], 0.4), BARE, DRAWS)
    assert parts._smallest == (Configuration(1, 2, 2),)
    assert queues()._smallest == (Configuration(1, 1, 1),) * 2


@pytest.mark.parametrize("no_batching", [False, True])
def test_orion_batches_unless_told_not_to(no_batching: bool) -> None:
    application = Application.of({"a": PROFILE}, [], 5.0)
    decision = Orion(samples=50, no_batching=no_batching).prepare(application, BARE, DRAWS)
    ((configuration,),) = [[decision.plan[0]]]
    assert (configuration.batch == 1) is no_batching


def chain(*names: str) -> Workflow:
    return Workflow(tuple(Stage.of(name, 1.0) for name in names), tuple(pairwise(names)))


def test_a_stage_gets_time_for_twice_the_batch_that_needs_the_fewest_accelerators() -> None:
    """In batches of 8, a request of the first stage takes half as much; twice 0.4 s and twice 0.1 s are the SLO."""
    assert split_slo(chain("a", "b"), [[(1, 0.1), (8, 0.4)], [(1, 0.1)]], 1.0) == pytest.approx((0.8, 0.2))
    # With a little less, the large batch has no time to wait for the next: each runs alone, and they share the time.
    assert split_slo(chain("a", "b"), [[(1, 0.1), (8, 0.4)], [(1, 0.1)]], 0.99) == pytest.approx((0.495, 0.495))


def test_where_nothing_waits_for_another_batch_in_time_once_has_to_do_and_then_the_shortest() -> None:
    assert split_slo(chain("a", "b"), [[(1, 0.3)], [(1, 0.1)]], 0.5, rounds=2) == pytest.approx((0.375, 0.125))
    assert split_slo(chain("a", "b"), [[(2, 0.9), (1, 0.6)], [(1, 0.2)]], 0.4) == pytest.approx((0.3, 0.1))


def test_what_a_task_adds_is_given_for_the_first_stage_and_as_planned_for_the_others() -> None:
    """One second each: half a second before the first, which is known, and the overhead of 0.25 s before the second."""
    one = Profile.of({Configuration(1, 1, 1): 1.0})
    application = Application.of({"a": one, "b": one}, [("a", "b")], 9.0)
    tables = Tables(application, Platform(transfers=NO_TRANSFERS, overhead_seconds=0.25))
    (found,) = search_everything(tables, (0, 1), 1, 9.0, 1, 0.5).candidates
    assert found.seconds == pytest.approx(2.75)
    assert search_everything(tables, (0, 1), 1, 2.74, 1, 0.5).candidates == ()
    assert search_everything(tables, (0, 1), 1, 2.75, 1, 0.5).feasible


def test_only_stages_that_wait_for_none_of_the_others_go_by_the_queue() -> None:
    sizes = Profile.of({Configuration(1, 1, 1): 1.0, Configuration(4, 1, 1): 2.0})
    application = Application.of({"a": sizes, "b": sizes}, [("a", "b")], 9.0)
    (found, *_) = search_everything(Tables(application, BARE), (0, 1), 2, 9.0, 5).candidates
    assert [found.plan[stage].batch for stage in (0, 1)] == [1, 4]
    assert search_everything(Tables(application, BARE), (0, 1), 4, 9.0, 5).candidates[0].plan[0].batch == 4
