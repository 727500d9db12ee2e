"""A scenario made of a trace of requests: each model that it names is a workflow of one stage.

The trace says how long each request ran, but neither how large a model is nor what it ran on. These are assumptions:
checkpoints of 6.94 GB (Stable Diffusion XL in half precision) on GPUs with 24 GB, 3 GB of it kept for activations,
and 2 GB/s to load one, as from a local disk, since no host has room for all of them.
"""

from __future__ import annotations

import numpy as np

from fairway.errors import InputError
from fairway.links import Links
from fairway.place.fleet import Worker
from fairway.sim.scenario import Scenario
from fairway.traces.request_trace import RequestTrace
from fairway.workflows import Model, Stage, Workflow

MODEL_BYTES = 6_940_000_000
MEMORY_BYTES = 21_000_000_000
LOAD_BANDWIDTH = 2e9
WORKERS = 16


def trace_models(trace: RequestTrace) -> Scenario:
    """One workflow for each model; its stage takes as long as a request for it took on average."""
    if not trace.asks_for:
        raise InputError(f"{trace.source}: no column says which model; scenario 'trace-models' needs one, as workflow")
    if np.isnan(trace.seconds).any():
        raise InputError(f"{trace.source}: a row without seconds; scenario 'trace-models' needs the run time of each")
    asked = np.array([trace.names.index(name) for name in trace.asks_for])
    workflows = tuple(
        Workflow(
            (Stage.of("generate", float(trace.seconds[asked == number].mean()), name),),
            models={name: Model(name, MODEL_BYTES)},
            name=name,
        )
        for number, name in enumerate(trace.names)
    )
    return Scenario(
        name="trace-models",
        workflows=workflows,
        workers=tuple(Worker(f"w{number}", MEMORY_BYTES) for number in range(WORKERS)),
        links=Links(to_device_bandwidth=LOAD_BANDWIDTH),
    )
