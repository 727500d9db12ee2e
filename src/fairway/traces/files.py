"""Reads a trace from a file, whichever of the known formats it has.

Formats are told apart by the beginning of the file. A new format is a new module with `NAME`, `recognises` and `read`,
and one more entry in `FORMATS`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from fairway.errors import InputError
from fairway.traces import gavel, helios, openb, pai, philly, pollux, swf
from fairway.traces.text import read_text
from fairway.traces.trace import Trace

_HEAD_CHARACTERS = 65536


@dataclass(frozen=True, slots=True)
class TraceFormat:
    """One format: what it is, whether a text begins as such a file does, and how to read the text of one."""

    title: str
    recognises: Callable[[str], bool]
    read: Callable[[str, str], Trace]


FORMATS: Mapping[str, TraceFormat] = MappingProxyType(
    {
        gavel.NAME: TraceFormat("Gavel and Shockwave traces, tab-separated", gavel.recognises, gavel.read),
        philly.NAME: TraceFormat("Microsoft Philly cluster_job_log, JSON", philly.recognises, philly.read),
        helios.NAME: TraceFormat("SenseTime Helios cluster_log.csv", helios.recognises, helios.read),
        openb.NAME: TraceFormat("Alibaba 2023 openb pod list, CSV", openb.recognises, openb.read),
        pollux.NAME: TraceFormat("Pollux and Sia workloads, CSV", pollux.recognises, pollux.read),
        pai.NAME: TraceFormat("Alibaba PAI 2020 task table, CSV", pai.recognises, pai.read),
        swf.NAME: TraceFormat("Standard Workload Format, 18 columns", swf.recognises, swf.read),
    }
)


def read_trace(path: Path | str, format: str | None = None) -> Trace:  # noqa: A002
    """Read a trace, in the format found by its content or in the one named."""
    return parse_trace(read_text(path), str(path), format)


def parse_trace(text: str, name: str, format: str | None = None) -> Trace:  # noqa: A002
    """Read the text of a trace; `name` is the file's name in errors."""
    if format is not None:
        return _named(format).read(text, name)
    if not text.strip():
        raise InputError(f"{name}: empty, expected a trace")
    head = text[:_HEAD_CHARACTERS]
    for known in FORMATS.values():
        if known.recognises(head):
            return known.read(text, name)
    titles = "; ".join(f"{key} ({known.title})" for key, known in FORMATS.items())
    raise InputError(f"{name}: not in a known trace format; the known formats are {titles}")


def _named(format: str) -> TraceFormat:  # noqa: A002
    if format not in FORMATS:
        nearest = difflib.get_close_matches(format.lower(), FORMATS, n=1)
        hint = f" (did you mean '{nearest[0]}'?)" if nearest else ""
        raise InputError(f"format: '{format}' given, expected one of {', '.join(FORMATS)}{hint}")
    return FORMATS[format]
