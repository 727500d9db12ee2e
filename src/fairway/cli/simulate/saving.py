"""Writes runs to the files that `--report`, `--save` and `--perfetto` name: the page, its run alone, a timeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairway.dashboard.page import page_with
from fairway.dashboard.perfetto import perfetto_trace
from fairway.dashboard.run_file import document, save
from fairway.report.whole_file import write_whole, write_whole_bytes

SIMULATED = {
    "kind": "simulated",
    "meaning": "Everything here is simulated, in virtual time: no accelerator ran any of this. How fast each thing "
    "runs comes from profiles, or from the scenario.",
}


def save_runs(
    runs: Sequence[Mapping[str, Any]],
    *,
    report: str | None = None,
    saved: str | None = None,
    perfetto: str | None = None,
    command: str | None,
    origin: Mapping[str, str] = SIMULATED,
) -> None:
    """Write all runs into a page and a saved run, and the timeline of the first for Perfetto, where a file is named."""
    content = document(runs, command=command, origin=origin)
    if report is not None:
        write_whole(report, page_with(content, title=title_of([run["policy"] or run["label"] for run in runs])))
    if saved is not None:
        save(content, saved)
    if perfetto is not None:
        write_whole_bytes(perfetto, perfetto_trace(runs[0]))


def title_of(names: Sequence[str]) -> str:
    """The title of a page about runs of some policies or schedulers."""
    different = list(dict.fromkeys(names))
    if len(different) > 3:
        return f"{len(different)} compared"
    return f"{different[0]}, {different[1]} and {different[2]}" if len(different) == 3 else " against ".join(different)
