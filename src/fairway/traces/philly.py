"""Reads the job log of Microsoft's Philly clusters (github.com/msr-fiddle/philly-traces, `cluster_job_log`, JSON).

A job may have been tried several times; its length is the sum of its attempts, and its gang that of the first attempt
that names its GPUs. Its virtual cluster is its entity. Jobs that never started, or ran without a GPU, are skipped, and
so are those with an attempt of which an end or a beginning is missing, since their length is not known.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from fairway.errors import InputError
from fairway.traces.rows import NO_GPU, optional, shown, timestamp, trace_of
from fairway.traces.trace import LeftOutError, Trace, TraceJob

NAME = "philly"

_KEYS = ("jobid", "submitted_time", "attempts", "status", "vc", "user")


def recognises(head: str) -> bool:
    """Whether the text begins as a JSON list of such jobs."""
    return head.lstrip().startswith("[") and sum(f'"{key}"' in head for key in _KEYS) * 2 >= len(_KEYS)


def read(text: str, name: str) -> Trace:
    """Read the text of a log; `name` is the file's name in errors."""
    return trace_of(_entries(text, name), _job, name=name, format=NAME, from_first=True)


def _entries(text: str, name: str) -> Iterator[tuple[int, object]]:
    """The entries of the list one by one, each with the line on which it begins."""
    decoder = json.JSONDecoder()
    line, counted = 1, 0
    position = _after_space(text, 0)
    expected = "["
    while position < len(text) and text[position] in expected:
        start = _after_space(text, position + 1)
        line, counted = line + text.count("\n", counted, start), start
        if text[position] == "[" and text[start : start + 1] == "]":
            return
        try:
            entry, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{name}, line {line}: not valid JSON: {error}") from None
        yield line, entry
        position = _after_space(text, end)
        expected = ","
        if text[position : position + 1] == "]":
            return
    line += text.count("\n", counted, position)
    raise InputError(f"{name}, line {line}: not valid JSON: expected a list of jobs, closed by ']'")


def _after_space(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    return position


def _job(entry: object) -> TraceJob:
    if not isinstance(entry, dict):
        raise InputError(f"{type(entry).__name__} given, expected an object with {', '.join(_KEYS)}")
    missing = [key for key in _KEYS if key not in entry]
    if missing:
        raise InputError(f"{', '.join(missing)} missing")
    attempts = _list(entry["attempts"] or [], "attempts")
    if not attempts:
        raise LeftOutError("never started")
    duration = sum(_seconds(attempt) for attempt in attempts)
    if duration == 0:
        raise LeftOutError("ran for 0 seconds")
    gpus = next(filter(None, map(_gpus, attempts)), 0)
    if gpus == 0:
        raise LeftOutError(NO_GPU)
    return TraceJob(
        id=_text(entry, "jobid") or "",
        arrival=_time(entry, "submitted_time"),
        scale_factor=gpus,
        duration_seconds=duration,
        entity=_text(entry, "vc"),
        user=_text(entry, "user"),
        status=_text(entry, "status"),
    )


def _seconds(attempt: object) -> float:
    times = _object(attempt, "attempts")
    if _text(times, "start_time") is None or _text(times, "end_time") is None:
        raise InputError("an attempt without a start or an end, so how long it ran is not known")
    seconds = _time(times, "end_time") - _time(times, "start_time")
    if seconds < 0:
        raise InputError("an attempt ends before it starts")
    return seconds


def _gpus(attempt: object) -> int:
    machines = _list(_object(attempt, "attempts").get("detail") or [], "detail")
    return sum(len(_list(_object(machine, "detail").get("gpus") or [], "gpus")) for machine in machines)


def _time(of: dict[str, Any], key: str) -> float:
    value = _text(of, key)
    if value is None:
        raise InputError(f"{key}: nothing given")
    return timestamp(value, key)


def _text(of: dict[str, Any], key: str) -> str | None:
    value = of.get(key)
    if value is None:
        return None
    if not isinstance(value, str):
        raise InputError(f"{key}: {shown(json.dumps(value))} given, expected text")
    return optional({key: value}, key)


def _list(value: object, key: str) -> list[Any]:
    if not isinstance(value, list):
        raise InputError(f"{key}: {type(value).__name__} given, expected a list")
    return value


def _object(value: object, key: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{key}: {type(value).__name__} given, expected an object")
    return value
