"""Details of the desk: what it learns of the noise of batches, and what an engine that begins later knows."""

from __future__ import annotations

import math

import pytest

from fairway.engine.serving.desk import DeskOptions
from fairway.engine.serving.messages import FAILED, Run
from tests.engine.serving.driver import Cluster
from tests.engine.serving.test_desk import PAIRS, served


def test_the_time_of_a_batch_that_succeeded_is_compared_with_its_profile() -> None:
    cluster = Cluster(served(stages="a"), "esg")
    cluster.takes = lambda _: 0.2  # the profile has 0.1
    cluster.ask(0)
    cluster.run()
    noise = cluster.desk.noise
    assert noise.tasks == 1
    assert noise.squares == pytest.approx(math.log(2.0) ** 2)


def test_a_batch_with_a_failure_says_nothing_of_the_noise() -> None:
    cluster = Cluster(served(stages="a"), "esg")
    cluster.fails = lambda _: {0: "no luck"}
    cluster.ask(0)
    cluster.run()
    assert cluster.desk.noise.tasks == 0
    assert cluster.refusals[0].code == FAILED


def test_one_of_a_batch_that_fails_does_not_keep_the_others_from_their_answers() -> None:
    cluster = Cluster(served(stages="ab", profile=PAIRS, workers=1), "esg")

    def fails(run: Run) -> dict[int, str]:
        return {1: "no luck"} if run.mates and run.stage == 0 else {}

    cluster.fails = fails
    cluster.ask(0)
    cluster.ask(1, 2, at=0.01)
    cluster.run()
    assert set(cluster.replies) == {0, 1}
    assert set(cluster.refusals) == {2}
    assert cluster.is_quiet()


def test_a_desk_prewarms_and_lets_jobs_wait_in_their_queue_unless_told_otherwise() -> None:
    cluster = Cluster(served(), "esg")
    assert cluster.options.desk is not None
    options = DeskOptions(cluster.options.desk.configurator, cluster.options.desk.applications)
    assert (options.holds_cold, options.prewarms, options.all_present) == (False, True, True)
