"""The serverless engine when things go wrong: every request gets one answer, whoever dies and whatever fails."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from fairway import Application, Configuration, Platform, Profile, configurator_of
from fairway.engine.container_care import Function
from fairway.engine.containers import ContainerRule
from fairway.engine.serverless import MOST_LOSSES, ServedApplication, ServerlessEngine
from fairway.engine.serverless_messages import (
    Command,
    ContainerFailed,
    ContainerReady,
    Event,
    InvokerJoined,
    InvokerLost,
    Reply,
    RequestArrived,
    Restarted,
    StartContainer,
    StartTask,
    StopContainer,
    TaskDone,
    TimeReached,
    Wake,
)
from fairway.engine.serving_messages import FAILED, HOPELESS, LATE, Cancelled, Refuse
from fairway.errors import FairwayError

PAIRS = Profile.of({Configuration(1, 1, 1): 0.1, Configuration(2, 1, 1): 0.12, Configuration(4, 1, 1): 0.15})
CHAIN = (("a", "b"),)
DIAMOND = (("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"))


def application(edges: tuple[tuple[str, str], ...], stages: str, key: int = 0) -> Application:
    return Application.of(dict.fromkeys(stages, PAIRS), edges, 1.0, cold_seconds=dict.fromkeys(stages, 0.5), key=key)


def engine(
    *served: ServedApplication, invokers: int = 2, rule: ContainerRule | None = None, configurator: str = "esg"
) -> ServerlessEngine:
    applications = served or (ServedApplication(application(CHAIN, "ab"), (0, 1)),)
    functions = [Function(name, 0.5, 10) for name in "fghi"]
    platform = Platform(cpu=1, gpu=1, overhead_seconds=0.0)
    draws = np.random.default_rng(0)
    return ServerlessEngine(applications, functions, configurator_of(configurator), platform, invokers, draws, rule)


def of_kind(commands: list[Command], kind: type) -> list[Command]:
    return [command for command in commands if isinstance(command, kind)]


def started(commands: list[Command]) -> list[StartTask]:
    return [command for command in commands if isinstance(command, StartTask)]


def arrived(*keys: int) -> list[Event]:
    return [RequestArrived(key, 0, 9.0) for key in keys]


def test_a_request_that_fails_in_a_batch_fails_alone() -> None:
    made = engine(invokers=1)
    (first,) = started(made.handle(0.0, arrived(0)))
    made.handle(0.01, arrived(1, 2))
    commands = made.handle(0.1, [TaskDone(first.task, 0.1)])
    (pair,) = started(commands)
    assert (pair.stage, pair.requests) == (0, (1, 2)) or pair.requests == (0,)
    while pair.stage == 1:
        (pair,) = started(made.handle(0.2, [TaskDone(pair.task, 0.1)]))
    commands = made.handle(0.3, [TaskDone(pair.task, 0.1, ((2, "no luck"),))])
    assert of_kind(commands, Refuse) == [Refuse(2, "no luck", FAILED)]
    answered = []
    while tasks := started(commands):
        commands = made.handle(0.4, [TaskDone(each.task, 0.1) for each in tasks])
        answered += of_kind(commands, Reply)
    assert {command.key for command in answered if isinstance(command, Reply)} <= {0, 1}
    assert made.running == made.waiting == 0


def test_tasks_of_a_lost_invoker_go_back_to_the_front_and_run_alone() -> None:
    made = engine(invokers=1)
    (first,) = started(made.handle(0.0, arrived(0, 1)))
    made.handle(0.05, arrived(2, 3))
    assert started(made.handle(0.1, [InvokerLost(0)])) == []
    assert (made.running, made.waiting) == (0, 4)
    assert made.handle(0.2, [InvokerLost(0)]) == []
    (again,) = started(made.handle(1.0, [InvokerJoined(0)]))
    assert (first.requests, again.requests) == ((0, 1), (0,))
    (later,) = started(made.handle(1.1, [TaskDone(again.task, 0.1, ((0, "gone"),))]))
    assert later.requests == (1,)
    (others,) = started(made.handle(1.2, [TaskDone(later.task, 0.1, ((1, "gone"),))]))
    assert others.requests == (2, 3)


def test_nothing_is_started_where_nobody_is() -> None:
    made = engine(invokers=3, rule=ContainerRule(0))
    made.handle(0.0, [InvokerLost(1), InvokerLost(2)])
    commands = made.handle(0.1, arrived(*range(5)))
    for now in range(1, 40):
        events: list[Event] = [TimeReached()]
        for command in commands:
            if isinstance(command, StartTask):
                assert command.dispatch.invoker == 0
                events.append(TaskDone(command.task, 0.1))
            elif isinstance(command, StartContainer):
                assert command.invoker == 0
                events.append(ContainerReady(command.container))
        commands = made.handle(float(now), events)
    assert made.waiting == made.running == 0


def test_requests_with_output_on_a_lost_invoker_begin_again() -> None:
    diamond = ServedApplication(application(DIAMOND, "abcd"), (0, 1, 2, 3))
    made = engine(diamond)
    (first,) = started(made.handle(0.0, arrived(7)))
    left, right = started(made.handle(0.1, [TaskDone(first.task, 0.1)]))
    survivor, victim = (left, right) if right.dispatch.invoker == first.dispatch.invoker else (right, left)
    commands = made.handle(0.2, [InvokerLost(victim.dispatch.invoker)])
    assert of_kind(commands, Restarted) == [Restarted(7)]
    assert made.running == 1  # what the other one does is of no use, but it does it
    assert made.waiting == 1
    (again,) = started(made.handle(0.3, [TaskDone(survivor.task, 0.1)]))
    assert (again.stage, again.requests) == (0, (7,))
    (one,) = started(made.handle(0.4, [TaskDone(again.task, 0.1)]))
    (other,) = started(made.handle(0.5, [TaskDone(one.task, 0.1)]))
    assert {one.stage, other.stage} == {1, 2}
    (last,) = started(made.handle(0.6, [TaskDone(other.task, 0.1)]))
    assert made.handle(0.7, [TaskDone(last.task, 0.1)]) == [Reply(7)]


def test_a_request_that_costs_too_many_invokers_is_given_up() -> None:
    made = engine(invokers=1)
    assert len(started(made.handle(0.0, arrived(3)))) == 1
    for loss in range(1, MOST_LOSSES):
        assert of_kind(made.handle(float(loss), [InvokerLost(0)]), Refuse) == []
        assert len(started(made.handle(loss + 0.5, [InvokerJoined(0)]))) == 1
    (refused,) = made.handle(99.0, [InvokerLost(0)])
    assert isinstance(refused, Refuse)
    assert (refused.key, refused.code) == (3, FAILED)
    assert f"lost {MOST_LOSSES} times" in refused.reason
    assert made.waiting == 0


def test_a_cancelled_request_leaves_the_queues_and_ends_for_nothing() -> None:
    made = engine(invokers=1)
    (first,) = started(made.handle(0.0, arrived(0)))
    made.handle(0.01, arrived(1))
    made.handle(0.02, [Cancelled(0), Cancelled(1), Cancelled(99)])
    assert (made.running, made.waiting) == (1, 0)
    assert made.handle(0.1, [TaskDone(first.task, 0.1)]) == []
    assert len(started(made.handle(0.2, arrived(2)))) == 1


def test_deadlines_of_clients_are_kept() -> None:
    made = engine(invokers=1)
    (hopeless,) = made.handle(0.0, [RequestArrived(0, 0, 1.0, 0.15)])
    assert isinstance(hopeless, Refuse)
    assert (hopeless.key, hopeless.code) == (0, HOPELESS)
    assert "it would take" in hopeless.reason
    (first,) = started(made.handle(0.0, [RequestArrived(1, 0, 1.0)]))
    assert made.handle(0.0, [RequestArrived(2, 0, 1.0, 0.5)]) == []
    commands = made.handle(0.6, [TaskDone(first.task, 0.6)])
    (late,) = of_kind(commands, Refuse)
    assert isinstance(late, Refuse)
    assert (late.key, late.code) == (2, LATE)
    assert [task.requests for task in started(commands)] == [(1,)]
    assert made.waiting == 0


def test_a_container_that_cannot_be_created_fails_those_that_wait_for_it() -> None:
    made = engine(rule=ContainerRule(0))
    commands = made.handle(0.0, arrived(0, 1))
    begun = [command.container for command in commands if isinstance(command, StartContainer)]
    assert len(begun) == 2
    commands = made.handle(0.2, [ContainerFailed(begun[0], "no file")])
    assert of_kind(commands, Refuse) == [Refuse(0, "no file", FAILED), Refuse(1, "no file", FAILED)]
    assert made.waiting == 0
    with pytest.raises(FairwayError, match="container 0 has failed"):
        made.handle(0.4, [ContainerFailed(begun[0], "no file")])


def test_a_container_that_cannot_be_created_is_no_matter_if_another_one_was() -> None:
    made = engine(rule=ContainerRule(0))
    commands = made.handle(0.0, arrived(0, 1))
    begun = [command.container for command in commands if isinstance(command, StartContainer)]
    assert len(started(made.handle(0.1, [ContainerReady(begun[0])]))) == 1
    commands = made.handle(0.2, arrived(2))
    commands = made.handle(0.3, [ContainerFailed(begun[1], "no file")])
    assert of_kind(commands, Refuse) == []


def test_an_invoker_brings_containers_along_and_gets_what_is_pinned() -> None:
    made = engine(rule=ContainerRule(0, 20, keep_alive_seconds=float("inf"), pinned=(3,)))
    made.handle(0.0, [InvokerLost(0), InvokerLost(1)])
    commands = made.handle(0.1, [InvokerJoined(0, (0, 1, 2))])
    assert [(each.function, each.invoker) for each in commands if isinstance(each, StopContainer)] == [(2, 0)]
    commands = made.handle(0.1, [InvokerJoined(1)])
    (pinned,) = (each for each in commands if isinstance(each, StartContainer))
    assert (pinned.function, pinned.invoker) == (3, 1)
    made.handle(0.2, [ContainerReady(pinned.container)])
    (task,) = started(made.handle(0.3, arrived(0)))
    assert (task.dispatch.invoker, task.cold) == (0, False)
    assert made.handle(9999.0, [TimeReached()]) == []  # nothing goes by age
    with pytest.raises(FairwayError, match="invoker 1 joins"):
        made.handle(9999.0, [InvokerJoined(1)])


class World:
    """Drives an engine through chance, and checks what it says."""

    def __init__(self, seed: int) -> None:
        self.draws = random.Random(seed)
        diamond = ServedApplication(application(DIAMOND, "abcd"), (0, 1, 2, -1))
        chain = ServedApplication(application(CHAIN, "ab", 1), (1, 3))
        self.invokers = self.draws.choice((1, 2, 4))
        rule = self.draws.choice((None, ContainerRule(0), ContainerRule(0, 20), ContainerRule(0, 30, pinned=(1,))))
        configurator = self.draws.choice(("esg", "infless", "fast-gshare", "orion", "front"))
        self.engine = engine(diamond, chain, invokers=self.invokers, rule=rule, configurator=configurator)
        self.now, self.key = 0.0, 0
        self.open: set[int] = set()
        self.answers: Counter[int] = Counter()
        self.cancelled: set[int] = set()
        self.tasks: dict[int, StartTask] = {}
        self.containers: dict[int, StartContainer] = {}
        self.absent: set[int] = set()
        self.wakes: list[float] = []

    def handle(self, events: list[Event]) -> None:
        for command in self.engine.handle(self.now, events):
            match command:
                case StartTask():
                    assert command.dispatch.invoker not in self.absent
                    assert set(command.requests) <= self.open
                    assert len(set(command.requests)) == len(command.requests) == command.dispatch.jobs
                    self.tasks[command.task] = command
                    busy = Counter(task.dispatch.invoker for task in self.tasks.values())
                    assert busy[command.dispatch.invoker] == 1
                case StartContainer():
                    assert command.invoker not in self.absent
                    self.containers[command.container] = command
                case StopContainer():
                    assert command.invoker not in self.absent
                case Reply() | Refuse():
                    self.answers[command.key] += 1
                    self.open.remove(command.key)
                case Restarted():
                    assert command.key in self.open
                case Wake():
                    self.wakes.append(command.at)

    def ask(self) -> Event:
        self.key += 1
        self.open.add(self.key)
        expires = self.now + self.draws.choice((0.05, 0.5, 2.0, 1e9))
        return RequestArrived(self.key, self.draws.randrange(2), self.now + 1.0, expires)

    def end_task(self, *, may_fail: bool) -> Event:
        task = self.tasks.pop(self.draws.choice(list(self.tasks)))
        failed = [key for key in task.requests if may_fail and self.draws.random() < 0.1]
        return TaskDone(task.task, 0.1, tuple((key, "no luck") for key in failed))

    def end_container(self, *, may_fail: bool) -> Event:
        container = self.containers.pop(self.draws.choice(list(self.containers))).container
        fails = may_fail and self.draws.random() < 0.1
        return ContainerFailed(container, "no file") if fails else ContainerReady(container)

    def lose(self) -> Event:
        invoker = self.draws.choice([each for each in range(self.invokers) if each not in self.absent])
        self.absent.add(invoker)
        self.tasks = {key: task for key, task in self.tasks.items() if task.dispatch.invoker != invoker}
        self.containers = {key: each for key, each in self.containers.items() if each.invoker != invoker}
        return InvokerLost(invoker)

    def join(self) -> Event:
        invoker = self.draws.choice(sorted(self.absent))
        self.absent.remove(invoker)
        return InvokerJoined(invoker, tuple(function for function in range(4) if self.draws.random() < 0.2))

    def cancel(self) -> Event:
        key = self.draws.choice(sorted(self.open))
        self.open.remove(key)
        self.cancelled.add(key)
        return Cancelled(key)

    def step(self) -> None:
        self.now += self.draws.choice((0.0, 0.01, 0.1, 0.6))
        events: list[Event] = []
        for _ in range(self.draws.randrange(1, 4)):
            chance = self.draws.random()
            if chance < 0.35:
                events.append(self.ask())
            elif chance < 0.6 and self.tasks:
                events.append(self.end_task(may_fail=True))
            elif chance < 0.8 and self.containers:
                events.append(self.end_container(may_fail=True))
            elif chance < 0.86 and len(self.absent) < self.invokers:
                events.append(self.lose())
            elif chance < 0.92 and self.absent:
                events.append(self.join())
        self.handle(events)
        if self.open and self.draws.random() < 0.1:
            self.handle([self.cancel()])

    def calm_down(self) -> None:
        """Let everything end that can."""
        for _ in range(5000):
            if not self.open:
                return
            events: list[Event] = [TimeReached()]
            events += [self.join() for _ in tuple(self.absent)]
            events += [self.end_task(may_fail=False) for _ in tuple(self.tasks)]
            events += [self.end_container(may_fail=False) for _ in tuple(self.containers)]
            self.now += 0.2
            self.handle(events)
        pytest.fail(f"{len(self.open)} requests wait for ever")


@pytest.mark.parametrize("seed", range(60))
def test_every_request_gets_one_answer_whatever_happens(seed: int) -> None:
    world = World(seed)
    for _ in range(150):
        world.step()
    world.calm_down()
    world.handle([world.join() for _ in tuple(world.absent)])
    while world.tasks:
        world.handle([world.end_task(may_fail=False)])
    assert set(world.answers.values()) <= {1}
    assert len(world.answers) + len(world.cancelled) == world.key
    assert not set(world.answers) & world.cancelled
    assert world.engine.waiting == world.engine.running == 0
    assert world.engine.invokers.free_gpu.tolist() == [1] * world.invokers
