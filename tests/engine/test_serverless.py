"""The serverless engine: events in, commands out."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from fairway import Application, Configuration, Platform, Profile, configurator_of
from fairway.engine.container_care import Function
from fairway.engine.containers import ContainerRule, Containers
from fairway.engine.serverless import ServedApplication, ServerlessEngine
from fairway.engine.serverless_messages import (
    ContainerReady,
    Event,
    Reply,
    RequestArrived,
    StartContainer,
    StartTask,
    StopContainer,
    TaskDone,
    TimeReached,
    Wake,
)
from fairway.errors import FairwayError, InputError

SINGLE = Profile.of({Configuration(1, 1, 1): 0.1})
PAIRS = Profile.of({Configuration(1, 1, 1): 0.1, Configuration(2, 1, 1): 0.12})
FUNCTIONS = (Function("a", 2.0), Function("b", 3.0))


def engine(
    *edges: tuple[str, str],
    stages: str = "ab",
    profile: Profile = SINGLE,
    invokers: int = 2,
    slices: int = 1,
    rule: ContainerRule | None = None,
    configurator: str = "esg",
) -> ServerlessEngine:
    application = Application.of(
        dict.fromkeys(stages, profile),
        edges or tuple(pairwise(stages)),
        1.0,
        input_bytes=dict.fromkeys(stages, 2_000_000),
        cold_seconds=dict.fromkeys(stages, 2.0),
    )
    served = ServedApplication(application, tuple(min(number, 1) for number in range(len(stages))))
    platform = Platform(cpu=4, gpu=slices)
    draws = np.random.default_rng(0)
    return ServerlessEngine([served], FUNCTIONS, configurator_of(configurator), platform, invokers, draws, rule)


def arrived(key: int, deadline: float = 1.0) -> Event:
    return RequestArrived(key, 0, deadline)


def started(commands: list[object]) -> list[StartTask]:
    return [command for command in commands if isinstance(command, StartTask)]


def test_a_request_goes_through_its_stages_and_is_answered() -> None:
    made = engine()
    (first,) = started(made.handle(0.0, [arrived(7)]))  # type: ignore[arg-type]
    assert (first.stage, first.requests, first.local) == (0, (7,), 0)
    assert first.fetch_seconds == pytest.approx(0.005 + 2e6 / 1.25e9)
    assert made.running == 1
    (second,) = started(made.handle(0.1, [TaskDone(first.task, 0.1)]))  # type: ignore[arg-type]
    assert (second.stage, second.local, second.dispatch.invoker) == (1, 1, first.dispatch.invoker)
    assert second.fetch_seconds == pytest.approx(2e6 / 2e9)
    assert made.handle(0.2, [TaskDone(second.task, 0.1)]) == [Reply(7)]
    assert made.running == made.waiting == 0


def test_a_join_waits_for_all_and_fetches_from_elsewhere() -> None:
    made = engine(("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), stages="abcd")
    (first,) = started(made.handle(0.0, [arrived(0)]))  # type: ignore[arg-type]
    left, right = started(made.handle(0.1, [TaskDone(first.task, 0.1)]))  # type: ignore[arg-type]
    assert left.dispatch.invoker != right.dispatch.invoker
    assert started(made.handle(0.2, [TaskDone(left.task, 0.1)])) == []  # type: ignore[arg-type]
    (last,) = started(made.handle(0.3, [TaskDone(right.task, 0.1)]))  # type: ignore[arg-type]
    assert last.local == 0
    assert last.fetch_seconds == pytest.approx(2 * (0.005 + 2e6 / 1.25e9))


def test_jobs_wait_while_nothing_is_free_and_are_batched() -> None:
    made = engine(stages="a", profile=PAIRS, invokers=1)
    (first,) = started(made.handle(0.0, [arrived(0)]))  # type: ignore[arg-type]
    assert started(made.handle(0.01, [arrived(1), arrived(2), arrived(3)])) == []  # type: ignore[arg-type]
    assert made.waiting == 3
    (second,) = started(made.handle(0.1, [TaskDone(first.task, 0.1)]))  # type: ignore[arg-type]
    assert second.requests == (1, 2)
    assert made.waiting == 1


def test_a_batch_that_waits_asks_to_be_woken_once() -> None:
    made = engine(stages="a", profile=Profile.of({Configuration(1, 2, 3): 0.9, Configuration(4, 2, 3): 0.1}), slices=7,
                  configurator="infless")  # fmt: skip
    events: list[Event] = [arrived(key) for key in range(9)]
    commands = made.handle(0.0, events)
    wakes = [command for command in commands if isinstance(command, Wake)]
    assert started(commands)  # type: ignore[arg-type]
    assert len(wakes) == 1
    assert not [command for command in made.handle(0.01, [TimeReached()]) if isinstance(command, Wake)]
    assert started(made.handle(wakes[0].at, [TimeReached()]))  # type: ignore[arg-type]


def test_a_cold_function_has_a_container_begun_and_holds_nothing_meanwhile() -> None:
    made = engine(rule=ContainerRule(0))
    commands = made.handle(0.0, [arrived(0)])
    begun = [command for command in commands if isinstance(command, StartContainer)]
    assert started(commands) == []  # type: ignore[arg-type]
    assert [(each.function, each.ahead) for each in begun] == [(0, False)]
    assert made.invokers.free_gpu.tolist() == [1, 1]
    assert not [each for each in made.handle(0.5, [TimeReached()]) if isinstance(each, StartContainer)]
    commands = made.handle(2.0, [ContainerReady(begun[0].container)])
    (task,) = started(commands)  # type: ignore[arg-type]
    assert task.dispatch.invoker == begun[0].invoker
    ahead = [command for command in commands if isinstance(command, StartContainer)]
    assert [(each.function, each.invoker, each.ahead) for each in ahead] == [(1, task.dispatch.invoker, True)]


def test_a_task_can_hold_its_slices_while_its_container_is_created() -> None:
    made = engine(rule=ContainerRule(0, held=True))
    (task,) = started(made.handle(0.0, [arrived(0)]))  # type: ignore[arg-type]
    assert task.cold
    assert made.invokers.free_gpu.sum() == 1
    (later,) = started(made.handle(2.1, [TaskDone(task.task, 0.1)]))  # type: ignore[arg-type]
    assert (later.stage, later.cold) == (1, True)
    made.handle(5.2, [TaskDone(later.task, 0.1)])
    (warm,) = started(made.handle(6.0, [arrived(1, 7.0)]))  # type: ignore[arg-type]
    assert (warm.stage, warm.cold) == (0, False)


def test_a_container_makes_room_for_another_but_not_in_its_first_second() -> None:
    made = engine(invokers=1, rule=ContainerRule(0, 1))
    (begun,) = (each for each in made.handle(0.0, [arrived(0, 9.0)]) if isinstance(each, StartContainer))
    (first,) = started(made.handle(2.0, [ContainerReady(begun.container)]))  # type: ignore[arg-type]
    assert made.handle(2.1, [TaskDone(first.task, 0.1)]) == [Wake(3.1)]
    stop, start = made.handle(3.1, [TimeReached()])
    assert isinstance(stop, StopContainer)
    assert isinstance(start, StartContainer)
    assert (stop.function, start.function) == (0, 1)


def test_idle_containers_are_removed_after_their_time() -> None:
    made = engine(rule=ContainerRule(1, keep_alive_seconds=5.0))
    assert made.handle(4.9, [TimeReached()]) == []
    assert len(made.handle(5.0, [TimeReached()])) == 4


def test_what_was_used_last_is_used_again_first() -> None:
    containers = Containers(ContainerRule(2), [1], 1)
    first, second = containers.take(0, 0), containers.take(0, 0)
    assert first is not None
    assert second is not None
    assert containers.take(0, 0) is None
    containers.release(second, 1.0)
    containers.release(first, 2.0)
    assert containers.take(0, 0) == first


def test_news_that_cannot_be_true_are_refused() -> None:
    made = engine()
    with pytest.raises(FairwayError, match="task 5 has ended"):
        made.handle(0.0, [TaskDone(5, 0.1)])
    with pytest.raises(FairwayError, match="all functions are warm"):
        made.handle(0.0, [ContainerReady(0)])
    with pytest.raises(FairwayError, match="container 99 is ready"):
        engine(rule=ContainerRule(1)).handle(0.0, [ContainerReady(99)])
    with pytest.raises(InputError, match="containers: -1 given"):
        ContainerRule(-1)
    with pytest.raises(InputError, match="1 functions given for 2 stages"):
        ServedApplication(Application.of({"a": SINGLE, "b": SINGLE}, [("a", "b")], 1.0), (0,))
