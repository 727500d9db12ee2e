"""Every event says what it is about, so that its story can be told: the request, the model, the worker, the batch."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, get_args

import pytest

from fairway.engine.serving.messages import events

ABOUT = {
    "RequestArrived": "request {key}",
    "Cancelled": "request {key}",
    "TakesUntil": "time",
    "TimePassed": "time",
    "Pin": "model {model}",
    "InputsArrived": "request 99",
    "BatchArrived": "batch {number}",
    "BatchDone": "batch {number}",
    "BatchStopped": "batch {number}",
    "TaskDone": "run {run}",
    "ModelLoaded": "model {model}",
    "ModelFailed": "model {model}",
    "Warm": "model {model}",
    "PeerCopies": "worker {worker}",
    "PeerLoad": "worker {worker}",
    "PeerModels": "worker {worker}",
    "RowAsked": "worker {worker}",
    "RowTold": "worker {worker}",
    "TasksWanted": "worker {worker}",
    "PeerLost": "worker {worker}",
    "PeerJoined": "worker {worker}",
    "StageDone": "request {key}",
    "ProgressAsked": "request {key}",
    "ProgressTold": "request {key}",
    "StageMoved": "request {key}",
    "StageStuck": "request {key}",
    "OutputGone": "request {key}",
    "Replanned": "request 99",
    "SendAgain": "request 99",
    "Forget": "request {key}",
}


@pytest.mark.parametrize("kind", get_args(events.Event), ids=lambda kind: kind.__name__)
def test_an_event_names_its_cause(kind: Any) -> None:
    values: dict[str, Any] = {name: 10 + number for number, name in enumerate(kind._fields)}
    if "flow" in values:
        values["flow"] = SimpleNamespace(request=SimpleNamespace(key=99))
    assert kind(**values).cause == ABOUT[kind.__name__].format(**values)
