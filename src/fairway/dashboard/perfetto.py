"""Timelines for Perfetto's viewer: a trace of TrackEvents, written without a library (protobuf is simple to write).

A process per accelerator type and a thread per worker; on it a slice for every lease, with the job's name, or for
every stage that ran; loads of models have a track of their own beside their worker. Counters show what waits. Times
are nanoseconds from the begin of the run. Field numbers are those of perfetto's `trace.proto`, `trace_packet.proto`
and `track_event.proto`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any

_TRACE_PACKET = 1
_TIMESTAMP, _SEQUENCE, _TRACK_EVENT, _FLAGS, _DESCRIPTOR, _CLOCK = 8, 10, 11, 13, 60, 58
_CLEARED = 1
_MONOTONIC = 3
_UUID, _NAME, _PROCESS, _THREAD, _PARENT, _COUNTER = 1, 2, 3, 4, 5, 8
_TYPE, _TRACK, _EVENT_NAME, _ANNOTATION, _CATEGORY, _DOUBLE = 9, 11, 23, 4, 22, 44
_BEGIN, _END, _COUNT = 1, 2, 4
_SEQUENCE_ID = 1


def perfetto_trace(run: Mapping[str, Any]) -> bytes:
    """The timeline of one run of a saved run, as the bytes of a trace."""
    packets = _training(run) if run["kind"] == "training" else _serving(run)
    parts = list(packets)
    parts[0] += _varint(_FLAGS, _CLEARED)
    return b"".join(_bytes(_TRACE_PACKET, part + _varint(_SEQUENCE, _SEQUENCE_ID)) for part in parts)


def _training(run: Mapping[str, Any]) -> Iterator[bytes]:
    jobs, leases, workers, types = run["jobs"], run["leases"], run["workers"], run["types"]
    track: dict[tuple[int, int], int] = {}
    for column, kind in enumerate(types):
        yield _process(column + 1, kind)
    for row, (kind, number) in enumerate(zip(workers["type"], workers["number"], strict=True)):
        track[kind, number] = uuid = len(types) + 1 + row
        yield _thread(uuid, kind + 1, number + 1, f"{types[kind]}/{number}")
    waiting = len(types) + len(track) + 1
    yield _counter(waiting, "jobs that wait")
    rounds = run["rounds"]
    for moment, count in zip(rounds["time"], rounds["waiting"], strict=True):
        yield _count(waiting, moment, count)
    end = run["end"]
    for row in sorted(range(len(leases["job"])), key=leases["start"].__getitem__):
        begin, until = leases["start"][row], leases["end"][row]
        names = [_job_name(jobs, job) for job in (leases["job"][row], leases["partner"][row]) if job >= 0]
        facts = {"lease": leases["number"][row], "reason": leases["reason"][row]}
        for number in leases["workers"][row]:
            uuid = track.get((leases["type"][row], number), 0)
            if uuid:
                name = " + ".join(names) or "a job of another team"
                yield from _slice(uuid, begin, end if until is None else until, name, "lease", facts)


def _job_name(jobs: Mapping[str, Any], row: int) -> str:
    name = jobs["name"][row] or jobs["type"][row]
    return f"{jobs['id'][row]} ({name})" if name else str(jobs["id"][row])


def _serving(run: Mapping[str, Any]) -> Iterator[bytes]:
    workers, stages, loads, requests = run["workers"], run["stages"], run["loads"], run["requests"]
    size = len(workers["name"])
    for row, name in enumerate(workers["name"]):
        yield _process(row + 1, name)
    lanes: list[list[float]] = [[] for _ in range(size)]
    seen: set[int] = set()
    events: list[tuple[float, bytes]] = []
    following = size + 1
    uuids: dict[tuple[int, int], int] = {}
    for row in sorted(range(len(stages["worker"])), key=stages["start"].__getitem__):
        if stages["member"][row]:
            continue  # it ran with the first of its batch
        worker, begin, end = stages["worker"][row], stages["start"][row], stages["end"][row]
        lane = next((k for k, free in enumerate(lanes[worker]) if free <= begin), len(lanes[worker]))
        if lane == len(lanes[worker]):
            lanes[worker].append(end)
            uuids[worker, lane], following = following, following + 1
            yield _thread(uuids[worker, lane], worker + 1, lane + 1, f"runs {lane + 1}")
        lanes[worker][lane] = end
        workflow = run["workflows"][requests["workflow"][stages["request"][row]]]
        name = f"{workflow['name']}: {workflow['stages'][stages['stage'][row]]}"
        facts = {"request": stages["request"][row], "batch": stages["batch"][row], "model": stages["found"][row]}
        events += [(begin, packet) for packet in _slice(uuids[worker, lane], begin, end, name, "stage", facts)]
    for row, worker in enumerate(loads["worker"]):
        uuid = following + worker
        if worker not in seen:
            seen.add(worker)
            yield _thread(uuid, worker + 1, 10_000, "models")
        verb = "evict" if loads["evicted"][row] else "load"
        name = f"{verb} {run['models'][loads['model'][row]]}"
        begin, end = loads["start"][row], loads["end"][row]
        events += [(begin, packet) for packet in _slice(uuid, begin, end, name, verb, {"ahead": loads["ahead"][row]})]
    yield from (packet for _, packet in events)


def _process(uuid: int, name: str) -> bytes:
    process = _varint(1, uuid) + _text(6, name)
    return _bytes(_DESCRIPTOR, _varint(_UUID, uuid) + _bytes(_PROCESS, process))


def _thread(uuid: int, process: int, number: int, name: str) -> bytes:
    thread = _varint(1, process) + _varint(2, process * 100_000 + number) + _text(5, name)
    return _bytes(_DESCRIPTOR, _varint(_UUID, uuid) + _varint(_PARENT, process) + _bytes(_THREAD, thread))


def _counter(uuid: int, name: str) -> bytes:
    return _bytes(_DESCRIPTOR, _varint(_UUID, uuid) + _text(_NAME, name) + _bytes(_COUNTER, b""))


def _count(uuid: int, moment: float, value: float) -> bytes:
    event = _varint(_TYPE, _COUNT) + _varint(_TRACK, uuid) + _double(_DOUBLE, value)
    return _at(moment) + _bytes(_TRACK_EVENT, event)


def _slice(uuid: int, begin: float, end: float, name: str, category: str, facts: Mapping[str, Any]) -> Iterator[bytes]:
    notes = b"".join(
        _bytes(_ANNOTATION, _text(10, key) + _text(6, str(value))) for key, value in facts.items() if value is not None
    )
    opened = _varint(_TYPE, _BEGIN) + _varint(_TRACK, uuid) + _text(_CATEGORY, category) + _text(_EVENT_NAME, name)
    yield _at(begin) + _bytes(_TRACK_EVENT, opened + notes)
    yield _at(max(begin, end)) + _bytes(_TRACK_EVENT, _varint(_TYPE, _END) + _varint(_TRACK, uuid))


def _at(seconds: float) -> bytes:
    return _varint(_TIMESTAMP, max(round(seconds * 1e9), 0)) + _varint(_CLOCK, _MONOTONIC)


def _number(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _varint(field: int, value: int) -> bytes:
    return _number(field << 3) + _number(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _number(field << 3 | 2) + _number(len(value)) + value


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode("utf-8", "replace"))


def _double(field: int, value: float) -> bytes:
    return _number(field << 3 | 1) + struct.pack("<d", value)
