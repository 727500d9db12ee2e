"""Server-sent events come out the same, however they are cut into pieces."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from fairway.client.event_stream import EventReader, ServerEvent

STREAM = (
    ": keep-alive\n\n"
    'id: 7\nevent: job\ndata: {"id": "jöb"}\n\n'
    "data:one\r\ndata: two\r\n\r\n"
    "event: nothing\n\n"
    "unknown: field\ndata\nid: 9\n\n"
    "data: never ended"
).encode()

EVENTS = [
    ServerEvent("job", '{"id": "jöb"}', "7"),
    ServerEvent("message", "one\ntwo", "7"),
    ServerEvent("message", "", "9"),
]


def test_all_at_once() -> None:
    assert EventReader().feed(STREAM) == EVENTS


@given(st.lists(st.integers(0, len(STREAM)), max_size=20))
def test_in_any_pieces(cuts: list[int]) -> None:
    reader, places = EventReader(), [0, *sorted(cuts), len(STREAM)]
    pieces = [STREAM[start:end] for start, end in pairwise(places)]
    assert [event for piece in pieces for event in reader.feed(piece)] == EVENTS
