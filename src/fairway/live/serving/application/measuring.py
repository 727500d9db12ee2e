"""Measures one stage, in a process of its own: how long it takes by batch size, and what its model needs.

    python -m fairway.live.serving.application.measuring TASK.json

The task names what to measure and the file for the answer. A fresh process for each stage, since memory that another
one has touched would hide what this one needs. What only the first load costs (importing libraries, starting their
threads) is not counted: the model is loaded once, let go, and then measured.
"""

from __future__ import annotations

import json
import os
import pickle
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

from fairway.live.machine.containment import group_at
from fairway.live.serving.application.definition import Application, ServedWorkflow, load_application
from fairway.live.serving.runtime.background_thread import INLINE_SECONDS, BackgroundThread
from fairway.live.serving.runtime.process_memory import forget_peak, give_back, peak_bytes, resident_bytes
from fairway.live.serving.supervise.parent_process import end_with_parent
from fairway.workflows import Arguments

_LOADS = 3
"""How often a model is loaded to measure that."""

_MOST_RUNS, _ENOUGH_SECONDS = 10, 0.02
"""A short stage is run up to so often, or until it has run for so long, for each batch that it is measured with."""

_BUSY_SECONDS = 0.5
"""A stage is run for so long at least to measure it in a slice."""

_REST_SECONDS = 0.01
"""How long a stage rests before each run. In service other stages run in between, or none, and caches cool down: one of
half a millisecond takes twice as long then as when it is run over and over."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a process is to do: collect the arguments of all stages (`stage` is None), or measure one stage.

    With `groups`, it is measured in a slice: in control groups that hold it to a part of its CPUs. One that `loops`
    keeps its slice busy until its process is ended; its answer comes when it has begun.
    """

    target: str
    workflow: str
    answer: str
    arguments: str
    stage: int | None = None
    threads: int = 1
    batches: tuple[int, ...] = (1,)
    repeats: int = 5
    groups: tuple[str, ...] = ()
    loops: bool = False

    def save(self, path: Path) -> None:
        """Write it down for the process."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")


def main(path: str) -> None:
    """Do what the task in this file says; the answer is a file with JSON."""
    content = json.loads(Path(path).read_text(encoding="utf-8"))
    task = Task(**{**content, "batches": tuple(content["batches"]), "groups": tuple(content["groups"])})
    try:
        application = load_application(task.target, threads=task.threads, memory_needed=False)
        served = application.workflows[task.workflow]
        if task.stage is None:
            answer = _collect(task, application, served)
        elif task.groups:
            answer = _measure_in_slice(task, application, served, task.stage)
        else:
            answer = _measure(task, application, served, task.stage)
    except Exception as error:  # whatever the author's code raises is the answer, and not printed
        answer = {"error": f"{type(error).__name__}: {error}"}
    Path(task.answer).write_text(json.dumps(answer), encoding="utf-8")


def _collect(task: Task, application: Application, served: ServedWorkflow) -> dict[str, Any]:
    """Run every sample through the workflow; keep what each stage was called with, and how large its output was."""
    file = Path(task.arguments)
    payloads = pickle.loads(file.read_bytes())
    called: list[list[Arguments]] = [[] for _ in served.workflow.stages]
    sizes: list[list[int]] = [[] for _ in served.workflow.stages]
    models: dict[str, object] = {}
    for payload in map(served.payload, payloads):
        outputs: dict[int, Any] = {}
        for stage in range(len(served.workflow)):
            name = served.model_of(stage)
            if name is not None and name not in models:
                models[name] = application.models[name].loader()
            called[stage].append(served.arguments(stage, payload, outputs))
            (output,) = served.run(stage, None if name is None else models[name], called[stage][-1:])
            outputs[stage] = list(output) if served.is_streaming(stage) else output
            sizes[stage].append(_size(outputs[stage]))
    for stage, batch in enumerate(called):
        name = served.workflow.stages[stage].name
        try:
            file.with_name(f"{file.stem}-{stage}.pickle").write_bytes(pickle.dumps(batch, protocol=5))
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            raise TypeError(f"what stage '{name}' takes cannot go to another process: {error}") from None
    return {
        "output_bytes": [round(statistics.mean(each)) for each in sizes],
        "input_bytes": round(statistics.mean(_size(dict(given)) for given in payloads)),
    }


def _measure(task: Task, application: Application, served: ServedWorkflow, stage: int) -> dict[str, Any]:
    file = Path(task.arguments)
    samples = pickle.loads(file.with_name(f"{file.stem}-{stage}.pickle").read_bytes())
    name = served.model_of(stage)
    batches = [1] if served.is_streaming(stage) else sorted(task.batches)
    if name is None:
        _run(served, stage, None, samples[:1])
        return {"seconds": _times(served, stage, None, samples, batches, task.repeats)}
    entry = application.models[name]
    loads, sizes = [], []
    before = 0
    for turn in range(_LOADS + 1):
        started = time.perf_counter()
        model = entry.loader()
        loads.append(time.perf_counter() - started)
        _run(served, stage, model, _batch(samples, 0, batches[-1]))
        give_back()
        sizes.append(resident_bytes() - before)
        if turn < _LOADS:
            _let_go(application, name, model)
            del model
            give_back()
            before = resident_bytes() if turn == 0 else before
    give_back()
    loaded = resident_bytes()
    can_tell = forget_peak()
    seconds = _times(served, stage, model, samples, batches, task.repeats)
    working = max(0, peak_bytes() - loaded) if can_tell else None
    _let_go(application, name, model)
    del model
    give_back()
    return {
        "seconds": seconds,
        "load_seconds": statistics.median(loads[1:]),
        "bytes": max(0, round(statistics.median(sizes[1:]))),
        "working_bytes": working,
        "left_bytes": max(0, resident_bytes() - before),
    }


def _measure_in_slice(task: Task, application: Application, served: ServedWorkflow, stage: int) -> dict[str, Any]:
    """How long a stage takes by batch size in a slice that is always busy: in a rest, it would catch up."""
    file = Path(task.arguments)
    samples = pickle.loads(file.with_name(f"{file.stem}-{stage}.pickle").read_bytes())
    name = served.model_of(stage)
    model = None if name is None else application.models[name].loader()
    batches = [1] if served.is_streaming(stage) else sorted(task.batches)
    _run(served, stage, model, _batch(samples, 0, batches[-1]))
    group_at(task.groups).enter()
    if task.loops:
        end_with_parent(os.getppid())
        Path(task.answer).write_text("{}", encoding="utf-8")
        while True:
            _run(served, stage, model, _batch(samples, 0, batches[0]))
    return {"seconds": {size: _busy_seconds(served, stage, model, samples, size, task.repeats) for size in batches}}


def _busy_seconds(
    served: ServedWorkflow, stage: int, model: object, samples: Sequence[Arguments], size: int, repeats: int
) -> float:
    """The mean over runs that follow each other at once."""
    least = max(repeats, -(-len(samples) // size))
    _run(served, stage, model, _batch(samples, 0, size))  # what was left of the quota, this one has used up
    runs, started = 0, time.perf_counter()
    while runs < least or time.perf_counter() - started < _BUSY_SECONDS:
        _run(served, stage, model, _batch(samples, (runs * size) % len(samples), size))
        runs += 1
    return (time.perf_counter() - started) / runs


def _times(
    served: ServedWorkflow,
    stage: int,
    model: object,
    samples: Sequence[Arguments],
    batches: Sequence[int],
    repeats: int,
) -> dict[int, float]:
    """By batch size, the mean over all runs: what takes longer now and then does so in service, too."""
    times, background = {}, Background()
    for size in batches:
        starts = range(0, len(samples), size) if size < len(samples) else [0]
        means = []
        for start in starts:
            run = partial(_run, served, stage, model, _batch(samples, start, size))
            is_long = _seconds(run, None) >= INLINE_SECONDS
            means.append(_mean_seconds(run, repeats, background if is_long else None))
        times[size] = statistics.mean(means)
    return times


class Background:
    """A thread as workers run long stages in, and a way to wait until it wakes this one."""

    def __init__(self) -> None:
        self._woken = Event()
        self._thread = BackgroundThread("fairway-stages", self._woken.set)

    def run(self, function: Callable[[], None]) -> None:
        """Run a function there; returns when this thread knows that it is over, and raises what it raised."""
        problems: list[BaseException | None] = []
        self._thread.run(function, lambda _, problem: problems.append(problem))
        self._woken.wait()
        self._woken.clear()
        self._thread.deliver()
        if problems[0] is not None:
            raise problems[0]


def _mean_seconds(run: Callable[[], None], repeats: int, background: Background | None) -> float:
    """The mean of so many runs, of more where each is over in a moment."""
    runs: list[float] = []
    while len(runs) < repeats or (len(runs) < _MOST_RUNS and sum(runs) < _ENOUGH_SECONDS):
        time.sleep(_REST_SECONDS)
        runs.append(_seconds(run, background))
    return statistics.mean(runs)


def _seconds(run: Callable[[], None], background: Background | None) -> float:
    """How long a run takes, until this thread knows that it is over; with a background, it runs there."""
    started = time.perf_counter()
    if background is None:
        run()
    else:
        background.run(run)
    return time.perf_counter() - started


def _run(served: ServedWorkflow, stage: int, model: object, batch: Sequence[Arguments]) -> None:
    results = served.run(stage, model, batch)
    if served.is_streaming(stage):
        for _ in results[0]:
            pass


def _batch(samples: Sequence[Arguments], start: int, size: int) -> list[Arguments]:
    return [samples[(start + number) % len(samples)] for number in range(size)]


def _let_go(application: Application, name: str, model: object) -> None:
    unloader = application.models[name].unloader
    if unloader is not None:
        unloader(model)


def _size(value: object) -> int:
    """How many bytes a value takes on its way to another process."""
    buffers: list[pickle.PickleBuffer] = []
    try:
        content = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    except (pickle.PicklingError, TypeError, AttributeError):
        return 0
    return len(content) + sum(len(buffer.raw()) for buffer in buffers)


if __name__ == "__main__":
    main(sys.argv[1])
