"""Short runs under every scheduler and option: each answers what it must, and each is, to the task, what it was.

What a run has to hold is checked by the engines' own invariants and by the other tests; here it shows whether any
decision has changed. A change that is meant changes the words in these tables.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from fairway.report.serving.record import ServingRecord
from fairway.sim.failures import Failure
from fairway.sim.scenario import ColdStarts
from fairway.sim.serving import ServingOptions
from fairway.sim.serving_workload import EsgApps, ServingRun, ServingWorkload
from tests.digest import digest


def _word(record: ServingRecord) -> str:
    columns = (record.requests, record.runs, record.workers)
    found = {
        f"{type(part).__name__}.{one.name}": value
        for part in columns
        for one in fields(part)
        if isinstance(value := getattr(part, one.name), np.ndarray)
    }
    assert len(found["RequestColumns.finish"]) > 0
    return digest({name: np.nan_to_num(value, nan=-1.0) for name, value in sorted(found.items())})


def _options(**given: Any) -> ServingOptions:
    return ServingOptions(**{"keep_runs": True, "seed": 3, "discard": 0.0, **given})


LOST = (Failure(2, 4.0, 9.0), Failure(0, 6.0, 7.0))
SOON = (Failure(2, 0.3, 0.9), Failure(0, 0.6, 0.7))
COLD = ColdStarts(initial=0, keep_alive_seconds=1.5)
HELD = ColdStarts(initial=1, held=True, prewarms=False, keep_alive_seconds=0.5)


@pytest.mark.parametrize(
    ("scheduler", "options", "word"),
    [
        ("compass", {}, "58b21c2715f9"),
        ("compass", {"failures": LOST}, "3938c514663b"),
        ("compass", {"noise": 0.3, "nic_queues": True, "eviction_copies": True}, "60628008a780"),
        ("compass:as-published", {"load_staleness_seconds": 0.2, "cache_staleness_seconds": 0.5}, "55e8256a3bb6"),
        ("compass:as-published,count-running,no-prefetch", {}, "1d8ef1cc9d6b"),
        ("compass:no-adjust,no-homes", {}, "025e07a70a61"),
        ("compass:fifo-eviction,no-overtaking", {"noise": 0.2}, "fad74ebd02d6"),
        ("compass:ignore-load", {}, "ee5a046d654d"),
        ("compass:ignore-cache,no-replacing", {"failures": LOST}, "54223e51d874"),
        ("compass:centralised", {"failures": LOST}, "3ff82f4683f9"),
        ("compass:no-batching", {"noise": 0.2}, "905422425c3e"),
        ("jit", {"failures": LOST}, "d930c78f0bf4"),
        ("jit:prefetch,ignore-cache", {}, "923645b19ade"),
        ("heft", {}, "e231ef72bf78"),
        ("heft:load-aware,prefetch", {"failures": LOST}, "97b84816e914"),
        ("hash", {"failures": LOST}, "e96e188e1424"),
        ("hash:prefetch", {"noise": 0.5}, "c8a66d0e6aa8"),
    ],
)
def test_runs_of_placers_are_what_they_were(scheduler: str, options: dict[str, Any], word: str) -> None:
    workload = ServingWorkload("compass-edge", "gamma:2", 5, 60, 4.0)
    assert _word(ServingRun(workload, scheduler, _options(**options))()) == word


@pytest.mark.parametrize(
    ("scheduler", "load", "slo", "apps", "cold", "options", "word"),
    [
        ("esg", "normal", "moderate", "chains", None, {}, "6bc59cd84ca7"),
        ("esg", "heavy", "strict", "dag", COLD, {"noise": 0.2}, "17205f972c4a"),
        ("esg:shed,noise-margin", "heavy", "strict", "chains", HELD, {"noise": 0.3}, "576e612f4ef3"),
        ("esg:same,no-locality", "normal", "relaxed", "chains", COLD, {}, "a28e12d94850"),
        ("esg:fixed-quota,no-replan", "normal", "moderate", "dag", None, {"noise": 0.2}, "8d9600baf225"),
        ("esg:no-batching", "light", "moderate", "chains", None, {}, "60e805d52de1"),
        ("esg:no-gpu-sharing", "light", "moderate", "chains", COLD, {}, "ea75f375021f"),
        ("esg:mig-legal", "normal", "moderate", "chains", HELD, {}, "af74aa88559d"),
        ("front", "normal", "moderate", "chains", None, {}, "7ce93f0514c5"),
        ("front", "heavy", "strict", "dag", COLD, {"noise": 0.2}, "4fb319a659eb"),
        ("infless", "normal", "moderate", "chains", COLD, {}, "ef09ead781da"),
        ("infless:efficiency", "heavy", "relaxed", "dag", HELD, {"noise": 0.2}, "c14440684699"),
        ("fast-gshare", "normal", "moderate", "chains", None, {}, "ccf66536ed10"),
        ("fast-gshare", "heavy", "strict", "dag", COLD, {"noise": 0.2}, "89628bfb6a19"),
        ("orion:samples=200", "normal", "moderate", "chains", None, {}, "83a5aa8273e4"),
        ("esg", "heavy", "moderate", "chains", COLD, {"failures": SOON, "noise": 0.2}, "025d35d8c000"),
        ("esg:shed", "heavy", "strict", "dag", HELD, {"failures": SOON}, "c27d3405cb4b"),
        ("front", "heavy", "relaxed", "chains", HELD, {"failures": SOON}, "e86dc227eb62"),
        ("infless", "heavy", "moderate", "dag", COLD, {"failures": SOON, "nic_queues": True}, "7adfd54abd8d"),
        ("fast-gshare", "heavy", "moderate", "chains", HELD, {"failures": SOON}, "c312e90f4208"),
        ("orion:samples=200", "heavy", "strict", "dag", HELD, {"failures": SOON}, "8719d4252aa8"),
    ],
)
def test_runs_of_configurators_are_what_they_were(
    scheduler: str, load: str, slo: str, apps: str, cold: ColdStarts | None, options: dict[str, Any], word: str
) -> None:
    workload = EsgApps(load, slo, apps, seconds=1.5, workers=4, cold=cold, most_containers=None)
    assert _word(ServingRun(workload, scheduler, _options(**options))()) == word
