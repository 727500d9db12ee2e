"""Bugs that are planted in the real code, each a function in a broken form: the simulation has to find every one."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from fairway.engine.serving.ingress import Ingress
from fairway.live.serving.runtime.lives import Lives
from fairway.live.serving.runtime.peer_messages import PeerMessages
from fairway.live.serving.runtime.request_values import RequestValues, Value
from fairway.live.serving.runtime.worker import ServingWorker
from fairway.live.serving.seams.transport import Arrival
from fairway.live.serving.simulated.network import SimulatedTransport
from fairway.simtest.serving.component import SERVING

Plant = Callable[[pytest.MonkeyPatch], None]


def _found(most_histories: int, saying: str) -> bool:
    """Whether some history breaks the promise that the bug breaks."""
    return any(
        re.search(saying, violation)
        for seed in range(most_histories)
        for generator in SERVING.generators.values()
        for violation in SERVING.run(generator(seed, Random(seed))).violations
    )


def _handled_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Now and then, a worker takes in a message a second time."""
    take, count = ServingWorker._take, [0]

    def twice(worker: ServingWorker, sender: Any, message: Any) -> None:
        take(worker, sender, message)
        count[0] += message is not None and message[0] == "ask"
        if message is not None and message[0] == "ask" and count[0] % 5 == 0:
            take(worker, sender, message)

    monkeypatch.setattr(ServingWorker, "_take", twice)


def _lost_wake_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Now and then, what comes does not wake a worker."""
    count = [0]

    def arrived(transport: SimulatedTransport, arrival: Arrival) -> None:
        transport._arrived.append(arrival)
        count[0] += 1
        if count[0] % 7:
            transport.ready()

    monkeypatch.setattr(SimulatedTransport, "arrived", arrived)


def _not_fenced(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a dead process has sent counts as if its successor had sent it."""
    monkeypatch.setattr(Lives, "is_over", lambda *_: False)
    monkeypatch.setattr(Lives, "is_early", lambda *_: False)


def _forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request is not planned again when a worker dies that had a part of it."""
    monkeypatch.setattr(Ingress, "worker_lost", lambda *_: None)


def _freed_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """A value is let go as soon as it is on its way."""
    send = PeerMessages._send

    def freeing(messages: PeerMessages, worker: int, message: Any, values: Any, *rest: Any) -> None:
        send(messages, worker, message, values, *rest)
        for parcel in values.values():
            messages._values.values.discard(parcel)

    monkeypatch.setattr(PeerMessages, "_send", freeing)


def _answered_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reply has the outputs of the request before."""
    outputs, last = RequestValues.outputs, [None]

    def mixed(values: RequestValues, key: int, stages: Any) -> Any:
        found = outputs(values, key, stages)
        before, last[0] = last[0], found
        return before if found is not None and before is not None and before.keys() == found.keys() else found

    monkeypatch.setattr(RequestValues, "outputs", mixed)


def _never_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was packed for a request stays in memory when the request is over."""
    monkeypatch.setattr(Value, "let_go", lambda _: None)


@pytest.mark.parametrize(
    ("plant", "most_histories", "saying"),
    [
        (_handled_twice, 10, r"has ended request \d+ of client-\d+ \d+ times"),
        (_lost_wake_up, 20, r"not all workers are back|counts workers .* as absent|has no outcome"),
        (_not_fenced, 60, r"holds (tasks|values|marks) of \d+ requests that are over"),
        (_forgotten, 40, r"has no outcome"),
        (_freed_too_early, 60, r"for turned .* has no outcome"),
        (_answered_by_another, 10, r"was answered by .*, expected"),
        (_never_let_go, 60, r"values are left in memory"),
    ],
    ids=lambda each: each.__name__.removeprefix("_") if callable(each) else "",
)
def test_a_planted_bug_is_found_as_what_it_is(
    plant: Plant, most_histories: int, saying: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    assert _found(most_histories, saying)
