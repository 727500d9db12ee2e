"""Reads a trace from a file, whichever of the known formats it has.

Formats are told apart by the beginning of the file. A new format is a new module with `NAME`, `recognises` and `read`,
and one more entry in `FORMATS`; a reader of any other module is named `module:Class`, and those that installed packages
offer are asked after ours (`fairway.parts`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Protocol, runtime_checkable

from fairway.errors import InputError
from fairway.parts import Parts
from fairway.traces import csv_columns, gavel, helios, openb, pai, philly, pollux, swf
from fairway.traces.csv_columns import CsvColumns
from fairway.traces.text import read_text
from fairway.traces.trace import Trace

_HEAD_CHARACTERS = 65536


@runtime_checkable
class TraceReader(Protocol):
    """Reads traces of one format."""

    @property
    def title(self) -> str:
        """What the format is, in a few words."""
        ...

    def recognises(self, head: str) -> bool:
        """Whether a text that begins like this is of the format."""
        ...

    def read(self, text: str, name: str) -> Trace:
        """Read the text of a trace; `name` is the file's name in errors."""
        ...


@dataclass(frozen=True, slots=True)
class TraceFormat:
    """One format: what it is, whether a text begins as such a file does, and how to read the text of one."""

    title: str
    recognises: Callable[[str], bool]
    read: Callable[[str, str], Trace]

    def __call__(self) -> TraceFormat:
        """Itself: none of our formats has options."""
        return self


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

READERS: Mapping[str, Callable[..., TraceReader]] = MappingProxyType({**FORMATS, csv_columns.NAME: CsvColumns})
"""The formats, and what reads a CSV whose columns are named."""

READER_PARTS: Parts[TraceReader] = Parts("trace format", "fairway.traces", TraceReader, READERS)


def read_trace(path: Path | str, format: str | TraceReader | None = None) -> Trace:  # noqa: A002
    """Read a trace, in the format found by its content or in the one named."""
    return parse_trace(read_text(path), str(path), format)


def parse_trace(text: str, name: str, format: str | TraceReader | None = None) -> Trace:  # noqa: A002
    """Read the text of a trace; `name` is the file's name in errors."""
    if format is not None:
        return READER_PARTS.of(format).read(text, name)
    if not text.strip():
        raise InputError(f"{name}: empty, expected a trace")
    head = text[:_HEAD_CHARACTERS]
    readers: dict[str, TraceReader] = {**FORMATS, csv_columns.NAME: CsvColumns()}
    for reader in readers.values():
        if reader.recognises(head):
            return reader.read(text, name)
    for key in READER_PARTS.installed():
        readers[key] = READER_PARTS.of(key)
        if readers[key].recognises(head):
            return readers[key].read(text, name)
    titles = "; ".join(f"{key} ({reader.title})" for key, reader in readers.items())
    raise InputError(f"{name}: not in a known trace format; the known formats are {titles}")
