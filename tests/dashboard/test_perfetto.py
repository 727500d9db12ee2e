"""Timelines for Perfetto, read back by its own classes."""

from __future__ import annotations

from typing import Any

from perfetto.protos.perfetto.trace import perfetto_trace_pb2

from fairway.dashboard.of_training import saved_training
from fairway.dashboard.perfetto import perfetto_trace
from tests.report.records import four_jobs


def read(run: dict[str, Any]) -> Any:
    trace = perfetto_trace_pb2.Trace()  # type: ignore[attr-defined]  # made when it is imported
    trace.ParseFromString(perfetto_trace(run))
    return trace


def slices(trace: Any) -> list[tuple[str, str, float, float]]:
    """Thread, name, begin and end of every slice, in seconds."""
    threads = {
        packet.track_descriptor.uuid: packet.track_descriptor.thread.thread_name
        for packet in trace.packet
        if packet.HasField("track_descriptor") and packet.track_descriptor.HasField("thread")
    }
    event = perfetto_trace_pb2.TrackEvent  # type: ignore[attr-defined]
    open_slices: dict[int, tuple[str, float]] = {}
    found = []
    for packet in trace.packet:
        if not packet.HasField("track_event"):
            continue
        track, at = packet.track_event.track_uuid, packet.timestamp / 1e9
        if packet.track_event.type == event.TYPE_SLICE_BEGIN:
            assert track not in open_slices, "two slices at once on one worker"
            open_slices[track] = packet.track_event.name, at
        elif packet.track_event.type == event.TYPE_SLICE_END:
            name, begin = open_slices.pop(track)
            found.append((threads[track], name, begin, at))
    assert not open_slices
    return found


def test_every_lease_is_a_slice_on_each_of_its_workers() -> None:
    found = slices(read(saved_training(four_jobs())))
    assert ("v100/0", "a (ResNet-18)", 0.0, 100.0) in found
    assert ("v100/0", "b (LM)", 100.0, 200.0) in found
    assert ("v100/1", "b (LM)", 200.0, 300.0) in found
    assert ("k80/0", "c (LM)", 100.0, 300.0) in found


def test_types_are_processes() -> None:
    trace = read(saved_training(four_jobs()))
    names = [p.track_descriptor.process.process_name for p in trace.packet if p.track_descriptor.HasField("process")]
    assert names == ["v100", "k80"]


def test_slices_are_in_order_of_time_on_each_track() -> None:
    last: dict[int, int] = {}
    for packet in read(saved_training(four_jobs())).packet:
        if packet.HasField("track_event"):
            track = packet.track_event.track_uuid
            assert packet.timestamp >= last.get(track, 0)
            last[track] = packet.timestamp
