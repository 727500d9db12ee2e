"""The engine's messages as JSON: every one of them comes back as it was."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.engine.training import messages as training_messages
from fairway.engine.training.messages import Command, Event, Grant, JobArrived, RateMeasured, WorkersLeft
from fairway.errors import InputError
from fairway.jobs import Job
from fairway.store.database.columns import json_text
from fairway.store.messages import COMMANDS, EVENTS, command_document, command_of, event_document, event_of

NUMBERS = st.floats(allow_nan=False)
AMOUNTS = st.floats(0, 1e300)
RATES = st.dictionaries(st.text(min_size=1), AMOUNTS, max_size=3)
JOBS = st.builds(
    Job,
    id=st.text(min_size=1),
    throughputs=RATES,
    scale_factor=st.integers(1, 10**6),
    weight=st.floats(1e-9, 1e9),
    steps_left=st.none() | AMOUNTS,
    elapsed=AMOUNTS,
    isolated_elapsed=AMOUNTS,
    slo_seconds=st.none() | st.floats(-1e9, 1e9),
    entity=st.none() | st.text(min_size=1),
    spread_throughputs=st.none() | RATES,
    job_type=st.none() | st.text(min_size=1),
)
BY_TYPE: dict[object, st.SearchStrategy[Any]] = {
    float: NUMBERS,
    int: st.integers(-(2**63), 2**63 - 1),
    bool: st.booleans(),
    str: st.text(),
    Job: JOBS,
    float | None: st.none() | NUMBERS,
    tuple[str, ...]: st.lists(st.text()).map(tuple),
    tuple[int, ...]: st.lists(st.integers(0, 10**9)).map(tuple),
    tuple[float, ...]: st.lists(NUMBERS).map(tuple),
    Mapping[str, float]: st.dictionaries(st.text(), NUMBERS),
    Mapping[str, int]: st.dictionaries(st.text(), st.integers(0, 10**9)),
    tuple[tuple[str | None, str | None, tuple[tuple[int, float], ...]], ...]: st.lists(
        st.tuples(
            st.none() | st.text(),
            st.none() | st.text(),
            st.lists(st.tuples(st.integers(0, 10**9), NUMBERS)).map(tuple),
        )
    ).map(tuple),
    tuple[tuple[str, int, tuple[float, ...], float, float], ...]: st.lists(
        st.tuples(st.text(), st.integers(0, 10**9), st.lists(NUMBERS).map(tuple), NUMBERS, NUMBERS)
    ).map(tuple),
}
KINDS = [*get_args(Event), *get_args(Command)]


def test_all_messages_of_the_engine_are_known() -> None:
    defined = {name for name, value in vars(training_messages).items() if isinstance(value, type)} - {"Job", "Mapping"}
    assert {*EVENTS, *COMMANDS} == {kind.__name__ for kind in KINDS}
    assert {name for name in defined if hasattr(getattr(training_messages, name), "__dataclass_fields__")} == {
        kind.__name__ for kind in KINDS
    }


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
def test_every_message_comes_back_as_it_was(kind: type, data: st.DataObject) -> None:
    hints = get_type_hints(kind)
    message = kind(**{member.name: data.draw(BY_TYPE[hints[member.name]]) for member in fields(kind)})
    if kind.__name__ in EVENTS:
        time = data.draw(NUMBERS)
        then, back = event_of(json.loads(json_text(event_document(time, message))))
        assert then == time
    else:
        back = command_of(json.loads(json_text(command_document(message))))
    assert back == message
    assert type(back) is kind


def test_numbers_of_numpy_become_plain_ones() -> None:
    grant = Grant(np.int64(1), ("a",), "v100", (np.int64(2), 3), np.float64("inf"), np.True_, False)  # type: ignore[arg-type]
    assert command_of(json.loads(json_text(command_document(grant)))) == Grant(1, ("a",), "v100", (2, 3), float("inf"))


def test_a_document_is_readable() -> None:
    assert event_document(3.5, WorkersLeft("v100", (1, 2))) == {
        "type": "WorkersLeft", "time": 3.5, "accelerator": "v100", "workers": [1, 2], "drain": False,
    }  # fmt: skip
    arrived = event_document(0.0, JobArrived(Job("a", {"v100": 1.0})))
    assert arrived["job"]["throughputs"] == {"v100": 1.0}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"time": 1.0}, "type: None given, expected an event: JobArrived"),
        ({"type": "Grant"}, "type: 'Grant' given, expected an event"),
        ({"type": ["RoundBegan"]}, "expected an event"),
        ({"type": "RoundBegan"}, "RoundBegan.time: Field required"),
        ({"type": "JobFinished", "time": "soon", "job": "a"}, "JobFinished.time: Input should be a valid number"),
    ],
)
def test_what_is_no_message_is_refused(document: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        event_of(document)
    with pytest.raises(TypeError, match="set cannot stand in a message"):
        event_document(1.0, RateMeasured(("a",), "v100", {1.0}))  # type: ignore[arg-type]
