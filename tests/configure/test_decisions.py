"""The parts of a decision: which queue is asked first, what a batch waits for, when copies begin, what is kept back."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway import (
    Application,
    Candidates,
    Capacity,
    Choice,
    Configuration,
    FairwayError,
    InputError,
    Platform,
    Prices,
    Profile,
    Queue,
    Wait,
    configurator_of,
)
from fairway.configure.budgets.margins import NoiseEstimate, margin_of_noise, spread_of
from fairway.configure.budgets.shares import Shares
from fairway.configure.fetches import Fetches
from fairway.configure.platform import BARE
from fairway.configure.queues import Decision, Drop
from fairway.configure.turns import Turns, recheck_pass, ring_pass, slack_pass
from fairway.configure.warmth import Gaps, prewarm_entry, prewarm_later
from tests.configure.problems import chain

PROFILE = Profile.of(
    {Configuration(b, c, g): 0.1 * b**0.8 / g**0.5 + 0.02 / c for b in (1, 2, 4) for c in (1, 2, 4) for g in (1, 2, 7)}
)


def application(slo: float = 0.3, **options: object) -> Application:
    return Application.of({"a": PROFILE, "b": PROFILE}, [("a", "b")], slo, input_bytes={"a": 10**6, "b": 10**6})


def asked(lengths: list[int], succeeds: dict[int, int]) -> tuple[list[int], object]:
    """Who was asked, and a way to ask: queue q starts `succeeds[q]` tasks and then fails."""
    order: list[int] = []

    def ask(queue: int) -> bool:
        order.append(queue)
        if succeeds.get(queue, 10**9) <= 0:
            return False
        succeeds[queue] = succeeds.get(queue, 10**9) - 1
        lengths[queue] -= 1
        return True

    return order, ask


def test_a_failed_queue_is_on_the_recheck_list_until_something_starts() -> None:
    turns, lengths = Turns(3), [2, 1, 1]
    order, ask = asked(lengths, {0: 0})
    recheck_pass(turns, lengths, ask)
    assert (order, turns.recheck, turns.failures, turns.last) == ([0, 1, 2], [0], {0: 1}, 2)
    lengths[1] = 1
    order, ask = asked(lengths, {0: 1, 1: 0})
    recheck_pass(turns, lengths, ask)
    # Rechecked once and served; then around from queue 0 on, where the next job fails.
    assert (order, turns.recheck, turns.failures) == ([0, 0, 1], [0, 1], {0: 1, 1: 1})


def test_the_ring_goes_on_after_the_queue_served_last() -> None:
    turns, lengths = Turns(4), [1, 1, 0, 0]
    order, ask = asked(lengths, {})
    ring_pass(turns, lengths, ask)
    assert (order, turns.last) == ([0, 1], 1)
    lengths[:] = [1, 1, 1, 2]
    order, ask = asked(lengths, {1: 0})
    ring_pass(turns, lengths, ask)
    assert order == [2, 3, 3, 0, 1]
    assert turns.recheck == []


def test_the_least_slack_goes_first() -> None:
    turns, lengths = Turns(3), [2, 1, 1]
    order, ask = asked(lengths, {2: 0})
    slack_pass(turns, lengths, lambda queue: [0.5, 0.9, 0.1][queue], ask)
    assert order == [2, 0, 0, 1]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=6), st.lists(st.integers(0, 4), min_size=6, max_size=6))
def test_every_queue_is_asked_until_empty_or_failed(lengths: list[int], allowed: list[int]) -> None:
    turns, left = Turns(len(lengths)), list(lengths)
    order, ask = asked(left, dict(enumerate(allowed)))
    recheck_pass(turns, left, ask)
    for queue, length in enumerate(lengths):
        assert order.count(queue) == min(length, allowed[queue] + 1)
        assert (queue in turns.recheck) == (length > allowed[queue])


def test_no_more_is_taken_than_there_is() -> None:
    capacity = Capacity.idle(2)
    capacity.take(0, 16, 3)
    assert capacity.used() == pytest.approx((0.5, 3 / 14))
    with pytest.raises(FairwayError, match="worker 0 has 0 CPUs and 4 slices free, a task of 1 and 1 was to start"):
        capacity.take(0, 1, 1)
    assert not capacity.fits(0, 1, 1)
    assert capacity.has_room(16, 7), "all of worker 1 is free"
    capacity.give(0, 16, 3)
    assert capacity.used() == (0.0, 0.0)
    with pytest.raises(InputError, match="workers: 0 given"):
        Capacity.idle(0)


def test_a_worker_that_is_gone_has_no_room_until_it_is_back() -> None:
    capacity = Capacity.idle(2, 4, 2)
    capacity.take(0, 3, 1)
    capacity.leave(0)
    assert not capacity.fits(0, 0, 1)
    capacity.take(1, 4, 2)
    assert not capacity.has_room(1, 0)
    capacity.join(0)
    assert capacity.fits(0, 4, 2), "it is back with nothing to do"


def test_a_fetch_is_local_if_one_worker_has_it_all_and_room() -> None:
    app = Application(application().workflow, application().profiles, 0.3, cold_seconds=(5.0, 7.0))
    fetches, capacity = Fetches.of(app, Platform()), Capacity.idle(2)
    local, remote = 0.001 + 0.0005, 0.001 + 2 * (0.005 + 0.0008)
    assert fetches.expected(Queue(0, 1, 1.0), capacity) == pytest.approx(0.001 + 0.005 + 0.0008)
    assert fetches.expected(Queue(1, 1, 1.0, [(1,)]), capacity) == pytest.approx(local)
    assert fetches.expected(Queue(1, 1, 1.0, [(1,)]), capacity, local=False) == pytest.approx(remote)
    assert fetches.expected(Queue(1, 1, 1.0, [(1, 0)]), capacity) == pytest.approx(remote)
    cold = Queue(1, 1, 1.0, [(1,)], warm=np.zeros(2, np.bool_))
    assert fetches.expected(cold, capacity) == pytest.approx(local + 7.0)
    capacity.take(1, 16, 0)
    assert fetches.expected(Queue(1, 1, 1.0, [(1,)]), capacity) == pytest.approx(remote)


def test_copies_are_begun_a_cold_start_early() -> None:
    assert prewarm_later(10.0, 3.0) == 7.0
    assert prewarm_later(2.0, 3.0) == 0.0
    gaps = Gaps().after(10.0)
    assert prewarm_entry(gaps, 10.0, 3.0) is None
    gaps = gaps.after(14.0).after(16.0)
    assert gaps.mean == pytest.approx(0.3 * 2 + 0.7 * 4)
    assert prewarm_entry(gaps, 16.0, 3.0) == pytest.approx(0.4)
    assert prewarm_entry(gaps, 16.0, 9.0) == 0.0


def test_the_margin_follows_the_noise() -> None:
    shares = Shares.of(application())
    assert spread_of(shares, 1) == pytest.approx(1.0)
    assert spread_of(shares, 0) == pytest.approx(math.sqrt(0.5))
    assert margin_of_noise(1.0, 0.0) == 0.0
    assert margin_of_noise(1.0, 0.08) == pytest.approx(1 - 1 / 1.16)
    measured = NoiseEstimate()
    assert measured.noise == 0.0
    for draw in np.random.default_rng(0).normal(0, 0.08, 5000):
        measured.add(math.exp(draw), 1.0)
    assert measured.noise == pytest.approx(0.08, rel=0.05)


def decide(name: str, queue: Queue, capacity: Capacity | None = None, slo: float = 0.3) -> Decision:
    prepared = configurator_of(name).prepare(application(slo), BARE, np.random.default_rng(0))
    return prepared.decide(queue, capacity or Capacity.idle(2))


def first_choice(name: str, queue: Queue, capacity: Capacity | None = None, slo: float = 0.3) -> Choice:
    """What would start on a worker with room for anything."""
    decision = decide(name, queue, capacity, slo)
    assert isinstance(decision, Candidates)
    return decision.choices[0]


def test_the_more_time_is_left_the_cheaper_the_configuration() -> None:
    rates = []
    for left in (0.05, 0.08, 0.1, 0.11, 0.3):
        rates.append(first_choice("esg:no-batching", Queue(1, 4, left, [(0,)] * 4)).configuration.gpu)
    assert rates == sorted(rates, reverse=True)
    assert rates[0] > rates[-1]


def test_options_change_what_starts() -> None:
    plenty = Queue(0, 4, 9.0)
    assert first_choice("esg", plenty).configuration.batch == 4
    assert first_choice("esg:no-batching", plenty).configuration.batch == 1
    assert first_choice("esg:no-gpu-sharing", plenty).configuration.gpu == 7
    late = Queue(0, 1, -1.0)
    assert first_choice("esg", late) == (Configuration(1, 4, 7), "best-effort")
    assert first_choice("esg:shed", late).kind == "shed"
    assert first_choice("esg:shed", late).configuration.gpu == 1
    assert first_choice("front", late).kind == "shed"
    assert decide("front:late=refuse", late) == Drop(1)
    assert decide("front:late=refuse", plenty) == decide("front", plenty)
    with pytest.raises(InputError, match="front: late: 'last' given, expected one of refuse, serve"):
        decide("front:late=last", late)
    fixed = Queue(0, 1, 0.3, in_group=0.29)
    assert first_choice("esg", fixed).kind == "planned"
    assert first_choice("esg:fixed-quota", fixed).kind == "best-effort"


@pytest.mark.parametrize("left", [0.02, 0.15, 0.2, 0.3, 0.6, 9.0])
@pytest.mark.parametrize("length", [1, 2, 5])
def test_every_search_of_esg_starts_the_same(left: float, length: int) -> None:
    queue = Queue(0, length, left)
    assert decide("esg:search=layered", queue) == decide("esg:search=a-star", queue) == decide("esg", queue)


def test_a_plan_made_at_arrival_keeps_the_margin_back() -> None:
    """With half of the time kept back, the plan is that of half of the time."""
    queue = Queue(0, 1, 0.5)
    assert decide("esg:no-replan,margin=0.5", queue, slo=0.2) == decide("esg:no-replan", queue, slo=0.1)
    assert decide("esg:no-replan", queue, slo=0.2) != decide("esg:no-replan", queue, slo=0.1)


def test_a_queue_that_failed_twice_is_forced_out_with_the_smallest() -> None:
    hasty = Queue(0, 1, 0.1)
    planned = decide("esg:k=1", hasty)
    assert isinstance(planned, Candidates)
    ((configuration, _),) = planned.choices
    assert (configuration.cpu, configuration.gpu) > (1, 1)
    forced = decide("esg:k=1", hasty._replace(failures=2))
    assert forced == Candidates((*planned.choices, Choice(Configuration(1, 1, 1), "forced")))
    assert decide("esg:k=1", hasty._replace(failures=1)) == planned
    assert decide("esg:k=1,forced-after=0", hasty._replace(failures=9)) == planned
    assert decide("esg:no-gpu-sharing", hasty._replace(failures=9)) == decide("esg:no-gpu-sharing", hasty)


def test_as_many_sizes_are_tried_as_asked_for_the_best_first() -> None:
    queue = Queue(0, 4, 9.0)
    three = decide("esg:k=3", queue)
    assert isinstance(three, Candidates)
    assert len({choice.configuration for choice in three.choices}) == 3
    assert three.choices[0] == first_choice("esg:k=1", queue)
    assert three.value is None


def test_infless_waits_for_a_batch_that_will_fill() -> None:
    filling = Queue(0, 1, 4.0, rate=50.0, waited=0.0)
    waiting = decide("infless", filling, slo=4.0)
    assert isinstance(waiting, Wait)
    assert 0 < waiting.seconds < 4.0
    for ready in (filling._replace(waited=4.0), filling._replace(length=5)):
        decision = decide("infless", ready, slo=4.0)
        assert isinstance(decision, Candidates)
        assert {choice.configuration.batch for choice in decision.choices} == {4}


def worth(name: str, queue: Queue, prices: Prices, left: tuple[int, int]) -> dict[Configuration, float]:
    """What each of the choices is worth on a worker that it leaves so much free on."""
    prepared = configurator_of(name).prepare(application(), replace(BARE, prices=prices), np.random.default_rng(0))
    decision = prepared.decide(queue, Capacity.idle(2))
    assert isinstance(decision, Candidates)
    assert decision.value is not None
    return {choice.configuration: decision.value(position, *left) for position, choice in enumerate(decision.choices)}


@pytest.mark.parametrize("left", [(0, 0), (3, 2), (16, 7)])
@pytest.mark.parametrize("efficiency", [False, True])
def test_infless_counts_speed_for_what_stays_free_of_the_worker(efficiency: bool, left: tuple[int, int]) -> None:
    prices, name = Prices(0.034, 0.67), "infless:efficiency" if efficiency else "infless"
    unused = (left[0] * prices.cpu + left[1] * prices.gpu) / prices.rate(16, 7) + 0.001
    found = worth(name, Queue(0, 4, 0.3, rate=50.0), prices, left)
    assert len(found) > 1
    for (batch, cpu, gpu), value in found.items():
        speed = batch / PROFILE.seconds_of(batch, cpu, gpu) / (prices.rate(cpu, gpu) if efficiency else 1.0)
        assert value == pytest.approx(speed / unused)


@pytest.mark.parametrize("name", ["infless", "infless:efficiency"])
def test_infless_counts_speed_alone_where_nothing_has_a_price(name: str) -> None:
    for (batch, cpu, gpu), value in worth(name, Queue(0, 1, 0.3), Prices(0.0, 0.0), (3, 2)).items():
        assert value == pytest.approx(1000 * batch / PROFILE.seconds_of(batch, cpu, gpu))


def test_busy_workers_make_slices_dear() -> None:
    busy = Capacity.idle(8)
    for worker in range(7):
        busy.take(worker, 0, 7)
    queue = Queue(0, 1, 0.28)
    assert first_choice("front", queue, busy).configuration.gpu <= first_choice("front", queue).configuration.gpu


def test_a_resource_counts_more_only_when_more_than_the_part_called_busy_is_used() -> None:
    rule = configurator_of("front:busy=0.5,cpu-factor=5,gpu-factor=3")
    queues = rule.prepare(application(), replace(BARE, cpu=4, gpu=2), np.random.default_rng(0))
    capacity = Capacity.idle(2, 4, 2)
    usual = queues.tables(capacity).platform.prices  # type: ignore[attr-defined]
    capacity.take(0, 4, 2)
    assert queues.tables(capacity).platform.prices == usual, "just half is used"  # type: ignore[attr-defined]
    capacity.take(1, 1, 0)
    assert queues.tables(capacity).platform.prices == Prices(5 * usual.cpu, usual.gpu)  # type: ignore[attr-defined]
    capacity.take(1, 0, 1)
    assert queues.tables(capacity).platform.prices == Prices(5 * usual.cpu, 3 * usual.gpu)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("esk", "configurator 'esk' is not known, did you mean 'esg'?"),
        ("esg:margin=1", "esg: margin: 1 given, expected a number from 0 to less than 1"),
        ("esg:k=0", "esg: k: 0 given, expected a whole number >= 1"),
        ("esg:group-size=0", "esg: group-size: 0 given"),
        ("esg:search=fast", "esg: search: 'fast' given, expected one of front, layered, a-star"),
        ("front:k=0", "front: k: 0 given"),
        ("esg:quick", "configurator 'esg' has no option 'quick'"),
    ],
)
def test_wrong_options_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        configurator_of(text)
    assert str(caught.value).startswith(message)


def test_flags_that_leave_a_stage_nothing_are_refused() -> None:
    large = Application.of({"a": Profile.of({Configuration(2, 1, 1): 1.0})}, [], 1.0)
    with pytest.raises(InputError, match="esg: stage 'a' of 'application' has no configuration that may be used"):
        configurator_of("esg:no-batching").prepare(large, BARE, np.random.default_rng(0))


@given(st.integers(0, 400), st.integers(1, 6), st.floats(-1.0, 3.0))
def test_choices_never_exceed_the_queue_or_a_worker(seed: int, length: int, left: float) -> None:
    problem = chain(seed)
    capacity, platform = Capacity.idle(3, 4, 3), replace(BARE, cpu=4, gpu=3)
    prepared = configurator_of("esg").prepare(problem.application, platform, np.random.default_rng(0))
    decision = prepared.decide(Queue(0, length, left), capacity)
    assert isinstance(decision, Candidates)
    assert decision.choices
    for batch, cpu, gpu in (choice.configuration for choice in decision.choices):
        assert batch <= length
        assert capacity.fits(0, cpu, gpu)
