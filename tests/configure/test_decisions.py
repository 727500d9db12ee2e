"""The parts of a decision: who is asked first, where a task goes, when containers are made, what is kept back."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway import (
    Application,
    Configuration,
    Dispatch,
    FairwayError,
    InputError,
    Invokers,
    NoFit,
    Platform,
    Profile,
    Queue,
    Wait,
    configurator_of,
)
from fairway.configure.fetches import Fetches
from fairway.configure.invokers import NOWHERE, best_fit, home_of, step_of
from fairway.configure.margins import NoiseEstimate, margin_of_noise, spread_of
from fairway.configure.placement import holders, near_the_data, where_it_fits
from fairway.configure.platform import BARE
from fairway.configure.shares import Shares
from fairway.configure.turns import Turns, recheck_pass, ring_pass, slack_pass
from fairway.configure.warmth import Container, Gaps, containers_wanted, evicted, expired, prewarm_entry, prewarm_later
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


def test_a_task_goes_to_its_data_then_to_the_best_fit() -> None:
    invokers = Invokers.idle(4)
    queue = Queue(1, 3, 1.0, [(2,), (1,), (1,)])
    assert holders(queue.sources) == [1, 2]
    assert holders([(3, 0), (0, 3)]) == [0, 3]
    assert near_the_data(application(), queue, 1, 2, 1, invokers) == 2
    assert near_the_data(application(), queue, 3, 2, 1, invokers) == 1
    invokers.take(1, 16, 0)
    invokers.take(2, 0, 7)
    invokers.take(3, 4, 2)
    assert near_the_data(application(), queue, 3, 2, 1, invokers) == 3
    assert near_the_data(application(), queue, 3, 2, 6, invokers) == 0
    assert near_the_data(application(), queue, 3, 17, 1, invokers) == NOWHERE


def test_an_entry_goes_home_or_steps_on() -> None:
    invokers = Invokers.idle(16)
    home = home_of(2, 16)
    assert home == 7
    entry = Queue(0, 1, 1.0)
    at_home = Application(application().workflow, application().profiles, 0.3, key=2)
    assert near_the_data(at_home, entry, 1, 1, 1, invokers) == 7
    invokers.take(7, 16, 7)
    assert near_the_data(at_home, entry, 1, 1, 1, invokers) == 12
    assert step_of(10) == 7
    assert sorted({(home + step_of(10) * turn) % 10 for turn in range(10)}) == list(range(10))


def test_warm_containers_go_before_near_data() -> None:
    invokers = Invokers.idle(3)
    queue = Queue(1, 1, 1.0, [(2,)], warm=np.array([False, True, False]))
    assert near_the_data(application(), queue, 1, 1, 1, invokers) == 1
    assert where_it_fits(queue, 1, 1, invokers) == 1
    invokers.take(1, 16, 7)
    assert near_the_data(application(), queue, 1, 1, 1, invokers) == 2


@given(st.lists(st.tuples(st.integers(0, 16), st.integers(0, 7)), min_size=1, max_size=8), st.integers(0, 7))
def test_the_best_fit_leaves_least(free: list[tuple[int, int]], gpu: int) -> None:
    cpus, gpus = (np.array(values, np.int64) for values in zip(*free, strict=True))
    found = best_fit(cpus, gpus, 4, gpu, np.ones(len(free), np.bool_))
    able = [(slices, cpu, number) for number, (cpu, slices) in enumerate(free) if cpu >= 4 and slices >= gpu]
    assert found == (min(able)[2] if able else NOWHERE)


def test_no_more_is_taken_than_there_is() -> None:
    invokers = Invokers.idle(2)
    invokers.take(0, 16, 3)
    assert invokers.used() == pytest.approx((0.5, 3 / 14))
    with pytest.raises(FairwayError, match="invoker 0 has 0 CPUs and 4 slices free, a task of 1 and 1 was to start"):
        invokers.take(0, 1, 1)
    invokers.give(0, 16, 3)
    assert invokers.used() == (0.0, 0.0)
    with pytest.raises(InputError, match="invokers: 0 given"):
        Invokers.idle(0)


def test_a_fetch_is_local_if_one_invoker_has_it_all_and_room() -> None:
    app = Application(application().workflow, application().profiles, 0.3, cold_seconds=(5.0, 7.0))
    fetches, invokers = Fetches.of(app, Platform()), Invokers.idle(2)
    local, remote = 0.001 + 0.0005, 0.001 + 2 * (0.005 + 0.0008)
    assert fetches.expected(Queue(0, 1, 1.0), invokers) == pytest.approx(0.001 + 0.005 + 0.0008)
    assert fetches.expected(Queue(1, 1, 1.0, [(1,)]), invokers) == pytest.approx(local)
    assert fetches.expected(Queue(1, 1, 1.0, [(1,)]), invokers, local=False) == pytest.approx(remote)
    assert fetches.expected(Queue(1, 1, 1.0, [(1, 0)]), invokers) == pytest.approx(remote)
    cold = Queue(1, 1, 1.0, [(1,)], warm=np.zeros(2, np.bool_))
    assert fetches.expected(cold, invokers) == pytest.approx(local + 7.0)
    invokers.take(1, 16, 0)
    assert fetches.expected(Queue(1, 1, 1.0, [(1,)]), invokers) == pytest.approx(remote)


def test_containers_are_made_a_cold_start_early() -> None:
    assert prewarm_later(1, 4, 10.0, 3.0) == (1, 4, 7.0)
    assert prewarm_later(1, 4, 2.0, 3.0) == (1, 4, 0.0)
    gaps = Gaps().after(10.0)
    assert prewarm_entry(0, 2, gaps, 10.0, 3.0) is None
    assert containers_wanted(gaps, 1.0, 1.0) == 1
    gaps = gaps.after(14.0).after(16.0)
    assert gaps.mean == pytest.approx(0.3 * 2 + 0.7 * 4)
    assert prewarm_entry(0, 2, gaps, 16.0, 3.0) == pytest.approx((0, 2, 0.4))
    assert containers_wanted(gaps, 3.0, 4.0) == 3


def test_idle_containers_go_after_a_while_or_when_memory_is_short() -> None:
    idle = [Container(1, 700.0, 4), Container(2, 100.0, 4), Container(3, 300.0, 4)]
    assert expired(idle) == [1]
    assert evicted(idle, 2, 2) == []
    assert evicted(idle, 2, 9) == [1, 3]
    assert evicted(idle, 2, 15) is None


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


def decide(name: str, queue: Queue, invokers: Invokers | None = None, slo: float = 0.3) -> object:
    prepared = configurator_of(name).prepare(application(slo), BARE, np.random.default_rng(0))
    return prepared.decide(queue, invokers or Invokers.idle(2))


def test_the_more_time_is_left_the_cheaper_the_configuration() -> None:
    rates = []
    for left in (0.05, 0.08, 0.1, 0.11, 0.3):
        started = decide("esg:no-batching", Queue(1, 4, left, [(0,)] * 4))
        assert isinstance(started, Dispatch)
        rates.append(started.configuration.gpu)
    assert rates == sorted(rates, reverse=True)
    assert rates[0] > rates[-1]


def test_options_change_what_starts() -> None:
    plenty = Queue(0, 4, 9.0)
    assert decide("esg", plenty).configuration.batch == 4
    assert decide("esg:no-batching", plenty).configuration.batch == 1
    assert decide("esg:no-gpu-sharing", plenty).configuration.gpu == 7
    late = Queue(0, 1, -1.0)
    assert decide("esg", late)[0::3] == (Configuration(1, 4, 7), "best-effort")
    assert decide("esg:shed", late)[3] == "shed"
    assert decide("esg:shed", late).configuration.gpu == 1
    assert decide("front", late)[3] == "shed"
    fixed = Queue(0, 1, 0.3, in_group=0.29)
    assert decide("esg", fixed)[3] == "planned"
    assert decide("esg:fixed-quota", fixed)[3] == "best-effort"


def test_a_queue_that_failed_twice_is_forced_out_with_the_smallest() -> None:
    small = Invokers.idle(1, 16, 7)
    small.take(0, 15, 6)
    hasty = Queue(0, 1, 0.1)
    assert isinstance(decide("esg:k=1", hasty, small), NoFit)
    forced = decide("esg:k=1", hasty._replace(failures=2), small)
    assert forced == Dispatch(Configuration(1, 1, 1), 1, 0, "forced")
    assert isinstance(decide("esg:k=1,forced-after=0", hasty._replace(failures=9), small), NoFit)


def test_infless_waits_for_a_batch_that_will_fill() -> None:
    filling = Queue(0, 1, 4.0, rate=50.0, waited=0.0)
    waiting = decide("infless", filling, slo=4.0)
    assert isinstance(waiting, Wait)
    assert 0 < waiting.seconds < 4.0
    patient = decide("infless", filling._replace(waited=4.0), slo=4.0)
    assert isinstance(patient, Dispatch)
    assert patient.jobs == 1
    full = decide("infless", filling._replace(length=5), slo=4.0)
    assert (full.jobs, full.configuration.batch) == (4, 4)


def test_busy_invokers_make_slices_dear() -> None:
    busy = Invokers.idle(8)
    for invoker in range(7):
        busy.take(invoker, 0, 7)
    queue = Queue(0, 1, 0.28)
    assert decide("front", queue, busy).configuration.gpu <= decide("front", queue).configuration.gpu


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
def test_decisions_never_exceed_queue_or_invoker(seed: int, length: int, left: float) -> None:
    problem = chain(seed)
    prepared = configurator_of("esg").prepare(problem.application, BARE, np.random.default_rng(0))
    invokers = Invokers.idle(3, 4, 3)
    decision = prepared.decide(Queue(0, length, left), invokers)
    if isinstance(decision, Dispatch):
        assert decision.jobs == decision.configuration.batch <= length
        assert invokers.fits(decision.invoker, decision.configuration.cpu, decision.configuration.gpu)
