"""The tables of a saved run: which columns each has, and what may stand in them.

A table is an object of columns, all of the same length. A `text`, a `number` or a `whole` number stands in every row;
with a `?` it may be null, for what is not known or did not happen. `-> TABLE` is the number of a row of that table
(or, of a list in the head of the run, of a member), from 0, and -1 where there is none. Times are seconds since the
begin of the run.
"""

from __future__ import annotations

from collections.abc import Mapping

TRAINING: Mapping[str, Mapping[str, str]] = {
    "workers": {
        "type": "-> types",
        "number": "whole",
        "node": "text?",
        "device": "text?",
        "since": "number?",
        "drained": "number?",
        "lost": "number?",
    },
    "teams": {"name": "text", "weight": "number?"},
    "jobs": {
        "id": "text",
        "name": "text?",
        "type": "text?",
        "team": "text?",
        "user": "text?",
        "state": "text",
        "submitted": "number",
        "started": "number?",
        "ended": "number?",
        "count": "whole",
        "asked": "text?",
        "weight": "number",
        "deadline": "number?",
        "isolated": "number?",
        "attempts": "whole?",
        "preemptions": "whole?",
        "steps": "number?",
        "steps_left": "number?",
        "reason_code": "text?",
        "reason": "text?",
        "counted": "bool",
    },
    "leases": {
        "number": "whole",
        "job": "-> jobs",
        "partner": "-> jobs",
        "type": "-> types",
        "start": "number",
        "end": "number?",
        "steps": "number?",
        "partner_steps": "number?",
        "workers": "wholes",
        "reason": "text?",
    },
    "attempts": {
        "job": "-> jobs",
        "attempt": "whole",
        "start": "number",
        "end": "number?",
        "outcome": "text?",
        "exit_code": "whole?",
        "reason": "text?",
    },
    "rates": {
        "job": "-> jobs",
        "type": "text",
        "beside": "text?",
        "steps_per_second": "number",
        "measured": "number",
    },
    "rounds": {"time": "number", "waiting": "whole", "running": "whole", "busy": "wholes"},
    "decisions": {"entry": "whole", "time": "number", "policy": "text", "body": "object"},
}
"""Of a run of training jobs: simulated, live, or of a cluster that is not there any more."""

SERVING: Mapping[str, Mapping[str, str]] = {
    "workers": {
        "name": "text",
        "type": "text",
        "cpus": "whole",
        "slices": "whole",
        "busy_seconds": "number",
        "copy_seconds": "number",
        "tasks": "whole",
        "hits": "whole",
        "partial": "whole",
        "misses": "whole",
        "loads": "whole",
        "evictions": "whole",
        "awaited": "whole",
    },
    "requests": {
        "arrival": "number",
        "finish": "number?",
        "workflow": "-> workflows",
        "outcome": "text",
        "counted": "bool",
        "cost": "number?",
    },
    "stages": {
        "request": "-> requests",
        "stage": "whole",
        "worker": "-> workers",
        "queued": "number",
        "turn": "number",
        "start": "number",
        "end": "number",
        "fetch": "number",
        "found": "text",
        "batch": "whole",
        "member": "whole",
        "cpu": "whole",
        "gpu": "whole",
    },
    "loads": {
        "worker": "-> workers",
        "model": "-> models",
        "evicted": "bool",
        "ahead": "bool",
        "start": "number",
        "end": "number",
    },
    "staleness": {"time": "number", "load_seconds": "number", "models_wrong": "number"},
}
"""Of a run of requests for workflows."""

CURVES: Mapping[str, Mapping[str, str]] = {
    "columns": {"title": "text", "meaning": "text"},
    "rows": {"name": "text", "look": "whole"},
    "cells": {"row": "-> rows", "column": "-> columns", "text": "text", "spread": "text", "best": "bool"},
    "points": {
        "chart": "-> charts",
        "curve": "text",
        "look": "whole",
        "seed": "whole",
        "x": "number",
        "y": "number",
        "half": "number?",
        "open": "bool",
        "joined": "bool",
        "told": "text",
    },
}
"""Of what came of many runs: points of curves, and a table."""

TABLES: Mapping[str, Mapping[str, Mapping[str, str]]] = {"training": TRAINING, "serving": SERVING, "curves": CURVES}

LISTS: Mapping[str, tuple[str, ...]] = {
    "training": ("types",),
    "serving": ("workflows", "models"),
    "curves": ("charts",),
}
"""Lists in the head of a run that columns of its tables refer to."""

ADDED: Mapping[str, Mapping[str, Mapping[str, object]]] = {
    "training": {"jobs": {"counted": True}},
    "serving": {"workers": {"awaited": 0}, "staleness": {"time": 0.0, "load_seconds": 0.0, "models_wrong": 0.0}},
}
"""Columns that files of version 1 do not have, and what stands for their values there; a new table has no rows."""
