"""Writes runs to the files that `--save` and `--perfetto` name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairway.dashboard.perfetto import perfetto_trace
from fairway.dashboard.run_file import document, save
from fairway.report.whole_file import write_whole_bytes

SIMULATED = {
    "kind": "simulated",
    "meaning": "Everything here is simulated, in virtual time: no accelerator ran any of this. How fast each thing "
    "runs comes from profiles, or from the scenario.",
}


def save_runs(
    runs: Sequence[Mapping[str, Any]],
    saved: str | None,
    perfetto: str | None,
    *,
    command: str | None,
    origin: Mapping[str, str],
) -> None:
    """Write all runs to a saved run, and the timeline of the first for Perfetto, where a file is named."""
    if saved is not None:
        save(document(runs, command=command, origin=origin), saved)
    if perfetto is not None:
        write_whole_bytes(perfetto, perfetto_trace(runs[0]))
