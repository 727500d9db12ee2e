"""A policy that never decides, with the real controller: the other jobs go on, and the job to blame says why."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest

from fairway.allocate.policy import UndecidedError
from fairway.allocate.problem import Problem
from fairway.engine.training.what_if import snapshot
from fairway.errors import InputError
from fairway.jobs.description import job_of
from fairway.live.training import loop
from fairway.live.training.decision.process import FOR_QUESTIONS, FOR_ROUNDS, BudgetedPolicy, BusyError, DecisionProcess
from fairway.store.states import JobState
from tests.live.training.endless_policy import CRASHING, ENDLESS, ENDLESS_ALONE, FAILING, EndlessPolicy
from tests.live.training.invariants import check_journal
from tests.live.training.site import Site, until

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc, as on Linux")

BUDGET = 1.0


@pytest.fixture
def site(tmp_path: Path) -> Site:
    policy = "tests.live.training.endless_policy:EndlessPolicy"
    return Site(tmp_path, emulate="v100=2", policy=policy, round_seconds=0.3, decision_seconds=BUDGET)


def problem(*weights: float) -> Problem:
    return Problem.of_arrays({"v100": 1}, [[1.0]] * len(weights), weights=list(weights))


def undecided(ask: Callable[..., object], *arguments: object) -> None:
    with pytest.raises(UndecidedError):
        ask(*arguments)


@pytest.mark.parametrize(
    ("weight", "why"),
    [(ENDLESS, "took more than 1 s"), (FAILING, "ZeroDivisionError"), (CRASHING, "ended the process")],
)
def test_the_job_with_which_no_decision_comes_about_is_set_aside_and_the_others_run(
    site: Site, weight: float, why: str
) -> None:
    with site:
        runs = site.submit("sleep 1000")
        until(lambda: site.job(runs).state is JobState.RUNNING, "for the first job to run")
        to_blame = site.submit("sleep 1000", weight=weight)
        until(lambda: site.job(to_blame).reason_code == "Unrunnable", "for the job to be set aside")
        reason = site.job(to_blame).reason
        assert reason is not None
        assert why in reason
        later = site.submit("true")
        until(lambda: site.job(later).state is JobState.SUCCEEDED, "for a later job")
        assert site.job(runs).state is JobState.RUNNING
        assert site.job(runs).attempts == 1
        until(lambda: site.job(to_blame).state is JobState.QUEUED, "for what it ran to end")
        until(lambda: site.job(to_blame).reason_code == "Unrunnable", "for the reason to stay")
        until(lambda: site.controller.healthy, "for a decision to come about")
        site.cancel(to_blame)
        until(lambda: site.job(to_blame).state is JobState.CANCELLED, "for it to be cancelled")


def test_of_several_new_jobs_only_the_one_to_blame_stays_set_aside(site: Site) -> None:
    with site:
        specs = ({"run": "sleep 1000", "weight": weight} for weight in (1.0, ENDLESS))
        innocent, to_blame = site.submit_together(*specs)
        until(lambda: site.job(to_blame).reason_code == "HeldBack", "for the newer half to be held back")
        until(lambda: site.job(innocent).state is JobState.RUNNING, "for the other half")
        until(lambda: site.job(to_blame).reason_code == "Unrunnable", "for the job to blame to be found")
        assert site.job(innocent).attempts == 1
        check_journal(site.store)  # what was given up is not decided again


def test_while_it_decides_questions_are_answered_and_it_turns_unhealthy_when_a_round_is_late(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "_LATE_SECONDS", 0.5)
    with site:
        until(lambda: site.controller.healthy, "for it to be healthy at first")
        site.submit("sleep 1000")
        site.submit("sleep 1000", weight=ENDLESS)
        until(lambda: not site.controller.healthy, "for a late round to be noticed")
        assert site.controller.statistics().started_at > 0  # what other threads ask is answered
        until(lambda: site.controller.healthy, "for it to be healthy again")


def test_a_controller_whose_loop_is_stuck_is_not_healthy(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "_LATE_SECONDS", 1.5)  # a turn takes a second
    with site:
        until(lambda: site.controller.healthy, "for it to be healthy at first")
        stuck = Thread(target=site.controller.look, args=(lambda _: time.sleep(4.0),))
        stuck.start()
        until(lambda: not site.controller.healthy, "for it to be noticed")
        stuck.join()
        until(lambda: site.controller.healthy, "for it to be healthy again")


def test_a_job_whose_trial_never_ends_is_refused_and_holds_up_no_other(site: Site) -> None:
    with site:
        hostile = job_of({"run": "sleep 1", "weight": ENDLESS_ALONE}, "job")
        friendly = job_of({"run": "sleep 1", "steps": 5}, "job")
        refused: list[str] = []

        def submit() -> None:
            with pytest.raises(InputError) as caught:
                site.controller.check(hostile)
            refused.append(str(caught.value))

        trial = Thread(target=submit)
        trial.start()
        site.controller.check(friendly)
        trial.join()
        assert "policy 'endless' cannot decide about it: policy 'endless' took more than 1 s to decide" in refused[0]


def test_a_copy_of_the_engine_is_asked_in_another_process_than_rounds_are(site: Site) -> None:
    with site:
        engine = site.controller.look(snapshot)
        FOR_QUESTIONS.warm_up(EndlessPolicy())
        began = time.monotonic()
        asked = Thread(target=undecided, args=(engine.policy.allocate, problem(ENDLESS, 1.0)))
        asked.start()
        job = site.submit("true")
        until(lambda: site.job(job).state is JobState.SUCCEEDED, "for a job beside the question")
        asked.join()
        assert time.monotonic() - began >= BUDGET


def test_a_process_that_has_something_to_decide_says_so() -> None:
    process = DecisionProcess()
    try:
        process.warm_up(EndlessPolicy())
        asked = Thread(target=undecided, args=(process.decide, EndlessPolicy(), problem(ENDLESS, 1.0), 2.0))
        asked.start()
        until(process._lock.locked, "for the question to be asked")
        with pytest.raises(BusyError):
            process.decide(EndlessPolicy(), problem(1.0), 2.0, wait=0.0)
        asked.join()
        assert process.decide(EndlessPolicy(), problem(1.0), 30.0).shares.tolist() == [[1.0]]
    finally:
        process.close()


def test_what_is_decided_elsewhere_is_what_would_be_decided_here() -> None:
    policy = EndlessPolicy()
    first = policy.allocate(problem(1.0, 2.0))
    second = Problem(**{**problem(1.0, 2.0, 3.0).__dict__, "previous": first})
    here, there = policy.allocate(second), BudgetedPolicy(policy, 30.0).allocate(second)
    assert there.shares.tolist() == here.shares.tolist()
    assert (there.objective, there.ids, there.problem.previous) == (here.objective, here.ids, None)
    assert BudgetedPolicy(policy, 30.0).name == "endless"


def test_the_process_that_decides_ends_with_its_controller() -> None:
    FOR_ROUNDS.warm_up(EndlessPolicy())
    process = FOR_ROUNDS._process
    assert process is not None
    before = process.pid
    os.kill(before, signal.SIGKILL)  # and should it die alone, the next decision starts another
    process.wait()
    assert FOR_ROUNDS.decide(EndlessPolicy(), problem(1.0), 30.0).shares.tolist() == [[1.0]]
    assert FOR_ROUNDS._process is not None
    assert FOR_ROUNDS._process.pid != before
