"""What a page says of rows of a trace that gave no job or request: left out on purpose, or not readable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def rows_left_out(runs: Iterable[Mapping[str, Any]]) -> list[str]:
    """A sentence for each of the two, if there are such rows; all runs have read the same trace."""
    most = max(((run["skipped_rows"], run["unreadable_rows"]) for run in runs), default=(0, 0))
    on_purpose, unreadable = most[0] - most[1], most[1]
    sentences = []
    if on_purpose:
        sentences.append(f"{on_purpose} rows of the trace are left out on purpose, as of jobs that never ran.")
    if unreadable:
        sentences.append(f"{unreadable} rows of the trace could not be read.")
    return sentences
